/* Draws every <figure class="cx-explore" data-spec="..."> and keeps its sliders alive, without a kernel, a library or a
   network; works from file:// too. With cx.js it is capacity/pictures/svg.py, function by function, and
   show() is that of capacity/units.py: a test compares them. */
addEventListener("DOMContentLoaded", () => {
  "use strict";
  const { escape, fixed, width, most, words, stroke, frame, legend, el, ink, pen, on, PAPER, HALO, BLACK, SOFT, BOLD } = cx;
  const WIDE = 520, YEAR = 365.25*86400;
  const LONG = [60, 600, 3600, 36000, 172800, 864000, 8640000, ...[2, 10, 100, 1e3, 1e4, 1e5].map((m) => m*YEAR)];
  const FINE = [...[1, 2, 5, 10, 20, 40].map((m) => 60*m), ...[1, 2, 5, 10, 20].map((m) => 3600*m),
    ...[2, 5, 10, 20, 50, 100, 200].map((m) => 86400*m), ...[1, 2, 5, 10, 20, 50, 100].map((m) => YEAR*m)];

  // ---- a quantity as a person writes it: capacity.show
  const PREFIX = { 18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", "-3": "m", "-6": "µ", "-9": "n", "-12": "p" };
  const PREFIXED = ["B", "B/s", "s", "FLOP", "FLOP/s", "W", "J", "Hz"];
  const TIMES = [[YEAR, "years"], [86400, "days"], [3600, "h"], [60, "min"]];
  const raised = (n) => [...String(n)].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("");

  function round(x, digits) {                     // like Python: a tie goes to the even digit
    const [, kept, power] = x.toExponential(30).match(new RegExp(`^(-?\\d\\.?\\d{${digits - 1}})50*e(.*)$`)) || [];
    return Number(kept && "02468".includes(kept.at(-1)) ? `${kept}e${power}` : x.toPrecision(digits));
  }
  const power = (x) => Number(x.toExponential().split("e")[1]), thrice = (p) => 3*Math.floor(p/3), ten = (p) => Number("1e" + p);
  const commas = (x) => {                         // a whole number, thousands apart
    const low = Math.floor(x), tie = x - low === .5;
    return String(tie ? low + Math.abs(low % 2) : Math.round(x)).replace(/\B(?=(\d{3})+$)/g, ",");
  };
  const digit = (x, digits) => {                  // %g, but a plain number where that has an exponent
    const r = round(x, digits), a = Math.abs(r);
    return a >= 10**digits || (a && a < 1e-4) ? commas(x) : String(r);
  };
  function prefixed(x, digits, top = 18) {
    const r = round(x, digits), p = r ? Math.max(-12, Math.min(top, thrice(power(r)))) : 0;
    return `${digit(r/ten(p), digits)} ${PREFIX[p]}`;
  }
  function powered(x, digits, step) {
    const p = step*Math.floor(power(x)/step), head = digit(x/ten(p), digits);
    return `${head === "1" ? "" : head + "×"}10${raised(p)}`;
  }
  function plain(x, digits) {
    const r = round(x, digits);
    if (Math.abs(x) >= 999999.5 || (r && Math.abs(r) < 1e-3)) return powered(r, digits, Math.abs(power(r)) >= 21 ? 1 : 3);
    return Math.abs(x) >= 100 || Number.isInteger(x) ? commas(x) : digit(r, digits);
  }
  function show(x, unit = "", digits = 3) {
    if (!isFinite(x)) return x !== x ? "n/a" : x > 0 ? "∞" : "-∞";
    if (unit === "%") return plain(100*x, digits) + " %";
    const r = Math.abs(round(x, digits));         // what is shown decides the size
    if (unit === "$") return (x < 0 ? "-$" : "$") + ((r && r < 1e-3) || r >= 1e18 ? powered(r, digits, 1)
      : r < 1e3 ? plain(r, digits) : prefixed(r, digits, 12).replace("G", "B"));
    if (unit === "s" && r >= 120) {
      const [size, name] = TIMES.find((t) => r >= 2*t[0]);
      return `${plain(Math.sign(x)*Math.max(Math.abs(x)/size, 2), digits)} ${name}`;
    }
    return PREFIXED.includes(unit) && (!r || (r >= 1e-14 && r < 1e21)) ? prefixed(x, digits) + unit
      : `${plain(x, digits)} ${unit}`.trimEnd();
  }

  // ---- numbers on an axis
  function rungs(unit, lo, hi, steps = [1]) {
    let out = [];
    for (let k = Math.floor(Math.log10(lo)) - 1; k < Math.ceil(Math.log10(hi)) + 2; k++) for (const m of steps) out.push(m*ten(k));
    if (unit === "s" && hi > 120) out = out.filter((v) => v < 60).concat(steps.length === 1 ? LONG : FINE);
    return out;
  }
  function niceStep(lo, hi, n, unit) {
    const size = (unit === "s" && hi >= 120 && [YEAR, 86400, 3600, 60].find((u) => hi >= 2*u)) || 1;
    const raw = (hi - lo)/size/n, p = ten(Math.floor(Math.log10(raw)));
    return size*p*[1, 2, 5, 10].find((m) => raw <= m*p*(1 + 1e-9));
  }
  const every = (list, s) => list.filter((_, i) => i % s === 0);
  function ticks(axis, n) {
    const { lo, hi, unit } = axis, out = [];
    if (axis.scale !== "log") {
      const s = Math.max(niceStep(lo, hi, n - 1, unit), axis.whole ? 1 : 0);
      for (let k = Math.ceil(lo/s - 1e-9); k <= Math.floor(hi/s + 1e-9); k++) out.push(k*s);
      return out;
    }
    const inside = (list) => list.filter((v) => lo*(1 - 1e-9) <= v && v <= hi*(1 + 1e-9));
    const a = Math.log2(lo), b = Math.log2(hi);
    if (axis.whole && unit === "" && a % 1 === 0 && b % 1 === 0 && (axis.binary || b - a <= 20)) {
      for (let k = a; k <= b; k += Math.max(1, Math.ceil((b - a)/(n - 1)))) out.push(2**k);
      return out;
    }
    const coarse = inside(rungs(unit, lo, hi)), long = unit === "s" && hi > 120;
    if (coarse.length < 4) {
      let fine = inside(rungs(unit, lo, hi, [1, 2, 5]));
      if (fine.length > n) fine = long ? every(fine, 2) : inside(rungs(unit, lo, hi, [1, 3]));
      return fine.length < 2 ? ticks({ ...axis, scale: "linear" }, n) : fine.length > n ? coarse : fine;
    }
    const s = [1, 2, 3, 4, 6, 9, 12, 24].find((k) => Math.ceil(coarse.length/k) <= n);
    return s > 1 && !long ? coarse.filter((v) => Math.round(Math.log10(v)) % s === 0) : every(coarse, s);
  }
  function span(values, axis, n) {
    const log = axis.scale === "log", unit = axis.unit;
    let a = Infinity, b = -Infinity;
    for (const v of values) if (isFinite(v) && (v > 0 || !log)) { if (v < a) a = v; if (v > b) b = v; }
    if (a > b) { a = 1; b = 10; }
    if (log) {
      a = Math.max(a, b*1e-12);
      const r = rungs(unit, a, b), below = r.filter((v) => v <= a*(1 + 1e-9)), above = r.filter((v) => v >= b*(1 - 1e-9));
      a = below.length ? below.at(-1) : a;
      b = above.length ? above[0] : b;
      if (b <= a) b = 10*a;
    } else {
      a = Math.min(0, a); b = Math.max(0, b);
      if (b <= a) b = a + 1;
      const s = niceStep(a, b, n - 1, unit);
      a = s*Math.floor(a/s + 1e-9); b = s*Math.ceil(b/s - 1e-9);
    }
    return [axis.lo ?? a, axis.hi ?? b];
  }
  function scaler(axis, lo, hi, a, b) {
    const f = axis.scale === "log" ? Math.log10 : Number, u = f(lo), k = (b - a)/(f(hi) - f(lo));
    return (v) => a + (f(v) - u)*k;
  }

  function spread(ys, gap, top, bottom) {
    const order = ys.map((_, i) => i).sort((i, j) => ys[i] - ys[j]), out = [...ys];
    for (let i = 1; i < order.length; i++) out[order[i]] = Math.max(out[order[i]], out[order[i - 1]] + gap);
    for (const i of order.reverse()) { out[i] = Math.max(Math.min(out[i], bottom), top); bottom = out[i] - gap; }
    return out;
  }
  function grid(X, Y, x0, x1, y0, y1, xs, ys, xunit, yunit, W) {
    let out = "";
    for (const v of xs) {
      const text = show(v, xunit), half = width(text)/2;
      out += stroke(`M${fixed(X(v))} ${y0}V${y1}`, "currentColor", 1, "", 'stroke-opacity="0.11"');
      out += words(Math.max(Math.min(X(v), W - half), half), y1 + 17, text, "middle", BLACK);
    }
    for (const v of ys) {
      out += stroke(`M${fixed(x0)} ${fixed(Y(v))}H${fixed(x1)}`, "currentColor", 1, "", 'stroke-opacity="0.16"');
      out += words(x0 - 7, Y(v) + 4, show(v, yunit), "end", BLACK);
    }
    return out + stroke(`M${fixed(x0)} ${y1}H${fixed(x1)}`, "currentColor", 1, "", 'stroke-opacity="0.55"');
  }
  const widest = (values, unit) => most(values.map((v) => width(show(v, unit))), 0);
  function thin(axis, n, pixels) {
    for (; n > 2; n--) {
      const out = ticks(axis, n);
      if ((out.length - 1)*(widest(out, axis.unit) + 14) <= pixels) return out;
    }
    return ticks(axis, 2);
  }

  // ---- lines and points
  function lines(S, D, W) {
    const { x, y, curves } = S, log = y.scale === "log", wide = W >= WIDE;
    const room = most(curves.map((c) => width(c.label)), 0) + 16, beside = wide && room <= .3*W && curves.length <= 9;
    const [head, top] = beside ? ["", 0] : legend(curves.map((c) => [c.label, c.color, c.dash]), W);
    const y0 = top + 26, h = wide ? 270 : 215, y1 = y0 + h, n = wide ? 7 : 6;
    const [lo, hi] = span([...D.curves.flat(), ...D.points.map((p) => p[1])], y, n);
    const ys = ticks({ ...y, lo, hi }, n), x0 = widest(ys, y.unit) + 8, x1 = W - (beside ? room : 10);
    const X = scaler(x, x.lo, x.hi, x0, x1), Y = scaler(y, lo, hi, y1, y0);
    let out = head + words(0, top + 13, y.label, "start", SOFT);
    out += grid(X, Y, x0, x1, y0, y1, thin(x, wide ? 7 : 5, x1 - x0), ys, x.unit, y.unit, W);
    out += words((x0 + x1)/2, y1 + 37, x.label, "middle", SOFT);

    const px = D.xs.map(X), marks = [], says = [];
    let inner = "";
    const ends = curves.map((c, k) => {
      const values = D.curves[k];
      let d = "", pencil = "M", end = null;
      values.forEach((v, i) => {
        if (!isFinite(v) || (v <= 0 && log)) { pencil = "M"; return; }
        const w = Math.min(Math.max(Y(v), y0 - 400), y1 + 400);
        d += `${pencil}${fixed(px[i])} ${fixed(w)}`;
        pencil = "L";
        if (y0 - 1 <= w && w <= y1 + 1) marks.push(end = [px[i], w]);
      });
      inner += stroke(d, ink(c.color), 2.4, c.dash);
      says.push(`${c.label}: ${show(values[0], y.unit)} to ${show(values.at(-1), y.unit)}`);
      return end;
    });
    out += `<svg class="cx-lines" x="0" y="${y0 - 2}" width="${W}" height="${h + 4}" viewBox="0 ${y0 - 2} ${W} ${h + 4}"` +
      ` stroke-linejoin="round">${inner}</svg>`;
    if (beside) {
      const seen = curves.map((_, i) => i).filter((i) => ends[i]), at = spread(seen.map((i) => ends[i][1]), 16, y0, y1);
      seen.forEach((i, k) => {
        const [u, w] = ends[i], v = at[k], c = curves[i];
        if (Math.abs(v - w) > 3 || u < x1 - 3)
          out += stroke(`M${fixed(u + 2)} ${fixed(w)}L${fixed(x1 + 8)} ${fixed(v)}`, ink(c.color), 1, "", 'stroke-opacity="0.6"');
        out += words(x1 + 10, v + 4, c.label, "start", `fill="${pen(c.color)}"`);
      });
    }
    return frame(S, W, y1 + 44, out + dots(S, D, X, Y, x0, x1, y0, y1, log, marks), says.join("; "));
  }
  const SIDES = [["start", 9, 4], ["end", -9, 4], ["middle", 0, -10], ["middle", 0, 19],
    ["start", 7, -8], ["start", 7, 17], ["end", -7, -8], ["end", -7, 17]];
  function dots(S, D, X, Y, x0, x1, y0, y1, log, marks) {
    const seen = S.points.map((p, i) => [p, ...D.points[i]])
      .filter(([, u, v]) => isFinite(u) && isFinite(v) && (u > 0 || S.x.scale !== "log") && (v > 0 || !log))
      .map(([p, u, v]) => [p, X(u), Y(v)])
      .filter(([, u, v]) => x0 - 1 <= u && u <= x1 + 1 && y0 - 1 <= v && v <= y1 + 1);
    const boxes = seen.map(([, u, v]) => [u - 6, v - 6, u + 6, v + 6]);
    let out = "";
    for (const [p, u, v] of seen) {
      const w = width(p.label);
      let best, least = Infinity;
      for (const [anchor, dx, dy] of SIDES) {
        const left = u + dx - { start: 0, middle: w/2, end: w }[anchor], box = [left - 2, v + dy - 11, left + w + 2, v + dy + 4];
        let cost = box[0] < x0 || box[2] > x1 + 10 || box[1] < y0 - 12 || box[3] > y1 ? 100 : 0;
        for (const [a, b] of marks) if (box[0] < a && a < box[2] && box[1] < b && b < box[3]) cost++;
        for (const b of boxes) if (box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3]) cost += 20;
        if (cost < least) { least = cost; best = [anchor, dx, dy, box]; }
      }
      const [anchor, dx, dy, box] = best;
      boxes.push(box);
      out += `<circle cx="${fixed(u)}" cy="${fixed(v)}" r="4.5" fill="${ink(p.color)}" ${HALO}/>`;
      out += words(u + dx, v + dy, p.label, anchor, `fill="${pen(p.color)}" ${HALO}`);
    }
    return out;
  }

  // ---- bars
  const sum = (list) => list.reduce((a, b) => a + b, 0);
  function bars(S, D, W) {
    const { y, limit } = S, unit = y.unit, wide = W >= WIDE, totals = D.bars.map(sum), one = S.bars.length === 1, parts = new Map();
    S.bars.forEach((b, k) => b.parts.forEach((p, i) => {
      if (!parts.has(p.label)) parts.set(p.label, [p.label + (one ? " " + show(D.bars[k][i], unit) : ""), p.color, null]);
    }));
    const [head, top] = legend(parts.values(), W), y0 = top + (limit ? 26 : 6), names = S.bars.map((b) => b.label);
    const longest = most(names.map(width), 0), beside = wide && longest <= .3*W, x0 = beside ? longest*1.06 + 10 : 0;
    const step = beside ? 44 : 62, y1 = y0 + step*names.length + (beside ? 0 : 4);
    const [lo, hi] = span([...totals, ...(limit ? [D.limit] : [])], y, 6);
    const x1 = W - widest(totals, unit)*1.1 - 12, X = scaler(y, lo, hi, x0, x1);
    let out = head + grid(X, null, x0, x1, y0 - 4, y1, thin({ ...y, lo, hi }, 6, x1 - x0), [], unit, "", W);
    out += words((x0 + x1)/2, y1 + 37, y.label, "middle", SOFT);
    let inner = "", cut = "";
    if (limit) {
      const text = limit.label.replace("{}", show(D.limit, unit)), u = X(D.limit), half = width(text)/2;
      out += words(Math.max(Math.min(u, W - half), half), y0 - 11, text, "middle", `fill="${pen("limit")}"`);
      const d = `M${fixed(u)} ${y0 - 6}V${y1}`;
      cut = stroke(d, PAPER, 4.5) + stroke(d, ink("limit"), 2.5, "6 4");
    }
    S.bars.forEach((b, k) => {
      const v = y0 + step*k + (beside ? 6 : 24);
      cut += beside ? words(x0 - 9, v + 20, b.label, "end", BLACK) : words(0, v - 6, b.label, "start", `${BLACK} ${HALO}`);
      let at = 0;
      b.parts.forEach((p, i) => {
        const value = D.bars[k][i];
        if (!(isFinite(value) && value > 0)) return;
        const u = X(at), w = X(at + value) - X(at), text = show(value, unit);
        at += value;
        inner += `<rect x="${fixed(u)}" y="${v}" width="${fixed(w)}" height="30" fill="${ink(p.color)}" ` +
          `stroke="${PAPER}"><title>${escape(p.label)}: ${text}</title></rect>`;
        if (width(text) + 10 < w) inner += words(u + w/2, v + 20, text, "middle", `fill="${on(p.color)}" font-weight="600" aria-hidden="true"`);
      });
      cut += words(X(at) + 7, v + 20, show(totals[k], unit), "start", BOLD);
    });
    return frame(S, W, y1 + 44, `${out}<g class="cx-lines">${inner}</g>${cut}`, names.map((n, k) => `${n}: ${show(totals[k], unit)}`).join("; "));
  }
  const picture = (S, D, W) => (S.curves.length ? lines(S, D, W) : S.bars.length ? bars(S, D, W) : "");

  // ---- words
  const readouts = (S, D) => S.readouts.map((r, k) => {
    const [before, after] = r.text.split("{}"), v = D.readouts[k];
    return `<p>${escape(before)}<strong>${escape(r.words ? r.words[v.indexOf(true)].label : show(v, r.unit))}</strong>${escape(after)}</p>`;
  }).join("");
  function rows(S, D, valuesAt) {
    const row = (head, cells, more = "", scope = "row", tag = "td") =>
      `<tr><th scope="${scope}">${escape(head)}</th>${cells.map((c) => `<${tag}${more}>${escape(c)}</${tag}>`).join("")}</tr>`;
    const y = S.y, unit = y.unit, at = S.x && S.x.unit;
    const body = [], columns = S.bars.length ? S.bars : S.curves;
    if (S.bars.length) {
      for (const n of new Set(S.bars.flatMap((b) => b.parts.map((p) => p.label))))
        body.push(row(n, S.bars.map((b, k) => { const i = b.parts.findIndex((p) => p.label === n); return i < 0 ? "" : show(D.bars[k][i], unit); })));
      body.push(row("total", D.bars.map((b) => show(sum(b), unit))));
      if (S.limit) body.push(row(S.limit.label.replace("{}", "").trim(), S.bars.map(() => show(D.limit, unit))));
    } else {
      for (const v of ticks(S.x, 7)) body.push(row(show(v, at), valuesAt(v).map((u) => show(u, unit))));
      S.points.forEach((p, k) => body.push(row(`${p.label} at ${show(D.points[k][0], at)}`, [show(D.points[k][1], unit)], ` colspan="${S.curves.length}"`)));
    }
    return `<thead>${row((S.x || y).label, columns.map((c) => c.label), "", "col", "th")}</thead><tbody>${body.join("")}</tbody>`;
  }

  // ---- numbers
  function compile(S) {
    const f = (js) => new Function("v", "return " + js), n = S.sliders.length, curves = S.curves.map((c) => f(c.js));
    const points = S.points.map((p) => [f(p.x), f(p.y)]), parts = S.bars.map((b) => b.parts.map((p) => f(p.js)));
    const says = S.readouts.map((r) => (r.words ? r.words.map((w) => f(w.js)) : f(r.js))), limit = S.limit && f(S.limit.js);
    let xs = [];
    if (S.x) {
      const { lo, hi } = S.x, a = Math.round(Math.log2(lo)), count = S.x.binary ? Math.round(Math.log2(hi)) - a + 1 : 120;
      xs = Array.from({ length: count }, (_, i) => {
        const t = i/(count - 1);
        return S.x.binary ? 2**(a + i) : S.x.scale === "log" ? lo*(hi/lo)**t : lo + (hi - lo)*t;
      });
      if (S.x.whole) xs = [...new Set(xs.map((v) => Math.floor(v + .5)))];
      xs[0] = lo; xs[xs.length - 1] = hi;
    }
    const at = (v, x) => { v[n] = x; return curves.map((c) => c(v)); };
    const numbers = (v) => ({
      xs, curves: curves.map((c) => xs.map((x) => { v[n] = x; return c(v); })), points: points.map((p) => p.map((g) => g(v))),
      bars: parts.map((b) => b.map((g) => g(v))), limit: limit && limit(v),
      readouts: says.map((g) => (Array.isArray(g) ? g.map((c) => c(v)) : g(v))) });
    return { numbers, at };
  }

  // ---- the live figure
  function mount(figure) {
    const S = JSON.parse(figure.dataset.spec), { numbers, at } = compile(S), v = [];
    const box = el("div", { class: "cx-picture" }), said = el("div", { class: "cx-read", "aria-live": "polite" });
    const controls = el("div", { class: "cx-controls" }), table = figure.querySelector("table");
    const details = table ? el("details", {}, el("summary", {}, "Values as a table"), el("div", {}, table)) : "";
    const sliders = S.sliders.map((s, i) => {
      const id = `${figure.id}-${i}`, out = el("output", { for: id });
      const input = el("input", { type: "range", id, min: 0, max: s.stops.length - 1, step: 1, value: s.at, autocomplete: "off" });
      input.addEventListener("input", later);
      controls.append(el("label", { for: id }, s.label), out, input);
      const read = () => {
        const k = Number(input.value), text = s.names ? s.names[k] : show(s.stops[k], s.unit);
        v[i] = s.stops[k];
        if (out.textContent !== text) { out.textContent = text; input.setAttribute("aria-valuetext", text); }
      };
      return { input, read, reset: () => { input.value = s.at; } };
    });
    const reset = el("button", { type: "button" }, "Reset");
    reset.addEventListener("click", () => { sliders.forEach((s) => s.reset()); draw(); });
    if (details) details.addEventListener("toggle", draw);
    figure.replaceChildren(el("figcaption", {}, S.title), controls, box, said, el("div", { class: "cx-foot" }, details, reset));

    let queued = false, W = 0;
    function later() { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); } }
    function draw() {
      sliders.forEach((s) => s.read());
      const D = numbers(v), text = readouts(S, D);
      box.innerHTML = picture(S, D, W);
      if (said.innerHTML !== text) said.innerHTML = text;
      if (details && details.open) table.innerHTML = rows(S, D, (x) => at(v, x));
    }
    function fit() {
      const w = Math.max(280, Math.min(760, Math.floor(box.clientWidth || 640)));
      if (w !== W) { W = w; draw(); }
    }
    fit();
    new ResizeObserver(fit).observe(box);
    figure.cx = { draw, numbers, S, v };
  }

  Object.assign(cx, { show, ticks, span, picture, readouts, rows, compile });
  cx.figures("cx-explore", mount);
});
