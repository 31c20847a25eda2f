"""A layout as the launch options of a framework, or the reasons for which the framework cannot run it.

    launch_options("megatron", model("llama3-70b"), cluster("dgx-h100", 64), layout, 8192)

The names were read in the sources named in `DIALECTS`; an option that stands there is spelled as there, and none is
printed that does not.  What data-parallel ranks are is what the other degrees leave, in all three.
"""
import json
from collections.abc import Callable
from dataclasses import dataclass

from .specs import Facts, pick

FULL = 1                                    # share of recomputation of a layer that is done again as a whole


@dataclass(frozen=True)
class Dialect:
    """What a framework calls things.

    repository, commit, date   the source that was read
    options   {name: file in which it is defined}; of Megatron-LM many options are made from the fields of a dataclass
    refuses   (model, cluster, layout, seq_len) -> sentences: what it cannot do
    prints    the same arguments -> the text, for a layout that is not refused
    limits    limits of `plan` within which it can do everything, as options of `capacity plan`
    """
    name: str
    repository: str
    commit: str
    date: str
    options: dict
    refuses: Callable
    prints: Callable
    limits: str


def launch_options(framework, model, cluster, layout, seq_len):
    """The launch options of "megatron", "torchtitan" or "deepspeed" for a layout, as a text.

    In 16 bits, gradients in 32 where the framework's default says so. ValueError with every reason for which the
    framework cannot run the layout, or for which nobody has seen it do so; and for an illegal layout.
    """
    dialect = pick(DIALECTS, framework, "framework")
    if wrong := layout.check(model, cluster, seq_len):
        raise ValueError(" ".join(wrong))
    if reasons := tuple(dialect.refuses(model, cluster, layout, seq_len)):
        raise ValueError(f"{dialect.name} cannot run this layout. {' '.join(reasons)}")
    return dialect.prints(model, cluster, layout, seq_len)


def option_names(framework, text):
    """The names of options in a text that `launch_options` has printed."""
    if framework == "deepspeed":
        def names(x):
            return {name for key, value in x.items() for name in (key, *(names(value) if isinstance(value, dict) else ()))}
        return names(json.loads(text))
    words = text.replace("(", " ").replace(",", " ").replace("=", " = ").split()
    if framework == "torchtitan":
        return {word for word, sign in zip(words, words[1:]) if sign == "="} | {w for w in words if w.endswith("Config") or "AC." in w}
    return {word for word in words if word.startswith("--")} - {"--nnodes", "--nproc-per-node"}


def _even(model, lay):
    if model.layers % (lay.pp*lay.chunks):
        yield (f"{model.layers} layers do not divide into pp*chunks = {lay.pp*lay.chunks} equal pieces, and an uneven split needs a "
               "description of its own.")


def _torchrun(cluster):
    return f"torchrun --nnodes {cluster.nodes} --nproc-per-node {cluster.node}" if cluster.devices > cluster.node \
        else f"torchrun --nproc-per-node {cluster.devices}"


# ---- Megatron-LM -----------------------------------------------------------------------------
def _megatron_refuses(model, cluster, lay, seq_len):
    yield from _even(model, lay)
    if lay.zero >= 2 and lay.pp > 1:
        yield f"zero = {lay.zero} is Megatron-FSDP, which none of its tests runs under a pipeline; pp is {lay.pp}."
    if lay.recompute not in (0, FULL) and (lay.recompute*model.layers/(lay.pp*lay.chunks)) % 1:
        yield (f"recompute = {lay.recompute} of {model.layers/(lay.pp*lay.chunks):g} layers in a piece is no whole number of layers.")
    if model.experts and lay.tp > 1 and not lay.sequence_parallel:
        yield "With experts and tensor parallelism it wants sequence parallelism."


def _megatron(model, cluster, lay, seq_len):
    words = ["--tensor-model-parallel-size", lay.tp, *["--sequence-parallel"]*(lay.sequence_parallel and lay.tp > 1),
             "--pipeline-model-parallel-size", lay.pp, *(["--num-virtual-stages-per-pipeline-rank", lay.chunks] if lay.chunks > 1 else []),
             *(["--context-parallel-size", lay.cp] if lay.cp > 1 else []),
             *(["--expert-model-parallel-size", lay.ep, "--expert-tensor-parallel-size", 1] if model.experts else []),
             "--micro-batch-size", lay.microbatch, "--global-batch-size", lay.batch,
             "--seq-length", seq_len, "--max-position-embeddings", seq_len, "--bf16", "--overlap-grad-reduce"]
    if lay.zero:
        words += ["--use-distributed-optimizer", "--overlap-param-gather"]
    if lay.zero >= 2:
        words += ["--use-megatron-fsdp", "--data-parallel-sharding-strategy", {2: "optim_grads", 3: "optim_grads_params"}[lay.zero],
                  "--ckpt-format", "fsdp_dtensor"]
    if lay.recompute:
        layers = 1 if lay.recompute == FULL else int(lay.recompute*model.layers/(lay.pp*lay.chunks))
        words += ["--recompute-granularity", "full", "--recompute-method", "uniform" if lay.recompute == FULL else "block",
                  "--recompute-num-layers", layers]
    lines, line = [], _torchrun(cluster) + " pretrain_gpt.py"
    for word in map(str, words):
        if word.startswith("--") and len(line) + len(word) > 76:
            lines.append(line)
            line = "   "
        line += " " + word
    return " \\\n".join([*lines, line])


# ---- torchtitan ------------------------------------------------------------------------------
def _torchtitan_refuses(model, cluster, lay, seq_len):
    yield from _even(model, lay)
    if lay.zero == 1:
        yield "Its FSDP2 shards gradients or weights besides the optimizer state; there is no zero = 1."
    if lay.zero == 0 and lay.cp > 1:
        yield f"Context-parallel ranks share the weights in its FSDP2; with cp = {lay.cp} there is no zero = 0."
    if lay.zero == 0 and lay.ep > 1:
        yield f"Expert-parallel ranks come from those that shard; with zero = 0 there is no ep = {lay.ep}."
    if lay.recompute not in (0, FULL):
        yield f"It recomputes whole models or chosen operations, not recompute = {lay.recompute} of the layers."


def _torchtitan(model, cluster, lay, seq_len):
    sharded = lay.zero > 0
    parallel = dict(data_parallel_replicate_degree=1 if sharded else lay.dp, data_parallel_shard_degree=lay.dp if sharded else 1)
    if sharded:
        parallel["fsdp_reshard_after_forward"] = "always" if lay.zero == 3 else "never"
    parallel["tensor_parallel_degree"] = lay.tp
    if lay.tp > 1:
        parallel["enable_sequence_parallel"] = lay.sequence_parallel
    if lay.cp > 1:
        parallel["context_parallel_degree"] = lay.cp
    if lay.pp > 1:
        parallel |= dict(pipeline_parallel_degree=lay.pp, pipeline_parallel_schedule="Interleaved1F1B" if lay.chunks > 1 else "1F1B",
                         pipeline_parallel_layers_per_stage=model.layers//(lay.pp*lay.chunks),
                         pipeline_parallel_first_stage_less_layers=0, pipeline_parallel_last_stage_less_layers=0,
                         num_pp_microbatches=int(lay.microbatches))
    if model.experts:
        parallel["expert_parallel_degree"] = lay.ep
    training = dict(num_tokens_per_microbatch_per_dp_rank=lay.microbatch*seq_len, num_tokens_per_train_step=lay.batch*seq_len,
                    max_context_length=seq_len)

    def call(name, arguments):
        return f"{name}(\n" + "".join(f"    {k}={json.dumps(v) if isinstance(v, str) else v},\n" for k, v in arguments.items()) + ")"
    again = "activation_checkpoint=FullAC.Config()" if lay.recompute else "activation_checkpoint=None"
    return "\n".join([f"parallelism={call('ParallelismConfig', parallel)},", f"training={call('TrainingConfig', training)},", again + ","])


# ---- DeepSpeed -------------------------------------------------------------------------------
def _deepspeed_refuses(model, cluster, lay, seq_len):
    if lay.pp > 1:
        yield f"Its pipeline is a Python class, PipelineModule, and no option; pp is {lay.pp}."
    if lay.chunks > 1:
        yield "It has no interleaved schedule."
    if lay.cp > 1:
        yield f"Its sequence parallelism exchanges heads for positions and gathers no keys and values; cp is {lay.cp}."
    if lay.ep > 1:
        yield f"Expert-parallel ranks are arguments of its MoE layer; ep is {lay.ep}."
    if lay.sequence_parallel and lay.tp > 1:
        yield "Its tensor parallelism has no option for sequence parallelism."
    if lay.recompute:
        yield f"What is recomputed, the model decides: it has no option for recompute = {lay.recompute}."


def _deepspeed(model, cluster, lay, seq_len):
    config = dict(train_micro_batch_size_per_gpu=lay.microbatch, gradient_accumulation_steps=int(lay.microbatches))
    if lay.tp == 1:                                         # with AutoTP and no mpu, it multiplies these two by all devices
        config["train_batch_size"] = lay.batch
    config |= dict(bf16=dict(enabled=True), zero_optimization=dict(stage=lay.zero, overlap_comm=True))
    if lay.tp > 1:
        config["tensor_parallel"] = dict(autotp_size=lay.tp)
    return json.dumps(config, indent=2)


# Names, and where they are defined. Megatron-LM: `--a-b` is the field `a_b` of the dataclass, where the file is no arguments.py.
DIALECTS = Facts(
    megatron=Dialect("Megatron-LM", "NVIDIA/Megatron-LM", "d98e8a64", "2026-08-22", Facts({
        **dict.fromkeys(["--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size",
                         "--sequence-parallel", "--expert-model-parallel-size", "--expert-tensor-parallel-size", "--bf16"],
                        "megatron/core/model_parallel_config.py"),
        **dict.fromkeys(["--num-virtual-stages-per-pipeline-rank", "--seq-length", "--max-position-embeddings", "--overlap-grad-reduce",
                         "--use-distributed-optimizer", "--overlap-param-gather", "--data-parallel-sharding-strategy"],
                        "megatron/training/arguments.py"),
        **dict.fromkeys(["--micro-batch-size", "--global-batch-size", "--ckpt-format"], "megatron/training/config/training_config.py"),
        "--use-megatron-fsdp": "megatron/training/config/common_config.py",
        **dict.fromkeys(["--recompute-granularity", "--recompute-method", "--recompute-num-layers"],
                        "megatron/core/transformer/transformer_config.py")}),
        _megatron_refuses, _megatron, "--zero 0,1 --recompute 0,1"),
    torchtitan=Dialect("torchtitan", "pytorch/torchtitan", "b5bcd76c", "2026-08-21", Facts({
        **dict.fromkeys(["ParallelismConfig", "TrainingConfig", "data_parallel_replicate_degree", "data_parallel_shard_degree",
                         "fsdp_reshard_after_forward", "tensor_parallel_degree", "enable_sequence_parallel", "context_parallel_degree",
                         "pipeline_parallel_degree", "pipeline_parallel_schedule", "pipeline_parallel_layers_per_stage",
                         "pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers", "num_pp_microbatches",
                         "expert_parallel_degree", "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step",
                         "max_context_length"], "torchtitan/config/configs.py"),
        **dict.fromkeys(["parallelism", "training", "activation_checkpoint"], "torchtitan/trainer.py"),
        "FullAC.Config": "torchtitan/distributed/activation_checkpoint.py"}),
        _torchtitan_refuses, _torchtitan, "--zero 2,3 --recompute 0,1"),
    deepspeed=Dialect("DeepSpeed", "deepspeedai/DeepSpeed", "edaa7221", "2026-08-22", Facts({
        **dict.fromkeys(["train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size", "bf16"],
                        "deepspeed/runtime/constants.py"),
        "enabled": "deepspeed/runtime/precision_config.py",
        **dict.fromkeys(["zero_optimization", "stage", "overlap_comm"], "deepspeed/runtime/zero/config.py"),
        "tensor_parallel": "deepspeed/runtime/tensor_parallel/init_utils.py",
        "autotp_size": "deepspeed/runtime/tensor_parallel/config.py"}),
        _deepspeed_refuses, _deepspeed, "--pp 1 --cp 1 --ep 1 --recompute 0 --sequence-parallel no"))
