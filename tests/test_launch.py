"""Launch options: what is printed is the layout, by names that stand in the sources; what a framework cannot do is refused."""
import argparse
import ast
import json
import random
import re
from dataclasses import replace

import pytest

from capacity import Layout, cluster, launch, model, plan
from capacity.cli import main
from capacity.launch import DIALECTS, launch_options, option_names

LLAMA, MACHINE = model("llama3-70b"), cluster("dgx-h100", 64)
PIPED = Layout(batch=512, dp=4, tp=8, pp=2, chunks=4, zero=1, sequence_parallel=True)
SHARDED = Layout(batch=512, dp=16, tp=4, zero=3, sequence_parallel=True)
PLAIN = Layout(batch=512, dp=8, tp=8, zero=3)


def test_megatron_says_the_layout():
    text = launch_options("megatron", LLAMA, MACHINE, PIPED, 8192)
    words = text.replace("\\\n", " ").split()
    assert words.pop(0) == "CUDA_DEVICE_MAX_CONNECTIONS=1" and words[:7] == ["torchrun", "--nnodes", "8", "--nproc-per-node", "8", "pretrain_gpt.py", "--tensor-model-parallel-size"]
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in launch.DIALECTS["megatron"].options.keys() - {"CUDA_DEVICE_MAX_CONNECTIONS"}:
        flag = name in ("--sequence-parallel", "--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather", "--bf16", "--use-megatron-fsdp")
        parser.add_argument(name, **({"action": "store_true"} if flag else {}))
    said = vars(parser.parse_args(words[6:]))
    assert {k: v for k, v in said.items() if v} == dict(
        tensor_model_parallel_size="8", pipeline_model_parallel_size="2", num_virtual_stages_per_pipeline_rank="4", sequence_parallel=True,
        micro_batch_size="1", global_batch_size="512", seq_length="8192", max_position_embeddings="8192", bf16=True, overlap_grad_reduce=True,
        use_distributed_optimizer=True, overlap_param_gather=True)
    assert max(map(len, text.splitlines())) <= 80
    again = launch_options("megatron", LLAMA, MACHINE, replace(PIPED, recompute=0.5), 8192)
    assert "--recompute-granularity full --recompute-method block --recompute-num-layers 5" in again.replace(" \\\n   ", "")
    assert "uniform" in launch_options("megatron", LLAMA, MACHINE, replace(PIPED, recompute=1), 8192)
    assert "optim_grads_params" in launch_options("megatron", LLAMA, MACHINE, SHARDED, 8192)
    assert "--use-distributed-optimizer" not in launch_options("megatron", LLAMA, MACHINE, replace(PIPED, zero=0), 8192)


def test_torchtitan_says_the_layout():
    text = launch_options("torchtitan", LLAMA, MACHINE, replace(PIPED, zero=2), 8192)
    calls = {word.arg: {k.arg: ast.literal_eval(k.value) for k in getattr(word.value, "keywords", [])} for word in ast.parse(f"f({text})").body[0].value.keywords}
    assert calls["parallelism"] == dict(
        data_parallel_replicate_degree=1, data_parallel_shard_degree=4, fsdp_reshard_after_forward="never", tensor_parallel_degree=8,
        enable_sequence_parallel=True, pipeline_parallel_degree=2, pipeline_parallel_schedule="Interleaved1F1B", pipeline_parallel_layers_per_stage=10,
        pipeline_parallel_first_stage_less_layers=0, pipeline_parallel_last_stage_less_layers=0, num_pp_microbatches=128)
    assert calls["training"] == dict(num_tokens_per_microbatch_per_dp_rank=8192, num_tokens_per_train_step=512*8192, max_context_length=8192, disable_cuda_graphs=True)
    folded = launch_options("torchtitan", LLAMA, MACHINE, replace(PIPED, zero=2, chunks=2, schedule=3), 8192)
    assert folded == text.replace("Interleaved1F1B", "ZBVZeroBubble").replace("layers_per_stage=10", "layers_per_stage=20")
    assert "activation_checkpoint=None" in text and "FullAC" in launch_options("torchtitan", LLAMA, MACHINE, replace(SHARDED, recompute=1), 8192)
    plain = launch_options("torchtitan", LLAMA, MACHINE, replace(SHARDED, zero=0), 8192)
    assert "replicate_degree=16" in plain and "shard_degree=1" in plain


def test_deepspeed_says_the_layout():
    assert json.loads(launch_options("deepspeed", LLAMA, MACHINE, PLAIN, 8192)) == {
        "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 64, "bf16": {"enabled": True},
        "zero_optimization": {"stage": 3, "overlap_comm": True}, "tensor_parallel": {"autotp_size": 8}}
    alone = json.loads(launch_options("deepspeed", LLAMA, MACHINE, Layout(batch=512, dp=64, microbatch=2, zero=2), 8192))
    assert alone["train_batch_size"] == 512 == 2*alone["gradient_accumulation_steps"]*64


@pytest.mark.parametrize("framework, change, words", [
    ("megatron", dict(zero=2), "zero = 2 is Megatron-FSDP, which none of its tests runs under a pipeline; pp is 2"), ("megatron", dict(zero=3), "zero = 3 is Megatron-FSDP, which none of its tests runs under a pipeline; pp is 2"),
    ("megatron", dict(recompute=0.25), "recompute = 0.25 of 10 layers in a piece is no whole number"), ("megatron", dict(chunks=3), "80 layers do not divide into pp.chunks = 6"),
    ("torchtitan", {}, "there is no zero = 1"), ("torchtitan", dict(zero=2, recompute=0.5), "not recompute = 0.5"), ("torchtitan", dict(zero=0, cp=2, dp=2), "with cp = 2 there is no zero = 0"),
    ("deepspeed", {}, "PipelineModule, and no option; pp is 2. It has no interleaved schedule. .*sequence parallelism"),
    ("deepspeed", dict(pp=1, chunks=1, dp=4, cp=2), "gathers no keys and values; cp is 2"), ("deepspeed", dict(pp=1, chunks=1, dp=8, recompute=1), "no option for recompute = 1"),
    ("megatron", dict(chunks=1, schedule=1), "Its pipelines run 1F1B, interleaved or not; it has no schedule = 1[.]"),
    ("torchtitan", dict(zero=2, chunks=1, schedule=2), "have two stages or more on a rank; schedule = 2 has one[.]"),
    ("deepspeed", dict(chunks=2, schedule=3), "It trains in one order, 1F1B; it has no schedule = 3[.]"),
    ("megatron", dict(cheap_recompute=1), "no option is cheap_recompute = 1[.]"), ("torchtitan", dict(zero=2, cheap_recompute=1), "no option for cheap_recompute = 1[.]"),
    ("deepspeed", dict(pp=1, chunks=1, dp=8, cheap_recompute=1), "no option for recompute = 0 and cheap_recompute = 1"),
    ("megatron", dict(dp=3), "and the cluster has 64 devices"), ("nemo", {}, "unknown framework 'nemo'; ")])
def test_what_a_framework_cannot_do_is_refused(framework, change, words):
    with pytest.raises(ValueError, match=words):
        launch_options(framework, LLAMA, MACHINE, replace(PIPED, **change), 8192)


@pytest.mark.parametrize("framework", DIALECTS)
def test_a_torus_of_tpus_gets_no_options_for_gpus(framework):
    layout = Layout(batch=512, dp=256)
    with pytest.raises(ValueError, match="Its launcher starts processes on GPUs, and this machine is a torus of TPUs[.]"):
        launch_options(framework, LLAMA, cluster("tpu-v5p-pod", 256), layout, 8192)


def test_megatron_takes_what_is_just_allowed():
    """One node, no sequence parallelism where there are no experts or no tensor ranks, whole layers made again, uneven pieces with all of theirs."""
    plain = launch_options("megatron", LLAMA, MACHINE, replace(PIPED, sequence_parallel=False), 8192)
    assert "--sequence-parallel" not in plain and "--nnodes 8" in plain
    one = launch_options("megatron", LLAMA, cluster("dgx-h100", 8), Layout(batch=64, dp=1, tp=8, zero=1), 8192)
    assert "--nnodes" not in one and "--nproc-per-node 8" in one
    mixtral = model("mixtral-8x7b")
    assert launch_options("megatron", mixtral, MACHINE, Layout(batch=64, dp=64, ep=8, zero=1), 4096)
    with pytest.raises(ValueError, match="With experts and tensor parallelism it wants sequence parallelism"):
        launch_options("megatron", mixtral, MACHINE, Layout(batch=64, dp=32, tp=2, ep=8, zero=1), 4096)
    assert "--recompute-num-layers 3" in launch_options("megatron", LLAMA, MACHINE, replace(PIPED, recompute=.3), 8192)
    uneven = replace(LLAMA, layers=76)
    assert "--decoder-last-pipeline-num-layers 36" in launch_options("megatron", uneven, MACHINE, replace(PIPED, recompute=1), 8192)
    with pytest.raises(ValueError, match="no whole number of layers"):
        launch_options("megatron", uneven, MACHINE, replace(PIPED, recompute=.5), 8192)
    with pytest.raises(ValueError, match="3 layers do not divide into pp.chunks = 4 equal pieces"):
        launch_options("megatron", replace(LLAMA, layers=3), MACHINE, replace(PIPED, dp=2, pp=4, chunks=1), 8192)      # the last rank would have none


def test_one_reason_is_not_said_twice():
    mixtral, one = model("mixtral-8x7b"), Layout(batch=256, dp=8, tp=4, cp=2, ep=8, zero=1, sequence_parallel=True)
    with pytest.raises(ValueError, match="layout. Its FSDP2 shards [^.]*; there is no zero = 1[.]$"):
        launch_options("torchtitan", mixtral, MACHINE, one, 8192)


def test_two_of_anything_is_enough_to_be_said_or_refused():
    two = Layout(batch=512, dp=32, tp=2, zero=2)
    config = json.loads(launch_options("deepspeed", LLAMA, MACHINE, two, 8192))
    assert config["tensor_parallel"] == {"autotp_size": 2} and "train_batch_size" not in config
    assert type(config["gradient_accumulation_steps"]) is int and "16," in launch_options("deepspeed", LLAMA, MACHINE, two, 8192)
    for change, words in ((dict(sequence_parallel=True), "no option for sequence parallelism"), (dict(pp=2, dp=16), "pp is 2"), (dict(cp=2, dp=16), "cp is 2")):
        with pytest.raises(ValueError, match=words):
            launch_options("deepspeed", LLAMA, MACHINE, replace(two, **change), 8192)
    experts = json.loads(launch_options("deepspeed", model("mixtral-8x7b"), MACHINE, replace(two, ep=2), 8192))
    assert experts["expert_parallel"] == {"enabled": True, "autoep_size": 2} and "expert_parallel" not in config
    with pytest.raises(ValueError, match="no zero = 3 beside tensor parallelism; ep is 2 and tp 2"):
        launch_options("deepspeed", model("mixtral-8x7b"), MACHINE, replace(two, ep=2, zero=3), 8192)
    assert "autoep_size" in launch_options("deepspeed", model("mixtral-8x7b"), MACHINE, replace(two, dp=64, tp=1, ep=2, zero=3), 8192)
    alone = launch_options("deepspeed", LLAMA, MACHINE, Layout(batch=512, dp=64, zero=2, sequence_parallel=True), 8192)
    assert "tensor_parallel" not in alone, "sequence parallelism of one tensor rank is none"
    assert "context-parallel-size 2" in launch_options("megatron", LLAMA, MACHINE, Layout(batch=512, dp=32, cp=2), 8192)
    assert launch_options("torchtitan", LLAMA, MACHINE, two, 8192).endswith(",")
    for dialect in launch.DIALECTS.values():
        with pytest.raises(TypeError, match="cannot be changed"):
            dialect.options["--x"] = ""


def test_experts_have_their_options():
    mixtral, machine = model("mixtral-8x7b"), cluster("dgx-h100", 64)
    lay = Layout(batch=256, dp=16, tp=4, ep=8, zero=1, sequence_parallel=True)
    assert "--expert-model-parallel-size 8 --expert-tensor-parallel-size 1" in launch_options("megatron", mixtral, machine, lay, 4096).replace(" \\\n   ", "")
    assert "expert_parallel_degree=8" in launch_options("torchtitan", mixtral, machine, replace(lay, zero=2), 4096)
    for framework, change, words in (("megatron", dict(sequence_parallel=False), "wants sequence parallelism"), ("torchtitan", dict(zero=0), "no ep = 8"),
                                     ("deepspeed", dict(sequence_parallel=False, zero=3), "ep is 8 and tp 4")):
        with pytest.raises(ValueError, match=words):
            launch_options(framework, mixtral, machine, replace(lay, **change), 4096)


@pytest.mark.parametrize("framework", DIALECTS)
def test_every_name_that_is_printed_was_read_in_the_source(framework):
    """And every name in the table is printed for some layout."""
    rng, seen = random.Random(4), set()
    for shape in LLAMA, model("mixtral-8x7b"), replace(LLAMA, layers=61):
        for _ in range(1500):
            tp, pp = rng.choice([1, 2, 4, 8]), rng.choice([1, 2, 4])
            lay = Layout(batch=512, tp=tp, pp=pp, cp=rng.choice([1, 2]), dp=64//tp//pp, chunks=rng.choice([1, 2, 3]), zero=rng.randint(0, 3),
                         recompute=rng.choice([0, 0.5, 1]), sequence_parallel=rng.random() < 0.5, microbatch=rng.choice([1, 2]), ep=rng.choice([1, 8]))
            lay = replace(lay, dp=lay.dp//lay.cp)
            try:
                seen |= option_names(framework, launch_options(framework, shape, MACHINE, replace(lay, shards=rng.choice([None, lay.replicas//2 or 1])), 8192))
            except ValueError:
                continue
    assert seen == set(launch.DIALECTS[framework].options)


def launched(framework):
    """(model, layout, text) of random layouts that the framework can run."""
    rng = random.Random(5)
    for _ in range(500):
        shape, tp, pp, cp = rng.choice([LLAMA, model("mixtral-8x7b")]), rng.choice([1, 2, 4]), rng.choice([1, 1, 2]), rng.choice([1, 2])
        lay = Layout(batch=512, tp=tp, pp=pp, cp=cp, dp=64//tp//pp//cp, chunks=rng.choice([1, 2]) if pp > 1 else 1, zero=rng.randint(0, 3), microbatch=rng.choice([1, 2]),
                     recompute=rng.choice([0, 0.5, 1]), sequence_parallel=rng.random() < 0.5, ep=rng.choice([1, 2, 8]) if shape.experts else 1)
        try:
            yield shape, lay, launch_options(framework, shape, MACHINE, lay, 8192)
        except ValueError:
            continue


def test_megatron_reads_back_the_layout():
    """Each option once, and if and only if it says something."""
    for shape, lay, text in launched("megatron"):
        words = text.replace("\\\n", " ").split()
        names = [word for word in words if word.startswith("--")]
        assert len(names) == len(set(names))
        said = {name: after for name, after in zip(words, [*words[1:], ""]) if name.startswith("--")}
        sharing, pieces = "--sequence-parallel" in said, lay.pp*lay.chunks
        assert words[0] == ("CUDA_DEVICE_MAX_CONNECTIONS=1" if (lay.tp > 1 or lay.cp > 1) and lay.zero < 2 else "torchrun") and words.count("torchrun") == 1
        assert sharing == (lay.sequence_parallel and lay.tp > 1) and int(said["--nnodes"])*int(said["--nproc-per-node"]) == 64
        assert [said.get(f"--{k}") for k in ("tensor-model-parallel-size", "pipeline-model-parallel-size", "context-parallel-size", "num-virtual-stages-per-pipeline-rank",
                "expert-model-parallel-size")] == [str(lay.tp), str(lay.pp), str(lay.cp) if lay.cp > 1 else None, str(lay.chunks) if lay.chunks > 1 else None,
                                                   str(lay.ep) if shape.experts else None]
        assert ("--use-distributed-optimizer" in said) == (lay.zero > 0) and ("--use-megatron-fsdp" in said) == ("--ckpt-format" in said) == (lay.zero > 1)
        assert said.get("--data-parallel-sharding-strategy") == {2: "optim_grads", 3: "optim_grads_params"}.get(lay.zero)
        assert said.get("--recompute-method") == {0.5: "block", 1: "uniform"}.get(lay.recompute) and ("--recompute-granularity" in said) == (lay.recompute > 0)
        assert said.get("--recompute-num-layers") == {0.5: str(shape.layers//pieces//2), 1: "1"}.get(lay.recompute)


def test_torchtitan_reads_back_the_layout():
    for shape, lay, text in launched("torchtitan"):
        calls = {word.arg: word.value for word in ast.parse(f"f({text})").body[0].value.keywords}
        words = calls["parallelism"].keywords
        said = {k.arg: ast.literal_eval(k.value) for k in words}
        assert len(said) == len(words) and text.count("activation_checkpoint") == 1 and list(calls) == ["parallelism", "training", "activation_checkpoint"]
        piped = {k for k in said if k.startswith("pipeline") or k == "num_pp_microbatches"}
        assert len(piped) == (6 if lay.pp > 1 else 0)
        if piped:
            assert said["pipeline_parallel_degree"] == lay.pp and said["pipeline_parallel_layers_per_stage"]*lay.pp*lay.chunks == shape.layers
            assert said["pipeline_parallel_schedule"] == ("Interleaved1F1B" if lay.chunks > 1 else "1F1B") and said["num_pp_microbatches"] == lay.microbatches
        assert {k: said.get(k) for k in said if k not in piped} == dict(
            data_parallel_replicate_degree=lay.dp if lay.zero == 0 else 1, data_parallel_shard_degree=lay.dp if lay.zero else 1, tensor_parallel_degree=lay.tp,
            **({"fsdp_reshard_after_forward": {2: "never", 3: "always"}[lay.zero]} if lay.zero else {}), **({"context_parallel_degree": lay.cp} if lay.cp > 1 else {}),
            **({"enable_sequence_parallel": lay.sequence_parallel} if lay.tp > 1 else {}), **({"expert_parallel_degree": lay.ep} if shape.experts else {}))
        assert ("FullAC" in text) == (lay.recompute == 1) and ("disable_cuda_graphs=True" in text) == (lay.pp > 1 or lay.ep > 1)


def test_copies_are_said():
    lay = Layout(batch=512, dp=64, zero=1, shards=8)
    assert "--num-distributed-optimizer-instances 8" in launch_options("megatron", LLAMA, MACHINE, lay, 8192).replace(" \\\n   ", "")
    assert "instances" not in launch_options("megatron", LLAMA, MACHINE, replace(lay, shards=None), 8192)
    text = launch_options("torchtitan", LLAMA, MACHINE, replace(lay, zero=3), 8192)
    assert "data_parallel_replicate_degree=8," in text and "data_parallel_shard_degree=8," in text
    assert "replicate_degree=2" in launch_options("torchtitan", LLAMA, MACHINE, replace(lay, dp=32, cp=2, shards=32, zero=3), 8192)
    for framework, change, words in (("megatron", dict(zero=3), "of zero = 1 and of dense models here; copies are 8"), ("deepspeed", {}, "copies are 8"),
                                     ("torchtitan", dict(zero=3, dp=1, cp=64, shards=32), "copies = 2 and dp = 1")):
        with pytest.raises(ValueError, match=words):
            launch_options(framework, LLAMA, MACHINE, replace(lay, **change), 8192)


def test_uneven_pieces_are_those_of_the_framework():
    """61 layers on every depth and number of chunks: what is printed, cut as the frameworks' sources do, gives the fullest piece that is priced."""
    shape = replace(LLAMA, layers=61, vocab=2**17)
    printed = dict(megatron=set(), torchtitan=set())
    for pp, chunks in ((pp, chunks) for pp in (2, 4, 8, 16, 32) for chunks in range(1, 32)):
        lay = Layout(batch=2048, dp=2, pp=pp, tp=1, chunks=chunks, zero=1, microbatch=1)
        machine, full = cluster("dgx-h100", 2*pp), -(-61//(pp*chunks))
        for framework in printed:
            try:
                text = launch_options(framework, shape, machine, replace(lay, zero=1 if framework == "megatron" else 2), 8192).replace(" \\\n   ", "")
            except ValueError:
                continue
            printed[framework].add((pp, chunks))
            if framework == "megatron":                                     # transformer_block.get_num_layers_to_build
                last = int(text.split("--decoder-last-pipeline-num-layers ")[1].split()[0])
                assert last > 0 == last % chunks and (61 - last) % (pp - 1) == 0 and (61 - last)//(pp - 1) == full*chunks >= last
            else:                                                           # pipeline_parallel._generate_llm_fqn_per_model_part
                per = int(text.split("layers_per_stage=")[1].split(",")[0])
                assert -(-61//per) == pp*chunks and 61//(pp*chunks) >= 1 and per == full
    assert (16, 1) in printed["megatron"] & printed["torchtitan"] and (2, 1) in printed["megatron"] and len(printed["torchtitan"]) > 5


def test_the_shell_prints_options_and_says_what_it_passed_over(capsys):
    job = "plan llama3-70b --cluster dgx-h100:256 --batch 512 --seq 8192"
    assert main(f"{job} --emit megatron --zero 0,1 --recompute 0,1".split()) == 0
    out, err = capsys.readouterr()
    assert out.startswith("CUDA_DEVICE_MAX_CONNECTIONS=1 \\\ntorchrun --nnodes 32 --nproc-per-node 8 pretrain_gpt.py \\\n    --tensor") and "Megatron-LM d98e8a64 of 2026-08-22, tp" in err and "16 bits" not in err
    assert main(f"{job} --emit megatron --zero 0,1 --recompute 0,1 --format fp8".split()) == 0
    assert "These options are for products in 16 bits; what turns on fp8 is not among them." in " ".join(capsys.readouterr().err.split())
    assert main(f"{job} --emit deepspeed --pp 1 --cp 1 --recompute 0 --sequence-parallel no".split()) == 0
    config = json.loads(capsys.readouterr().out)
    found = plan(LLAMA, cluster("dgx-h100", 256), 512, 8192, pp=1, cp=1, recompute=0, cheap_recompute=0, sequence_parallel=False).best.layout
    assert config["zero_optimization"]["stage"] == found.zero and config.get("tensor_parallel", {}).get("autotp_size", 1) == found.tp
    assert main(f"{job} --emit torchtitan --zero 0,1 --recompute 0.5 --cp 1 --pp 2".split()) == 1
    out, err = capsys.readouterr()
    err = " ".join(err.split())
    assert out == "" and re.search("torchtitan can run none of the [0-9,]+ legal layouts. For one: It recomputes whole models", err) and "leave recompute free" in err
    with pytest.raises(SystemExit):
        main(f"{job} --emit nemo".split())


@pytest.mark.parametrize("line, framework", [
    ("plan llama3-70b --cluster dgx-h100:1024 --batch 4M --seq 8192 --pp 2 --zero 2,3 --recompute 0,1", "torchtitan"),
    ("plan deepseek-v3 --cluster deepseek-h800:512 --batch 15360 --seq 4096 --zero 0,1 --recompute 0,1", "megatron"),
    ("plan llama3-70b --cluster dgx-h100:256 --batch 512 --seq 8192 --recompute 0.25,1 --zero 2,3 --pp 1,2", "torchtitan")])
def test_the_best_that_a_framework_can_run_need_not_be_among_the_ten_best(line, framework, capsys):
    assert main(f"{line} --emit {framework}".split()) == 0
    out, err = capsys.readouterr()
    assert out and "cannot run that one" in " ".join(err.split()) or "Not the best" not in err


def test_where_a_framework_can_run_nothing_no_limit_that_was_given_is_asked_for(capsys):
    for limits, words in (("--zero 1", "For one: Its FSDP2 shards gradients or weights besides the optimizer state; there is no zero = 1. It works if you leave zero free."),
                          ("--zero 1 --recompute 0.5", "It works if you leave zero, recompute free.")):
        assert main(f"plan llama3-70b --cluster dgx-h100:256 --batch 512 --seq 8192 {limits} --emit torchtitan".split()) == 1
        assert " ".join(capsys.readouterr().err.split()).endswith(words)
    assert main("plan llama3-70b --cluster tpu-v5p-pod:256 --batch 512 --seq 8192 --emit megatron".split()) == 1
    assert "torus of TPUs" in " ".join(capsys.readouterr().err.split())
