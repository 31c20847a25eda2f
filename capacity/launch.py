"""A layout as the launch options of a framework, or the reasons for which the framework cannot run it.

    launch_options("megatron", model("llama3-70b"), cluster("dgx-h100", 64), layout, 8192)

The names were read in the sources named in `DIALECTS`; an option that stands there is spelled as there, and none is
printed that does not.  On 2026-11-24 the texts of 530 layouts were given to the frameworks' own code at those commits,
Megatron-LM's `validate_args`, torchtitan's `Trainer.Config` and DeepSpeed's `DeepSpeedConfig`, without a GPU: all passed;
the options for copies and for uneven pieces came after that, and were read.
What data-parallel ranks are is what the other degrees leave, in all three.

A refusal is a Rule of the layout's letters, an option a `Line` of them; both print as JavaScript too, as the rules of
`capacity.legality` do, and for the same reason.
"""
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .algebra import ceil, floor, where
from .legality import Rule, broken, letters
from .specs import Facts, pick
from .tape import arrow

WIDTH = 76                                  # characters of a line of words, before the backslash


@dataclass(frozen=True)
class Line:
    """A piece of what is printed, about q, and when it is printed."""
    says: Callable
    when: Callable = lambda q: True


@dataclass(frozen=True)
class Dialect:
    """What a framework calls things.

    repository, commit, date   the source that was read
    options   {name: file in which it is defined}; of Megatron-LM many options are made from the fields of a dataclass
    shell     True where the lines are words of one command
    refuses   Rules that hold of what it can do
    lines     Lines: the text, for a layout that is not refused
    """
    name: str
    repository: str
    commit: str
    date: str
    options: Mapping
    shell: bool
    refuses: tuple
    lines: tuple

    def text(self, q):
        """What is printed for the letters of a layout."""
        said = [line.says(q) for line in self.lines if line.when(q)]
        if not self.shell:
            return "\n".join(said)
        first, *words = " ".join(said).split(" ")
        rows = [first]
        for word in words:
            if word.startswith("--") and len(rows[-1]) + len(word) > WIDTH:
                rows.append("   ")
            rows[-1] += " " + word
        return " \\\n".join(rows)


def launch_options(framework, model, cluster, layout, seq_len):
    """The launch options of "megatron", "torchtitan" or "deepspeed" for a layout, as a text.

    In 16 bits, gradients in 32 where the framework's default says so. ValueError with every reason for which the
    framework cannot run the layout, or for which nobody has seen it do so; and for an illegal layout.
    """
    dialect = pick(DIALECTS, framework, "framework")
    if wrong := layout.check(model, cluster, seq_len):
        raise ValueError(" ".join(wrong))
    if reasons := refusals(framework, model, cluster, layout, seq_len):
        raise ValueError(f"{dialect.name} cannot run this layout. {' '.join(reasons)}")
    return dialect.text(_letters(model, cluster, layout, seq_len))


def refusals(framework, model, cluster, layout, seq_len):
    """Why a framework cannot run a legal layout, as a tuple of sentences; () where it can."""
    return broken(_letters(model, cluster, layout, seq_len), pick(DIALECTS, framework, "framework").refuses)


def _letters(model, cluster, layout, seq_len):
    return letters(model, devices=cluster.devices, node=cluster.node, axes=cluster.levels[0].axes, seq_len=seq_len,
                   copies=int(layout.copies), **vars(layout))


def javascript():
    """DIALECTS as JavaScript: {framework: {name, source, shell, refuses: [{holds, sentence}], lines: [{says, when}]}}, and WIDTH."""
    def said(d):
        lines = ",".join(f"{{says:{arrow(line.says)},when:{arrow(line.when)}}}" for line in d.lines)
        source = f"{d.repository} {d.commit} of {d.date}"
        return (f"{{name:{json.dumps(d.name)},source:{json.dumps(source)},shell:{int(d.shell)},"
                f"refuses:[{','.join(r.javascript() for r in d.refuses)}],lines:[{lines}]}}")
    return f"const WIDTH={WIDTH},DIALECTS={{{','.join(f'{key}:{said(d)}' for key, d in DIALECTS.items())}}};\n"


def option_names(framework, text):
    """The names of options in a text that `launch_options` has printed."""
    if framework == "deepspeed":
        def names(x):
            return {name for key, value in x.items() for name in (key, *(names(value) if isinstance(value, dict) else ()))}
        return names(json.loads(text))
    words = text.replace("(", " ").replace(",", " ").replace("=", " = ").split()
    if framework == "torchtitan":
        return {word for word, sign in zip(words, words[1:]) if sign == "="} | {w for w in words if w.endswith("Config") or "AC." in w}
    return {word for word in words if word.startswith("--") or word.isupper()} - {"--nnodes", "--nproc-per-node"}


def _pieces(q):
    return q.pp*q.chunks


def _again(q):
    return q.recompute*q.layers/_pieces(q)


def _piece(q):
    """Layers of the fullest piece."""
    return ceil(q.layers/_pieces(q))


def _last(q):
    """Layers of the last rank, where all pieces of the others are the fullest."""
    return q.layers - (q.pp - 1)*q.chunks*_piece(q)


# Of the last rank alone; validate_args and TransformerConfig ask that chunks divide what it has, and that there is some.
LAST = Rule("even", lambda q: (q.layers % _pieces(q) == 0) | (_last(q) > 0) & (_last(q) % q.chunks == 0),
            lambda q: f"{q.layers} layers do not divide into pp*chunks = {_pieces(q)} equal pieces, nor with fewer in those of the last "
                      "rank.")

# The first pieces have one layer more than the others; their number is what the layers of the fullest make it.
FIRST = Rule("even", lambda q: ceil(q.layers/_piece(q)) == _pieces(q),
             lambda q: f"{q.layers} layers in pieces of {_piece(q)} are {ceil(q.layers/_piece(q))} pieces, and not "
                       f"pp*chunks = {_pieces(q)}.")

GPUS = Rule("gpus", lambda q: q.axes == 0, lambda q: "Its launcher starts processes on GPUs, and this machine is a torus of TPUs.")

MEGATRON = (
    GPUS, LAST,
    Rule("copies", lambda q: (q.copies == 1) | (q.zero == 1) & (q.experts == 0),
         lambda q: f"Its copies of the optimizer state are of zero = 1 and of dense models here; copies are {q.copies}."),
    Rule("fsdp", lambda q: (q.zero < 2) | (q.pp == 1),
         lambda q: f"zero = {q.zero} is Megatron-FSDP, which none of its tests runs under a pipeline; pp is {q.pp}."),
    Rule("whole", lambda q: (q.recompute == 0) | (q.recompute == 1) | (_again(q) % 1 == 0) & (q.layers % _pieces(q) == 0),
         lambda q: f"recompute = {q.recompute} of {q.layers/_pieces(q):g} layers in a piece is no whole number of layers."),
    Rule("shared", lambda q: (q.experts == 0) | (q.tp == 1) | (q.sequence_parallel > 0),
         lambda q: "With experts and tensor parallelism it wants sequence parallelism."),
    Rule("cheap", lambda q: q.cheap_recompute == 0,
         lambda q: f"It makes norms and experts' activation functions again by name, and no dense layer's: no option is "
                   f"cheap_recompute = {q.cheap_recompute}."),
    Rule("schedule", lambda q: q.schedule == 0,
         lambda q: f"Its pipelines run 1F1B, interleaved or not; it has no schedule = {q.schedule}.")), (
    # demanded before Blackwell, and refused by Megatron-FSDP
    Line(lambda q: "CUDA_DEVICE_MAX_CONNECTIONS=1 \\\ntorchrun", lambda q: ((q.tp > 1) | (q.cp > 1)) & (q.zero < 2)),
    Line(lambda q: "torchrun", lambda q: (q.tp == 1) & (q.cp == 1) | (q.zero > 1)),
    Line(lambda q: f"--nnodes {q.devices//q.node}", lambda q: q.devices > q.node),
    Line(lambda q: f"--nproc-per-node {where(q.devices > q.node, q.node, q.devices)} pretrain_gpt.py"),
    Line(lambda q: f"--tensor-model-parallel-size {q.tp}"),
    Line(lambda q: "--sequence-parallel", lambda q: (q.sequence_parallel > 0) & (q.tp > 1)),
    Line(lambda q: f"--pipeline-model-parallel-size {q.pp}"),
    Line(lambda q: f"--num-virtual-stages-per-pipeline-rank {q.chunks}", lambda q: q.chunks > 1),
    Line(lambda q: f"--decoder-last-pipeline-num-layers {_last(q)}", lambda q: q.layers % _pieces(q) > 0),
    Line(lambda q: f"--context-parallel-size {q.cp}", lambda q: q.cp > 1),
    Line(lambda q: f"--expert-model-parallel-size {q.ep} --expert-tensor-parallel-size 1", lambda q: q.experts > 0),
    Line(lambda q: f"--micro-batch-size {q.microbatch} --global-batch-size {q.batch}"),
    Line(lambda q: f"--seq-length {q.seq_len} --max-position-embeddings {q.seq_len} --bf16 --overlap-grad-reduce"),
    Line(lambda q: "--use-distributed-optimizer --overlap-param-gather", lambda q: q.zero > 0),
    Line(lambda q: f"--num-distributed-optimizer-instances {q.copies}", lambda q: q.copies > 1),
    Line(lambda q: "--use-megatron-fsdp --data-parallel-sharding-strategy", lambda q: q.zero > 1),
    Line(lambda q: "optim_grads", lambda q: q.zero == 2),
    Line(lambda q: "optim_grads_params", lambda q: q.zero == 3),
    Line(lambda q: "--ckpt-format fsdp_dtensor", lambda q: q.zero > 1),
    Line(lambda q: "--recompute-granularity full --recompute-method", lambda q: q.recompute > 0),
    Line(lambda q: "uniform --recompute-num-layers 1", lambda q: q.recompute == 1),
    Line(lambda q: f"block --recompute-num-layers {floor(_again(q))}", lambda q: (q.recompute > 0) & (q.recompute < 1)))

TORCHTITAN = (
    GPUS, FIRST,
    Rule("fsdp", lambda q: q.zero != 1,
         lambda q: "Its FSDP2 shards gradients or weights besides the optimizer state; there is no zero = 1."),
    Rule("context", lambda q: (q.zero > 0) | (q.cp == 1),
         lambda q: f"Context-parallel ranks share the weights in its FSDP2; with cp = {q.cp} there is no zero = 0."),
    Rule("copies", lambda q: (q.copies == 1) | (q.dp % q.copies == 0) & (q.experts == 0),
         lambda q: f"Its copies are groups of data-parallel ranks, and of dense models here; copies = {q.copies} and dp = {q.dp}."),
    Rule("experts", lambda q: (q.zero > 0) | (q.ep == 1),
         lambda q: f"Expert-parallel ranks come from those that shard; with zero = 0 there is no ep = {q.ep}."),
    Rule("whole", lambda q: (q.recompute == 0) | (q.recompute == 1),
         lambda q: f"It recomputes whole models or chosen operations, not recompute = {q.recompute} of the layers."),
    Rule("cheap", lambda q: q.cheap_recompute == 0,
         lambda q: f"Of operations it chooses those to keep, and has no option for cheap_recompute = {q.cheap_recompute}."),
    Rule("schedule", lambda q: (q.schedule == 0) | (q.schedule == 3),
         lambda q: f"Its schedules that put weight gradients off have two stages or more on a rank; schedule = {q.schedule} has one.")), (
    Line(lambda q: "parallelism=ParallelismConfig("),
    Line(lambda q: f"    data_parallel_replicate_degree={where(q.zero > 0, q.copies, q.dp)},"),
    Line(lambda q: f"    data_parallel_shard_degree={where(q.zero > 0, q.dp//q.copies, 1)},"),
    Line(lambda q: '    fsdp_reshard_after_forward="always",', lambda q: q.zero == 3),
    Line(lambda q: '    fsdp_reshard_after_forward="never",', lambda q: q.zero == 2),
    Line(lambda q: f"    tensor_parallel_degree={q.tp},"),
    Line(lambda q: "    enable_sequence_parallel=True,", lambda q: (q.tp > 1) & (q.sequence_parallel > 0)),
    Line(lambda q: "    enable_sequence_parallel=False,", lambda q: (q.tp > 1) & (q.sequence_parallel == 0)),
    Line(lambda q: f"    context_parallel_degree={q.cp},", lambda q: q.cp > 1),
    Line(lambda q: f"    pipeline_parallel_degree={q.pp},", lambda q: q.pp > 1),
    Line(lambda q: '    pipeline_parallel_schedule="Interleaved1F1B",', lambda q: (q.chunks > 1) & (q.schedule == 0)),
    Line(lambda q: '    pipeline_parallel_schedule="ZBVZeroBubble",', lambda q: q.schedule == 3),
    Line(lambda q: '    pipeline_parallel_schedule="1F1B",', lambda q: (q.pp > 1) & (q.chunks == 1)),
    Line(lambda q: f"    pipeline_parallel_layers_per_stage={_piece(q)},\n"
                   "    pipeline_parallel_first_stage_less_layers=0,\n    pipeline_parallel_last_stage_less_layers=0,\n"
                   f"    num_pp_microbatches={q.batch//(q.dp*q.microbatch)},", lambda q: q.pp > 1),
    Line(lambda q: f"    expert_parallel_degree={q.ep},", lambda q: q.experts > 0),
    Line(lambda q: "),\ntraining=TrainingConfig("),
    Line(lambda q: f"    num_tokens_per_microbatch_per_dp_rank={q.microbatch*q.seq_len},"),
    Line(lambda q: f"    num_tokens_per_train_step={q.batch*q.seq_len},"),
    Line(lambda q: f"    max_context_length={q.seq_len},"),
    # its CUDA graphs are on unless told, and refuse pipelines and the exchange of experts that it takes unless told
    Line(lambda q: "    disable_cuda_graphs=True,", lambda q: (q.pp > 1) | (q.ep > 1)),
    Line(lambda q: "),"),
    Line(lambda q: "activation_checkpoint=FullAC.Config(),", lambda q: q.recompute > 0),
    Line(lambda q: "activation_checkpoint=None,", lambda q: q.recompute == 0))

DEEPSPEED = (
    GPUS, Rule("pipeline", lambda q: q.pp == 1, lambda q: f"Its pipeline is a Python class, PipelineModule, and no option; pp is {q.pp}."),
    Rule("interleave", lambda q: q.chunks == 1, lambda q: "It has no interleaved schedule."),
    Rule("schedule", lambda q: q.schedule == 0, lambda q: f"It trains in one order, 1F1B; it has no schedule = {q.schedule}."),
    Rule("copies", lambda q: q.copies == 1, lambda q: f"One copy of what it shards is all that is written here; copies are {q.copies}."),
    Rule("context", lambda q: q.cp == 1,
         lambda q: f"Its sequence parallelism exchanges heads for positions and gathers no keys and values; cp is {q.cp}."),
    Rule("experts", lambda q: (q.ep == 1) | (q.tp == 1) | (q.zero < 3),
         lambda q: f"Its AutoEP has no zero = 3 beside tensor parallelism; ep is {q.ep} and tp {q.tp}."),
    Rule("shared", lambda q: (q.sequence_parallel == 0) | (q.tp == 1),
         lambda q: "Its tensor parallelism has no option for sequence parallelism."),
    Rule("whole", lambda q: (q.recompute == 0) & (q.cheap_recompute == 0),
         lambda q: "What is recomputed, the model decides: it has no option for "
                   f"recompute = {q.recompute} and cheap_recompute = {q.cheap_recompute}.")), (
    Line(lambda q: f'{{\n  "train_micro_batch_size_per_gpu": {q.microbatch},'),
    Line(lambda q: f'  "gradient_accumulation_steps": {q.batch//(q.dp*q.microbatch)},'),
    # with AutoTP and no mpu, it multiplies these two by all devices
    Line(lambda q: f'  "train_batch_size": {q.batch},', lambda q: q.tp == 1),
    Line(lambda q: f'  "tensor_parallel": {{"autotp_size": {q.tp}}},', lambda q: q.tp > 1),
    Line(lambda q: f'  "expert_parallel": {{"enabled": true, "autoep_size": {q.ep}}},', lambda q: q.ep > 1),
    Line(lambda q: '  "bf16": {"enabled": true},'),
    Line(lambda q: f'  "zero_optimization": {{"stage": {q.zero}, "overlap_comm": true}}\n}}'))

# Names, and where they are defined. Megatron-LM: `--a-b` is the field `a_b` of the dataclass, where the file is no arguments.py.
DIALECTS = Facts(
    megatron=Dialect("Megatron-LM", "NVIDIA/Megatron-LM", "d98e8a64", "2026-08-22", Facts({
        **dict.fromkeys(["--tensor-model-parallel-size", "--pipeline-model-parallel-size", "--context-parallel-size",
                         "--sequence-parallel", "--expert-model-parallel-size", "--expert-tensor-parallel-size", "--bf16"],
                        "megatron/core/model_parallel_config.py"),
        **dict.fromkeys(["--num-virtual-stages-per-pipeline-rank", "--seq-length", "--max-position-embeddings", "--overlap-grad-reduce",
                         "--use-distributed-optimizer", "--overlap-param-gather", "--data-parallel-sharding-strategy",
                         "CUDA_DEVICE_MAX_CONNECTIONS", "--decoder-last-pipeline-num-layers"],
                        "megatron/training/arguments.py"),
        **dict.fromkeys(["--micro-batch-size", "--global-batch-size", "--ckpt-format"], "megatron/training/config/training_config.py"),
        "--num-distributed-optimizer-instances": "megatron/core/distributed/distributed_data_parallel_config.py",
        "--use-megatron-fsdp": "megatron/training/config/common_config.py",
        **dict.fromkeys(["--recompute-granularity", "--recompute-method", "--recompute-num-layers"],
                        "megatron/core/transformer/transformer_config.py")}),
        True, *MEGATRON),
    torchtitan=Dialect("torchtitan", "pytorch/torchtitan", "b5bcd76c", "2026-08-21", Facts({
        **dict.fromkeys(["ParallelismConfig", "TrainingConfig", "data_parallel_replicate_degree", "data_parallel_shard_degree",
                         "fsdp_reshard_after_forward", "tensor_parallel_degree", "enable_sequence_parallel", "context_parallel_degree",
                         "pipeline_parallel_degree", "pipeline_parallel_schedule", "pipeline_parallel_layers_per_stage",
                         "pipeline_parallel_first_stage_less_layers", "pipeline_parallel_last_stage_less_layers", "num_pp_microbatches",
                         "expert_parallel_degree", "num_tokens_per_microbatch_per_dp_rank", "num_tokens_per_train_step",
                         "max_context_length", "disable_cuda_graphs"], "torchtitan/config/configs.py"),
        **dict.fromkeys(["parallelism", "training", "activation_checkpoint"], "torchtitan/trainer.py"),
        "FullAC.Config": "torchtitan/distributed/activation_checkpoint.py"}),
        False, *TORCHTITAN),
    deepspeed=Dialect("DeepSpeed", "deepspeedai/DeepSpeed", "edaa7221", "2026-08-22", Facts({
        **dict.fromkeys(["train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size", "bf16"],
                        "deepspeed/runtime/constants.py"),
        "enabled": "deepspeed/runtime/precision_config.py",
        **dict.fromkeys(["zero_optimization", "stage", "overlap_comm"], "deepspeed/runtime/zero/config.py"),
        "tensor_parallel": "deepspeed/runtime/tensor_parallel/init_utils.py",
        "expert_parallel": "deepspeed/runtime/config.py",
        "autoep_size": "deepspeed/module_inject/auto_ep_config.py",
        "autotp_size": "deepspeed/runtime/tensor_parallel/config.py"}),
        False, *DEEPSPEED))
