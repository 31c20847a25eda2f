/* The search. DEGREES, KERNELS, OUTPUTS, PAIRS, RULES, ASKED, COPIED, MANY, DIALECTS, WIDTH and layouts() are printed from the package, and stand above. */
/* The vocabulary that every tensor degree divides. */
function padded(q, limits) {
  const gcd = (a, b) => b ? gcd(b, a % b) : a;
  const whole = divisors(q.devices).filter(tp => (!limits.tp || limits.tp.includes(tp)) && ["heads", "kv_heads", "ffn"].every(k => RULES[k].holds({ ...q, tp })));
  const multiple = whole.reduce((a, b) => a / gcd(a, b) * b, 1);
  return Math.ceil(q.vocab / multiple) * multiple;
}

const kernel = (kind, q) => KERNELS[kind].run(...KERNELS[kind].job.map(k => q[k]));

/* The outputs of one layout, {name: number}. */
function price({ kind, q }, l) {
  const x = kernel(kind, q)(...DEGREES.slice(0, -1).map(k => l[k]))(l.microbatch)(l.recompute, l.cheap_recompute)(l.copies);
  const pair = PAIRS.findIndex(([zero, shared]) => zero === l.zero && shared === l.sequence_parallel);
  const n = OUTPUTS.length - 3, rest = x.at(-1)().slice((n - 2) * pair, (n - 2) * (pair + 1)), time = x[2 * pair];
  const all = [time, x[2 * pair + 1], ...rest, ...KERNELS[kind].finish({ ...q, ...l, time })];
  return Object.fromEntries(OUTPUTS.map((name, i) => [name, all[i]]));
}

/* Sentences of the rules that a layout breaks. */
const broken = q => Object.values(RULES).filter(r => !r.holds({ ...q, shards: q.dp * q.cp / q.copies })).map(r => r.sentence({ ...q, shards: q.dp * q.cp / q.copies }));

/* Why a framework cannot run a layout, sentences; and the text that launches it. */
const cannot = (dialect, q) => dialect.refuses.filter(r => !r.holds(q)).map(r => r.sentence(q));
function launched(dialect, q) {
  const said = dialect.lines.filter(l => l.when(q)).map(l => l.says(q));
  if (!dialect.shell) return said.join("\n");
  const [first, ...words] = said.join(" ").split(" "), rows = [first];
  for (const word of words) { if (word.startsWith("--") && rows.at(-1).length + word.length > WIDTH) rows.push("   "); rows.push(rows.pop() + " " + word); }
  return rows.join(" \\\n");
}

/* All legal layouts of a job {kind, q, limits, most}: how many, how many fit, and the best of each split, of those that the
   framework `only` can run. From MANY layouts on, those are not priced whose least time is above the best of their split, which
   fits: none of them is better; how many fit is not known then. */
function search({ kind, q, limits, most, only }, tell = () => {}) {
  const began = performance.now(), splits = new Map(), whys = new Map(), outer = DEGREES.slice(0, -1), lows = 2 * PAIRS.length;
  const at = kernel(kind, q), last = {}, ok = { zero: [], sequence_parallel: [] }, splittable = new Map();
  const pairs = PAIRS.map((pair, k) => [...pair, k]).filter(([z, s]) => limits.zero.includes(z) && limits.sequence_parallel.includes(s));
  const values = { zero: [...new Set(pairs.map(p => p[0]))], sequence_parallel: [...new Set(pairs.map(p => p[1]))] };
  const copiesOf = n => { let found = splittable.get(n); if (!found) splittable.set(n, found = divisors(n).filter(c => !limits.copies || limits.copies.includes(c))); return found; };
  const shares = limits.recompute.flatMap(recompute => limits.cheap_recompute.map(cheap_recompute => ({ recompute, cheap_recompute })));
  let legal = 0, fits = 0, pruned = false, best = null, least = null, of, copies, turn = 0, next = began + 40;
  const keep = (q, [zero, sequence_parallel], share, time, memory) => {
    const kept = {};
    for (const k of DEGREES) kept[k] = q[k];
    return Object.assign(kept, { zero, sequence_parallel }, share, { copies: q.copies, time, memory });
  };
  layouts({ ...q }, limits, q => {
    for (const name in values) for (const v of values[name]) { q[name] = v; ok[name][v] = ASKED[name].every(rule => RULES[rule].holds(q)); }
    if (COPIED.some(k => last[k] !== q[k])) copies = copiesOf(q.dp * q.cp).map(c => { q.copies = c; return [c, values.zero.filter(z => { q.zero = z; return ASKED.copies.every(rule => RULES[rule].holds(q)); })]; }).filter(([, zeros]) => zeros.length);
    if (outer.some(k => last[k] !== q[k])) { for (const k of outer) last[k] = q[k]; of = at(...outer.map(k => q[k])); }
    const priced = of(q.microbatch), some = shares.filter(share => { Object.assign(q, share); return ASKED.recompute.every(rule => RULES[rule].holds(q)); });
    const key = q.pp + "," + q.tp + "," + q.cp + "," + q.ep;
    let split = splits.get(key);
    if (!split) splits.set(key, split = { pp: q.pp, tp: q.tp, cp: q.cp, ep: q.ep, legal: 0, fits: 0, least: Infinity, best: null });
    const now = pairs.filter(([z, s]) => ok.zero[z] && ok.sequence_parallel[s]), those = copies.map(([c, zeros]) => [c, now.filter(pair => zeros.includes(pair[0]))]);
    const n = some.length * those.reduce((sum, [, pairs]) => sum + pairs.length, 0);
    legal += n; split.legal += n;
    const slow = x => split.best && legal > MANY && values.sequence_parallel.every(s => !ok.sequence_parallel[s] || x[lows + s] > split.best.time) && (pruned = split.pruned = true);
    if (n && !slow(priced(0, 0)(1))) for (const share of some) {
      const shared = priced(share.recompute, share.cheap_recompute);
      for (const [c, pairs] of those) {
        if (!pairs.length) continue;
        const x = shared(q.copies = c);
        if (slow(x)) break;
        for (const pair of pairs) {
          const time = x[2 * pair[2]], memory = x[2 * pair[2] + 1];
          if (memory < split.least) { split.least = memory; if (!least || memory < least.memory) least = keep(q, pair, share, time, memory); }
          if (memory > most) continue;
          fits++; split.fits++;
          const old = split.best;
          if (old && (time > old.time || time === old.time && memory >= old.memory)) continue;
          if (only) { Object.assign(q, { zero: pair[0], sequence_parallel: pair[1], ...share }); if (!DIALECTS[only].refuses.every(r => r.holds(q))) continue; }
          split.best = keep(q, pair, share, time, memory);
          if (!best || time < best.time || time === best.time && memory < best.memory) best = split.best;
        }
      }
    }
    if ((++turn & 63) === 0 && performance.now() > next) { next = performance.now() + 150; tell({ legal, best }); }
  }, (rule, q) => { const w = whys.get(rule.name); if (w) w.count++; else whys.set(rule.name, { count: 1, says: rule.sentence(q) }); });
  return { legal, fits: pruned ? null : fits, best, least, splits: [...splits.values()], whys: [...whys.values()], ms: performance.now() - began };
}
