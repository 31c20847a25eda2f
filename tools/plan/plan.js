(() => {
"use strict";
const $ = id => document.getElementById("cx-" + id), D = JSON.parse($("plan-data").textContent), DAY = 86400, CODE = $("planner").textContent;
const P = new Function(CODE + ";return { price, broken, search, padded, cannot, launched, failing, LASTS, sequences, whole, said, configured, measure, PARAMS, OWN, DIALECTS, RULES, ASKED, DEGREES };")();
const esc = s => String(s).replace(/[&<>"]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const NONE = Object.fromEntries(D.letters.map(k => [k, 0])), DEVICES = {};
for (const m of Object.values(D.models)) m.q = { ...NONE, ...m.q };
for (const [key, m] of Object.entries(D.machines)) { m.key = key; if (m.figures) DEVICES[m.figures.device] ??= m; }

// ---- numbers as people write them
const UNITS = { k: 1e3, M: 1e6, G: 1e9, B: 1e9, T: 1e12 };
const closed = text => text.trim().replace(/(?<=\d)[ \u00a0\u202f](?=\d{3}\b)/g, "");
function num(text) {
  const m = /^\s*([0-9][0-9, ]*(?:\.[0-9]+)?(?:e[+-]?\d+)?)\s*([kKMGBT]?)\s*$/.exec(String(text).replace(/[\u00a0\u202f]/g, " "));
  if (!m) return NaN;
  const u = m[2] === "K" ? "k" : m[2];
  return +m[1].replace(/[, ]/g, "") * (u ? UNITS[u] : 1);
}
const seconds = text => { const m = /^(.*?[\d.])\s*([a-z]*)$/.exec(String(text).trim()), u = m && D.times[m[2] || "s"]; return u ? num(m[1]) * u : NaN; };
const digits = (x, n = 3) => x >= 100 ? Math.round(+x.toPrecision(n)).toLocaleString("en") : String(+x.toPrecision(n));
const count = x => Math.round(x).toLocaleString("en");
const short = x => { for (const [u, f] of [["T", 1e12], ["B", 1e9], ["M", 1e6], ["k", 1e3]]) if (x >= f) return digits(x / f) + " " + u; return digits(x); };
const gb = x => x < 9.5e8 ? digits(x / 1e6, 2) + " MB" : digits(x / 1e9, x < 1e11 ? 2 : 3) + " GB";
const money = x => "$" + (x >= 1e9 ? digits(x / 1e9) + " B" : x >= 1e6 ? digits(x / 1e6) + " M" : count(+x.toPrecision(3)));
const TIMES = [[365.25 * DAY, "years"], [DAY, "days"], [3600, "hours"], [60, "minutes"], [1, "s"], [1e-3, "ms"]];
const unitOf = s => TIMES.find(u => s >= 2 * u[0]) || TIMES.at(-1);
const time = (s, u = unitOf(s), n = s / u[0] < 100 ? 2 : 3) => digits(s / u[0], n) + " " + u[1], exact = s => time(s, unitOf(s), 3);
const date = ms => new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric", timeZone: "UTC" });
const pct = x => x >= .1 ? Math.round(100 * x) + " %" : x > 0 && x < .0005 ? "<0.1 %" : +(100 * x).toPrecision(2) + " %";

// ---- the setting: all of it stands in the address
const START = { model: "llama3-70b", tokens: "15 T", devices: "1,024", machine: "dgx-h100", batch: "4 M", seq: "8,192", format: "bf16", days: "", start: "", price: "", share: "0.9", mtbf: "", checkpoint: "30 s", restart: "5 min", framework: "megatron",
  config: "", ...D.machines["dgx-h100"].figures, tp: "", pp: "", cp: "", ep: "", dp: "", microbatch: "", chunks: "", zero: "", recompute: "", sequence_parallel: "", copies: "", schedule: "", cheap_recompute: "" };
const LAYOUT = ["tp", "pp", "cp", "dp", "ep", "chunks", "microbatch", "zero", "sequence_parallel", "recompute", "copies", "schedule", "cheap_recompute"];
const RANGES = { recompute: [0, 1], cheap_recompute: [0, 1], zero: [0, 3], sequence_parallel: [0, 1], schedule: [0, D.schedules.length - 1] };
const NAMES = { tp: "tensor ranks", pp: "pipeline ranks", cp: "context ranks", dp: "data ranks", ep: "expert ranks", microbatch: "micro-batch", chunks: "chunks", zero: "ZeRO stage", recompute: "recomputed share", copies: "copies of what is sharded", sequence_parallel: "sequence parallel", schedule: "schedule", cheap_recompute: "cheap outputs again", share: "share of memory",
  device: "device", node: "devices in a node", memory: "its memory", bandwidth: "memory bandwidth", peak_bf16: "peak in bf16", measured_bf16: "fastest product in bf16", peak_fp8: "peak in fp8", measured_fp8: "fastest product in fp8",
  alpha1: "latency in a node", beta1: "bandwidth in a node", alpha2: "latency between nodes", beta2: "bandwidth between nodes" };
const FIGURES = Object.keys(D.machines["dgx-h100"].figures), OF_DEVICE = FIGURES.filter(k => k in D.sizes && !/[12]$/.test(k));
let S, pick = "", R = null, sizes = [], unknown = "";
function readAddress() {
  const h = new URLSearchParams(location.hash.slice(1)), s = { ...START };
  for (const [k, v] of h) if (k in s) s[k] = v;
  const missed = [], known = (k, is, other) => { if (is) return; missed.push(`There is no ${k} “${s[k]}” here; this is ${other}.`); s[k] = other; };
  for (const [k, all] of [["model", D.models], ["machine", D.machines], ["device", DEVICES]]) known(k, s[k] === "own" || Object.hasOwn(all, s[k]), START[k]);
  known("format", formatsOf(s).includes(s.format), "bf16");
  known("framework", s.framework === "capacity" || Object.hasOwn(P.DIALECTS, s.framework), START.framework);
  unknown = missed.join(" ");
  pick = h.get("layout") || "";
  return s;
}
function writeAddress() {
  const h = new URLSearchParams();
  const idle = k => k === "config" ? S.model !== "own" : FIGURES.includes(k) ? S.machine !== "own" || OF_DEVICE.includes(k) && S.device !== "own" : false;
  for (const k in S) if (!idle(k) && (S[k] !== START[k] || ["model", "machine", "devices", "tokens"].includes(k))) h.set(k, ["tokens", "devices", "batch", "seq"].includes(k) ? S[k].replace(/[ ,](?=\d{3}\b)|(?<=\d) (?=[A-Z])/g, "") : S[k]);
  if (pick) h.set("layout", pick);
  history.replaceState(history.state, "", "#" + h);
}
/* The number of a schedule, or of its name. */
const scheduled = text => { const k = D.schedules.findIndex(name => name.toLowerCase() === text.trim().toLowerCase()); return k < 0 ? text.trim() ? Number(text) : NaN : k; };
const idOf = l => LAYOUT.map(k => l[k]).join("_");
const ofId = id => { const v = id.split("_").map(Number); if (v.length === LAYOUT.length - 3) v.push(1); while (v.length >= LAYOUT.length - 2 && v.length < LAYOUT.length) v.push(0); return v.length === LAYOUT.length && v.every(Number.isFinite) ? Object.fromEntries(LAYOUT.map((k, i) => [k, v[i]])) : null; };

/* The model of a setting: {name, kind, q, context}, or {error}. */
let read = {};
function modelOf(s) {
  if (s.model !== "own") return D.models[s.model];
  if (read.text !== s.config) {
    let m;
    try { m = s.config.trim() ? P.configured(JSON.parse(s.config)) : { error: "Paste a config.json, or choose the file; nothing leaves this page." }; } catch (e) { m = { error: `That is no JSON: ${e.message}.` }; }
    if (m.q) m.q = { ...NONE, ...D.defaults, ...m.q };
    if (m.q && m.q.layers > 4096) m = { error: `num_hidden_layers = ${m.q.layers}; allowed: at most 4096 on this page` };
    read = { text: s.config, m };
  }
  return read.m;
}
/* The machine of a setting, as D.machines has it, or {wrong, note}. */
function machineOf(s) {
  if (s.machine !== "own") return D.machines[s.machine];
  const known = s.device === "own" ? null : DEVICES[s.device], node = num(s.node), q = { node };
  if (!(node >= 1 && node % 1 === 0 && node <= 2 ** 20)) return { wrong: "node", note: `${NAMES.node} = '${s.node}'; allowed: a whole number, at least 1.` };
  for (const k in D.sizes) {
    if (known && OF_DEVICE.includes(k) || k.endsWith("fp8") && !s.peak_fp8.trim() && !s.measured_fp8.trim()) continue;
    const units = D.units[D.sizes[k]], x = q[k] = P.measure(s[k], units);
    if (!(x > 0 && x < 1e30 || x === 0 && k.startsWith("alpha"))) return { wrong: k, note: `${NAMES[k]} = '${s[k]}'; allowed: a number ${x === 0 ? "above 0 " : ""}and one of ${Object.keys(units).join(", ")}.` };
  }
  const formats = known ? known.formats : { bf16: P.OWN.bf16(q), ...("peak_fp8" in q && { fp8: P.OWN.fp8(q) }) };
  return { device: known ? known.device : "your device", devices: 1024, memory: known ? known.memory : q.memory, node, flat: false, groups: [node], inside: P.OWN.inside(q), outside: P.OWN.outside(q), formats };
}
const formatsOf = s => Object.keys(machineOf(s).formats || { bf16: 0 });
/* A machine of one's own for the package: a file in TOML. */
function toml(s, n) {
  const text = k => JSON.stringify(s[k].trim().replace(/\s*([A-Za-z].*)$/, (u, unit) => /^e[+-]?\d/.test(unit) ? u : " " + unit)), both = of => `{ bf16 = ${text(of + "_bf16")}${s.peak_fp8.trim() ? `, fp8 = ${text(of + "_fp8")}` : ""} }`;
  const level = (devices, k) => `  { devices = ${devices}, link = { alpha = ${text("alpha" + k)}, beta = ${text("beta" + k)} } },\n`, node = num(s.node);
  const device = s.device !== "own" ? JSON.stringify(s.device) : `{ memory = ${text("memory")}, bandwidth = ${text("bandwidth")}, dense = ${both("peak")}, measured = ${both("measured")} }`;
  return `[mine]\ndevice = ${device}\nlevels = [\n${n > node ? level(node, 1) + level(n, 2) : level(n, 1)}]\n`;
}

/* What a setting asks: {kind, q, limits, most, ...}, or {wrong: field, note}. */
function jobOf(s) {
  const model = modelOf(s), m = machineOf(s);
  if (model.error) return { wrong: "config", note: model.error };
  if (m.wrong) return m;
  const counts = {}, tokens = num(s.tokens), share = num(s.share);
  for (const [k, name] of [["devices", "devices"], ["seq", "tokens of a sequence"]]) { const { n, error } = counts[k] = P.whole(name, closed(s[k])); if (error) return { wrong: k, note: error + "." }; }
  const n = counts.devices.n, seq = counts.seq.n;
  if (!(tokens > 0 && tokens <= 1e24)) return { wrong: "tokens", note: `“${s.tokens}” is ${tokens > 1e24 ? "more than there is" : "no number"}; write 15 T.` };
  for (const k of ["days", "price"]) if (s[k].trim() && !(num(s[k]) > 0 && num(s[k]) < 1e12)) return { wrong: k, note: `“${s[k]}” is no number of ${k === "days" ? "days; write 90" : "dollars; write 2.50"}, or leave it empty.` };
  if (n > 2 ** 20) return { wrong: "devices", note: "At most 1,048,576 devices." };
  if (!(share > 0 && share <= 1)) return { wrong: "share", note: "The share of the memory is above 0 and at most 1." };
  const inner = m.groups.filter(x => x < n).at(-1);
  if (inner && n % inner) return { wrong: "devices", note: `On this machine ${count(n)} devices do not fill whole groups of ${count(inner)}: take ${[Math.floor(n / inner) * inner, Math.ceil(n / inner) * inner].filter(x => x).map(count).join(" or ")}.` };
  const typed = closed(s.batch), { n: batch, error } = P.sequences(/tok|seq/.test(typed) ? typed : typed + " tokens", seq);
  if (error) return { wrong: "batch", note: error + "." };
  const speed = m.formats[s.format], [spread, tail] = speed.error[model.kind === "dense" ? 0 : 1];
  const q = { ...model.q, ...(n > m.node ? m.outside : m.inside), ...(n <= m.node || m.flat ? { node: n } : {}), ...speed, spread, tail, devices: n, batch, seq_len: seq };
  if (n < m.node) q.node = n;
  const limits = { recompute: D.recompute, cheap_recompute: D.cheap, zero: [0, 1, 2, 3], sequence_parallel: [0, 1] };
  for (const k of LAYOUT) if (s[k].trim()) {
    const [low, high] = RANGES[k] || [1, Infinity];
    limits[k] = s[k].split(",").map(v => k === "schedule" ? scheduled(v) : v.trim() ? Number(v) : NaN);
    if (!limits[k].every(v => v >= low && v <= high && (k.endsWith("recompute") || v % 1 === 0))) return { wrong: k, note: `${NAMES[k]}: ${k.endsWith("recompute") ? "shares" : "whole numbers"} from ${low}${high < Infinity ? ` to ${high}` : ""}, with commas between${k === "schedule" ? `, or names: ${D.schedules.join(", ")}` : ""}.` };
  }
  let failures = null;
  if (s.mtbf.trim()) {
    failures = { devices: n };
    for (const k of ["mtbf", "checkpoint", "restart"]) if (!((failures[k] = seconds(s[k])) >= (k === "restart" ? 0 : 1e-9))) return { wrong: k, note: `“${s[k]}” is no time; write 30 s, 5 min, 50,000 h or 5.8 years.` };
    if (!P.LASTS.holds(failures)) return { wrong: "mtbf", note: P.LASTS.sentence(failures) };
  }
  const [every, slow] = failures ? P.failing(failures) : [0, 1];
  q.vocab = P.padded(q, limits);
  const steps = tokens / (batch * seq);
  let note = `A step is ${P.said(batch, seq)}; ${count(Math.ceil(steps))} step${steps > 1 ? "s" : ""}.` + (q.vocab > model.q.vocab ? ` Vocabulary padded to ${count(q.vocab)}.` : "");
  if (model.config) { const [all, active] = P.PARAMS[model.kind](model.q); note = `${model.name}: ${short(all)} parameters${active < all ? `, ${short(active)} of them for a token` : ""}. ${model.note} ${note}`; }
  return { kind: model.kind, q, limits, most: share * m.memory, memory: m.memory, share, steps, tokens, note, machine: m, model, failures, every, slow };
}

// ---- the worker, or the page itself where there is none
let worker, busy = 0, run = 0, began = 0;
function hire() {
  try {
    worker = new Worker(URL.createObjectURL(new Blob([CODE + ";onmessage=({data:{id,job}})=>postMessage({id,found:search(job,part=>postMessage({id,part}))});"], { type: "text/javascript" })));
    worker.onmessage = e => heard(e.data);
    worker.onerror = () => { worker = null; };
  } catch { worker = null; }
}
function send(id, job, only) {
  const bare = { kind: job.kind, q: job.q, limits: job.limits, most: job.most, only };
  if (worker) { busy++; worker.postMessage({ id, job: bare }); } else setTimeout(() => heard({ id, found: P.search(bare) }));
}
function heard({ id, part, found }) {
  if (found) busy--;
  const [mine, k] = id.split(".");
  if (+mine !== run) return;
  if (k in P.DIALECTS) { if (!part) { R.can[k] = found; drawLaunch(); } return; }
  if (k) { sizes[k].found = found; drawSizes(); return; }
  document.documentElement.dataset.answered ??= Math.round(performance.now());
  if (part) { if (part.best) saySoFar(part); return; }
  arrived(found);
}
function ask() {
  const job = jobOf(S), note = $("note");
  if (job.model && job.model.config && job.model.config !== S.config) { read.text = S.config = job.model.config; }
  for (const el of document.querySelectorAll("#cx-job [name]")) el.name === job.wrong ? el.setAttribute("aria-invalid", "true") : el.removeAttribute("aria-invalid");
  note.textContent = [unknown, job.note].filter(Boolean).join(" "); note.classList.toggle("bad", !!(job.wrong || unknown));
  writeAddress();
  run++;
  if (worker && busy > 0) { worker.terminate(); busy = 0; hire(); }
  if (job.wrong) { R = null; $("answer").innerHTML = ""; $("found").hidden = true; return; }
  $("answer").classList.add("stale"); $("found").classList.add("stale");
  R = { job, can: {} }; began = performance.now();
  send(run + "", job);
}

// ---- words
const zero = z => z ? "ZeRO-" + z : "no ZeRO", again = (r, cheap) => cheap && r < 1 ? r ? pct(r) + " recomputed, of the others cheap outputs" : "cheap outputs made again" : !r ? "nothing recomputed" : r === 1 ? "all recomputed" : pct(r) + " recomputed";
const split = l => ["tp", "pp", "cp", "ep", "dp"].filter(k => l[k] > 1 || k === "dp").map(k => `${k}\u00a0${count(l[k])}${k === "tp" && l.sequence_parallel ? "\u00a0sp" : ""}`).join(" · ");
const rest = l => [`micro-batch ${l.microbatch}`, l.schedule ? D.schedules[l.schedule] : "", l.chunks > 1 ? `${l.chunks} chunks` : "", zero(l.zero) + (l.copies > 1 ? ` in ${l.copies} copies` : ""), again(l.recompute, l.cheap_recompute)].filter(Boolean).join(", ");
const whole = (t, job) => t * job.steps * job.slow, shown = (t, job) => time(whole(t, job));
/* Why no layout is legal: degrees that divide no number of devices, else the rules that refuse most. */
const refusals = found => {
  const { limits, q } = R.job, off = ["tp", "pp", "cp", "dp"].filter(k => limits[k] && limits[k].every(v => q.devices % v));
  return off.length ? off.map(k => `${k} = ${limits[k].join(" or ")} does not divide devices = ${q.devices}.`) : found.whys.sort((a, b) => b.count - a.count).slice(0, 4).map(w => w.says);
};
const device = () => esc(R.job.machine.device);

function saySoFar(part) {
  $("answer").classList.remove("stale");
  $("answer").innerHTML = `<p class="first">At most <b>${shown(part.best.time, R.job)}</b> …</p><p><small>${count(part.legal)} layouts so far; the best of them is ${split(part.best)}.</small></p>`;
}
function arrived(found) {
  R.found = found;
  R.list = found.splits.filter(s => s.best).map(s => s.best).sort((a, b) => a.time - b.time || a.memory - b.memory);
  $("answer").classList.remove("stale"); $("found").classList.remove("stale");
  $("found").hidden = !found.best;
  if (!found.best) nothing(found); else { draw(); }
  document.documentElement.dataset.found = Math.round(performance.now() - began);
  const n = R.job.q.devices;
  sizes = (found.best ? [n / 4, n / 2, n, 2 * n, 4 * n] : [n, 2 * n, 4 * n, 8 * n, 16 * n, 32 * n]).filter(x => x >= 1 && x % 1 === 0 && x <= 2 ** 17).map(x => ({ n: x, job: jobOf({ ...S, devices: String(x) }), found: x === n ? found : null })).filter(x => !x.job.wrong);
  sizes.forEach((x, k) => { if (!x.found) send(run + "." + k, x.job); });
  drawSizes();
}
function chosen() {
  const l = pick && ofId(pick);
  return l && !verdict(l).length && P.price(R.job, l).memory <= R.job.most ? l : R.found.best;
}
/* Why this layout cannot be: sentences. */
const verdict = l => P.broken({ ...R.job.q, ...l }).filter(Boolean);
function draw() {
  const l = chosen(), p = P.price(R.job, l);
  R.l = l; R.p = p;
  drawAnswer(l, p); drawBars(p); drawList(); drawMap(); drawOwn(l); drawLaunch(); fade();
}
/* What is wider than its box fades where it is cut. */
function fade() {
  for (const e of document.querySelectorAll("#cx-plan .scroll")) e.style.setProperty("--cut", +(e.scrollWidth - e.clientWidth - e.scrollLeft > 1));
}
addEventListener("resize", fade);
for (const e of document.querySelectorAll("#cx-plan .scroll")) e.addEventListener("scroll", fade, { passive: true });
function drawAnswer(l, p) {
  const j = R.job, total = whole(p.time, j), u = unitOf(total), low = whole(p.low, j), high = whole(p.high, j), n = j.q.devices, bare = x => time(x, u).split(" ")[0];
  const best = l === R.found.best || idOf(l) === idOf(R.found.best);
  let html = `<p class="first"><b>${short(j.tokens)} tokens</b> take <b>${time(total, u)}</b> <span class="range">(${bare(low)} to ${bare(high)})</span> on ${count(n)} × ${device()}.</p>`;
  html += `<p>${best ? "The best layout is" : "Your layout is"} <b>${split(l)}</b>, ${rest(l)}: a step in ${exact(p.time)}, ${pct(p.mfu)} of peak, ${gb(p.memory)} of ${gb(j.memory)}.`;
  if (!best) html += ` It takes ${pct(p.time / R.found.best.time - 1)} longer than the best. <button type="button" class="plain" data-pick="">Back to the best</button>`;
  html += "</p>";
  const price = num(S.price), days = num(S.days), t0 = Date.parse(S.start), hours = n / 3600, bits = [];
  bits.push(price > 0 ? `It costs <b>${money(total * hours * price)}</b> (${money(low * hours * price)} to ${money(high * hours * price)}).` : `That is ${short(total * hours)} device-hours.`);
  if (t0 && total < 1e10) bits.push(`It ends on <b>${date(t0 + 1e3 * total)}</b> (${date(t0 + 1e3 * low)} to ${date(t0 + 1e3 * high)}).`);
  if (days > 0) { const d = days * DAY; bits.push(d > high ? `<span class="good">${digits(days)} days are more than the range asks for.</span>` : d < low ? `<span class="bad">${digits(days)} days are less than the range allows.</span>` : `<span class="${d > total ? "good" : "bad"}">${digits(days)} days lie inside the range, ${d > total ? "behind" : "before"} its middle.</span>`); }
  html += `<p>${bits.join(" ")}</p><p>${failing(j)}</p><p><small>${count(R.found.legal)} legal layouts${R.found.fits === null ? "" : `, of which ${count(R.found.fits)} fit`}; priced in your browser in ${time(R.found.ms / 1e3)}.</small></p>`;
  $("answer").innerHTML = html;
}
function failing(j) {
  const link = '<a href="chapters/26-failures-checkpoints.html">failures and checkpoints</a>', all = { mtbf: D.mtbf, checkpoint: S.checkpoint, restart: S.restart };
  if (j.failures) return `Of that time ${pct(1 - 1 / j.slow)} goes to ${link}: a failure every ${time(j.failures.mtbf / j.q.devices)}, a checkpoint after every ${time(j.every)} of work.`;
  const would = jobOf({ ...S, ...all });
  return `Without ${link}. If a device fails once in ${D.mtbf}, as in Llama 3’s run, they add ${would.wrong ? "more than the work itself" : pct(would.slow - 1)}<span class="press">: <button type="button" class="plain" data-failures>count them</button></span>.`;
}
const ink = k => { const [, , role, share] = D.words[k]; return `color-mix(in srgb, var(--${role}) ${share}%, var(--paper))`; };
function drawBars(p) {
  const j = R.job, u = unitOf(p.time), card = k => D.words[k][1] ? `appendices/formulas.html#formula-${D.words[k][1].replaceAll("_", "-")}` : "chapters/06-estimation-discipline.html";
  const legend = (keys, whole, say) => `<ul class="parts">${keys.map(k => `<li><i style="background:${ink(k)}"></i><a href="${card(k)}">${D.words[k][0]}</a><span>${say(p[k])}</span><small>${pct(p[k] / whole)}</small></li>`).join("")}</ul>`;
  const bar = (keys, whole) => keys.map(k => `<i style="width:${100 * p[k] / whole}%;background:${ink(k)}" title="${D.words[k][0]}"></i>`).join("");
  const causes = D.causes.filter(k => p[k] > 0).sort((a, b) => D.words[a][2].localeCompare(D.words[b][2]) || p[b] - p[a]), kinds = D.kinds.filter(k => p[k] > 0), most = Math.max(j.memory, p.memory);
  const told = (keys, say) => esc(keys.map(k => `${D.words[k][0]} ${say(p[k])}`).join(", "));
  $("bars").innerHTML = `<figure><figcaption>A step takes ${exact(p.time)}, two times in three ${time(p.low, u).split(" ")[0]} to ${time(p.high, u)}</figcaption>
    <div class="track" role="img" aria-label="${told(causes, x => time(x))}">${bar(causes, p.high)}</div><div class="whisker" aria-hidden="true"><b style="left:${100 * p.low / p.high}%;right:0"></b></div>${legend(causes, p.time, x => time(x))}</figure>
    <figure><figcaption>A device holds ${gb(p.memory)} of ${gb(j.memory)}; at least ${pct(1 - j.share)} stays free</figcaption>
    <div class="track" role="img" aria-label="${told(kinds, gb)}">${bar(kinds, most)}<u style="width:${100 * (1 - j.share)}%"></u></div>${legend(kinds, p.memory, gb)}</figure>`;
}
function drawList() {
  const now = idOf(R.l), rows = R.list.slice(0, 10);
  if (!rows.some(l => idOf(l) === now)) rows.push(R.l);
  $("best").innerHTML = `<table><thead><tr><th>layout</th><th>run</th><th class="wide">step</th><th class="wide">of peak</th><th>memory</th></tr></thead><tbody>${rows.map(l => {
    const p = P.price(R.job, l), id = idOf(l);
    return `<tr class="${id === now ? "on" : ""}"><td><label><input type="radio" name="cx-pick" value="${id}"${id === now ? " checked" : ""}>${split(l)}<small>${rest(l)}</small></label></td><td>${shown(p.time, R.job)}</td><td class="wide">${exact(p.time)}</td><td class="wide">${pct(p.mfu)}</td><td>${gb(p.memory)}</td></tr>`; }).join("")}</tbody></table>`;
}
function drawMap() {
  const cells = new Map(), best = R.found.best.time, q = R.job.q, two = x => (x & x - 1) === 0;
  for (const s of R.found.splits) {
    const key = s.tp + "," + s.pp, c = cells.get(key);
    if (!c) cells.set(key, { ...s }); else { c.legal += s.legal; c.fits += s.fits; c.pruned ||= s.pruned; c.least = Math.min(c.least, s.least); if (s.best && (!c.best || s.best.time < c.best.time)) c.best = s.best; }
  }
  const axis = k => { let v = [...new Set(R.found.splits.map(s => s[k]))].sort((a, b) => a - b); if (v.length > 8) v = v.filter(x => two(x) || x === R.l[k]); const next = 2 * v.at(-1); return q.devices % next ? v : [...v, next]; };
  const tps = axis("tp"), pps = axis("pp");
  const cell = (tp, pp) => {
    const c = cells.get(tp + "," + pp), at = `tp ${tp}, pp ${pp}: `;
    let cls = "", face = "", say, style = "";
    if (c && c.best) { const x = c.best.time / best, strong = x < 1.05; face = x.toFixed(x < 9.95 ? 2 : 0); say = `${face} times the best; ` + (c.pruned ? `${count(c.legal)} layouts.` : `${count(c.fits)} of ${count(c.legal)} layouts fit.`); style = `background:color-mix(in srgb, var(--compute) ${strong ? 100 : Math.max(4, Math.round(42 * (2.2 - Math.min(x, 2.2)) / 1.15))}%, var(--paper));color:${strong ? "var(--paper)" : "inherit"}`; }
    else if (c) { cls = "full"; say = `none of ${count(c.legal)} layouts fits; the smallest needs ${gb(c.least)}.`; }
    else { cls = "no"; const known = { ...q, tp, pp, chunks: 1, schedule: 0, cp: 1, ep: 1, dp: Math.max(1, Math.floor(q.devices / tp / pp)), microbatch: 1, zero: 0, sequence_parallel: 0, copies: 1 }; say = P.broken(known)[0] || "nothing that the search may choose is legal."; }
    return `<td><button type="button" class="${cls}" style="${style}" aria-pressed="${R.l.tp === tp && R.l.pp === pp}" aria-label="${esc(at + say)}" title="${esc(at + say)}"${c && c.best ? ` data-pick="${idOf(c.best)}"` : " data-say"}>${face}</button></td>`;
  };
  $("map").innerHTML = `<table class="map"><thead><tr><td></td>${pps.map(x => `<th scope="col">pp ${x}</th>`).join("")}</tr></thead><tbody>${tps.map(t => `<tr><th scope="row">tp ${t}</th>${pps.map(x => cell(t, x)).join("")}</tr>`).join("")}</tbody></table>`;
  $("why").textContent = "Times the best. Hatched: not legal; in orange: does not fit. Point at a cell, or press it, to learn more.";
}
/* Answers arrive one by one: a button under the cursor is drawn anew and keeps it. */
function redraw(el, html) {
  const held = el.contains(document.activeElement) && document.activeElement.dataset.devices;
  el.innerHTML = html;
  if (held) el.querySelector(`[data-devices="${held}"]`)?.focus({ preventScroll: true });
}
function drawSizes() {
  if (!R || !R.found) return;
  const more = sizes.find(x => x.found && x.found.best);
  if (!R.found.best && more && $("more")) redraw($("more"), `It works on <button type="button" class="plain" data-devices="${more.n}">${count(more.n)} devices</button>: ${split(more.found.best)}, ${shown(more.found.best.time, more.job)}.`);
  if (!R.found.best) return;
  const price = num(S.price);
  redraw($("sizes"), `<table><thead><tr><th>devices</th><th>run</th><th>${price > 0 ? "cost" : "device-hours"}</th><th>best layout</th></tr></thead><tbody>${sizes.map(({ n, job, found }) => {
    const b = found && found.best, hours = b && whole(b.time, job) * n / 3600;
    return `<tr class="${n === R.job.q.devices ? "on" : ""}"><td><button type="button" class="plain" data-devices="${n}">${count(n)}</button></td><td>${!found ? "…" : b ? shown(b.time, job) : "–"}</td><td>${b ? price > 0 ? money(hours * price) : short(hours) : ""}</td><td>${b ? split(b) : found ? "nothing fits" : ""}</td></tr>`; }).join("")}</tbody></table>`);
  fade();
}
function drawOwn(l) {
  $("own").innerHTML = LAYOUT.filter(k => k !== "dp").map(k => `<label>${NAMES[k]}<input name="${k}" value="${k === "schedule" ? D.schedules[l[k]] : l[k]}"${k === "schedule" ? "" : ` inputmode="decimal"`}></label>`).join("");
  $("verdict").innerHTML = "";
}
function tryOwn() {
  const l = Object.fromEntries([...$("own").elements].map(e => [e.name, (e.name === "schedule" ? scheduled : num)(e.value)])), q = R.job.q;
  const odd = Object.keys(l).find(k => { const [low, high] = RANGES[k] || [1, Infinity]; return !(l[k] >= low && l[k] <= high) || !k.endsWith("recompute") && l[k] % 1; });
  let say;
  if (odd) say = `<span class="bad">${NAMES[odd]}: ${{ zero: "0, 1, 2 or 3", recompute: "a share from 0 to 1", cheap_recompute: "a share from 0 to 1", sequence_parallel: "0 or 1", schedule: D.schedules.join(", ") }[odd] || "a whole number from 1"}.</span>`;
  else {
    l.dp = Math.max(1, Math.floor(q.devices / (l.tp * l.pp * l.cp)));
    const wrong = verdict(l), p = wrong.length ? null : P.price(R.job, l);
    say = wrong.length ? `<span class="bad">${wrong.map(esc).join("<br>")}</span>`
      : p.memory > R.job.most ? `<span class="bad">It is legal and does not fit: ${gb(p.memory)}, of which ${D.kinds.map(k => [k, p[k]]).sort((a, b) => b[1] - a[1]).slice(0, 2).map(([k, v]) => `${D.words[k][0]} ${gb(v)}`).join(" and ")}; ${gb(R.job.most)} may be filled.</span> It would take ${shown(p.time, R.job)}.`
        : `<span class="good">It fits:</span> ${shown(p.time, R.job)}, ${p.time > R.found.best.time ? pct(p.time / R.found.best.time - 1) + " more than the best" : "as fast as the best"}, ${gb(p.memory)}, ${pct(p.mfu)} of peak. <button type="button" class="plain" data-pick="${idOf(l)}">Make it your layout</button>`;
  }
  $("verdict").innerHTML = say;
}
function drawLaunch() {
  const l = R.l, q = { ...R.job.q, ...l }, name = S.framework, d = P.DIALECTS[name], why = d ? P.cannot(d, q) : [];
  $("framework").value = name;
  $("source").textContent = d ? `Spelled as in ${d.source}.` + (S.format === "bf16" ? "" : ` These options are for products in 16 bits; what turns on ${S.format} is not among them.`) : "The same answer in a terminal.";
  $("code").hidden = why.length > 0; $("cannot").hidden = !why.length;
  $("command").textContent = why.length ? "" : d ? P.launched(d, q) : shell(l);
  if (!why.length) { $("cannot").textContent = ""; return; }
  const can = R.can[name], b = can && can.best;
  if (!(name in R.can)) { R.can[name] = null; send(run + "." + name, R.job, name); }
  $("cannot").innerHTML = `<span class="bad">${esc(d.name)} cannot run this layout.</span> ${why.map(esc).join(" ")} ` + (!can ? "Looking for the best that it can …"
    : b ? `The best that it can run takes ${shown(b.time, R.job)}, ${pct(b.time / R.found.best.time - 1)} more than the best: <button type="button" class="plain" data-pick="${idOf(b)}">${split(b)}, ${rest(b)}</button>` : "Of the layouts that fit, it can run none.");
}
function shell(l) {
  const option = k => `--${k.replaceAll("_", "-")} ${k === "sequence_parallel" ? l[k] ? "yes" : "no" : l[k]}`;
  const file = (name, text) => `cat > ${name} <<'END'\n${text}END\n`, own = { model: S.model === "own", machine: S.machine === "own" };
  return (own.model ? file("config.json", S.config + "\n") : "") + (own.machine ? file("mine.toml", toml(S, R.job.q.devices)) : "") +
    [`capacity plan ${own.model ? "config.json" : S.model} --cluster ${own.machine ? "mine.toml" : `${S.machine}:${R.job.q.devices}`}`, `  --batch "${R.job.q.batch} sequences" --seq ${R.job.q.seq_len} --format ${S.format} --share ${R.job.share}`,
    "  " + ["tp", "pp", "cp", "ep", "chunks", "microbatch"].map(option).join(" "), "  " + ["zero", "recompute", "cheap_recompute", "sequence_parallel", "copies", "schedule"].map(option).join(" ")].join(" \\\n");
}
function nothing(found) {
  const l = found.least;
  $("answer").innerHTML = l ? `<p class="first"><b>Nothing fits.</b> The smallest of ${count(found.legal)} legal layouts needs <b>${gb(l.memory)}</b> on a device, and ${gb(R.job.most)} of ${gb(R.job.memory)} may be filled.</p><p>It is ${split(l)}, ${rest(l)}. Take more devices, or a larger one; let the search recompute, shard and split as it likes.</p><p id="cx-more"></p>`
    : `<p class="first"><b>No layout is legal.</b></p>${refusals(found).map(says => `<p>For one: ${esc(says)}</p>`).join("")}<p>Try another batch, another number of devices, or leave the search more to choose.</p><p id="cx-more"></p>`;
}

// ---- the form
const options = (el, of, now) => { el.innerHTML = Object.entries(of).map(([k, t]) => `<option value="${k}"${k === now ? " selected" : ""}>${esc(t)}</option>`).join(""); };
const formats = () => options($("job").elements.format, Object.fromEntries(formatsOf(S).map(k => [k, k])), S.format);
function fields() {
  const f = $("job").elements, names = x => Object.fromEntries(Object.entries(x).map(([k, v]) => [k, v.name || k]));
  options(f.model, { ...names(D.models), own: "your config.json" }, S.model); options(f.machine, { ...names(D.machines), own: "your own machine" }, S.machine);
  formats();
  $("config").hidden = S.model !== "own"; $("machine").hidden = S.machine !== "own"; f.config.value = S.config;
  const devices = { ...Object.fromEntries(Object.entries(DEVICES).map(([k, m]) => [k, m.device])), own: "another device" };
  $("figures").innerHTML = FIGURES.filter(k => S.device === "own" || !OF_DEVICE.includes(k)).map(k => `<label>${NAMES[k]}${k === "device" ? `<select name="device"></select>` : `<input name="${k}">`}</label>`).join("");
  options(f.device, devices, S.device);
  $("limits").innerHTML = [...LAYOUT, "share"].map(k => `<label>${NAMES[k]}<input name="${k}" placeholder="any"></label>`).join("");
  for (const k in S) if (f[k] && f[k].tagName === "INPUT") f[k].value = S[k];
}
let wait;
$("job").addEventListener("input", e => {
  const { name, value } = e.target;
  if (!(name in S)) return;
  unknown = "";
  const before = S[name], figures = D.machines[before] && D.machines[before].figures;
  S[name] = value;
  if ((name === "model" || name === "config") && modelOf(S).context) { S.seq = count(Math.min(modelOf(S).context, 8192)); $("job").elements.seq.value = S.seq; }
  if (name === "machine" && value === "own" && figures) Object.assign(S, figures);
  else if (name === "machine") S.devices = count(Math.min(machineOf(S).devices || 1024, 1024));
  if (!formatsOf(S).includes(S.format)) S.format = "bf16";
  if (FIGURES.includes(name)) formats();
  if (["model", "machine", "device"].includes(name)) { const open = $("job").querySelector("details").open; fields(); $("job").querySelector("details").open = open; $("job").elements[name].focus(); }
  const after = ["days", "start", "price"].includes(name);
  if (after && R && R.found && R.found.best && !jobOf(S).wrong) { writeAddress(); drawAnswer(R.l, R.p); drawSizes(); return; }
  if (!after && !["mtbf", "checkpoint", "restart"].includes(name)) pick = "";
  clearTimeout(wait); wait = setTimeout(ask, e.target.tagName === "SELECT" ? 0 : 200);
});
const choose = id => { pick = id === idOf(R.found.best) ? "" : id; writeAddress(); draw(); };
$("plan").addEventListener("click", e => {
  const b = e.target.closest("[data-pick],[data-devices],[data-say],[data-failures]");
  if (!b) return;
  if ("failures" in b.dataset) { S.mtbf = D.mtbf; fields(); $("job").elements.mtbf.focus(); ask(); return; }
  const map = b.closest(".map"), told = b.getAttribute("aria-label");
  if ("devices" in b.dataset) { S.devices = count(+b.dataset.devices); pick = ""; fields(); ask(); $("job").elements.devices.focus(); }
  else if ("pick" in b.dataset) {
    const back = b.closest("#cx-cannot") ? $("framework") : $("answer");
    choose(b.dataset.pick);
    (map ? $("map").querySelector("[aria-pressed=true]") : back).focus();
  }
  if (map) $("why").textContent = told;
});
for (const type of ["pointerover", "focusin"]) $("map").addEventListener(type, e => { const b = e.target.closest("button"); if (b) $("why").textContent = b.getAttribute("aria-label"); });
$("best").addEventListener("change", e => { choose(e.target.value); const on = $("best").querySelector("input:checked"); if (on) on.focus(); });
$("own").addEventListener("input", tryOwn);
$("file").addEventListener("change", async e => {
  const file = e.target.files[0], area = $("job").elements.config;
  if (!file) return;
  area.value = await file.text();
  area.dispatchEvent(new Event("input", { bubbles: true }));
});
for (const id of ["job", "own"]) $(id).addEventListener("submit", e => e.preventDefault());
$("framework").addEventListener("change", e => { S.framework = e.target.value; writeAddress(); drawLaunch(); });
$("copy").addEventListener("click", async () => {
  try { await navigator.clipboard.writeText($("command").textContent); } catch { getSelection().selectAllChildren($("command")); document.execCommand("copy"); }
  $("copy").textContent = "Copied"; setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
});
addEventListener("hashchange", () => { S = readAddress(); fields(); ask(); });
options($("framework"), { ...Object.fromEntries(Object.entries(P.DIALECTS).map(([k, d]) => [k, d.name])), capacity: "the package capacity" });
Object.assign($("plan"), { jobOf, toml, START, ...P });
S = readAddress(); fields(); $("job").hidden = $("answer").hidden = false; hire(); ask();
})();
