"""Which layouts there are: the rules they keep, and all of them as arrays.

A rule is one expression of q, whose attributes are the letters of job and layout, and the sentence for one that breaks
it.  `Layout.check` prints the sentences; `layouts` takes the expressions as masks; both run on traced letters
(`capacity.tape`) too, and so print as JavaScript: no `and`, `or`, `max` or `if`, but `&`, `|`, `maximum`.
"""
import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from .algebra import ceil, maximum, minimum
from .tape import Namespace, arrow, inputs


@dataclass(frozen=True)
class Rule:
    """What must hold of a layout, as an expression of q, and the sentence about one of which it does not."""
    name: str
    holds: Callable
    sentence: Callable

    @functools.cached_property
    def letters(self):
        """The letters that the expression reads."""
        return frozenset(inputs(self.holds(Namespace())))

    def javascript(self):
        """{holds, sentence}, two functions of q."""
        return f"{{holds:{arrow(self.holds)},sentence:{arrow(self.sentence)}}}"


RULES = tuple(Rule(*rule) for rule in (
    ("devices", lambda q: q.dp*q.cp*q.tp*q.pp == q.devices,
     lambda q: f"dp*cp*tp*pp = {q.dp}*{q.cp}*{q.tp}*{q.pp} is {q.dp*q.cp*q.tp*q.pp}, and the cluster has {q.devices} devices."),
    ("batch", lambda q: q.batch % (q.dp*q.microbatch) == 0,
     lambda q: f"A batch of {q.batch} sequences does not divide into {q.dp} ranks times micro-batches of {q.microbatch}."),
    ("heads", lambda q: q.heads % q.tp == 0,
     lambda q: f"{q.heads} attention heads do not divide over tp = {q.tp}."),
    ("kv_heads", lambda q: maximum(q.kv_heads, q.tp) % minimum(q.kv_heads, q.tp) == 0,
     lambda q: f"{q.kv_heads} key-value heads and tp = {q.tp}: neither divides the other."),
    ("ffn", lambda q: q.ffn % q.tp == 0,
     lambda q: f"A feed-forward width of {q.ffn} does not divide over tp = {q.tp}."),
    ("vocab", lambda q: q.vocab % q.tp == 0,
     lambda q: f"A vocabulary of {q.vocab} does not divide over tp = {q.tp}; padded to {ceil(q.vocab/q.tp)*q.tp} it does."),
    ("layers", lambda q: q.layers + 2 >= q.pp*q.chunks,
     lambda q: f"{q.layers} layers are too few for pp*chunks = {q.pp*q.chunks} pieces."),
    ("chunks", lambda q: (q.chunks == 1) | (q.pp > 1),
     lambda q: f"chunks = {q.chunks} needs a pipeline to interleave, and pp is 1."),
    ("split", lambda q: (q.schedule == 0) | (q.pp > 1) & (q.chunks == 1 + q.schedule//3),
     lambda q: f"Of schedules that put weight gradients off, ZB-H1 and ZB-H2 (1, 2) have one chunk and ZB-V (3) two, in a pipeline; "
               f"schedule = {q.schedule} has {q.chunks} on pp = {q.pp}."),
    ("lag", lambda q: (q.schedule == 0) | (q.batch > q.dp*q.microbatch*minimum(q.schedule, 2)*(q.pp - 1)),
     lambda q: f"schedule = {q.schedule} puts weight gradients off by up to {minimum(q.schedule, 2)}*(pp - 1) micro-batches, and there are "
               f"{q.batch/(q.dp*q.microbatch):g} with pp = {q.pp}."),
    ("interleave", lambda q: (q.chunks == 1) | (q.schedule == 3) | (q.batch % (q.dp*q.microbatch*q.pp) == 0),
     lambda q: f"chunks = {q.chunks} interleaves groups of pp = {q.pp} micro-batches, and "
               f"{q.batch/(q.dp*q.microbatch):g} are no multiple of {q.pp}."),
    ("expert_ranks", lambda q: q.dp*q.cp*q.tp % q.ep == 0,
     lambda q: f"ep = {q.ep} does not divide dp*cp*tp = {q.dp*q.cp*q.tp}."),
    ("experts", lambda q: (q.ep == 1) | (q.experts > 0) & (q.experts % q.ep == 0),
     lambda q: f"ep = {q.ep} does not divide the experts of {q.model}."),
    # where the length of a sequence is known
    ("context", lambda q: (q.cp == 1) | (q.seq_len % (2*q.cp) == 0),
     lambda q: f"{q.seq_len} tokens do not cut into 2*cp = {2*q.cp} equal parts, two for each context rank."),
    ("sequence", lambda q: (q.sequence_parallel == 0) | (q.seq_len % (q.cp*q.tp) == 0),
     lambda q: f"{q.seq_len} tokens do not divide over cp*tp = {q.cp*q.tp} ranks that share them."),
    # of a layout: a search takes copies, and shards follow
    ("shards", lambda q: q.dp*q.cp % q.shards == 0,
     lambda q: f"shards = {q.shards} does not divide dp*cp = {q.dp*q.cp} replicas."),
))

# A layout that breaks one of these is legal, and another name for one that keeps it: a search skips it.
SYNONYMS = tuple(Rule(*rule) for rule in (
    ("unshared", lambda q: (q.zero == 0) | (q.dp*q.cp > q.copies) | (q.experts > 0) & (q.dp*q.cp*q.tp > q.ep),
     lambda q: f"zero = {q.zero} shards nothing where each of dp*cp = {q.dp*q.cp} replicas keeps a copy."),
    ("uncopied", lambda q: (q.copies == 1) | (q.zero > 0),
     lambda q: f"copies = {q.copies} of what zero = 0 does not shard are no choice."),
    ("unsplit", lambda q: (q.sequence_parallel == 0) | (q.tp > 1),
     lambda q: "sequence_parallel without tensor-parallel ranks shares nothing."),
))

# A layout that breaks one of these is legal: a search does not try it.
UNTRIED = tuple(Rule(*rule) for rule in (
    ("repeated", lambda q: (q.schedule == 0) | (q.recompute == 0),
     lambda q: f"With schedule = {q.schedule} the last ranks keep what they recompute until its weight gradients are made: "
               f"recompute = {q.recompute} saves nothing."),
    ("mixed", lambda q: (q.cheap_recompute == 0) | (q.recompute == 0),
     lambda q: f"Cheap outputs are made again where no layer is run again; recompute = {q.recompute}."),
))

# A layout that breaks one of these is legal and costs more than it is charged for: a search skips it.
UNPRICED = tuple(Rule(*rule) for rule in (
    ("split_experts", lambda q: (q.copies == 1) | (q.dp*q.cp*q.tp % (q.copies*q.ep) == 0),
     lambda q: f"ep = {q.ep} does not divide the {q.dp*q.cp*q.tp/q.copies:g} ranks of a copy: which of them share an expert "
               "differs, and the model takes them for equal."),
))

# Orders of a pipeline whose time and activations chapter 16 derives, by number.
SCHEDULES = "1F1B", "ZB-H1", "ZB-H2", "ZB-V"

# The letters of a layout in the order in which they are chosen, with what each is chosen from: divisors of a letter, all
# numbers up to it, some numbers, or what follows from the letters before.
AXES = (("pp", "divisors", "devices"), ("chunks", "up to", "layers"), ("schedule", "among", range(len(SCHEDULES))),
        ("tp", "divisors", "devices"), ("cp", "divisors", "devices"),
        ("dp", "follows", lambda q: maximum(q.devices//(q.pp*q.tp*q.cp), 1)),
        ("ep", "divisors", "experts"), ("microbatch", "divisors", "batch"))
DEGREES = tuple(name for name, *_ in AXES)
# Of each of them, freely. Copies of what zero shards, each shared by dp*cp/copies ranks: divisors of dp*cp.
CHOICES = "zero", "sequence_parallel", "recompute", "cheap_recompute", "copies"


def letters(model, **others):
    """q: the letters of a model that rules read, and others."""
    return SimpleNamespace(heads=model.heads, kv_heads=model.kv_heads, ffn=model.ffn, vocab=model.vocab, layers=model.layers,
                           experts=model.experts.count if model.experts else 0, model=model.name or "the model", **others)


def broken(q, rules=RULES):
    """The sentences of the rules that q breaks, as a tuple; rules with a letter that q lacks are passed over."""
    known = set(vars(q))
    return tuple([rule.sentence(q) for rule in rules if rule.letters <= known and not rule.holds(q)])


def divisors(n):
    """The divisors of n in order; of 0, which everything divides, just 1."""
    low = [k for k in range(1, int(n**0.5) + 1) if n % k == 0] or [1]
    return sorted({*low, *(n//k for k in low if n)})


def layouts(q, limits=None, tally=None, rules=RULES):
    """All legal layouts of a job, {letter: array of whole numbers}, one array for each of DEGREES.

    q       the letters of the job: those of `letters`, devices, batch, seq_len
    limits  {letter: numbers that are allowed}
    tally   a dict that gets, by rule, how many partial layouts it refused, and the sentence about the first one

    Letters are bound in the order of AXES, and each rule is asked as soon as its letters are.
    """
    limits, found, asked = limits or {}, {}, set()
    known, size = dict(vars(q)), 1
    for name, how, of in AXES:
        if how == "follows":
            fresh = of(SimpleNamespace(**known, **found))
            found[name] = fresh
            keep = np.isin(fresh, limits[name]) if name in limits else np.ones(size, bool)
        else:
            options = of if how == "among" else divisors(known[of]) if how == "divisors" else range(1, int(known[of]) + 1)
            options = np.array([k for k in options if name not in limits or k in limits[name]], np.int64)
            if tally is not None and not len(options):
                asked_for = " or ".join(map(str, limits[name]))
                missed = f" {'does not divide' if how == 'divisors' else 'is above'} {of} = {known[of]}."
                tally[name] = size, f"{name} = {asked_for}" + (missed if known[of] else f", and there are no {of}.")
            found = {k: np.repeat(x, len(options)) for k, x in found.items()} | {name: np.tile(options, size)}
            keep = np.ones(size*len(options), bool)
        bound = SimpleNamespace(**known, **found)
        for rule in rules:
            if rule.name not in asked and rule.letters <= vars(bound).keys():
                asked.add(rule.name)
                holds = np.broadcast_to(rule.holds(bound), keep.shape)
                if tally is not None and np.any(refused := keep & ~holds):
                    one = {k: int(x[refused][0]) for k, x in found.items()}
                    tally[rule.name] = int(refused.sum()), rule.sentence(SimpleNamespace(**known, **one))
                keep = keep & holds
        found = {k: x[keep] for k, x in found.items()}
        size = int(keep.sum())
    return found


def javascript():
    """The rules and the enumeration as JavaScript, from the same expressions in the same order.

    RULES     {name: {holds(q), sentence(q)}}, those that are synonyms' too
    layouts   (q, limits, visit, refused): calls visit(q) with every legal layout's letters written into q, and refused(rule, q)
              with a partial layout that breaks a rule
    """
    known = set().union(*(r.letters for r in RULES)) - {*DEGREES, *CHOICES, "shards"}       # of the job
    options, lines, asked, depth = [], [], set(), 0
    for name, how, of in AXES:
        if how == "follows":
            lines.append(f"q.{name}={of(Namespace('q.'))!s};if(!allowed('{name}',q.{name}))continue;")
        else:
            these = f"[{','.join(map(str, of))}]" if how == "among" else f"{'divisors' if how == 'divisors' else 'upto'}(q.{of})"
            options.append(f"{name}_={these}.filter(v=>allowed('{name}',v))")
            lines.append(f"for(const v of {name}_){{q.{name}=v;")
            depth += 1
        known.add(name)
        for r in RULES:
            if r.name not in asked and r.letters <= known:
                asked.add(r.name)
                lines.append(f"if(!RULES.{r.name}.holds(q)){{refused(RULES.{r.name},q);continue;}}")
    return (f"const RULES={{{','.join(f'{r.name}:{r.javascript()}' for r in RULES + SYNONYMS + UNTRIED + UNPRICED)}}};\n"
            "const divisors=n=>{const low=[],high=[];for(let k=1;k*k<=n;k++)if(n%k===0){low.push(k);if(k*k<n)high.unshift(n/k);}"
            "return n?low.concat(high):[1];};\nconst upto=n=>Array.from({length:n},(_,k)=>k+1);\n"
            "function layouts(q,limits,visit,refused=()=>{}){const allowed=(k,v)=>!(k in limits)||limits[k].includes(v),"
            + ",".join(options) + ";\n" + "\n".join(lines) + "visit(q);" + "}"*depth + "}\n")
