/* Keeps every <figure class="cx-gantt" data-spec="..."> alive: the orders of a pipeline, the clock that runs them and
   the chart; capacity/pictures/chart.py, with its letters. The clock is simulate() of
   witness/schedule.py; a test compares them. */
addEventListener("DOMContentLoaded", () => {
  "use strict";
  const { escape, fixed, width, most, rect, path, text, group, paint, frame, legend, el } = cx;
  const ROLES = { F: "compute", B: "limit", I: "limit", W: "measured" }, PALE = [1, .42, .3, .2];

  // ---- an order out of the text that code() in Python wrote
  function decode(text) {
    let [stages, order] = text.split(" ");
    while (order.includes("(")) order = order.replace(/\(([^()]*)\)(\d+)/g, (_, x, n) => x.repeat(n));
    const at = stages.split(",").map((s) => ({ s: s.split("/").map(Number), next: 0, held: [], half: [] }));
    return order.match(/\w\+*\d*(&\w\+*\d*)*/g).map((slot) => slot.split("&").map((op) => {
      const [, kind, plus, n] = op.match(/(.)(\+*)(\d*)/), a = at[plus.length], queue = kind === "W" ? a.half : a.held;
      const j = n ? +n : kind === "F" ? a.next : queue[0];
      if (kind === "F") { a.next = j + 1; queue.push(j); } else queue.splice(queue.indexOf(j), 1);
      if (kind === "I") a.half.push(j);
      return [kind, a.s[0], j, a.s[1]];
    }));
  }
  function chart({ at: [, p, m], rows, ...more }) {
    const decoded = rows.map(decode);
    return { ...more, p, m, rows: decoded, pairs: decoded.some((row) => row.some((slot) => slot[1])) };
  }

  // ---- the clock
  function clock({ p, m, v, rows, peaks }, [F, I, W, share = 1]) {
    const times = { F: F/v, I: I/v, W: W/v, B: I/v + W/v }, pair = share*(F + I + W)/v, ahead = [], back = [], bars = rows.map(() => []), busy = rows.map(() => 0);
    const there = ([kind, s, j]) => kind === "F" ? (s ? ahead[(s - 1)*m + j] : 0) : kind === "W" ? back[s*m + j]
      : s < p*v - 1 ? back[(s + 1)*m + j] : ahead[s*m + j];
    for (let moved = true; moved;) {
      moved = false;
      rows.forEach((row, d) => {
        const done = bars[d];
        for (const slot of row.slice(done.length)) {
          const start = Math.max(done.length ? done.at(-1)[1] : 0, ...slot.map(there));
          if (isNaN(start)) break;
          const took = slot.length > 1 ? pair : times[slot[0][0]], end = start + took;
          busy[d] += took;
          for (const [kind, s, j] of slot) if (kind !== "W") (kind === "F" ? ahead : back)[s*m + j] = end;
          done.push([start, end, slot]);
          moved = true;
        }
      });
    }
    const ends = bars.map((done) => done.at(-1)[1]), work = busy.reduce((a, b) => a + b, 0);
    return { bars, makespan: most(ends, 0), work, span: most(ends.map((e, d) => e - bars[d][0][0]), 0), peaks, top: most(peaks, 0) };
  }

  // ---- words
  const number = (x) => String(Math.floor(100*x + .5 + 1e-9)/100), percent = (x) => Math.floor(1000*x + .5 + 1e-9)/10 + " %";
  function says(D) {
    const total = D.bars.length*D.makespan, idle = total - D.work;
    return [number(D.makespan), percent(idle/total), percent(idle/D.work), number(D.span), number(D.top)];
  }
  function fill(text, at, D) {
    const parts = [...says(D), D.peaks.map(number).join(", "), ...at];
    return text.replace(/\{(\d)\}/g, (_, n) => parts[n]);
  }
  const line = (at, D) => `<tr><th scope="row">${escape(at[0])}</th>` +
    [at[1], at[2], ...says(D)].map((c) => `<td>${c}</td>`).join("") + "</tr>";

  // ---- the picture
  function picture(S, i, { p, rows, key }, D, W) {
    const wide = W >= 520, label = (d) => wide ? `device ${d}` : String(d), high = p <= 4 ? 30 : p <= 8 ? 26 : 18, soft = { opacity: .8 };
    const x0 = 1.15*width(label(p - 1)) + 9, side = wide ? 124 : 72, long = most(rows.map((r) => r.length), 0);
    const [head, top] = legend(S.legends[key], W), y0 = top + 22, y1 = y0 + high*p;
    W = Math.max(W, Math.ceil(x0 + side + 3*long));
    const x1 = W - side, scale = (x1 - x0)/D.makespan, longest = side - 18 - 1.2*width(number(D.top));
    const out = [], left = [], right = [text(x1 + 10, y0 - 7, wide ? "peak activations" : "peak", "start", soft)];
    const raw = D.makespan/Math.max(4, Math.floor((x1 - x0)/60)), ten = Number("1e" + Math.floor(Math.log10(raw))), step = ten*[1, 2, 5, 10].find((n) => raw <= n*ten*(1 + 1e-9));
    for (let t = 0; t*step <= D.makespan*(1 + 1e-9); t++) {
      const x = x0 + scale*t*step;
      out.push(path(`M${fixed(x)} ${y1}v5`, { line: "other", line_opacity: .55 }), text(x, y1 + 18, number(t*step), "middle"));
    }
    out.push(text((x0 + x1)/2, y1 + 36, "time", "middle", soft));
    D.peaks.forEach((peak, d) => {
      const y = y0 + high*d, bar = longest*peak/D.top;
      out.push(rect(x0, y + 1, x1 - x0, high - 2, { line: "idle", line_opacity: .5 }));
      left.push(text(x0 - 8, y + high/2 + 4, label(d), "end"));
      right.push(rect(x1 + 10, y + high/2 - 5, bar, 10, { fill: "memory" }), text(x1 + 14 + bar, y + high/2 + 4, number(peak)));
    });
    const paths = {}, labels = [], weight = x1 - x0 < 8*long ? .5 : 1, widths = [];
    let roomy = true;
    D.bars.forEach((done, d, _, heights = []) => done.forEach(([start, end, slot]) => {
      const x = x0 + scale*start, z = x0 + scale*end, h = (high - 2)/slot.length, from = fixed(x), to = fixed(z);
      slot.forEach(([kind, , j, tone], n) => {
        const y = y0 + high*d + 1 + h*n, fill = ROLES[kind], all = paths[fill + tone] ||= { fill, opacity: PALE[tone], d: "" };
        const [top, foot] = heights[slot.length*(slot.length - 1)/2 + n] ||= [fixed(y), fixed(y + h)];
        all.d += `M${from} ${top}H${to}V${foot}H${from}Z`;
        if (end === start || !roomy) return;
        roomy = h >= 12 && (widths[j] ||= width(String(j))) + 2 < z - x;
        labels.push(text((x + z)/2, y + h/2 + 4, String(j), "middle", { color: tone ? "other" : "on:" + fill, size: 11, spoken: false }));
      });
    }));
    out.push(group(Object.values(paths).map(({ d, ...more }) => path(d, { ...more, line: "paper", weight })), { name: "cx-ops" }), ...(roomy ? labels : []),
      group(left, { name: "cx-left" }), group(right, { name: "cx-right" }), group(head, { name: "cx-head" }));
    return [out, W, y1 + 44, `${S.title}. ${fill(S.said[0], S.list[i].at, D)}`, x0, x1];
  }

  // ---- where the chart is wider than its box, legend, names and peaks stay in sight, and what is cut fades
  function pin(box, [, W, high, , x0, x1], at, over) {
    if (over < 1) return;
    box.querySelector(".cx-head").style.translate = at + "px";
    for (const [name, moved, hidden] of [["left", at, at], ["right", at - over, over - at]]) {
      const g = box.querySelector(".cx-" + name), side = name === "left" ? -1 : 1;
      if (!g.querySelector(".cx-edge")) {
        const edge = side < 0 ? x0 - 1 : x1;
        g.insertAdjacentHTML("afterbegin", paint([rect(side < 0 ? -9 : edge, 27, side < 0 ? edge + 9 : W - x1 + 9, high, { fill: "paper" }),
          group([1, 2, 3, 4, 5].map((n) => rect(edge - side*4*n - (side < 0 ? 4 : 0), 27, 4, high - 60, { fill: "paper", opacity: 1 - n/6 })), { name: "cx-edge" })]));
      }
      g.style.translate = moved + "px";
      g.querySelector(".cx-edge").style.display = hidden > 1 ? "" : "none";
    }
  }

  // ---- the live figure
  function mount(figure) {
    const S = JSON.parse(figure.dataset.spec), charts = [], v = S.sliders.map((s) => s.stops[s.at]);
    const of = (i) => (charts[i] ||= chart(S.list[i]));
    const box = el("div", { class: "cx-picture", role: "group", "aria-label": S.title }), table = figure.querySelector("table");
    const said = el("div", { class: "cx-read", "aria-live": "polite" }), controls = el("div", { class: "cx-controls" });
    let now = 0, W = 0, room = 640, at = 0, over = 0, drawn, words = "", queued = 0;
    const swap = (n, option) => S.list.findIndex(({ at }) => at.every((x, i) => x === (i === n ? option : S.list[now].at[i])));
    const sets = [], choices = S.options.flatMap((options, n) => {
      const set = cx.choice(S.choices[n], `${figure.id}-${n}`, options, (i) => { now = swap(n, options[i]); draw(); });
      sets.push(set);
      return options.map((option, i) => () => { set.inputs[i].disabled = swap(n, option) < 0; set.inputs[i].checked = S.list[now].at[n] === option; });
    });
    const sliders = S.sliders.map((s, i) => {
      const id = `${figure.id}-slider-${i}`, out = el("output", { for: id });
      const input = el("input", { type: "range", id, min: 0, max: s.stops.length - 1, value: s.at, autocomplete: "off" });
      input.addEventListener("input", later);
      controls.append(el("label", { for: id }, s.label), out, input);
      return { reset: () => { input.value = s.at; }, read: () => {
        v[i] = s.stops[input.value];
        if (out.textContent !== number(v[i])) input.ariaValueText = out.textContent = number(v[i]);
        input.disabled = i > 2 && !of(now).pairs;
      } };
    });
    const reset = el("button", { type: "button" }, "Reset"), details = el("details", {}, el("summary", {}, "All schedules as a table"), el("div", {}, table));
    reset.addEventListener("click", () => { now = 0; sliders.forEach((s) => s.reset()); draw(); });
    details.addEventListener("toggle", draw);
    figure.replaceChildren(el("figcaption", {}, S.title), ...sets, controls, box, said,
      el("p", { class: "cx-key" }, S.key), el("div", { class: "cx-foot" }, details, reset));

    function later() { if (!queued) queued = requestAnimationFrame(draw); }
    function draw() {
      queued = 0;
      choices.forEach((read) => read());
      sliders.forEach((s) => s.read());
      const D = clock(of(now), v), text = fill(S.said[1], S.list[now].at, D);
      drawn = picture(S, now, of(now), D, W);
      box.innerHTML = frame(drawn);
      over = Math.max(0, drawn[1] - room);                 // counted, not asked: an answer would lay the page out
      at = Math.min(at, over);
      box.tabIndex = over ? 0 : -1;
      pin(box, drawn, at, over);
      if (words !== text) said.innerHTML = words = text;
      if (details.open) table.tBodies[0].innerHTML = S.list.map(({ at }, i) => line(at, clock(of(i), v))).join("");
    }
    function fit() {
      const seen = box.clientWidth || 640;
      if (seen === room && W) return;
      room = seen;
      W = Math.max(280, Math.min(760, Math.floor(room)));
      draw();
    }
    box.addEventListener("scroll", () => { at = box.scrollLeft; pin(box, drawn, at, over); }, { passive: true });
    fit();
    new ResizeObserver(fit).observe(box);
  }

  cx.gantt = { chart, clock, fill, line, picture: (...at) => frame(picture(...at)) };
  cx.figures("cx-gantt", mount);
});
