/* Of one's own: a model from config.json, a machine from its figures. FAMILIES, COMMON, SAYS, DENSE, TEXTS, FURTHER, NOTES and
   OWN are printed from the package. */
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
