"""The reader of traces: disjoint causes that fill a step, against moments asked one by one; files good and bad."""
import gzip
import json

import numpy as np
import pytest

from capacity.witness import streams, trace

from capacity.specs import RECORDED


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": tid, "args": args}


@pytest.fixture
def seen(tmp_path):
    """seen(events) -> Trace of a file with them."""
    def made(events, rank=3, **more):
        path = tmp_path/"trace.json"
        path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank}}))
        return trace.read(path, **more)
    return made


# ---- the law
def test_the_causes_are_disjoint_and_fill_every_step(seen):
    rng = np.random.default_rng(0)
    kinds = [("kernel", "gemm"), ("kernel", "ncclDevKernel_AllReduce"), ("kernel", "ncclDevKernel_SendRecv"), ("gpu_memcpy", "Memcpy HtoD"),
             ("cpu_op", "aten::mm"), ("cuda_runtime", "cudaLaunchKernel"), ("cuda_runtime", "cudaDeviceSynchronize"),
             ("user_annotation", "enumerate(DataLoader)#x.__next__")]
    for _trial in range(150):
        events = [event("kernel", "gemm", 0, 1), event("user_annotation", "ProfilerStep#4", 10, 60)]
        for _ in range(int(rng.integers(1, 30))):
            cat, name = kinds[int(rng.integers(len(kinds)))]
            events.append(event(cat, name, float(rng.integers(0, 80000))/1000, float(rng.integers(0, 20000))/1000, int(rng.integers(2))))
        t = seen(events)
        parts = trace.divide(t.lanes, t.start, t.stop)
        assert tuple(parts) == trace.CAUSES
        every = sorted(ab for spans in parts.values() for ab in spans)
        assert all(b <= c for (_, b), (c, _) in zip(every, every[1:]))
        assert streams.union(every) == [(t.start, t.stop)]
        got = trace.account(t)
        assert sum(got.values()) == t.stop - t.start and all(isinstance(v, int) and v >= 0 for v in got.values())


def test_an_account_agrees_with_counted_moments():
    rng = np.random.default_rng(1)
    for _ in range(200):
        lanes = {cause: [tuple(sorted(map(int, rng.integers(-5, 55, 2)))) for _ in range(int(rng.integers(0, 5)))]
                 for cause in trace.CAUSES[:-1]}
        want = dict.fromkeys(trace.CAUSES, 0)
        for m in range(50):
            want[next((c for c, spans in lanes.items() if any(a <= m < b for a, b in spans)), "idle")] += 1
        assert trace.account(trace.Trace(0, 1, 0, 50, True, lanes)) == want


# ---- what counts as what
def test_a_step_of_a_gpu(seen):
    t = seen([event("user_annotation", "ProfilerStep#7", 0, 100), event("user_annotation", "enumerate(DataLoader)#x.__next__", 0, 10),
              event("cpu_op", "aten::mm", 12, 3), event("cuda_runtime", "cudaStreamSynchronize", 80, 18),
              event("kernel", "gemm", 20, 30), event("kernel", "ncclDevKernel_AllReduce_Sum", 40, 20),
              event("kernel", "ncclDevKernel_SendRecv", 60, 5, **{"Collective name": "all_to_allv"}),
              event("kernel", "ncclDevKernel_SendRecv", 65, 5, **{"Collective name": "recv"}),
              event("kernel", "ncclDevKernel_SendRecv", 70, 5), event("kernel", "adam", 90, 15)])
    assert (t.rank, t.steps, t.device, t.start, t.stop) == (3, 1, True, 0, 105000)        # to the end of the last kernel
    assert trace.account(t) == dict(arithmetic=45000, exposed=20000, bubble=5000, input=10000, launch=3000, idle=22000)
    assert trace.waited(t) == 25000


def test_a_step_of_cpus(seen):
    t = seen([event("user_annotation", "ProfilerStep#1", 0, 50), event("user_annotation", "ProfilerStep#2", 50, 50),
              event("user_annotation", "enumerate(DataLoader)#x.__next__", 0, 10), event("cpu_op", "aten::stack", 8, 1),
              event("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 20, 10), event("cpu_op", "aten::mm", 22, 5),
              event("cpu_op", "c10d::allreduce_", 30, 1), event("user_annotation", "gloo:all_reduce", 31, 9, 2),
              event("user_annotation", "gloo:recv", 60, 20)])
    assert (t.steps, t.device) == (2, False)
    assert trace.account(t) == dict(arithmetic=5000, exposed=9000, bubble=20000, input=10000, launch=6000, idle=50000)
    assert trace.waited(t) == 14500


def test_names_of_another_library(seen):
    events = [event("kernel", "gemm", 0, 10), event("kernel", "my_exchange", 10, 10)]
    assert trace.account(seen(events))["exposed"] == 0
    assert trace.account(seen(events, network="my_"))["exposed"] == 10000


def test_a_fraction_of_a_microsecond_survives_a_large_clock(seen):
    t = seen([event("kernel", "a", 4599519803641.625, 2.25), event("kernel", "b", 4599519803645.125, 1.5)])
    assert trace.account(t) == dict(arithmetic=3750, exposed=0, bubble=0, input=0, launch=0, idle=1250)


# ---- who is slow
@pytest.mark.parametrize("waits, who", [([46, 5, 44, 47], 1), ([46, 43, 44, 47], None), ([5, 9], None), ([7, 7], None), ([5, 5, 9, 9], None), ([9, 9, 9, 8], 3)])
def test_the_slow_one_waits_least(waits, who):
    assert trace.slow(waits) == who


def test_the_recorded_straggler():
    for name, who in (("even", None), ("late", 2)):
        ranks = [trace.read(RECORDED/f"trace-{name}-{r}.json.gz") for r in range(4)]
        assert [t.rank for t in ranks] == [0, 1, 2, 3] and {t.steps for t in ranks} == {4}
        assert all(sum(trace.account(t).values()) == t.stop - t.start for t in ranks)
        assert trace.slow([trace.waited(t) for t in ranks]) == who


# ---- files
def test_a_file_is_read_plain_or_gzipped_and_slimmed(tmp_path):
    path, small = tmp_path/"a.json", tmp_path/"b.json.gz"
    events = [event("kernel", "gemm", 0, 10), {"ph": "M", "name": "process_name"}, event("Trace", "PyTorch Profiler (0)", 0, 99)]
    path.write_text(json.dumps({"traceName": "/home/me", "host_name": "mine", "traceEvents": events, "distributedInfo": {"rank": 5}}))
    trace.slim(path, small)
    text = gzip.decompress(small.read_bytes()).decode()
    assert "mine" not in text and "/home/me" not in text
    assert trace.account(trace.read(small)) == trace.account(trace.read(path)) | {"idle": 0}
    path.write_text(json.dumps(events[:1]))                                  # a bare list is Chrome's format too
    assert trace.read(path).rank is None


@pytest.mark.parametrize("text, says", [(None, "No such file"), ("no json", "no JSON; allowed: what export_chrome_trace writes"),
                                        ("{}", "no traceEvents"), ("3", "no traceEvents"), ('{"traceEvents": []}', "no event with a start"),
                                        ('{"traceEvents": [{"ph": "X", "ts": 0, "dur": 1, "name": "a", "cat": "python_function"}]}',
                                         "no kernel and no operation"),
                                        ('[{"ph": "X", "ts": "0", "dur": 1, "name": "a"}, {"ph": "X", "ts": 0, "dur": 1, "name": 3}]',
                                         "no event with a start"),
                                        ('{"distributedInfo": 5, "traceEvents": [{"ph": "X", "ts": 0, "dur": 1, "name": "ProfilerStep#1"}]}',
                                         "no kernel and no operation")])
def test_what_is_no_trace_is_said(tmp_path, text, says):
    path = tmp_path/"trace.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=says):
        trace.read(path)


def test_a_torn_gzip(tmp_path):
    path = tmp_path/"torn.gz"
    path.write_bytes((RECORDED/"trace-late-0.json.gz").read_bytes()[:500])
    with pytest.raises(ValueError, match="no JSON"):
        trace.read(path)


def test_two_lists_of_a_trace(tmp_path):
    path = tmp_path/"trace.json"
    path.write_text(json.dumps({"traceEvents": [
        event("kernel", "gemm", 10, 5), {"ph": "i", "cat": "kernel", "name": "mark", "ts": 0},
        event("kernel", "ncclAllReduce", 12, 7), event("cpu_op", "gemm", 0, 99)]}))
    assert trace.spans(path, "nccl") == ([(2, 9)], [(0, 5)])
    with pytest.raises(ValueError, match="no event of gpu"):
        trace.spans(path, "nccl", ("gpu",))
