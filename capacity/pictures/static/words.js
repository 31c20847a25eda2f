/* The words of a page that answer: decision cards, the reader's guess, quick questions.  No framework, no request; works
   from file://.  What a reader guesses is kept in this browser (localStorage) and never leaves it; the setting of a card is
   in the address with those of the explorers.  numbers() and sentence() are those of capacity/pictures/decision.py: a test compares them. */
addEventListener("DOMContentLoaded", () => {
  "use strict";
  const { el, escape, single, bind } = cx, show = (...quantity) => single(cx.show(...quantity));
  const store = { get: (k) => { try { return localStorage.getItem("book:" + k); } catch { return null; } },
    set: (k, v) => { try { localStorage.setItem("book:" + k, v); } catch { /* private window */ } } };
  const typeset = (e) => { if (e.textContent.includes("\\(") && window.MathJax && MathJax.typesetPromise) MathJax.typesetPromise([e]); };
  const strip = (text) => text.replace(/<.*?>/g, "").replace(/&(lt|gt|quot|#x27|amp);/g,
    (_, k) => ({ lt: "<", gt: ">", quot: '"', "#x27": "'", amp: "&" })[k]);

  // ---- decisions: a specification, a setting (an entry per input), its numbers and words
  function decision(S) {
    const f = (js) => new Function("v", "return " + js);
    const rows = S.rows.map(([, set]) => set.map(f)), values = S.columns.map((c) => f(c.js));
    const tests = S.columns.map((c) => c.test && f(c.test)), says = S.says.map(([, js]) => f(js));
    const vector = (setting) => S.inputs.flatMap((x, i) => (x.options ? x.options[setting[i]][1] : [Number(setting[i])]));

    function numbers(setting) {
      const first = vector(setting), D = { cells: [], limits: [], fails: [], take: -1, near: -1, worst: -1, says: -1 };
      const vectors = [];
      let best = null;
      rows.forEach((row, r) => {
        const v = [...first, ...row.map((g) => g(first))], limits = [], fails = [], misses = [];
        vectors.push(v);
        const cells = values.map((g) => g(v));
        cells.forEach((value, k) => {
          const kind = S.columns[k].kind, bound = kind && tests[k](v);
          limits.push(kind === "at most" || kind === "at least" ? bound : null);
          const good = !kind || (kind === "at most" ? value <= bound : kind === "at least" ? value >= bound : Boolean(bound));
          const miss = kind === "at most" ? value/bound : kind === "at least" ? bound/value : Infinity;
          fails.push(!good);
          misses.push(good ? 0 : miss > 1 ? miss : Infinity);
        });
        D.cells.push(cells); D.limits.push(limits); D.fails.push(fails);
        const worst = Math.max(0, ...misses), count = fails.filter(Boolean).length;
        if (count && (!best || worst < best[0] || (worst === best[0] && count < best[1]))) {
          best = [worst, count]; D.near = r; D.worst = misses.indexOf(worst);
        }
      });
      const passed = rows.map((_, r) => r).filter((r) => !D.fails[r].some(Boolean));
      if (passed.length) {
        D.take = S.take === "last" ? passed.at(-1) : passed[0];
        if (S.by !== null) {
          const sign = S.take === "least" ? 1 : -1;
          const keys = passed.map((r) => { const x = sign*D.cells[r][S.by]; return x !== x ? Infinity : x; });
          D.take = passed[keys.indexOf(Math.min(...keys))];
        }
        D.says = says.findIndex((g) => g(vectors[D.take]));
      }
      return D;
    }

    const text = (value, k) => (typeof value === "boolean" ? (value ? "yes" : "no") : show(value, S.columns[k].unit, S.columns[k].digits));
    const typed = (x, s) => { const v = s*x.over/x.times; return Number(v.toPrecision(12)); };
    const decimal = (v) => (v === 0 || (Math.abs(v) >= 1e-4 && Math.abs(v) < 1e12) ? v.toLocaleString("en", { maximumFractionDigits: 20 }) : show(v, "", 6));
    const inputText = (x, s) => (x.options ? x.options[s][0] : "on" in x ? (s ? "yes" : "no")
      : single(`${decimal(typed(x, s))} ${x.unit}`.trimEnd()));
    const allowed = (x, v) => (x.above ? v > x.lo : v >= x.lo) && v <= x.hi && (!x.whole || v % 1 === 0);
    const write = (x) => (x.unit ? `a number of ${x.unit}` : "a number") + `, such as ${typed(x, x.value)}`;
    function number(x, text) {                             // what is typed in a field, SI: its unit may follow, nothing else; else NaN
      const found = text.trim().match(/^([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(.*)$/i);
      return found && ["", x.unit].includes(found[2]) ? Number(found[1])*x.times/x.over : NaN;
    }
    const bounds = (x) => `${x.whole ? "a whole number " : ""}${x.above ? "above" : "from"} ${decimal(typed(x, x.lo))}${x.above ? "," : ""} to ${decimal(typed(x, x.hi))}`;
    const rowText = (r) => (S.row ? `${S.row} = ${S.rows[r][0]}` : S.rows[r][0]);
    function fill(template, D, r, setting, why) {
      return template.map((p) => {
        if (typeof p === "string") return p;
        const said = p[0] === "row" ? rowText(r) : p[0] === "name" ? S.rows[r][0] : p[0] === "why" ? why
          : p[0] === "input" ? inputText(S.inputs[p[1]], setting[p[1]]) : text(D.cells[r][p[1]], p[1]);
        return escape(p.length > 3 ? `${said} ${p[said === "1" ? 2 : 3]}` : said);
      }).join("");
    }
    function cell(D, r, k, setting) {
      const value = D.cells[r][k], said = escape(text(value, k));
      if (!D.fails[r][k]) return said;
      const words = `<span>✗ ${fill(S.columns[k].fails, D, r, setting)}</span>`;
      return typeof value === "boolean" ? words : `<b>${said}</b> ${words}`;
    }
    function limit(D, k) {
      const bound = D.limits[0][k];
      return bound !== null && D.limits.every((row) => row[k] === bound) ? `${S.columns[k].kind} ${text(bound, k)}` : "";
    }
    function sentence(D, setting) {
      if (D.take >= 0) return fill(S.says[D.says][0], D, D.take, setting);
      const r = D.near, k = D.worst, bound = D.limits[r][k], c = S.columns[k];
      const why = bound === null ? `${c.label}: ${strip(fill(c.fails, D, r, setting))}`
        : `${c.label} is ${text(D.cells[r][k], k)}, and may be ${c.kind} ${text(bound, k)}`;
      return fill(S.none, D, r, setting, why);
    }
    const start = S.inputs.map((x) => (x.options ? x.at : "on" in x ? x.on : x.value));
    const settingText = (setting) => S.inputs.map((x, i) => `${x.label}: ${inputText(x, setting[i])}`).join("; ");
    return { numbers, cell, limit, sentence, start, typed, number, write, allowed, bounds, inputText, settingText };
  }

  function card(figure) {
    const S = JSON.parse(figure.dataset.spec), { numbers, cell, limit, sentence, start, typed, number, write, allowed, bounds, settingText } = decision(S);
    const setting = [...start], said = figure.querySelector(".cx-verdict"), given = figure.querySelector(".cx-setting");
    const heads = [...figure.querySelectorAll("thead small")], trs = [...figure.querySelectorAll("tbody tr")];
    const box = el("fieldset", { class: "cx-inputs" }, el("legend", {}, "Your numbers"));
    const last = el("p", { class: "cx-last", hidden: "" }, "For the last valid numbers:"), refused = new Set();
    function check(input, good) {                          // what is refused: the verdict stands for what was there before
      input.setAttribute("aria-invalid", String(!good));
      refused[good ? "delete" : "add"](input);
      last.hidden = !refused.size;
      figure.classList.toggle("cx-stale", refused.size > 0);
    }

    function field(x, i) {
      const id = `${figure.id}-${i}`, note = el("small", { id: id + "-n", role: "status" });
      // not type="number": a browser drops what it cannot read in one, and "20 MB" becomes 20 of this field's unit
      const input = el("input", { type: "text", inputmode: "decimal", id, autocomplete: "off", "aria-describedby": `${id}-u ${id}-n` });
      input.addEventListener("input", () => {
        const v = number(x, input.value), good = allowed(x, v);
        check(input, good);
        note.textContent = good ? "" : Number.isNaN(v) ? write(x) : bounds(x);
        if (good) { setting[i] = v; changed(); }
      });
      box.append(el("label", { for: id }, x.label), el("div", { class: "cx-typed" }, input, el("span", { id: id + "-u" }, x.unit), note));
      return () => { input.value = typed(x, setting[i]); check(input, true); note.textContent = ""; };
    }
    function choice(x, i) {
      const id = `${figure.id}-${i}`, names = x.options.map(([name]) => name);
      if (names.length <= 4 && names.join("").length <= 24) {
        const group = el("div", { class: "cx-segments", role: "radiogroup", "aria-labelledby": id + "-l" });
        const radios = names.map((name, k) => {
          const r = el("input", { type: "radio", name: id, value: k });
          r.addEventListener("change", () => { setting[i] = k; changed(); });
          group.append(el("label", {}, r, el("span", {}, name)));
          return r;
        });
        box.append(el("span", { id: id + "-l" }, x.label), group);
        return () => { radios[setting[i]].checked = true; };
      }
      const select = el("select", { id, autocomplete: "off" }, ...names.map((name, k) => el("option", { value: k }, name)));
      select.addEventListener("change", () => { setting[i] = Number(select.value); changed(); });
      box.append(el("label", { for: id }, x.label), select);
      return () => { select.value = setting[i]; };
    }
    function onoff(x, i) {
      const id = `${figure.id}-${i}`, input = el("input", { type: "checkbox", id, autocomplete: "off" });
      input.addEventListener("change", () => { setting[i] = Number(input.checked); changed(); });
      box.append(el("label", { for: id }, x.label), el("div", {}, input));
      return () => { input.checked = Boolean(setting[i]); };
    }
    const put = S.inputs.map((x, i) => (x.options ? choice : "on" in x ? onoff : field)(x, i));

    // the address carries the setting: #name=1_0_8192_50_1, a number as it was typed
    const address = () => setting.map((s, i) => ("times" in S.inputs[i] ? typed(S.inputs[i], s) : s)).join("_");
    function read() {
      const text = cx.asked(figure.id);
      if (!text) return false;
      text.split("_").slice(0, S.inputs.length).forEach((t, i) => {
        const x = S.inputs[i], v = "times" in x ? Number(t)*x.times/x.over : Number(t);
        if (t.trim() !== "" && (x.options ? x.options[v] : "on" in x ? v === 0 || v === 1 : allowed(x, v))) setting[i] = v;
      });
      return true;
    }
    function changed() { cx.tell(figure.id, address()); draw(); }
    function draw() {
      const D = numbers(setting), words = sentence(D, setting);
      given.textContent = bind(settingText(setting));
      heads.forEach((e, k) => { e.textContent = bind(limit(D, k)); });
      trs.forEach((tr, r) => {
        tr.classList.toggle("cx-mark", r === D.take);
        tr.querySelector("em").textContent = r === D.take ? "take" : "";
        tr.querySelectorAll("td").forEach((td, k) => {
          const text = cell(D, r, k, setting);
          if (td.cx === text) return;
          td.cx = text;
          td.innerHTML = bind(text);
          td.classList.toggle("cx-fail", D.fails[r][k]);
          typeset(td);
        });
      });
      if (said.cx !== words) { said.cx = words; said.innerHTML = bind(words); typeset(said); }
      figure.classList.toggle("cx-none", D.take < 0);
    }
    const reset = el("button", { type: "button" }, "Reset");
    reset.addEventListener("click", () => {
      setting.splice(0, setting.length, ...start);
      if (cx.asked(figure.id)) cx.tell(figure.id, null);
      put.forEach((p) => p()); draw();
    });
    given.before(box);
    box.append(reset);
    said.before(last);
    said.setAttribute("aria-live", "polite");
    const follow = () => { if (read()) { put.forEach((p) => p()); draw(); if (cx.leads(figure.id)) requestAnimationFrame(() => figure.scrollIntoView({ block: "start" })); } };
    put.forEach((p) => p());
    draw();
    follow();
    addEventListener("hashchange", follow);
    figure.cx = { S, setting, numbers, draw };
  }

  // ---- the guess and its place among the answers
  const spec = (e) => JSON.parse(e.dataset.spec), kept = (name) => { const v = store.get("guess:" + name); return v === null || v === "" ? null : Number(v); };
  const tell = (name) => dispatchEvent(new CustomEvent("cx-guess", { detail: name }));
  function place({ lo, hi, scale }, v) {
    const f = scale === "log" ? Math.log : Number;
    return v > 0 || scale !== "log" ? Math.max(0, Math.min(1, (f(v) - f(lo))/(f(hi) - f(lo)))) : 0;
  }
  function guessed({ lo, hi, scale, whole }, x) {          // x from 0 to 1; two digits are enough for a guess
    const v = scale === "log" ? lo*(hi/lo)**x : lo + (hi - lo)*x;
    const r = x <= 0 ? lo : x >= 1 ? hi : whole && Math.abs(v) < 20 ? Math.round(v) : Number(v.toPrecision(2));
    return Math.max(lo, Math.min(hi, r));
  }
  // ticks keep apart: all, or every second, or every third that do not touch
  function apart(ticks) {
    new ResizeObserver(() => {
      const all = [...ticks.children];
      for (let s = 1; s <= all.length; s++) {
        all.forEach((t, i) => { t.hidden = i % s > 0; });
        const rows = all.filter((t) => !t.hidden).map((t) => t.getBoundingClientRect());
        if (rows.every((r, i) => !i || r.left >= rows[i - 1].right + 6)) break;
      }
    }).observe(ticks);
  }
  function ask(box) {
    const S = spec(box), name = box.dataset.ask, id = "ask-" + name, ticks = box.querySelector(".cx-ticks");
    const out = el("output", { for: id }), told = el("button", { type: "button" }, "Just tell me");
    const slider = el("input", { type: "range", id, min: 0, max: 1000, step: 1, autocomplete: "off", "aria-labelledby": id + "-q" });
    const say = (v) => {
      out.textContent = v === null ? "move the slider" : show(v, S.unit);
      slider.setAttribute("aria-valuetext", v === null ? "no guess yet" : out.textContent);
      box.classList.toggle("said", v !== null);
    };
    const before = kept(name);
    slider.value = before === null ? 500 : Math.round(1000*place(S, before));
    say(before);
    slider.addEventListener("input", () => say(guessed(S, slider.value/1000)));
    slider.addEventListener("change", () => {              // let go: a finger on its way has not guessed
      store.set("guess:" + name, guessed(S, slider.value/1000));
      tell(name);
    });
    told.addEventListener("click", () => { store.set("told:" + name, "1"); tell(name); });
    box.querySelector(".cx-range").after(el("div", { class: "cx-slide" }, el("div", {}, slider, ticks), out));    // on paper the range in words
    apart(ticks);
    box.append(el("p", { class: "cx-keep" }, el("span", {}, "Kept in this browser only; it comes back beside the answer. "), told));
    if (before !== null || store.get("told:" + name)) setTimeout(() => tell(name));      // after all who listen
  }
  function answer(box) {
    const S = spec(box), name = box.dataset.answer, first = box.querySelector("p"), plain = first.innerHTML;
    const strip = box.querySelector(".cx-strip"), rows = [...strip.children], you = el("li", { class: "you" });
    const ask = document.querySelector(`[data-ask="${name}"]`);
    apart(box.querySelector(".cx-ticks"));
    function draw() {
      const v = kept(name);
      if (v === null) {
        first.innerHTML = plain;
        if (ask && !store.get("told:" + name)) first.append(el("span", { class: "cx-screen" }, " You have not guessed yet: ", el("a", { href: "#" + ask.id }, "the question is above"), "."));
        return;
      }
      const ratio = S.truth > 0 && v > 0 ? Math.max(v/S.truth, S.truth/v) : Infinity, side = v > S.truth ? "high" : "low";
      const near = rows.filter((li) => li.className === "slip").find((li) => Math.abs(place(S, Number(li.dataset.value)) - place(S, v)) < .015);
      const how = v === S.truth || ratio < 1.15 ? " Well guessed." : S.scale === "log" && isFinite(ratio)
        ? ` Your guess is ${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)} times too ${side}.` : ` Your guess is ${show(Math.abs(v - S.truth), S.unit)} too ${side}.`;
      first.innerHTML = `You said <b>${escape(show(v, S.unit))}</b>; it is <b>${escape(show(S.truth, S.unit))}</b>.${how}`;
      if (near && ratio >= 1.15) first.append(" It is close to a usual slip: ", near.querySelector("span").textContent, ".");
      you.innerHTML = `<span>you</span><b>${escape(show(v, S.unit))}</b><i aria-hidden="true"><i style="left:${(100*place(S, v)).toFixed(2)}%"></i></i>`;
      const below = rows.find((li) => Number(li.dataset.value) < v);
      strip.insertBefore(you, below || null);
    }
    addEventListener("cx-guess", (e) => { if (e.detail === name) draw(); });
    draw();
  }

  // ---- quick questions: an option is a button that opens its reason
  function quiz(box) {
    box.querySelectorAll("ul > li").forEach((li, k) => {
      const id = `${box.dataset.quiz}-why-${k}`, details = li.querySelector("details"), option = li.querySelector(".cx-option");
      const why = [...details.children].find((e) => e.tagName === "P"), live = el("div", { role: "status", id });
      const button = el("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, option);
      button.addEventListener("click", () => {
        const open = !li.classList.contains("open");
        li.classList.toggle("open", open);
        button.setAttribute("aria-expanded", String(open));
        live.replaceChildren(...(open ? [why] : []));
        typeset(live);
      });
      li.replaceChildren(button, live);
    });
  }

  Object.assign(cx, { decision, guessed, place });
  setTimeout(() => {                                       // after the script that brings show()
    cx.figures("cx-decide", card);
    document.querySelectorAll(".cx-ask[data-spec]").forEach(ask);
    document.querySelectorAll(".cx-answer[data-spec]").forEach(answer);
    document.querySelectorAll(".cx-quiz").forEach(quiz);
  });
});
