"""The ranks in one process: what they exchange, when, and how a program that cannot go on ends."""
import contextlib
import math
import operator
import threading
import time
from fractions import Fraction as F

import numpy as np
import pytest
import sympy as sp

from capacity.witness import spmd
from capacity.witness.collectives import window_all_reduce
from capacity.witness.spmd import FAREWELLS, Deadlock, Each, Link, Mismatch, ProgramError, run, size_of, two_level


@pytest.fixture(autouse=True)
def nothing_hangs(request):
    start = time.process_time()                            # of this process: others may be busy
    yield
    assert time.process_time() - start < (5 if request.node.name == "test_many_ranks" else 2)


def on(*programs):
    """Another program on every rank."""
    return lambda comm, x=None: programs[comm.rank](comm)


def fails(kind, program, P, *words, inputs=None, **how):
    with pytest.raises(kind) as caught:
        run(program, [None]*P if inputs is None else inputs, **how)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return caught.value


def idle(comm):
    pass


def yields(comm, x):
    yield comm.recv(0)


def swap(comm, x):
    return comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank)


# What ends a program -----------------------------------------------------------------------------------

def test_a_cycle_of_receives():
    error = fails(Deadlock, lambda comm, x: comm.recv((comm.rank + 1) % comm.size, tag=7), 3, "no rank can go on",
                  "rank 0 waits to receive a message (tag 7) from rank 1", "rank 1 waits to receive",
                  "rank 2 waits to receive a message (tag 7) from rank 0")
    assert isinstance(error, ProgramError)


def test_a_cycle_of_sends():
    def program(comm, x):
        comm.send(np.zeros(4), (comm.rank + 1) % comm.size, tag="ring")
        comm.recv((comm.rank - 1) % comm.size)
    fails(Deadlock, program, 3, "rank 0 waits until rank 1 receives 32 bytes (tag 'ring')",
          "rank 1 waits until rank 2 receives", "rank 2 waits until rank 0 receives")


def test_the_sender_has_finished():
    fails(Deadlock, on(idle, lambda comm: comm.recv(0)), 2, "rank 0 has finished",
          "rank 1 waits to receive a message from rank 0")


def test_the_receiver_has_finished():
    fails(Deadlock, on(lambda comm: comm.send(1, 1), idle), 2, "rank 0 waits until rank 1 receives 8 bytes",
          "rank 1 has finished")


@pytest.mark.parametrize("start, words", [
    (lambda comm: comm.isend(1, 1), "rank 0 still waits until rank 1 receives 8 bytes"),
    (lambda comm: comm.irecv(1), "rank 0 still waits to receive a message from rank 1")])
def test_a_message_with_one_end(start, words):
    fails(Deadlock, on(start, idle), 2, "all ranks finished", words)


def test_two_of_many_wait():
    def program(comm, x):
        if comm.rank in (3, 5):
            comm.recv(8 - comm.rank)
    message = str(fails(Deadlock, program, 7, "rank 3 waits to receive a message from rank 5",
                        "rank 5 waits to receive a message from rank 3", "rank 4 has finished"))
    assert message.count("has finished") == 5


def test_a_barrier_that_one_rank_misses():
    fails(Deadlock, lambda comm, x: comm.rank == 2 or comm.barrier(), 4, "rank 2 has finished", "rank 0 waits")


@pytest.mark.parametrize("sent, like, words", [
    (np.zeros(3), np.zeros(4), ["a float64 array of shape (4,)", "a float64 array of shape (3,)"]),
    (np.zeros(3), np.zeros(3, "f4"), ["a float32 array of shape (3,)", "a float64 array of shape (3,)"]),
    (np.zeros((2, 3)), np.zeros(6), ["shape (6,)", "shape (2, 3)"]),
    (5, np.zeros(1), ["a float64 array of shape (1,)", "one int"]),
    (np.zeros(1), 5, ["one int", "a float64 array"]),
    ([1, 2], [1, 2, 3], ["a list of 3", "a list of 2"]),
    ([np.zeros(2), np.zeros(2)], [np.zeros(2), np.zeros(3)], ["a list of 2, first a float64 array of shape (2,)"]),
    ([], [1], ["a list of 0\n", "a list of 1, first one int"]),
    ([1], 1, ["one int", "a list of 1"]),
    ((1, 2), np.zeros(2), ["a float64 array of shape (2,)", "a list of 2"])])
def test_not_what_the_receiver_asked_for(sent, like, words):
    ask = lambda comm: comm.recv(0, like=like)
    fails(Mismatch, on(lambda comm: comm.send(sent, 1), ask, lambda comm: comm.recv(0)), 3,
          "rank 1 waits to receive", "from rank 0, which sent it", "rank 2", *words)


@pytest.mark.parametrize("sent, like", [
    (3, F(1, 2)), (sp.Symbol("x") + 1, 0), (frozenset({1}), frozenset()), (np.float64(2), 1), (np.zeros(3), None),
    ([1, np.zeros(2)], [None, np.ones(2)]), ((1, 2), [3, 4]), ([], [])])
def test_what_it_asked_for(sent, like):
    got = run(on(lambda comm: comm.send(sent, 1), lambda comm: comm.recv(0, like=like)), [0, 0]).results[1]
    assert np.array_equal(got[1], sent[1]) if isinstance(sent, list) and sent else np.array_equal(got, sent)


@pytest.mark.parametrize("first", [0, 1])
def test_another_tag(first):
    """Whether the sender comes first or the receiver."""
    programs = [lambda comm: comm.send(1, 1 - first, tag="a"), lambda comm: comm.recv(first, tag="b")]
    fails(Mismatch, on(*(programs if first == 0 else programs[::-1])), 2, "(tag 'b')", "8 bytes (tag 'a')",
          f"rank {1 - first} waits to receive", f"rank {first}")


def test_messages_of_a_pair_keep_their_order():
    def sender(comm):
        for h in [comm.isend(i, 1, tag=i) for i in range(4)]:
            h.wait()
    assert run(on(sender, lambda comm: [comm.recv(0, tag=i) for i in range(4)]), [0]*2).results[1] == [0, 1, 2, 3]


def test_receives_that_wait_keep_their_order():
    def receiver(comm):
        return [h.wait() for h in [comm.irecv(1, tag=i) for i in range(4)]]
    result = run(on(receiver, lambda comm: [comm.send(10 + i, 0, tag=i) for i in range(4)]), [0]*2)
    assert result.results[0] == [10, 11, 12, 13]


@pytest.mark.parametrize("P", [1, 2, 5])
def test_a_rank_that_raises(P):
    def program(comm, x):
        if comm.rank == P - 1:
            return 1//x
        comm.recv(comm.size - 1, tag="late")
    error = fails(ProgramError, program, P, f"rank {P - 1} raised ZeroDivisionError: ",
                  *(f"rank {r} waits to receive a message (tag 'late') from rank {P - 1}" for r in range(P - 1)),
                  inputs=[0]*P)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_ranks_that_clean_up_end_too():
    log = []

    def program(comm, x):
        try:
            comm.recv(1 - comm.rank)
        finally:
            log.append(comm.rank)
            try:
                comm.recv(1 - comm.rank)
                log.append("never")
            finally:
                log.append(10 + comm.rank)
    fails(Deadlock, program, 2)
    assert sorted(log) == [0, 1, 10, 11]


@pytest.mark.parametrize("waits", [1, FAREWELLS, FAREWELLS + 1])
def test_so_many_waits_end_while_a_rank_cleans_up(waits):
    log = []

    def wait(comm, n):
        try:
            comm.recv(1 - comm.rank)
        finally:
            log.append(comm.rank)
            if n > 1:
                wait(comm, n - 1)
    fails(Deadlock, lambda comm, x: wait(comm, waits), 2)
    assert log.count(0) == log.count(1) == min(waits, FAREWELLS)


def again(call, caught):
    def program(comm, x):
        while True:
            with contextlib.suppress(caught):
                call(comm)
    return program


@pytest.mark.parametrize("caught", [(), Exception, BaseException])
@pytest.mark.parametrize("call", [
    lambda comm: comm.sendrecv(1, 1 - comm.rank, 1 - comm.rank), lambda comm: comm.isend(1, 1 - comm.rank),
    lambda comm: comm.irecv(1 - comm.rank)])
def test_messages_without_end(call, caught):
    """Whatever the program catches."""
    fails(ProgramError, again(call, caught), 2, "300 messages and no end; allowed: up to limit = 300", "rank 1",
          limit=300)


def test_the_limit_is_exact():
    program = lambda comm, x: [swap(comm, i) for i in range(5)]
    assert len(run(program, [0, 0], limit=10).messages) == 10
    fails(ProgramError, program, 2, "9 messages and no end", limit=9)


@pytest.mark.parametrize("caught", [Exception, BaseException])
def test_a_deadlock_that_every_rank_catches(caught):
    fails(Deadlock, again(lambda comm: comm.recv(1 - comm.rank), caught), 2, "rank 0 waits to receive",
          "rank 1 waits to receive")


def test_what_ranks_raise_while_they_clean_up_changes_nothing():
    log = []

    def program(comm, x):
        try:
            comm.recv(1 - comm.rank)
        finally:
            log.append(comm.rank)
            raise ZeroDivisionError
    fails(Deadlock, program, 2, "no rank can go on")
    assert log == [0, 1]


def test_an_interrupt_ends_all_ranks():
    log = []

    def program(comm, x):
        try:
            if comm.rank == 1:
                raise KeyboardInterrupt
            comm.recv(1)
        finally:
            log.append(comm.rank)
    with pytest.raises(KeyboardInterrupt):
        run(program, [0]*3)
    assert log == [1, 0]                                                     # rank 2 never began


def test_a_rank_waits_only_in_its_own_program():
    comms, caught = {}, []
    words = "rank 0 waits to receive a message from rank 1; allowed: while its run goes on, in the program it runs"

    def refused(comm):
        with pytest.raises(ProgramError) as error:
            comm.recv(1)
        caught.append(str(error.value).startswith(words))

    def in_a_thread(comm):
        comms[0] = comm
        thread = threading.Thread(target=refused, args=[comm])
        thread.start()
        thread.join()

    def in_another_run(comm):
        run(lambda inner, x: refused(comm), [0])

    for first in (in_a_thread, in_another_run):                              # what was asked for is still open
        fails(Deadlock, on(first, idle), 2, "all ranks finished, but rank 0 still waits to receive")
    fails(Deadlock, on(in_a_thread, lambda comm: refused(comms[0])), 2, "all ranks finished")
    refused(comms[0])                                                        # after its run
    assert caught == [True]*5


def test_a_link_of_a_cluster_is_a_link():
    from capacity import link
    nvlink = link("nvlink4")
    result = run(swap, [0, 0], link=nvlink)
    assert result.time == nvlink.alpha + 8/nvlink.beta
    assert result.sent(nvlink).tolist() == result.sent(nvlink.name).tolist() == [8, 8]
    assert run(swap, [0, 0], link=two_level(1, Link(), nvlink)).time == result.time


def test_each_rank_gets_its_own():
    did = run(lambda comm, *got: got, "ab", 1, Each([2, 3]), [4, 5])
    assert did.results == [("a", 1, 2, [4, 5]), ("b", 1, 3, [4, 5])]


def test_inputs_may_come_from_a_generator():
    assert run(swap, (x for x in "ab")).results == ["b", "a"]


def test_a_run_is_shown_in_one_line():
    assert repr(run(swap, [0, 0], link=Link(3))) == "<run of 2 ranks: 2 messages in 1 rounds, time 3>"


@pytest.mark.parametrize("call, words", [
    (lambda comm: comm.send(1, 3), "to = 3 on rank 0; allowed: another rank of 0 to 2"),
    (lambda comm: comm.send(1, -1), "to = -1 on rank 0"),
    (lambda comm: comm.send(1, 0), "to = 0 on rank 0; allowed: another rank"),
    (lambda comm: comm.send(1, 1.0), "to = 1.0 on rank 0"),
    (lambda comm: comm.recv(None), "source = None on rank 0"),
    (lambda comm: comm.recv(3), "source = 3 on rank 0"),
    (lambda comm: comm.sendrecv(1, 1, 0), "source = 0 on rank 0"),
    (lambda comm: comm.group([1, 2]), "ranks = [1, 2]; allowed: a group that rank 0 is in"),
    (lambda comm: comm.group([0, 1, 0]), "ranks = [0, 1, 0]; allowed: different ranks of 0 to 2"),
    (lambda comm: comm.grid(2, 2), "sizes = (2, 2); allowed: 1, 2, ... with the product 3"),
    (lambda comm: comm.grid(-1, -3), "sizes = (-1, -3); allowed: 1, 2, ..."),
    (lambda comm: comm.group([0, 3]), "ranks = [0, 3]; allowed: different ranks of 0 to 2"),
    (lambda comm: comm.group(r for r in (0, -1)), "ranks = [0, -1]; allowed: different ranks of 0 to 2"),
    (lambda comm: comm.send(object(), 1), "a payload of type object; allowed: arrays, numbers, text")])
def test_bad_arguments_of_a_rank(call, words):
    error = fails(ProgramError, on(call, idle, idle), 3, "rank 0 raised ValueError: ", words)
    assert isinstance(error.__cause__, ValueError)


@pytest.mark.parametrize("call, words", [
    (lambda: run(idle, []), "inputs is empty; allowed: one input for each rank"),
    (lambda: run(idle, [1], ports=0), "ports = 0; allowed: 1, 2, ..."),
    (lambda: run(idle, [1], ports=1.5), "ports = 1.5"),
    (lambda: run(idle, [1], ports=None), "ports = None"),
    (lambda: run(idle, [1], limit=0), "limit = 0; allowed: 1, 2, ..."),
    (lambda: run(idle, 4), "inputs = 4; allowed: a list, one input for each rank"),
    (lambda: run(idle, [0, 0], Each([1, 2, 3])), "an Each of 3 values; allowed: 2, one for each rank"),
    (lambda: run(idle, {0: 1}), "inputs = {0: 1}; allowed: a list"),
    (lambda: run(None, [1]), "program = None; allowed: a function of (comm, input, ...)"),
    (lambda: run(yields, [1]), "allowed: a function of (comm, input, ...) without yield or async"),
    (lambda: run(idle, [1], link=None), "link = None; allowed: a Link, or a function (source, to) -> Link"),
    (lambda: two_level(0, Link(), Link()), "node_size = 0; allowed: 1, 2, ..."),
    (lambda: two_level(2.0, Link(), Link()), "node_size = 2.0"),
    (lambda: Link(alpha="NVLink"), "alpha = 'NVLink'; allowed: seconds, at least 0"),
    (lambda: Link(alpha=math.inf), "alpha = inf"),
    (lambda: Link(alpha=math.nan), "alpha = nan"),
    (lambda: Link(alpha=np.arange(2)), "alpha = array([0, 1])"),
    (lambda: Link(beta=None), "beta = None; allowed: bytes per second, above 0"),
    (lambda: Link(name=None), "name = None; allowed: a text"),
    (lambda: Link(alpha=-1), "alpha = -1; allowed: seconds, at least 0"),
    (lambda: Link(beta=0), "beta = 0; allowed: bytes per second, above 0"),
    (lambda: Link(alpha=1, overhead=2), "overhead = 2; allowed: 0 to alpha = 1"),
    (lambda: Link(alpha=1, overhead=-1), "overhead = -1")])
def test_bad_arguments_of_a_run(call, words):
    with pytest.raises(ValueError, match=".*") as caught:
        call()
    assert words in str(caught.value)


def test_a_program_that_takes_other_arguments():
    fails(ProgramError, lambda comm: None, 2, "rank 0 raised TypeError")


# What comes back ---------------------------------------------------------------------------------------

def test_results_and_shared_arguments():
    result = run(lambda comm, x, y, z: (comm.rank, comm.size, x, y, z), "abc", 10, None)
    assert result.results == [(0, 3, "a", 10, None), (1, 3, "b", 10, None), (2, 3, "c", 10, None)]
    assert result.clock == [0]*3 and result.time == 0 and result.rounds == 0 and result.messages == []


@pytest.mark.parametrize("value, change", [
    (np.arange(3), lambda v: v.__setitem__(0, 9)),
    ([np.arange(3), 1], lambda v: v[0].__setitem__(0, 9)),
    ([[1], 2], lambda v: v[0].append(9)),
    ({"a": [1]}, lambda v: v["a"].append(9)),
    ({1, 2}, lambda v: v.add(9)),
    ((np.arange(2), [1]), lambda v: v[1].append(9)),
    (np.array([F(1, 2), F(1, 3)]), lambda v: v.__setitem__(0, 9))])
def test_values_are_copied(value, change):
    before = repr(value)

    def sender(comm):
        handle = comm.isend(value, 1)
        change(value)
        handle.wait()

    def late(comm):
        comm.recv(2)
        return comm.recv(0)

    got = run(on(sender, late, lambda comm: comm.send(0, 1)), [0]*3).results[1]
    assert repr(got) == before != repr(value)
    assert type(got) is type(value)


def test_a_program_is_run_the_same_way_each_time():
    def program(comm, x):
        for d in range(1, comm.size):
            x = x + comm.sendrecv(x, (comm.rank + d) % comm.size, (comm.rank - d) % comm.size, sendtag=d)
            comm.holds([x])
        return x
    one, two = (run(program, list(range(9)), link=two_level(3, Link(1, 8), Link(5, 2)), ports=2) for _ in range(2))
    assert one == two and len(one.messages) == 72 and len(one.holdings) == 72


def test_bytes_of_a_payload():
    x = sp.Symbol("x")
    for value, nbytes in [(None, 0), (1, 8), (1.5, 8), (True, 8), (F(1, 3), 8), (x, 8), (x**2 + 1, 8),
                          (np.zeros(3, "f4"), 12), (np.zeros((2, 3)), 48), (np.float32(1), 4), ("abc", 3), ("é", 2), (b"ab", 2),
                          ([1, None, np.zeros(2)], 24), ((1, [2, 3]), 24), ({"k": np.zeros(4)}, 32), ({1, 2}, 16),
                          (frozenset({1}), 8), ([], 0)]:
        assert size_of(value) == nbytes, value


def program_of_two_links(comm, x):
    """0 -> 1 -> 2 -> 3 -> 0 in nodes of two: a message of 8 (r + 1) bytes from rank r."""
    comm.sendrecv([1]*(comm.rank + 1), (comm.rank + 1) % 4, (comm.rank - 1) % 4)


def test_sent_received_and_counted_by_link():
    inside, across = Link(name="NVLink"), Link(name="NIC")
    result = run(program_of_two_links, [0]*4, link=two_level(2, inside, across))
    assert result.sent().tolist() == [8, 16, 24, 32] and result.received().tolist() == [32, 8, 16, 24]
    assert result.sent("NVLink").tolist() == [8, 0, 24, 0] and result.sent("NIC").tolist() == [0, 16, 0, 32]
    assert result.received("NVLink").tolist() == [0, 8, 0, 24] and result.received("NIC").tolist() == [32, 0, 16, 0]
    assert result.count().tolist() == [1]*4 and result.count("NIC").tolist() == [0, 1, 0, 1]
    assert sorted({m.link for m in result.messages}) == ["NIC", "NVLink"]
    for question in (result.sent, result.received, result.count):
        with pytest.raises(ValueError, match="link = 'nic'; the messages went over NIC, NVLink"):
            question("nic")
    with pytest.raises(ValueError, match="no link"):
        run(lambda comm, x: x, [1]).sent("NIC")


def test_who_shares_a_node():
    link = two_level(3, "in", "out")
    assert [[link(a, b) for b in range(7)] for a in (0, 2, 3, 6)] == [
        ["in"]*3 + ["out"]*4, ["in"]*3 + ["out"]*4, ["out"]*3 + ["in"]*3 + ["out"], ["out"]*6 + ["in"]]


def test_what_ranks_hold():
    state = [np.zeros(2), None]

    def program(comm, x):
        comm.holds(state)
        if comm.rank == 0:
            comm.send(1, 1)
            state[0][0] = 5
        else:
            comm.recv(0)
            comm.recv(0)
        comm.holds(["done"])
        if comm.rank == 0:
            comm.send(1, 1)
    result = run(program, [0, 0], link=Link(alpha=F(1, 3)))
    assert [(k, r) for k, r, _ in result.holdings] == [(0, 0), (0, 1), (1, 0), (2, 1)]
    assert [s[0].tolist() for _, _, s in result.holdings[:2]] == [[0, 0], [0, 0]]
    assert result.holdings[3][2] == ["done"]


def test_what_a_rank_sent_it_holds_until_it_is_in():
    """Rank 0 takes in one message a round; rank 2's waits for rank 1's."""
    def sender(comm):
        comm.send(1, 0)
        comm.holds([None])
    result = run(on(lambda comm: [comm.recv(1), comm.recv(2)], sender, sender), [0]*3)
    assert result.holdings == [(1, 1, [None]), (2, 2, [None])]


@pytest.mark.parametrize("P, written", [(32, 32), (33, 0)])
def test_what_many_ranks_hold_is_not_kept(P, written):
    assert len(run(lambda comm, x: comm.holds([x]), range(P)).holdings) == written


# Clocks ------------------------------------------------------------------------------------------------

def words(k):
    return [0]*k                                                             # 8 k bytes


@pytest.mark.parametrize("alpha, beta, exact", [
    (F(1, 7), F(3), F), (2, 1, float), (F(0), F(5, 3), F), (F(1, 3), math.inf, F), (2, math.inf, int),
    (1e-6, 5e10, float)])
def test_one_message(alpha, beta, exact):
    result = run(on(lambda comm: comm.send(words(3), 1), lambda comm: comm.recv(0)), [0, 0], link=Link(alpha, beta))
    assert result.time == alpha + (0 if beta == math.inf else 24/beta)
    assert result.clock == [result.time]*2 and result.rounds == 1
    message, = result.messages
    assert message == (0, 1, 24, None, "link", 1, 0, result.time)
    assert type(result.time) is exact and type(result.rounds) is int


def both(comm, call, *ranks):
    return [h.wait() for h in [call(r) for r in ranks]]


@pytest.mark.parametrize("ports, time", [(1, 6), (2, 3), (3, 3)])
def test_ports_of_a_sender(ports, time):
    """alpha = 1, 8 bytes at 4 bytes per second: 3 seconds a message."""
    result = run(on(lambda comm: both(comm, lambda r: comm.isend(1, r), 1, 2), lambda comm: comm.recv(0),
                    lambda comm: comm.recv(0)), [0]*3, link=Link(1, F(4)), ports=ports)
    assert result.clock == [time, 3, time]
    assert result.rounds == (2 if ports == 1 else 1)
    assert sorted(m.left for m in result.messages) == [0, time - 3]


@pytest.mark.parametrize("ports, time", [(1, 6), (2, 3)])
def test_ports_of_a_receiver(ports, time):
    result = run(on(lambda comm: both(comm, lambda r: comm.irecv(r), 1, 2), lambda comm: comm.send(1, 0),
                    lambda comm: comm.send(1, 0)), [0]*3, link=Link(1, F(4)), ports=ports)
    assert result.clock == [time, 3, 3]                                      # a sender is free when its bytes are out
    assert sorted(m.arrived for m in result.messages) == [3, time]


def test_three_messages_on_two_ports():
    result = run(on(lambda comm: both(comm, lambda r: comm.isend(1, r), 1, 2, 3), *[lambda comm: comm.recv(0)]*3),
                 [0]*4, link=Link(1), ports=2)
    assert result.clock == [2, 1, 1, 2] and result.rounds == 2


def test_a_link_costs_nothing_unless_told():
    result = run(lambda comm, x: comm.sendrecv(words(9), 1 - comm.rank, 1 - comm.rank), [0, 0])
    assert result.clock == [0, 0] and result.rounds == 1
    assert (Link().alpha, Link().beta, Link().name, Link(alpha=3).overhead) == (0, math.inf, "link", 3)


def test_sendrecv_ends_when_both_are_done():
    result = run(lambda comm, x: comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank), [words(10), words(1)],
                 link=Link(0, F(8)))
    assert result.clock == [10, 10]
    result = run(lambda comm, x: comm.sendrecv(x, (comm.rank + 1) % 3, (comm.rank - 1) % 3),
                 [words(10), words(1), words(1)], link=Link(0, F(8)))
    assert result.clock == [10, 10, 1]


def test_both_directions_at_once():
    swap = run(lambda comm, x: comm.sendrecv(1, 1 - comm.rank, 1 - comm.rank), [0, 0], link=Link(1, F(4)))
    assert swap.time == 3 and swap.rounds == 1
    turns = run(on(lambda comm: (comm.send(1, 1), comm.recv(1)), lambda comm: (comm.recv(0), comm.send(1, 0))),
                [0, 0], link=Link(1, F(4)))
    assert turns.time == 6 and turns.rounds == 2


@pytest.mark.parametrize("other, time", [("NIC", 5), ("NVLink", 8)])
def test_each_kind_of_link_has_its_ports(other, time):
    """A rank's NVLink and its NIC work at once: 3 and 5 seconds."""
    link = two_level(2, Link(3, name="NVLink"), Link(5, name=other))
    out = on(lambda comm: both(comm, lambda r: comm.isend(1, r), 1, 2), lambda comm: comm.recv(0),
             lambda comm: comm.recv(0))
    into = on(lambda comm: both(comm, lambda r: comm.irecv(r), 1, 2), lambda comm: comm.send(1, 0),
              lambda comm: comm.send(1, 0))
    assert run(out, [0]*3, link=link).time == time
    assert run(into, [0]*3, link=link).time == time


@pytest.mark.parametrize("overhead, time, left", [
    (None, 4*(10 + 2), [0, 12, 24, 36]), (0, 10 + 4*2, [0, 2, 4, 6]), (3, 10 + 2 + 3*5, [0, 5, 10, 15])])
def test_latency_that_passes_on_the_wire(overhead, time, left):
    """Four messages of 8 bytes, alpha = 10, beta = 4: the part of alpha that takes the port separates them."""
    result = run(on(lambda comm: [comm.send(1, 1) for _ in range(4)], lambda comm: [comm.recv(0) for _ in range(4)]),
                 [0]*2, link=Link(10, F(4), overhead=overhead))
    assert result.clock[1] == time and [m.left for m in result.messages] == left
    assert result.clock[0] == left[3] + (10 if overhead is None else overhead) + 2
    assert result.rounds == 4                                                # the count of rounds knows no overhead


def test_a_message_leaves_when_its_sender_sends_it():
    """Not when it is asked for: what comes early waits at the receiver."""
    def last(comm):
        comm.recv(1)
        return comm.recv(0)
    result = run(on(lambda comm: comm.send(1, 2), lambda comm: comm.send(words(10), 2), last), [0]*3,
                 link=Link(0, F(8)), ports=2)
    assert result.clock == [1, 10, 10]


def test_clocks_decide_what_comes_first():
    """Rank 1 sends late, though its turn is early: what rank 2 sends at 0 is in before it."""
    def late(comm):
        both(comm, lambda job: comm.isend(*job), (words(10), 3), (words(1), 0))
    result = run(on(lambda comm: both(comm, comm.irecv, 1, 2), late, lambda comm: comm.send(words(2), 0),
                    lambda comm: comm.recv(1)), [0]*4, link=Link(0, F(8)))
    assert {(m.source, m.to): m.arrived for m in result.messages} == {(1, 3): 10, (1, 0): 11, (2, 0): 2}
    assert result.clock == [11, 11, 2, 10]


@pytest.mark.parametrize("number", [F, float, lambda x: x*0.1, lambda x: x*0.3])
def test_a_gap_of_the_right_size_is_used(number):
    """Rank 0 takes in from rank 1 during 0-1 and 2-3, then from rank 2 what arrives during 1-2, up to rounding."""
    one = number(1)

    def first(comm):
        both(comm, lambda job: comm.isend(*job), (words(1), 0), (words(1), 3), (words(1), 0))

    def second(comm):
        both(comm, lambda job: comm.isend(*job), (words(1), 4), (words(1), 0))
    result = run(on(lambda comm: both(comm, comm.irecv, 1, 1, 2), first, second, lambda comm: comm.recv(1),
                    lambda comm: comm.recv(2)), [0]*5, link=Link(0, 8/one))
    assert [m.arrived for m in result.messages if m.to == 0] == pytest.approx([one, 3*one, 2*one])


@pytest.mark.parametrize("size, arrived", [(2, 3), (3, 7)])
@pytest.mark.parametrize("u", [F(1), 0.1, 0.3])
def test_a_gap_that_is_too_small_is_not_used(size, arrived, u):
    """Rank 0 takes in from rank 1 during 0-1 and 3-4; what rank 2 sends from 1 on comes between them or after."""
    def first(comm):
        both(comm, lambda job: comm.isend(*job), (words(1), 0), (words(2), 3), (words(1), 0))

    def second(comm):
        both(comm, lambda job: comm.isend(*job), (words(1), 4), (words(size), 0))
    result = run(on(lambda comm: both(comm, comm.irecv, 1, 1, 2), first, second, lambda comm: comm.recv(1),
                    lambda comm: comm.recv(2)), [0]*5, link=Link(0, 8/u))
    assert [m.arrived for m in result.messages if m.to == 0] == pytest.approx([u, 4*u, arrived*u])


def test_a_chain_adds_up():
    def relay(comm, x):
        if comm.rank:
            x = comm.recv(comm.rank - 1)
        if comm.rank + 1 < comm.size:
            comm.send(x, comm.rank + 1)
        return x
    result = run(relay, [7, 0, 0, 0, 0], link=Link(F(1, 2), F(16)))
    assert result.results == [7]*5 and result.clock == [1, 2, 3, 4, 4] and result.rounds == 4
    assert [m.round for m in result.messages] == [1, 2, 3, 4]


def test_rounds_count_messages_of_any_size():
    link = two_level(2, Link(F(1, 9), F(3)), Link(F(5), F(2), name="slow"))

    def program(comm, x):
        for d in (1, 2, 3):
            comm.sendrecv(words(d*d), (comm.rank + d) % 4, (comm.rank - d) % 4)
    assert run(program, [0]*4, link=link).rounds == 3


# Barrier and groups ------------------------------------------------------------------------------------

@pytest.mark.parametrize("P", range(1, 18))
def test_barrier(P):
    log = []

    def program(comm, x):
        log.append("in")
        comm.barrier()
        log.append("out")
    result = run(program, [0]*P, link=Link(F(1, 2), F(1)))
    rounds = math.ceil(math.log2(P))
    assert log == ["in"]*P + ["out"]*P
    assert result.rounds == rounds and result.time == F(rounds, 2)
    assert result.count().tolist() == [rounds]*P and not result.sent().any()
    assert {m.tag for m in result.messages} <= {"barrier"}


def test_groups():
    """Rows and columns of a grid of 2 by 3; the ranks of a group have numbers of their own."""
    def program(comm, x):
        row = comm.group(range(comm.rank//3*3, comm.rank//3*3 + 3))
        column = comm.group([comm.rank % 3, comm.rank % 3 + 3])
        right = row.sendrecv(x, (row.rank + 1) % 3, (row.rank - 1) % 3)
        below = column.sendrecv(x, 1 - column.rank, 1 - column.rank)
        column.barrier()
        return row.rank, row.size, column.rank, column.size, right, below
    result = run(program, range(10, 16))
    assert result.results == [(0, 3, 0, 2, 12, 13), (1, 3, 0, 2, 10, 14), (2, 3, 0, 2, 11, 15),
                              (0, 3, 1, 2, 15, 10), (1, 3, 1, 2, 13, 11), (2, 3, 1, 2, 14, 12)]
    assert {(m.source, m.to) for m in result.messages if m.round == 1} == {
        (0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)}


def test_a_grid():
    """Every axis's group holds the ranks that differ in that place alone, in order."""
    def program(comm, x):
        groups = comm.grid(2, 3, 2)
        assert [g.size for g in groups] == [2, 3, 2]
        return [g.rank for g in groups], [window_all_reduce(g, [comm.rank], list.__add__) for g in groups]
    for r, (at, ranks) in enumerate(run(program, range(12)).results):
        assert r == np.ravel_multi_index(at, (2, 3, 2))
        for axis, step in enumerate((6, 2, 1)):
            first = r - at[axis]*step
            assert sorted(ranks[axis]) == list(range(first, first + step*(2, 3, 2)[axis], step))


def test_groups_of_groups_and_their_order():
    def program(comm, x):
        odd = comm.group([5, 3, 1]) if comm.rank % 2 else None
        if odd and odd.rank:
            pair = odd.group([2, 1])
            return repr(pair), pair.sendrecv(x, 1 - pair.rank, 1 - pair.rank)
    assert run(program, range(6)).results == [None, ("rank 0 of 2", 3), None, ("rank 1 of 2", 1), None, None]


def test_errors_of_a_group_name_its_own_ranks_and_those_of_all():
    def program(comm, x):
        if comm.rank > 1:
            comm.group([2, 3]).recv(1 - (comm.rank - 2))
    fails(Deadlock, program, 4, "rank 2 waits to receive a message from rank 3", "rank 3 waits to receive")
    fails(ProgramError, lambda comm, x: comm.group([1, 0]).send(1, 2), 3, "to = 2 on rank")


def test_a_run_in_a_run():
    inner = lambda comm, x: comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank)
    outer = lambda comm, x: comm.sendrecv(run(inner, [x, -x]).results[0], 1 - comm.rank, 1 - comm.rank)
    assert run(outer, [1, 2]).results == [-2, -1]


@pytest.mark.parametrize("value", [
    3, F(1, 3), frozenset({1, 2}), sp.Symbol("x")/2, "text", np.arange(4), np.array(2.5), True])
def test_payloads(value):
    got = run(lambda comm, x: comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank), [value, None]).results[1]
    assert np.array_equal(got, value) and type(got) is type(value)


def test_a_union_counts_who_contributed():
    def program(comm, x):
        return x | comm.sendrecv(x, 1 - comm.rank, 1 - comm.rank, like=x)
    assert run(program, [frozenset({0}), frozenset({1})]).results == [frozenset({0, 1})]*2


def test_many_ranks():
    """128 ranks of a ring all-reduce take about half a second; the fixture allows 5 on a busy machine."""
    def ring(comm, blocks):
        P, r, blocks = comm.size, comm.rank, list(blocks)
        for s in range(2*(P - 1)):
            out, into = (r - s) % P, (r - s - 1) % P
            got = comm.sendrecv(blocks[out], (r + 1) % P, (r - 1) % P)
            blocks[into] = operator.add(blocks[into], got) if s < P - 1 else got
        return blocks
    P = 128
    result = run(ring, [[r*j for j in range(P)] for r in range(P)], link=Link(1))
    assert result.results == [[P*(P - 1)//2*j for j in range(P)]]*P
    assert result.time == result.rounds == 2*(P - 1)


def test_the_witness_knows_no_formula():
    assert not any("formula" in name for name in vars(spmd))
