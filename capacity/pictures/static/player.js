/* Plays each figure.cx-stepper, a recorded run: picture() of player.py. */
addEventListener("DOMContentLoaded", () => {
  "use strict";
  const { fixed, width, most, rect, path, text, group, paint, frame, legend, el } = cx, DASHES = ["", "7 4", "2 3", "9 3 2 3"], BEAT = 1500, TRAVEL = 220;

  function picture(S, k, W) {
    const [grid, arrows, high] = gridAndArrows(S, k, W), [head, y] = legend(S.links.map((name, i) => [name, "network", DASHES[i]]), W);
    const top = S.links.length ? y + 4 : 0;
    return [[...head, group([...grid, group(arrows, { name: "cx-arrows" })], { y: top })], W, top + high, `${S.title}. ${S.says[k]}`];
  }
  function gridAndArrows(S, k, W) {
    const { P, B } = S, G = S.group || P, rows = [...Array(B).keys()], widest = (list) => most(list.map(width), 0), soft = { opacity: .8 };
    let names = B > 1 ? rows.map((j) => `${S.block} ${j}`) : ["holds"];
    if (widest(names) > .14*W && B > 1) names = rows.map(String);
    const x0 = widest([...names, "rank"]) + 10, gap = 14, step = Math.min(120, (W - x0 - 1 - gap*Math.floor((P - 1)/G))/P);
    const high = B === 1 ? 34 : B <= 8 ? 26 : B <= 16 ? 20 : 17, numbered = width(`rank ${P - 1}`) + 6 > step;
    const every = S.steps.flatMap((s) => s.arrows), lift = (a, b) => Math.floor(14 + 50*Math.sqrt(Math.abs(a - b)/P));
    const left = (r) => x0 + step*r + gap*Math.floor(r/G);
    const up = most(every.map(([a, b]) => (a < b ? lift(a, b) : 0)), 0), down = most(every.map(([a, b]) => (a > b ? lift(a, b) : 0)), 0);
    const tips = up && up + 10, y0 = tips + (S.group ? 41 : 22), y1 = y0 + high*B;
    const out = numbered ? [text(x0 - 8, y0 - 7, "rank", "end", soft)] : [];
    for (let r = 0; r < P; r++) {
      out.push(text(left(r) + step/2, y0 - 7, numbered ? String(r) : `rank ${r}`, "middle"));
      if (!S.group || r % G) continue;
      const w = step*Math.min(P - r, G), name = `node ${r/G}`;
      out.push(rect(left(r) - 2, y0 - 22, w + 4, y1 - y0 + 25, { line: "idle", radius: 4 }));
      if (width(name) < w) out.push(text(left(r) + w/2, y0 - 26, name, "middle", soft));
    }
    const [now, fresh] = held(S, k), fills = {}, under = out.length;
    for (const j of rows) {
      const y = y0 + high*j;
      out.push(text(x0 - 8, y + high/2 + 4, names[j], "end", soft));
      for (let r = 0; r < P; r++) {
        const [ranks, texts] = S.states[now[[r, j]] || 0], x = left(r) + 1, w = step - 2, n = ranks.length;
        fill(fills, ranks, texts, P, x, y + 1, w, high - 2);
        const mark = !fresh[[r, j]] ? { line_opacity: .4 } : texts.length ? { weight: 2.2 } : { dash: "3 3" };
        out.push(rect(x, y + 1, w, high - 2, { line: "other", ...mark }));
        if (mark.weight) out.push(path(`M${fixed(x + w - 8)} ${fixed(y + 1)}h8v8Z`, { fill: "other" }));
        const said = texts.find((t) => width(t) < w);
        if (!said) continue;
        const at = n && ranks[n - 1] - ranks[0] === n - 1 && width(said) < w*n/P ? ranks[0] + ranks[n - 1] + 1 : P;
        out.push(text(x + w*at/P/2, y + high/2 + 4, said, "middle", n ? { halo: true, bold: n === P } : { color: "on:memory", bold: true, spoken: false }));
      }
    }
    out.splice(under, 0, ...stripes(fills));
    const arcs = [], heads = [], labels = [], boxes = [], thin = {};
    for (const [a, b, , link] of every) thin[[a, b, link]] = [a, b, "", link];              // at the start, all there will be
    for (const [a, b, label, link] of k ? S.steps[k].arrows : Object.values(thin)) {
      const side = a < b ? 1 : -1, y = a < b ? tips : y1 + 4, h = side*lift(a, b), c = fixed(y - h/.75);
      const u = left(a) + step*(.5 + .2*side), v = left(b) + step*(.5 - .2*side), w = width(label), x = (u + v)/2;
      arcs.push(path(`M${fixed(u)} ${fixed(y)}C${fixed(u)} ${c} ${fixed(v)} ${c} ${fixed(v)} ${fixed(y - 6*side)}`, { line: "network", weight: k ? 2 : 1, line_opacity: k ? 1 : .35, dash: DASHES[link] }));
      if (!k) continue;
      heads.push(path(`M${fixed(v - 4.5)} ${fixed(y - 8*side)}h9L${fixed(v)} ${fixed(y)}Z`, { fill: "network" }));
      if (label && boxes.every(([p, q, z]) => Math.abs(x - p) > (w + q)/2 + 3 || Math.abs(y - h - z) > 13)) {
        boxes.push([x, w, y - h]);
        labels.push(rect(x - w/2 - 3, y - h - 9, w + 6, 17, { fill: "paper" }), text(x, y - h + 4, label, "middle", { bold: true }));
      }
    }
    return [out, [...arcs, ...heads, ...labels], y1 + (down ? down + 16 : 6)];
  }

  function held(S, k) {                                     // the states of all cells after step k, and which are new
    const now = {};
    let fresh;
    for (const { cells } of S.steps.slice(0, k + 1)) {
      fresh = {};
      for (let i = 0; i < cells.length; i += 3) { const at = [cells[i], cells[i + 1]]; now[at] = cells[i + 2]; fresh[at] = k; }
    }
    return [now, fresh];
  }
  function fill(paths, ranks, texts, P, x, y, w, h) {
    const parts = ranks.length ? ranks.map((r) => ["rank" + r%4, r, r + 1]) : texts.length ? [["memory", 0, P]] : [];
    for (const [role, a, b] of parts) {
      const left = fixed(x + w*a/P);
      paths[role] = (paths[role] || "") + `M${left} ${fixed(y)}H${fixed(x + w*b/P)}V${fixed(y + h)}H${left}Z`;
    }
  }
  const stripes = (paths) => Object.entries(paths).map(([role, d]) => path(d, { fill: role, opacity: role === "memory" ? 1 : .45 }));

  // ---- what a rank sends travels along its arrow: a cell in small, from before the step
  function travel(S, k, g) {
    const [before] = held(S, k - 1), w = 30, h = 15;
    S.steps[k].arrows.forEach(([a, , label], i) => {
      const [ranks, texts] = S.states[before[[a, parseInt(label) || 0]] || 0], fills = {};
      fill(fills, ranks, texts, S.P, -w/2, -h/2, w, h);
      g.insertAdjacentHTML("beforeend", paint([group([rect(-w/2, -h/2, w, h, { fill: "paper" }), ...stripes(fills),
        rect(-w/2, -h/2, w, h, { line: "other", weight: 1.5 })], { name: "cx-block" })]));
      const block = g.lastChild;
      block.style.offset = `path("${g.children[i].getAttribute("d")}") 0deg`;
      block.animate({ offsetDistance: ["0%", "100%"] }, { duration: TRAVEL, easing: "ease-in-out" }).onfinish = () => block.remove();
    });
  }

  function mount(figure) {
    const all = JSON.parse(figure.dataset.spec), table = figure.querySelector("table"), id = figure.id + "-step", first = table.tBodies[0].innerHTML;
    const box = el("div", { class: "cx-picture" }), said = el("p", { "aria-live": "polite" }), out = el("output", { for: id });
    const slider = el("input", { type: "range", id, min: 0, step: 1, value: 0, autocomplete: "off" });
    const button = (text, act) => { const b = el("button", { type: "button" }, text); b.addEventListener("click", act); return b; };
    const { algorithms = [], ranks = [], others = [] } = all, chosen = [0, 0];
    let S = all, last = S.steps.length - 1, at = 0, W = 0, beat = 0;
    const halt = () => { clearInterval(beat); beat = 0; play.textContent = "Play"; };
    const go = (k, moves) => { const from = at; at = Math.max(0, Math.min(last, k)); draw(moves && at === from + 1); };
    const to = (k, moves) => { halt(); go(k, moves); };
    const toggle = () => {
      if (beat) return halt();
      go(at === last ? 0 : at + 1, true);
      if (at < last) { play.textContent = "Pause"; beat = setInterval(() => { go(at + 1, true); if (at === last) halt(); }, BEAT); }
    };
    const play = button("Play", toggle), keys = { ArrowRight: () => to(at + 1, true), ArrowLeft: () => to(at - 1), Home: () => to(0), End: () => to(last), " ": toggle };
    const key = el("p", { class: "cx-key" }), foot = el("details", {}, el("summary", {}, "All steps as a table"), el("div", {}, table));
    const choices = [["algorithm", algorithms], ["ranks", ranks]].map(([name, options], n) =>
      cx.choice(name, `${figure.id}-${n}`, options, (i) => { chosen[n] = i; choose(); }));
    figure.replaceChildren(el("figcaption", {}, S.title), ...choices.filter((_, n) => [algorithms, ranks][n].length > 1),
      el("div", { class: "cx-buttons", role: "group", "aria-label": "Player" }, button("First", () => to(0)), button("Back", () => to(at - 1)),
        play, button("Next", () => to(at + 1, true)), button("Last", () => to(last))),
      el("div", { class: "cx-controls" }, el("label", { for: id }, "step"), out, slider), box,
      el("div", { class: "cx-read" }, said, key), el("div", { class: "cx-foot" }, foot));
    slider.addEventListener("input", () => to(Number(slider.value)));
    box.addEventListener("click", () => slider.focus({ preventScroll: true }));
    figure.addEventListener("keydown", (e) => {
      const of = e.target.tagName;
      if (!keys[e.key] || e.altKey || e.ctrlKey || e.metaKey || e.target.closest("details, fieldset") || (e.key === " " && of === "BUTTON")) return;
      e.preventDefault();
      keys[e.key]();
    });

    function choose() {                                     // another run, or the sentence why there is none
      const i = chosen[0]*ranks.length + chosen[1], next = i ? others[i] : all, none = typeof next === "string";
      halt();
      figure.classList.toggle("cx-none", none);
      if (none) { said.textContent = next; return; }
      S = next;
      last = S.steps.length - 1;
      table.tBodies[0].innerHTML = i ? S.table : first;
      start();
      go(0);
    }
    function start() {
      slider.max = last;
      key.textContent = S.key;
    }
    function draw(moves) {
      slider.value = at;
      out.textContent = at ? `${at} of ${last}` : "start";
      slider.setAttribute("aria-valuetext", out.textContent);
      box.innerHTML = frame(picture(S, at, W));
      if (said.textContent !== S.says[at]) said.textContent = S.says[at];
      if (moves && !matchMedia("(prefers-reduced-motion: reduce)").matches) travel(S, at, box.querySelector(".cx-arrows"));
    }
    function fit() {
      const w = box.clientWidth ? Math.max(280, Math.min(760, Math.floor(box.clientWidth))) : W || 640;      // hidden: as it was
      if (w !== W) { W = w; draw(); }
    }
    start();
    fit();
    new ResizeObserver(fit).observe(box);
    figure.cx = { go: to, get S() { return S; } };
    const seen = new IntersectionObserver(([e]) => { if (e.isIntersecting) { seen.disconnect(); toggle(); } });
    if ("plays" in figure.dataset && !matchMedia("(prefers-reduced-motion: reduce)").matches) seen.observe(box);
  }

  cx.player = (...at) => frame(picture(...at));
  cx.figures("cx-stepper", mount);
});
