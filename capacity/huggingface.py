"""A model's shape from the config.json that stands beside its weights.

    model_from_config("config.json")                   # or the dict that it holds: a Transformer

Only families whose every parameter the Transformer counts; what else stands there (a vision tower, layers that predict
further tokens, an indexer) is refused, or left out and said in `note`.  What a family says is a table of expressions of
its fields, which prints as JavaScript too: a page reads the same files.
"""
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from .algebra import maximum, where
from .legality import Rule
from .specs import Facts, pick
from .tape import Namespace, arrow, inputs
from .transformer import Experts, Latent, Transformer

DENSE = Facts(layers="num_hidden_layers", hidden="hidden_size", heads="num_attention_heads", ffn="intermediate_size", vocab="vocab_size")
TEXTS = "topk_method",                              # fields that are no numbers
FURTHER = "num_nextn_predict_layers", "num_mtp_modules"
NOTES = "Only the text model.", "Without the layers that predict further tokens."
SAYS = Facts(                                       # of q: field, value, known, family, missing
    missing=lambda q: f"{q.missing} missing; a {q.family} has no shape without",
    absent=lambda q: f"{q.field} is missing; a {q.family} has no shape without",
    whole=lambda q: f"{q.field} = {q.value}; allowed: a whole number, at least 1",
    number=lambda q: f"{q.field} = {q.value}; allowed: a whole number",
    other=lambda q: f"{q.field} = {q.value}; allowed: {q.known}")


HEADS = Rule("heads", lambda q: (q.head_dim > 0) | (q.hidden_size >= q.num_attention_heads),
             lambda q: f"hidden_size = {q.hidden_size}; allowed: at least num_attention_heads = {q.num_attention_heads}")

GROUPS = Rule("groups", lambda q: (q.num_key_value_heads == 0) | (q.num_attention_heads % maximum(q.num_key_value_heads, 1) == 0),
              lambda q: (f"num_key_value_heads = {q.num_key_value_heads}; allowed: a divisor of num_attention_heads = "
                         f"{q.num_attention_heads}"))


@dataclass(frozen=True, kw_only=True)
class Family:
    """What the config.json of a family says.

    shape    q, whose attributes are its fields as numbers, 0 where one is missing -> {letter: expression}, the letters of
             Transformer and Latent, and those of Experts behind `experts_`
    needs    fields without which the shape is unknown
    allowed  {field: the only value that is counted}
    rules    Rules that its fields keep
    """
    shape: Callable
    needs: tuple = ()
    allowed: Mapping = field(default_factory=Facts)
    rules: tuple = ()

    def letters(self, q):
        """All letters of the shape, those of every family first."""
        return _common(q) | self.shape(q)

    def optional(self):
        """Numbers that shape and rules read, and that may be missing."""
        said = [*self.letters(Namespace()).values(), *(rule.holds(Namespace()) for rule in (HEADS, GROUPS, *self.rules))]
        return sorted(set().union(*(inputs(x) for x in said if not isinstance(x, int))) - {*DENSE.values(), *self.needs, *TEXTS})


def _common(q):
    return {ours: getattr(q, theirs) for ours, theirs in DENSE.items()} | dict(
        kv_heads=where(q.num_key_value_heads > 0, q.num_key_value_heads, q.num_attention_heads), head_dim=_head_dim(q),
        tied=(q.tie_word_embeddings > 0)*1, context=q.max_position_embeddings*1)


def _head_dim(q):
    return where(q.head_dim > 0, q.head_dim, q.hidden_size//q.num_attention_heads)


def _experts(q, count, ffn):
    return dict(experts_count=getattr(q, count), experts_active=q.num_experts_per_tok, experts_ffn=getattr(q, ffn))


def _mixtral(q):
    return _experts(q, "num_local_experts", "intermediate_size")


def _head_norms(q):
    """One norm over a query head, one over a key head."""
    return dict(head_norm=2*_head_dim(q))


def _deepseek(q):
    return _experts(q, "n_routed_experts", "moe_intermediate_size") | dict(
        head_dim=q.v_head_dim, experts_shared=q.n_shared_experts*1, experts_dense=q.first_k_dense_replace*1,
        experts_bias=(q.topk_method == "noaux_tc")*1, q_rank=q.q_lora_rank, kv_rank=q.kv_lora_rank, rope=q.qk_rope_head_dim)


def _gpt_oss(q):
    """Biases everywhere: of an expert beside the router's, of the output of attention beside a sink for each head."""
    return _mixtral(q) | dict(qkv_bias=1, head_norm=q.num_attention_heads + q.hidden_size,
                              experts_bias=1 + 2*q.intermediate_size + q.hidden_size)


def _minimax(q):
    """Norms over all queries and over all keys of a token."""
    return _mixtral(q) | dict(head_norm=(q.num_attention_heads + q.num_key_value_heads)*_head_dim(q),
                              experts_bias=(q.use_routing_bias > 0)*1)


_UNBIASED = Facts(attention_bias=False)
_ROUTED = "num_experts_per_tok", "num_local_experts"
_LLAMA = Family(shape=lambda q: dict(bias=(q.mlp_bias > 0)*1), rules=(
    Rule("biases", lambda q: (q.attention_bias > 0) == (q.mlp_bias > 0),
         lambda q: "attention_bias and mlp_bias differ; allowed: both, or neither"),))
_DEEPSEEK = Family(
    shape=_deepseek, needs=("qk_rope_head_dim", "v_head_dim", "qk_nope_head_dim", "n_routed_experts", "num_experts_per_tok",
                            "moe_intermediate_size", "q_lora_rank", "kv_lora_rank"),
    allowed=Facts(attention_bias=False, moe_layer_freq=1, index_n_heads=None), rules=(
        Rule("heads", lambda q: q.qk_nope_head_dim == q.v_head_dim,
             lambda q: f"qk_nope_head_dim = {q.qk_nope_head_dim}; allowed: v_head_dim = {q.v_head_dim}"),))
FAMILIES = Facts(
    llama=_LLAMA, mistral=_LLAMA, qwen2=Family(shape=lambda q: dict(qkv_bias=1)), qwen3=Family(shape=_head_norms, allowed=_UNBIASED),
    qwen3_moe=Family(shape=lambda q: _head_norms(q) | _experts(q, "num_experts", "moe_intermediate_size"),
                     needs=("num_experts", "num_experts_per_tok", "moe_intermediate_size"),
                     allowed=Facts(decoder_sparse_step=1, mlp_only_layers=[], attention_bias=False)),
    mixtral=Family(shape=_mixtral, needs=_ROUTED), deepseek_v2=_DEEPSEEK, deepseek_v3=_DEEPSEEK, kimi_k2=_DEEPSEEK,
    gpt_oss=Family(shape=_gpt_oss, needs=_ROUTED),
    minimax_m2=Family(shape=_minimax, needs=(*_ROUTED, "num_key_value_heads"),
                      allowed=Facts(use_qk_norm=True, qk_norm_type="per_layer", shared_intermediate_size=0)),
    gemma=Family(shape=lambda q: dict(tied=1), allowed=_UNBIASED), gemma2=Family(shape=lambda q: dict(tied=1, norms=4), allowed=_UNBIASED),
    gemma3_text=Family(shape=lambda q: _head_norms(q) | dict(tied=1, norms=4), allowed=_UNBIASED))


def model_from_config(config, name=""):
    """The Transformer that a config.json describes; `config` is its path, its folder's path, or the dict that it holds.

    Counts of parameters are exact for the families that are known. Layers that predict further tokens are left out, and so
    is what a model has besides text where the text's own config stands in `text_config`; `note` says so. ValueError for an
    unknown architecture, with the fields that are missing, for a field without which the shape is unknown, and for one
    whose value would change the count in a way that a Transformer cannot.
    """
    where = "config"
    if not isinstance(config, Mapping):
        where = Path(config)/"config.json" if Path(config).is_dir() else Path(config)
        try:
            config = json.loads(Path(where).read_text(encoding="utf-8"))
        except OSError as error:
            raise ValueError(f"{where}: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{where}: no JSON: {error}") from None
        if not isinstance(config, Mapping):
            raise ValueError(f"{where}: allowed: the fields of a model, as config.json has them")
    notes = []
    if isinstance(config.get("text_config"), Mapping):
        notes.append(NOTES[0])
        config = config["text_config"]
    if any(map(config.get, FURTHER)):
        notes.append(NOTES[1])
    try:
        shape = _shape(config)
        experts = {f.name: shape.pop(f"experts_{f.name}") for f in fields(Experts) if f"experts_{f.name}" in shape}
        latent = {f.name: shape.pop(f.name) for f in fields(Latent) if f.name in shape}
        return Transformer(name=name or _name(where, config), note=" ".join(notes), **shape | dict(
            context=shape["context"] or None, experts=Experts(**experts) if experts else None, latent=Latent(**latent) if latent else None))
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _shape(config):
    """{letter: number}; ValueError for what is missing, or cannot be counted."""
    name = config.get("model_type")
    missing = [key for key in DENSE.values() if key not in config]
    try:
        family = pick(FAMILIES, name, "model_type")
    except ValueError as error:
        raise ValueError(f"{error}; {', '.join(missing)} missing" if missing else str(error)) from None

    def refuse(what, **words):
        raise ValueError(SAYS[what](_Fields(words | {"family": name})))
    if missing:
        refuse("missing", missing=", ".join(missing))
    for key, value in family.allowed.items():
        if config.get(key, value) not in (value, None):
            refuse("other", field=key, value=repr(config[key]), known=repr(value))
    for key in (*DENSE.values(), *family.needs):
        if key not in config:
            refuse("absent", field=key)
        if type(config[key]) is not int or config[key] < 1:
            refuse("whole", field=key, value=repr(config[key]))
    for key in family.optional():
        if type(x := config.get(key)) not in (int, bool, type(None)) or (x or 0) < 0:
            refuse("number", field=key, value=repr(x))
    q = _Fields(config)
    if wrong := [rule.sentence(q) for rule in (HEADS, GROUPS, *family.rules) if not rule.holds(q)]:
        raise ValueError(wrong[0])
    return family.letters(q)


class _Fields:
    """The fields of a config as attributes: True is 1, and what is missing 0."""

    def __init__(self, config):
        self._config = config

    def __getattr__(self, name):
        x = self._config.get(name) or 0
        return int(x) if isinstance(x, bool) else x


def javascript():
    """FAMILIES, and what else of this module a page needs to read a config.json, as JavaScript."""
    def shape(of):
        return f"q=>({{{','.join(f'{k}:{x!s}' for k, x in of(Namespace('q.')).items())}}})"

    def one(family):
        needs, allowed, optional = map(json.dumps, (family.needs, family.allowed, family.optional()))
        return (f"{{needs:{needs},allowed:{allowed},optional:{optional},"
                f"rules:[{','.join(rule.javascript() for rule in (HEADS, GROUPS, *family.rules))}],shape:{shape(family.shape)}}}")
    constants = dict(DENSE=list(DENSE.values()), TEXTS=TEXTS, FURTHER=FURTHER, NOTES=NOTES)
    said = ",".join(f"{k}:{arrow(says)}" for k, says in SAYS.items())
    known = ",".join(f"{name}:{one(family)}" for name, family in FAMILIES.items())
    return (f"const COMMON={shape(_common)},FAMILIES={{{known}}},SAYS={{{said}}},"
            + ",".join(f"{k}={json.dumps(x)}" for k, x in constants.items()) + ";\n")


def _name(where, config):
    named = config.get("_name_or_path") or (Path(where).resolve().parent.name if Path(where).name == "config.json" else Path(where).stem)
    return re.sub(r".*/", "", str(named)) if where != "config" else config.get("model_type", "")
