/* What is typed: a batch, a count, a model of one's own from config.json, a machine from its figures. FAMILIES, COMMON, SAYS, DENSE,
   TEXTS, FURTHER, NOTES, OWN, BATCH, WHOLE, POWERS, MOST and AMBIGUOUS are printed from the package. */
const digits = n => n.toLocaleString("en"), said = (batch, seq) => `${digits(batch)} sequence${batch > 1 ? "s" : ""}, ${digits(batch * seq)} tokens`;

/* The sequences that a text means, {n}, or {error}: `sequences` of the package. */
function sequences(batch, seq) {
  const m = BATCH.exec(batch), refuse = words => ({ error: `batch = '${batch}'${words}` });
  if (!m) return refuse("; allowed: a number of sequences, or a text such as '4M tokens', '512 sequences'");
  const number = +m[1].replace(/[,_]/g, ""), power = POWERS[m[2].toUpperCase()], tokens = m[3].startsWith("token") || m[2] && !m[3].startsWith("seq");
  const each = tokens ? seq : 1, sizes = tokens ? [1000 ** power, 1024 ** power] : [1000 ** power], n = number * sizes[0] / each;
  const found = (Math.log2(each) % 1 ? sizes : [...sizes].reverse()).map(size => number * size / each).find(n => n >= 1 && n <= MOST && n % 1 === 0);
  if (found) return { n: found };
  if (n > MOST) return refuse(tokens ? `; allowed: at most ${digits(MOST)} sequences, here of ${digits(seq)} tokens` : ` means sequences; allowed: at most ${digits(MOST)}, or tokens, such as '4M tokens'`);
  if (!tokens) return refuse("; allowed: a whole number of sequences, at least 1, or tokens, such as '4M tokens'");
  const near = [Math.floor(n), Math.floor(n) + 1].filter(k => k).map(k => said(k, seq)).join(", or ");
  return refuse(` is no whole number of sequences of ${digits(seq)} tokens; allowed: such as ${near}`);
}

/* The whole number that digits mean, {n}, or {error}. */
function whole(name, text) {
  const n = WHOLE.test(text) ? +text.replace(/[,_]/g, "") : 0;
  return n ? { n } : { error: `${name} = '${text}'; allowed: a whole number in digits, at least 1${/k$/i.test(text) ? AMBIGUOUS : ""}` };
}

const isTable = x => x !== null && typeof x === "object" && !Array.isArray(x);
const python = x => x === undefined || x === null ? "None" : typeof x === "boolean" ? x ? "True" : "False" : typeof x === "string" ? `'${x}'`
  : Array.isArray(x) ? `[${x.map(python).join(", ")}]` : isTable(x) ? "{…}" : String(x);
const plain = x => typeof x === "boolean" ? +x : x;

/* {name, kind, note, context, q, config}: the model that a config.json describes, and the fields that say so; or {error}. */
function configured(given) {
  if (!isTable(given)) return { error: "allowed: the fields of a model, as config.json has them" };
  const inner = isTable(given.text_config), c = inner ? given.text_config : given, has = k => Object.hasOwn(c, k);
  const name = c.model_type, family = typeof name === "string" && Object.hasOwn(FAMILIES, name) ? FAMILIES[name] : null, missing = DENSE.filter(k => !has(k));
  if (!family) {
    const close = Object.keys(FAMILIES).filter(k => name && k.includes(String(name).toLowerCase()));
    return { error: `unknown model_type ${python(name)}; ${close.length ? "close matches" : "known"}: ${(close.length ? close : Object.keys(FAMILIES)).join(", ")}` + (missing.length ? `; ${missing.join(", ")} missing` : "") };
  }
  const refuse = (what, words) => ({ error: SAYS[what]({ family: name, ...words }) });
  if (missing.length) return refuse("missing", { missing: missing.join(", ") });
  for (const [field, value] of Object.entries(family.allowed))
    if (c[field] !== undefined && c[field] !== null && JSON.stringify(plain(c[field])) !== JSON.stringify(plain(value))) return refuse("other", { field, value: python(c[field]), known: python(value) });
  for (const field of [...DENSE, ...family.needs]) {
    if (!has(field)) return refuse("absent", { field });
    if (!Number.isInteger(c[field]) || c[field] < 1) return refuse("whole", { field, value: python(c[field]) });
  }
  for (const field of family.optional) if (!(plain(c[field] ?? 0) >= 0 && Number.isInteger(plain(c[field] ?? 0)))) return refuse("number", { field, value: python(c[field]) });
  const fields = new Proxy(c, { get: (t, k) => Object.hasOwn(t, k) ? plain(t[k]) || 0 : 0 }), wrong = family.rules.find(r => !r.holds(fields));
  if (wrong) return { error: wrong.sentence(fields) };
  const { context, ...shape } = { ...COMMON(fields), ...family.shape(fields) };
  const called = String(c._name_or_path || given._name_or_path || name).replace(/.*\//, "");
  const reads = new Set(["model_type", "_name_or_path", ...DENSE, ...family.needs, ...Object.keys(family.allowed), ...family.optional, ...TEXTS, ...FURTHER]);
  const kept = Object.fromEntries(Object.entries({ _name_or_path: called, ...c }).filter(([k]) => reads.has(k)));
  return { name: called, kind: shape.experts_count ? shape.q_rank ? "experts_latent" : "experts" : "dense", context,
    note: [inner && NOTES[0], FURTHER.some(k => c[k]) && NOTES[1]].filter(Boolean).join(" "),
    q: { ...shape, experts: shape.experts_count || 0, model: called, window: 1 }, config: JSON.stringify(inner ? { text_config: kept } : kept) };
}

/* The number that "3.35 TB/s" means, of units {unit: factor}; NaN of what it does not. */
function measure(text, units) {
  const m = /^\s*([0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)\s*(\S+)\s*$/.exec(text);
  return m && Object.hasOwn(units, m[2]) ? +m[1].replaceAll(",", "") * units[m[2]] : NaN;
}
