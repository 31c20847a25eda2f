"""A model's shape from the config.json that stands beside its weights.

    model_from_config("config.json")                   # or the dict that it holds: a Transformer

Only families whose every parameter the Transformer counts; what else stands there (a vision tower, layers that predict
further tokens, an indexer) is refused, or left out and said in `note`.
"""
import json
import re
from collections.abc import Mapping
from pathlib import Path

from .specs import pick
from .transformer import Experts, Latent, Transformer

DENSE = dict(layers="num_hidden_layers", hidden="hidden_size", heads="num_attention_heads", ffn="intermediate_size", vocab="vocab_size")


def _plain(c):
    if bool(c.get("attention_bias")) != bool(c.get("mlp_bias")):
        raise ValueError("attention_bias and mlp_bias differ; allowed: both, or neither")
    return dict(bias=int(bool(c.get("mlp_bias"))))


def _qwen2(c):
    return dict(qkv_bias=1)


def _head_norms(c):
    """One norm over a query head, one over a key head."""
    _refuse(c, attention_bias=False)
    return dict(head_norm=2*_head_dim(c))


def _mixtral(c):
    return dict(experts=Experts(count=_of(c, "num_local_experts"), active=_of(c, "num_experts_per_tok"), ffn=_of(c, "intermediate_size")))


def _qwen3_moe(c):
    _refuse(c, decoder_sparse_step=1, mlp_only_layers=[])
    return _head_norms(c) | dict(experts=Experts(count=_of(c, "num_experts"), active=_of(c, "num_experts_per_tok"),
                                                 ffn=_of(c, "moe_intermediate_size")))


def _deepseek(c):
    _refuse(c, attention_bias=False, moe_layer_freq=1, index_n_heads=None)
    rope, wide = _of(c, "qk_rope_head_dim"), _of(c, "v_head_dim")
    if _of(c, "qk_nope_head_dim") != wide:
        raise ValueError(f"qk_nope_head_dim = {c['qk_nope_head_dim']!r}; allowed: v_head_dim = {wide}")
    experts = Experts(count=_of(c, "n_routed_experts"), active=_of(c, "num_experts_per_tok"), ffn=_of(c, "moe_intermediate_size"),
                      shared=c.get("n_shared_experts") or 0, dense=c.get("first_k_dense_replace", 0),
                      bias=int(c.get("topk_method") == "noaux_tc"))
    return dict(head_dim=wide, experts=experts, latent=Latent(q_rank=_of(c, "q_lora_rank"), kv_rank=_of(c, "kv_lora_rank"), rope=rope))


def _gpt_oss(c):
    """Biases everywhere: of an expert beside the router's, of the output of attention beside a sink for each head."""
    hidden, ffn = _of(c, "hidden_size"), _of(c, "intermediate_size")
    return dict(qkv_bias=1, head_norm=_of(c, "num_attention_heads") + hidden, experts=Experts(
        count=_of(c, "num_local_experts"), active=_of(c, "num_experts_per_tok"), ffn=ffn, bias=1 + 2*ffn + hidden))


def _minimax(c):
    """Norms over all queries and over all keys of a token."""
    _refuse(c, use_qk_norm=True, qk_norm_type="per_layer", shared_intermediate_size=0)
    both = (_of(c, "num_attention_heads") + _of(c, "num_key_value_heads"))*_head_dim(c)
    return dict(head_norm=both, experts=Experts(count=_of(c, "num_local_experts"), active=_of(c, "num_experts_per_tok"),
                                                ffn=_of(c, "intermediate_size"), bias=int(bool(c.get("use_routing_bias")))))


def _gemma(c):
    _refuse(c, attention_bias=False)
    return dict(tied=1)


def _gemma2(c):
    return _gemma(c) | dict(norms=4)


def _gemma3(c):
    return _gemma2(c) | dict(head_norm=2*_head_dim(c))


FAMILIES = dict(llama=_plain, mistral=_plain, qwen2=_qwen2, qwen3=_head_norms, qwen3_moe=_qwen3_moe, mixtral=_mixtral,
                deepseek_v2=_deepseek, deepseek_v3=_deepseek, kimi_k2=_deepseek, gpt_oss=_gpt_oss, minimax_m2=_minimax, gemma=_gemma,
                gemma2=_gemma2, gemma3_text=_gemma3)


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
        except (OSError, ValueError) as error:
            raise ValueError(f"{where}: {error}") from None
        if not isinstance(config, Mapping):
            raise ValueError(f"{where}: allowed: the fields of a model, as config.json has them")
    notes = []
    if isinstance(config.get("text_config"), Mapping):
        notes.append("Only the text model.")
        config = config["text_config"]
    family = config.get("model_type")
    missing = [field for field in DENSE.values() if field not in config]
    if family not in FAMILIES:
        lacks = f"; {', '.join(missing)} missing" if missing else ""
        try:
            pick(FAMILIES, family, "model_type")
        except ValueError as error:
            raise ValueError(f"{where}: {error}{lacks}") from None
    if missing:
        raise ValueError(f"{where}: {', '.join(missing)} missing; a {family} has no shape without")
    if config.get("num_nextn_predict_layers") or config.get("num_mtp_modules"):
        notes.append("Without the layers that predict further tokens.")
    shape = {ours: _of(config, theirs) for ours, theirs in DENSE.items()} | dict(
        kv_heads=config.get("num_key_value_heads") or config["num_attention_heads"], tied=int(bool(config.get("tie_word_embeddings"))),
        context=config.get("max_position_embeddings"), note=" ".join(notes))
    try:
        own = FAMILIES[family](config)
        shape |= dict(head_dim=own.pop("head_dim", None) or _head_dim(config)) | own
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return Transformer(name=name or _name(where, config), **shape)


def _head_dim(c):
    return c.get("head_dim") or _of(c, "hidden_size")//_of(c, "num_attention_heads")


def _of(c, field):
    """A count of the config; ValueError, naming it, where it is missing or none."""
    if field not in c:
        raise ValueError(f"{field} is missing; a {c.get('model_type')} has no shape without")
    if type(c[field]) is not int or c[field] < 1:
        raise ValueError(f"{field} = {c[field]!r}; allowed: a whole number, at least 1")
    return c[field]


def _refuse(c, **allowed):
    """ValueError for a field that is there with another value than the one that is counted."""
    for field, value in allowed.items():
        if c.get(field, value) not in (value, None):
            raise ValueError(f"{field} = {c[field]!r}; allowed: {value!r}")


def _name(where, config):
    named = config.get("_name_or_path") or (Path(where).resolve().parent.name if Path(where).name == "config.json" else Path(where).stem)
    return re.sub(r".*/", "", str(named)) if where != "config" else config.get("model_type", "")
