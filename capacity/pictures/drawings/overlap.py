"""Drawings of chapter 31: a step whose gradient leaves in pieces, chains in turn, what a trace says, waves on a GPU."""
from ...witness import streams
from ..diagram import LEAST, Sketch

SMALL = LEAST
LANES = ("GPU", "network")


def bars(intervals, word, role, gap=0.0):
    """Intervals as bars of a lane, those nearer than `gap` joined; the longest carries the word."""
    joined = streams.union(intervals, gap)
    longest = max(joined, key=lambda ab: ab[1] - ab[0])
    return [(a, b, word if (a, b) == longest else "", role) for a, b in joined]


def step(W, pieces, share, *, forward, backward, comm, call, update, end=None):
    """One step, in seconds: the backward pass in pieces, each sent when it is done; the update waits for the last."""
    trace = streams.simulate(streams.buckets([backward/pieces]*pieces, [call + comm/pieces]*pieces),
                             {("compute", "network"): share})
    last = forward + streams.end(trace)
    many = pieces > 8
    back, sent = ([(forward + a, forward + b) for a, b in streams.of(trace, name)] for name in ("compute", "network"))
    turn = ("compute", "memory")
    gpu = [(0, forward, "forward", "idle"),
           *(bars(back, "backward", "compute", 1e-9) if many else
             [(a, b, str(j + 1), turn[j % 2]) for j, (a, b) in enumerate(back)]),
           (last, last + update, "update" if update/last > .12 else "", "idle")]
    net = (bars(sent, "sum", "network", 1e-9) if many else
           [(a, b, str(j + 1), ("network", "measured")[j % 2]) for j, (a, b) in enumerate(sent)])
    s = Sketch(W)
    s.lanes(2, dict(zip(LANES, (gpu, net))), unit="s", covered=("network", "GPU"), end=end)
    return s


def chains(W, count, segments=3, compute=1.0, comm=1.0):
    """Chains of segments, compute then send, on one GPU and one network; `count` chains take turns."""
    trace = streams.simulate(streams.in_turn(count, segments, compute*1e-3, comm*1e-3))
    s = Sketch(W)
    role = (("compute", "memory"), ("network", "measured"))
    lanes = {lane: [(span.start, span.stop, "ABC"[int(name.split()[1].split(".")[0])],
                     role[n][int(name.split()[1].split(".")[0]) % 2])
                    for name, span in trace.items() if span.stream == stream]
             for n, (lane, stream) in enumerate(zip(LANES, ("compute", "network")))}
    s.lanes(2, lanes, unit="s")
    return s


def account(W, compute, network):
    """What a trace says of two lists of intervals, in seconds: hidden and exposed communication, idle time."""
    both = streams.common(network, compute)
    either = streams.union([*network, *compute])
    bare = [(a, b) for a, b in outside(network, compute)]
    idle = [(a, b) for (_, a), (b, _) in zip(either, either[1:])]
    s = Sketch(W)
    s.lanes(2, {"GPU": [(a, b, "", "compute") for a, b in compute],
                "network": [(a, b, "", "network") for a, b in network],
                "account": [*((a, b, "hidden", "memory") for a, b in both), *((a, b, "exposed", "limit") for a, b in bare),
                            *((a, b, "idle", "idle") for a, b in idle)]}, unit="s")
    s.legend(s.low + 12, [("hidden", "memory", .85), ("exposed", "limit", .85), ("idle", "idle", .85)])
    return s


def outside(first, second):
    """The parts of the first intervals that the second do not cover."""
    out = []
    for a, b in streams.union(first):
        for u, v in streams.common([(a, b)], second):
            if a < u:
                out.append((a, u))
            a = v
        if a < b:
            out.append((a, b))
    return out


def pair(W, compute, network):
    """A recorded pair of chunks, in seconds: what the compute streams and the network stream of one GPU did."""
    s = Sketch(W)
    s.lanes(2, {"GPU": bars(compute, "arithmetic of both chunks", "compute"),
                "network": bars(network, "", "network")}, unit="s")
    return s


def waves(W, blocks=132, processors=132, free=112):
    """A kernel of equal blocks on all processors, and on those that are free: the second wave is nearly empty."""
    s = Sketch(W)
    y = 16
    for have, words in ((processors, f"all {processors} processors are free"),
                        (free, f"{processors - free} of them hold the network's program")):
        s.text(0, y, words, "start", bold=True, size=SMALL)
        y += 8
        w, left = (W - 4)*.46, blocks
        wide = w*have/processors
        x, n = 0, 0
        while left > 0:
            now = min(left, have)
            s.rect(x, y, wide, 26, "idle", "", opacity=.18, radius=3)
            q = s.rect(x, y, wide*now/have, 26, ("compute", "memory")[n % 2], "", opacity=.85, radius=3)
            if q.w > 80:
                s.text(q.cx, q.cy + 4.7, f"{now} blocks", bold=True, size=SMALL, spoken=False)
            elif left != blocks:
                s.text(q.right + 6, q.cy + 4.7, f"{now} blocks", "start", size=SMALL)
            left, x, n = left - now, x + wide + 8, n + 1
        s.text(0, y + 44, f"{n} wave" + "s"*(n > 1), "start", soft=True, size=SMALL)
        y += 70
    return s
