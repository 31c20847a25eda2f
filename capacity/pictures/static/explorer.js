/* Draws every <figure class="cx-explore" data-spec="..."> and keeps its sliders alive, without a kernel, a library or a
   network; works from file:// too. It is capacity/pictures/axes.py and graphs.py, function by function and with their letters,
   and show() is that of capacity/units.py: a test compares them. The start's ghost, the hair line, the rings where a sentence
   points and the presets live only here. */
addEventListener("DOMContentLoaded", () => {
  "use strict";
  const { escape, fixed, width, most, rect, path, text, group, paint, frame, legend, el, single } = cx;
  const SOFT = { opacity: .8 }, WIDE = 520, YEAR = 365.25*86400;
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
    if (/^[#⌈]/.test(unit)) {                     // counts, and whole things, that go on with M, B and T
      if (unit[0] === "⌈") x = Math.ceil(x - 1e-9*Math.abs(x));
      const a = Math.abs(x), said = a >= 999999.5 && a < 1e18 ? prefixed(x, digits, 12).replace("G", "B") : plain(x, digits);
      return `${said} ${unit.slice(1)}`.trimEnd();
    }
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
    const out = [], line = (d, line_opacity) => path(d, { line: "other", line_opacity });
    for (const v of xs) {
      const name = show(v, xunit), half = width(name)/2;
      out.push(line(`M${fixed(X(v))} ${fixed(y0)}V${fixed(y1)}`, .11), text(Math.max(Math.min(X(v), W - half), half), y1 + 17, name, "middle"));
    }
    for (const v of ys) out.push(line(`M${fixed(x0)} ${fixed(Y(v))}H${fixed(x1)}`, .16), text(x0 - 7, Y(v) + 4, show(v, yunit), "end"));
    return [...out, line(`M${fixed(x0)} ${fixed(y1)}H${fixed(x1)}`, .55)];
  }
  const widest = (values, unit) => most(values.map((v) => width(show(v, unit))), 0);
  function thin(axis, n, pixels, beyond) {
    const X = scaler(axis, axis.lo, axis.hi, 0, pixels);
    for (; n > 2; n--) {
      const out = ticks(axis, n), half = out.map((v) => width(show(v, axis.unit))/2), k = out.length - 1;
      const last = Math.min(X(out[k]), pixels + beyond - half[k]);
      if (k*(2*most(half, 0) + 14) <= pixels && (k < 1 || last - X(out[k - 1]) >= half[k] + half[k - 1] + 6)) return out;
    }
    return ticks(axis, 2);
  }

  // ---- lines and points
  function lines(S, D, W) {
    const { x, y, curves } = S, log = y.scale === "log", wide = W >= WIDE;
    const room = most(curves.map((c) => width(c.label)), 0) + 16, beside = wide && room <= .3*W && curves.length <= 9;
    const [head, top] = beside ? ["", 0] : legend(curves.map((c) => [c.label, c.color, c.dash]), W);
    const y0 = top + 26, h = wide ? 270 : 215, y1 = y0 + h, n = wide ? 7 : 6;
    const [lo, hi] = S.rest || span([...D.curves.flat(), ...D.points.map((p) => p[1])], y, n);
    const ys = ticks({ ...y, lo, hi }, n), x0 = widest(ys, y.unit) + 8, x1 = W - (beside ? room : 10);
    const X = scaler(x, x.lo, x.hi, x0, x1), Y = scaler(y, lo, hi, y1, y0);
    const out = [...head, text(0, top + 13, y.label, "start", SOFT), ...grid(X, Y, x0, x1, y0, y1, thin(x, wide ? 7 : 5, x1 - x0, W - x1), ys, x.unit, y.unit, W),
      text((x0 + x1)/2, y1 + 37, x.label, "middle", SOFT)];

    const px = D.xs.map(X), inside = [], marks = [], says = [], gone = [];
    const trace = (values, seen) => {
      let d = "", pencil = "M", end = null, past = null;
      values.forEach((value, i) => {
        if (!isFinite(value) || (value <= 0 && log)) { pencil = "M"; return; }
        const v = Math.min(Math.max(Y(value), y0 - 400), y1 + 400);
        d += `${pencil}${fixed(px[i])} ${fixed(v - y0 + 2)}`;
        pencil = "L";
        if (y0 - 1 <= v && v <= y1 + 1) seen.push(end = [px[i], v]); else past = v;
      });
      return [d, end, past];
    };
    if (D.ghost) curves.forEach((c, k) => inside.push(path(trace(D.ghost.curves[k], [])[0], { line: c.color, line_opacity: .3, weight: 2.2, dash: c.dash })));
    const ends = curves.map((c, k) => {
      const values = D.curves[k], [d, end, past] = trace(values, marks), up = past < y0;
      inside.push(path(d, { line: c.color, weight: 2.4, dash: c.dash }));
      says.push(`${c.label}: ${show(values[0], y.unit)} to ${show(values.at(-1), y.unit)}`);
      if (end || past === null) return end;
      gone.push(text(x1 - 6 - 16*gone.length, up ? y0 + 13 : y1 - 5, up ? "↑" : "↓", "end", { color: c.color, bold: true }));
      return [x1, up ? y0 : y1];
    });
    const rings = (D.reads || []).map(([u, w, c]) => [X(u), Y(w), c]).filter(([u, w]) => x0 <= u && u <= x1 && y0 <= w && w <= y1)
      .map(([u, w, c]) => rect(u - 6, w - 6, 12, 12, { fill: "paper", line: curves[c].color, weight: 2.4, radius: 6 }));
    D.field = { x0, x1, y0, y1, X, Y };
    out.push(group(inside, { y: y0 - 2, name: "cx-lines", clip: [W, h + 4] }));
    if (beside) {
      const seen = curves.map((_, i) => i).filter((i) => ends[i]), places = spread(seen.map((i) => ends[i][1]), 16, y0, y1);
      seen.forEach((i, k) => {
        const [u, v] = ends[i], at = places[k], c = curves[i];
        if (Math.abs(at - v) > 3 || u < x1 - 3)
          out.push(path(`M${fixed(u + 2)} ${fixed(v)}L${fixed(x1 + 8)} ${fixed(at)}`, { line: c.color, line_opacity: .6 }));
        out.push(text(x1 + 10, at + 4, c.label, "start", { color: c.color }));
      });
    }
    return [[...out, ...gone, ...rings, ...dots(S, D, X, Y, x0, x1, y0, y1, log, marks)], W, y1 + 44, `${S.title}. ${says.join("; ")}`];
  }
  const dot = (u, v, color) => rect(u - 5.5, v - 5.5, 11, 11, { fill: color, line: "paper", weight: 2, radius: 5.5 });
  const SIDES = [["start", 9, 4], ["end", -9, 4], ["middle", 0, -10], ["middle", 0, 19],
    ["start", 7, -8], ["start", 7, 17], ["end", -7, -8], ["end", -7, 17]];
  function dots(S, D, X, Y, x0, x1, y0, y1, log, marks) {
    const seen = S.points.map((p, i) => [p, ...D.points[i]])
      .filter(([, u, v]) => isFinite(u) && isFinite(v) && (u > 0 || S.x.scale !== "log") && (v > 0 || !log))
      .map(([p, u, v]) => [p, X(u), Y(v)])
      .filter(([, u, v]) => x0 - 1 <= u && u <= x1 + 1 && y0 - 1 <= v && v <= y1 + 1);
    const boxes = seen.map(([, u, v]) => [u - 6, v - 6, u + 6, v + 6]);
    const out = [];
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
      out.push(dot(u, v, p.color), text(u + dx, v + dy, p.label, anchor, { color: p.color, halo: true }));
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
    const [lo, hi] = S.rest || span([...totals, ...(limit ? [D.limit] : [])], y, 6);
    const x1 = W - (S.room || widest(totals, unit))*1.1 - 12, X = scaler(y, lo, hi, x0, x1);
    const out = [...head, ...grid(X, null, x0, x1, y0 - 4, y1, thin({ ...y, lo, hi }, 6, x1 - x0, W - x1), [], unit, "", W),
      text((x0 + x1)/2, y1 + 37, y.label, "middle", SOFT)];
    const inside = [], above = [], line = limit ? X(D.limit) : NaN, field = [];
    const rooms = (u, w) => (u + 4 < line && line < w - 4 ? [[u, line - 4], [line + 4, w]] : [[u, w]]);     // of a part, beside the limit
    if (limit) {
      const name = limit.label.replace("{}", show(D.limit, unit)), half = width(name)/2, d = `M${fixed(line)} ${y0 - 6}V${y1}`;
      out.push(text(Math.max(Math.min(line, W - half), half), y0 - 11, name, "middle", { color: "limit" }));
      above.push(path(d, { line: "paper", weight: 4.5 }), path(d, { line: "limit", weight: 2.5, dash: "6 4" }));
    }
    S.bars.forEach((b, k) => {
      const v = y0 + step*k + (beside ? 6 : 24), free = beside ? v - 4 : v + 43;          // where words touch no bar and no name
      let at = 0;
      above.push(beside ? text(x0 - 9, v + 20, b.label, "end") : text(0, v - 6, b.label, "start", { halo: true }));
      b.parts.forEach((p, i) => {
        const value = D.bars[k][i];
        if (!(isFinite(value) && value > 0)) return;
        const u = X(at), w = Math.min(X(at + value), x1) - u, name = show(value, unit);
        at += value;
        if (w <= 0) return;
        inside.push(rect(u, v, w, 30, { fill: p.color, line: "paper", title: `${p.label}: ${name}` }));
        field.push({ x: u, y: v, w, k, free, name: `${p.label}: ${name}`, said: `${b.label}, ${p.label}: ${name}` });
        const [from, to] = rooms(u, u + w).reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a));
        if (width(name) + 10 < to - from) inside.push(text((from + to)/2, v + 20, name, "middle", { color: "on:" + p.color, bold: true, spoken: false }));
      });
      if (X(at) > x1 + 1) above.push(path(`M${fixed(x1 - 9)} ${v + 33}l7 -36m6 0l-7 36`, { line: "paper", weight: 3 }));
      if (D.ghost) {
        const was = X(sum(D.ghost.bars[k].filter((value) => value > 0 && isFinite(value))));
        above.push(path(`M${fixed(was)} ${v - 6}v6M${fixed(was)} ${v + 30}v6`, { line: "other", weight: 2, line_opacity: .6 }),
          path(`M${fixed(was)} ${v}v30`, { line: was < X(at) ? "paper" : "other", line_opacity: .6, dash: "2 3" }));
      }
      const total = show(totals[k], unit), end = Math.min(X(at), x1) + 7, off = end - 5 < line && line < end + width(total) + 4 && line + 7 + width(total) < W;
      above.push(text(off ? line + 7 : end, v + 20, total, "start", { bold: true, halo: true }));
      if (b.parts.length > 1 || !at) field.push({ x: x0, y: v, w: end - 7 - x0, k, free, name: `total: ${total}`, said: `${b.label}, total: ${total}` +
        (limit ? `; ${limit.label.replace("{}", show(D.limit, unit))}` : "") });
    });
    D.field = field;
    return [[...out, group(inside, { name: "cx-lines" }), ...above], W, y1 + 44, `${S.title}. ` + names.map((n, k) => `${n}: ${show(totals[k], unit)}`).join("; ")];
  }
  const drawn = (S, D, W) => (S.curves.length ? frame(lines(S, D, W)) : S.bars.length ? frame(bars(S, D, W)) : "");

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
    const reads = (D, v) => { D.reads = (S.reads || []).map(([k, c, x]) => { v[n] = x ?? D.readouts[k]; return [v[n], curves[c](v), c]; }); return D; };
    const numbers = (v) => reads({
      xs, curves: curves.map((c) => xs.map((x) => { v[n] = x; return c(v); })), points: points.map((p) => p.map((g) => g(v))),
      bars: parts.map((b) => b.map((g) => g(v))), limit: limit && limit(v),
      readouts: says.map((g) => (Array.isArray(g) ? g.map((c) => c(v)) : g(v))) }, v);
    return { numbers, at };
  }

  // ---- a value that a slider can have, though it may be no stop of it
  const near = (a, b) => Math.abs(a - b) <= 1e-6*Math.abs(b), two = (u) => Math.log2(u) % 1 === 0;
  function fits({ stops, names }, text) {
    const u = Number(text);
    return Boolean(text) && (stops.some((w) => near(w, u)) || (!names && Math.min(...stops) <= u && u <= Math.max(...stops) &&
      (u % 1 === 0 || stops.some((w) => w % 1)) && (two(u) || !stops.every(two))));
  }
  const written = (u) => {                         // 5e10, but 64: the shorter one
    const r = Number(u.toPrecision(7)), short = r.toExponential().replace("e+", "e"), long = String(r);
    return short.length < long.length ? short : long;
  };
  const range = ({ stops, names, unit }) => (names ? stops.map((w, k) => `${written(w)} for ${names[k]}`).join(", ")
    : `${show(Math.min(...stops), unit)} to ${show(Math.max(...stops), unit)}${stops.every(two) ? ", a power of two" : stops.some((w) => w % 1) ? "" : ", whole"}`);

  // ---- the live figure
  function mount(figure) {
    const S = JSON.parse(figure.dataset.spec), { numbers, at } = compile(S), v = [];
    const box = el("div", { class: "cx-picture" }), said = el("div", { class: "cx-read", "aria-live": "polite" });
    const controls = el("div", { class: "cx-controls" }), table = figure.querySelector("table");
    const details = table ? el("details", {}, el("summary", {}, "Values as a table"), el("div", {}, table)) : "";
    const sliders = S.sliders.map((s, i) => {
      const id = `${figure.id}-${i}`, out = el("output", { for: id });
      const input = el("input", { type: "range", id, min: 0, max: s.stops.length - 1, step: 1, value: s.at, autocomplete: "off" });
      let own = null;                             // a value between two stops, from a preset or the address
      input.addEventListener("input", () => { own = null; later(); });
      input.addEventListener("change", tell);
      controls.append(el("label", { for: id }, s.label), out, input);
      const read = () => {
        const k = Number(input.value), name = s.names ? s.names[k] : single(show(own ?? s.stops[k], s.unit));
        v[i] = own ?? s.stops[k];
        if (out.textContent !== name) { out.textContent = name; input.setAttribute("aria-valuetext", name); }
      };
      const put = (u) => {
        const k = near(s.stops[s.at], u) ? s.at : s.stops.reduce((a, w, k) => (Math.abs(w - u) < Math.abs(s.stops[a] - u) ? k : a), 0);
        input.value = k;
        own = near(s.stops[k], u) ? null : u;
      };
      return { input, read, put, reset: () => { put(s.stops[s.at]); }, moved: () => own !== null || Number(input.value) !== s.at };
    });
    const moved = () => sliders.some((s) => s.moved());
    const reset = el("button", { type: "button" }, "Reset");
    reset.addEventListener("click", () => { sliders.forEach((s) => s.reset()); tell(); draw(); });
    if (details) details.addEventListener("toggle", draw);
    const presets = (S.presets || []).map(([name, values]) => {
      const button = el("button", { type: "button" }, name);
      button.addEventListener("click", () => { values.forEach(([i, u]) => sliders[i].put(u)); tell(); draw(); });
      return { button, read: () => button.setAttribute("aria-pressed", values.every(([i, u]) => near(v[i], u))) };
    });
    const wrong = el("p", { class: "cx-wrong", role: "status" });
    figure.replaceChildren(el("figcaption", {}, S.title), wrong,
      ...(presets.length ? [el("div", { class: "cx-presets", role: "group", "aria-label": "Presets" }, ...presets.map((p) => p.button))] : []),
      controls, box, said, el("div", { class: "cx-foot" }, details, reset));

    const start = numbers(S.sliders.map((s) => s.stops[s.at]));
    let queued = false, W = 0, field = null, place = null, last = "";

    // ---- what is read where the pointer or the arrow keys are: a hair line over all curves, a part of a bar
    const told = el("p", { class: "cx-told", "aria-live": "polite" });
    function hair(aloud) {
      const old = box.querySelector(".cx-hair");
      if (old) old.remove();
      if (place === null) { told.textContent = ""; return; }
      const [shapes, words] = S.curves.length ? values() : part();
      box.querySelector("svg").insertAdjacentHTML("beforeend", `<g class="cx-hair" pointer-events="none" aria-hidden="true">${paint(shapes)}</g>`);
      if (aloud) told.textContent = words;
    }
    function values() {
      const { x0, x1, y0, y1, X, Y } = field, { lo, hi, scale, whole, binary, unit, label } = S.x;
      let x = scale === "log" ? lo*(hi/lo)**place : lo + (hi - lo)*place;
      if (whole) x = binary ? 2**Math.round(Math.log2(x)) : Math.round(x);
      const u = X(x), values = at(v, x), short = values.map((w) => show(w, S.y.unit)), long = S.curves.map((c, k) => `${c.label} ${short[k]}`);
      const right = u < (x0 + x1)/2, half = width(show(x, unit))*.6;
      const texts = 16 + most(long.map(width), 0)*1.1 < (right ? x1 - u : u - x0) ? long : short;
      const rows = values.map((w, k) => [Y(w), k]).filter(([w]) => y0 <= w && w <= y1), ys = spread(rows.map(([w]) => w - 7), 16, y0 + 12, y1 - 4);
      return [[path(`M${fixed(u)} ${y0}V${y1}`, { line: "other", line_opacity: .6 }),
        text(Math.max(Math.min(u, W - half), half), y0 - 7, show(x, unit), "middle", { bold: true, halo: true }),
        ...rows.map(([w, k]) => dot(u, w, S.curves[k].color)), ...rows.map(([, k], i) => {
          const w = 1.1*width(texts[k]) + 8;              // on paper of its own: nothing runs through a number
          return rect(right ? u + 6 : u - 6 - w, ys[i] - 11.5, w, 15.5, { fill: "paper", radius: 3 });
        }), ...rows.map(([, k], i) => text(u + (right ? 10 : -10), ys[i], texts[k], right ? "start" : "end", { color: S.curves[k].color, bold: true }))],
        `${label} ${show(x, unit)}: ${long.join(", ")}`];
    }
    function part() {
      const { x, y, w, free, name, said } = field[place], half = width(name)*.6;
      return [[rect(x, y, w, 30, { line: "other", weight: 2 }),
        text(Math.max(half, Math.min(W - half, x + w/2)), free, name, "middle", { bold: true, halo: true })], said];
    }
    const within = (a) => Math.max(0, Math.min(1, a));
    const moves = S.curves.length ? { ArrowRight: () => within((place ?? .5) + .02), ArrowLeft: () => within((place ?? .5) - .02) }
      : { ArrowRight: () => Math.min((place ?? -1) + 1, field.length - 1), ArrowLeft: () => Math.max((place ?? 1) - 1, 0), ArrowDown: () => bar(1), ArrowUp: () => bar(-1) };
    function bar(step) {                                   // the first part of another bar
      const now = field[place ?? 0].k, to = field.findIndex(({ k }) => k === now + (place === null ? 0 : step));
      return to < 0 ? place ?? 0 : to;
    }
    if (S.curves.length || S.bars.length) {
      const point = (e) => {
        const r = box.querySelector("svg").getBoundingClientRect(), x = (e.clientX - r.left)*W/r.width, y = (e.clientY - r.top)*W/r.width;
        if (S.curves.length) place = within((x - field.x0)/(field.x1 - field.x0));
        else {
          const k = field.findIndex((p) => p.x <= x && x <= p.x + p.w && p.y <= y && y <= p.y + 30);
          place = k < 0 ? null : k;
        }
        hair();
      };
      box.addEventListener("pointermove", point);
      box.addEventListener("pointerdown", point);
      box.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") { place = null; hair(); } });
      box.addEventListener("blur", () => { place = null; hair(); });
      box.addEventListener("keydown", (e) => {
        const move = moves[e.key];
        if (e.altKey || e.ctrlKey || e.metaKey || !move && (e.key !== "Escape" || place === null)) return;
        e.preventDefault();
        place = move ? move() : null;
        hair(true);
      });
      for (const [k, u] of Object.entries({ tabindex: 0, role: "group", "aria-label": "Picture; the arrow keys read its values" })) box.setAttribute(k, u);
      box.after(told);
    }

    // ---- the address carries the setting, a value for each slider: #name=64_1e-5_5e10
    function tell() {
      wrong.textContent = "";
      sliders.forEach((s) => s.read());
      if (moved() || cx.asked(figure.id))
        cx.tell(figure.id, moved() ? v.slice(0, sliders.length).map(written).join("_") : null);
    }
    function asked() {
      const text = cx.asked(figure.id);
      if (!text) return false;
      const values = text.split("_"), bad = S.sliders.findIndex((s, i) => !fits(s, values[i])), s = S.sliders[bad];
      wrong.textContent = values.length !== sliders.length ? `The address has ${values.length} values for ${sliders.length} sliders. They stay where they are.`
        : s ? `The address asks for ${s.label} = ${values[bad]}; allowed: ${range(s)}. The sliders stay where they are.` : "";
      if (!wrong.textContent) values.forEach((u, i) => sliders[i].put(Number(u)));
      if (cx.leads(figure.id)) requestAnimationFrame(() => figure.scrollIntoView({ block: "center" }));
      return true;
    }
    addEventListener("hashchange", () => { if (asked()) draw(); });

    function later() { if (!queued) { queued = true; requestAnimationFrame(() => { queued = false; draw(); }); } }
    function draw() {
      sliders.forEach((s) => s.read());
      presets.forEach((p) => p.read());
      const D = numbers(v), says = readouts(S, D);
      if (moved()) D.ghost = start;
      box.innerHTML = drawn(S, D, W);
      field = D.field;
      if (S.bars.length && place !== null && place >= field.length) place = null;
      hair();
      if (last !== says) {
        said.innerHTML = last = says;
        (S.reads || []).forEach(([k, c]) => { said.children[k].classList.add("cx-reads"); said.children[k].style.setProperty("--ring", cx.ink(S.curves[c].color)); });
      }
      if (details && details.open) table.innerHTML = rows(S, D, (x) => at(v, x));
    }
    function fit() {
      const w = Math.max(280, Math.min(760, Math.floor(box.clientWidth || 640)));
      if (w !== W) { W = w; draw(); }
    }
    asked();
    fit();
    new ResizeObserver(fit).observe(box);
    figure.cx = { draw, numbers, S, v };
  }

  Object.assign(cx, { show, ticks, span, picture: drawn, readouts, rows, compile, fits });
  cx.figures("cx-explore", mount);
});
