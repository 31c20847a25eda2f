"""Recorded programs: what they compute, what they share, what their intervals contain."""
import gc

import numpy as np
import pytest

from capacity import Layout, ceil, cluster, estimate, floor, log2, maximum, minimum, model, ring_all_reduce_time, where
from capacity.legality import RULES, letters
from capacity.tape import Namespace, Node, Tape, inputs, symbol
from javascript import run

X, Y = symbol("x"), symbol("y")
EXPRESSIONS = {
    "arithmetic": lambda x, y: (x + 1)*(2 - y)/(x*x + y*y + 1) - x,
    "powers": lambda x, y: x**2 + y**3 - 2**x,
    "rounding": lambda x, y: ceil(x/3)*3 + floor(y*2)/2,
    "extremes": lambda x, y: maximum(x, 2*y) - minimum(y, 3),
    "choices": lambda x, y: where(x > y, x - y, where(y >= 2, 0, x + 1)),
    "remainders": lambda x, y: (x*4 + 1) % 3 + x // 2,
    "conditions": lambda x, y: where((x > 1) & (y <= 2) | (x == 0), 1, 2),
    "logarithms": lambda x, y: log2(x + 1) + ceil(log2(y + 1)),
    "pieces": lambda x, y: ceil(7/(3*(y + 1)))*(y + 1),
    "a formula": lambda x, y: ring_all_reduce_time(x*1e9, 8, 1e-6, y*1e9 + 1)}


@pytest.mark.parametrize("of", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_a_tape_is_the_function(of):
    rng = np.random.default_rng(1)
    x, y = rng.uniform(0.1, 5, (2, 400))
    x[:50] = np.round(x[:50])
    assert np.array_equal(Tape([of(X, Y)]).run(x=x, y=y)[0], of(x, y))


@pytest.mark.parametrize("of", EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_what_is_between_the_ends_stays_between_the_ends(of):
    rng, tape = np.random.default_rng(2), Tape([of(X, Y)])
    low, high = np.sort(rng.uniform(0.1, 5, (2, 100)), 0)
    y = rng.uniform(0.1, 5, 100)
    (least, most), = tape.bounds(x=(low, high), y=y)
    assert np.all(least <= most)
    (all_least, all_most), = tape.bounds(x=(low, high), y=(0.1, 5))
    for share in np.linspace(0, 1, 21):
        value = of(low + share*(high - low), y)
        assert np.all(least <= value) and np.all(value <= most)
        assert np.all(all_least <= value) and np.all(value <= all_most)


def test_intervals_of_points_are_points():
    for of in EXPRESSIONS.values():
        (least, most), = Tape([of(X, Y)]).bounds(x=np.array([2.0]), y=np.array([3.0]))
        assert least == pytest.approx(of(2.0, 3.0)) == most


def test_pieces_rounded_up_are_at_least_their_share():
    """ceil(12/(p v)) v of 12 layers: as independent numbers the bound would be 2, but it is 6."""
    p, v = symbol("p"), symbol("v")
    (least, most), = Tape([ceil(12/(p*v))*v]).bounds(p=2.0, v=(np.array([1.0]), np.array([6.0])))
    assert 5.99 < least <= 6 and most >= 12


def test_equal_operations_are_one():
    assert X*Y + 1 is X*Y + 1 and X*Y is not Y*X
    shared = maximum(X, Y)*3
    assert len(Tape([shared + 1, shared + 2, shared]).order) == 6
    assert Tape([X*1 + 0, X/1 - 0, 0*X, X - X, where(True, Y, X)]).run(x=2.0, y=3.0) == [2, 2, 0, 0, 3]


def test_nodes_are_forgotten():
    before = len(Node._known)
    Tape([symbol(f"s{k}")*k for k in range(1, 50)])
    gc.collect()
    assert len(Node._known) <= before + 1


def test_a_traced_number_decides_no_branch():
    with pytest.raises(TypeError, match="decides no branch; allowed: where"):
        max(X, 2)


def test_a_sentence_about_nodes_is_a_template():
    q = Namespace("q.")
    assert f"{q.heads} heads over tp = {2*q.tp}, {q.x:g}." == "${q.heads} heads over tp = ${2*q.tp}, ${+(q.x).toPrecision(6)}."
    assert inputs(q.tp*2 + q.pp) == {"q.tp", "q.pp"} and str((X + 1)*Y) == "(x+1)*y"


def test_an_estimate_is_recorded_to_the_last_bit():
    """Of an estimate that is a tape and one of arrays: equal operations in equal order."""
    m, c = model("llama3-70b"), cluster("dgx-h100", 512)
    names = "microbatch dp tp pp chunks recompute".split()
    made = dict(microbatch=[1, 2, 1, 4], dp=[16, 8, 64, 32], tp=[8, 4, 8, 2], pp=[4, 16, 1, 8], chunks=[2, 1, 1, 5],
                recompute=[0, 0.5, 1, 0.25])
    made = {k: np.array(v, float) for k, v in made.items()}
    for zero in range(4):
        for shared in (False, True):
            step = estimate(m, c, Layout(batch=512, zero=zero, sequence_parallel=shared, **{k: symbol(k) for k in names}), 8192)
            want = estimate(m, c, Layout(batch=512, zero=zero, sequence_parallel=shared, **made), 8192)
            tape = Tape([*step.seconds.values(), step.time, step.memory, step.spread])
            for mine, theirs in zip(tape.run(**made), [*want.seconds.values(), want.time, want.memory, want.spread]):
                assert np.allclose(mine, theirs, rtol=1e-13, atol=0)


# --- the same in JavaScript

def computed(program, calls, of="f(...x)"):
    """What JavaScript gives for each list of arguments."""
    return run(f"const f={program}; return data.map(x=>{of})", calls)


def test_the_program_in_javascript():
    rng = np.random.default_rng(5)
    points = rng.uniform(0.1, 5, (40, 2))
    tape = Tape([of(X, Y) for of in EXPRESSIONS.values()])
    want = np.array([tape.run(x=x, y=y) for x, y in points], float)
    once = np.array(computed(tape.javascript(), points.tolist()), float)
    staged = np.array(computed(tape.javascript(["y"], ["x"]), points.tolist(), "f(x[1])(x[0])"), float)
    assert np.allclose(once, want, rtol=1e-14) and np.array_equal(once, staged)
    with pytest.raises(ValueError, match="stages lack y"):
        tape.javascript(["x"])


def test_what_is_asked_for_later_is_worked_out_later():
    """The first results in the array, the others by its last element: the same numbers, and nothing of the others before."""
    x, y, z = map(symbol, "xyz")
    outputs = [x*y + z, maximum(x, y), (x*y + z)*ceil(z/x), y - ceil(z/x)]
    tape = Tape(outputs)
    soon, (now, later) = tape.javascript(["x"], ["y", "z"]), (tape.javascript(["x"], ["y", "z"], first=n) for n in (2, 0))
    points = [[1.5, 2, 7], [3, -1, 0.5]]
    every = run(f"const f={soon}; return data.map(([x,y,z]) => f(x)(y,z));", points)
    assert every == [[float(v) for v in tape.run(x=x, y=y, z=z)] for x, y, z in points]
    assert run(f"const f={now}; return data.map(([x,y,z]) => {{ const a = f(x)(y,z); return [...a.slice(0,2), ...a[2](), a.length]; }});", points) == [
        [*numbers, 3] for numbers in every]
    assert run(f"const f={later}; return data.map(([x,y,z]) => f(x)(y,z).at(-1)());", points) == every
    assert "ceil" not in now[:now.index("()=>")] and "ceil" in now


def test_rules_run_in_a_page():
    """200 random layouts, legal and not: each rule of `check`, and each sentence."""
    rng = np.random.default_rng(6)
    rules = [rule for rule in RULES if "ep" not in rule.letters]
    laws = Tape([rule.holds(Namespace()) for rule in rules])
    jobs = []
    while len(jobs) < 200:
        m, c = model(rng.choice(["llama3-8b", "llama3-70b", "gpt3-175b", "qwen2.5-7b"])), cluster("dgx-h100", int(8*2**rng.integers(1, 6)))
        lay = dict(batch=int(2**rng.integers(4, 10)), microbatch=int(2**rng.integers(0, 3)), tp=int(2**rng.integers(0, 4)), pp=int(2**rng.integers(0, 4)),
                   cp=int(2**rng.integers(0, 2)), chunks=int(rng.integers(1, 4)), sequence_parallel=int(rng.integers(0, 2)))
        lay["dp"] = max(c.devices//(lay["tp"]*lay["pp"]*lay["cp"]), 1)
        lay |= dict(shards=int(2**rng.integers(0, 4)), schedule=int(rng.choice([0, 0, 1, 2, 3])))
        jobs.append(letters(m, devices=c.devices, seq_len=int(1024*rng.integers(1, 9)), **lay))
    found = computed(laws.javascript(), [[vars(q)[k] for k in laws.inputs] for q in jobs])
    assert found == [[bool(rule.holds(q)) for rule in rules] for q in jobs]
    assert {rule.name for rule, column in zip(rules, zip(*found)) if not all(column)} > {"batch", "devices", "interleave"}
    texts = [rule.sentence(Namespace("q.")) for rule in rules]
    said = run("return data.texts.map(t=>new Function('q','return `'+t+'`')(data.q))", dict(texts=texts, q=vars(jobs[0])))
    assert said == [rule.sentence(jobs[0]) for rule in rules]


# --- corners

def test_corners_of_intervals():
    one = np.array([1.0])
    for pieces in (ceil(12/(X*Y))*Y, ceil(12/(Y*X))*Y, Y*ceil(12/(Y*X))):
        (least, _), = Tape([pieces]).bounds(x=2.0, y=(one, 6*one))
        assert 5.99 < least <= 6, "whichever way round the pieces are written"
    (least, _), = Tape([ceil(12/(X + Y))*Y]).bounds(x=2.0, y=(one, 6*one))
    assert least < 4, "and only there"
    (least, most), = Tape([X/Y]).bounds(x=1.0, y=(0*one, one))
    assert (least, most) == (-np.inf, np.inf), "a divisor that may be 0"
    (least, most), = Tape([X/Y]).bounds(x=1.0, y=(one, 4*one))
    assert least == pytest.approx(0.25) and most == pytest.approx(1)
    for op, sure, never in ((lambda y: y > 0, 1, -5), (lambda y: y >= 1, 1, -5), (lambda y: y < 5, 1, 6), (lambda y: y <= 4, 1, 6)):
        choice = Tape([where(op(Y), 10, 20)])
        (least, most), = choice.bounds(y=(sure*one, (sure + 2)*one))
        assert least == pytest.approx(10) == most
        (least, most), = choice.bounds(y=(never*one, (never + 2)*one))
        assert least == pytest.approx(20) == most
    (least, most), = Tape([where(Y > 2, 10, X)]).bounds(x=(20*one, 30*one), y=(one, 4*one))
    assert least == pytest.approx(10) and most == pytest.approx(30)
    (least, most), = Tape([where(Y == 2, 1, 3)]).bounds(y=(one, 4*one))
    assert least == pytest.approx(1) and most == pytest.approx(3)
    assert Tape([3, X - X]).bounds() == [(pytest.approx(3), pytest.approx(3)), (0, 0)]


def test_bounds_are_wider_than_rounding():
    (least, most), = Tape([X*3]).bounds(x=(np.array([-2.0]), np.array([5.0])))
    assert -6 - 1e-7 < least < -6 and 15 < most < 15 + 1e-7


def test_constants_in_javascript():
    tape = Tape([X*0 + 7, where(X > 2, True, False), X*0.5, X + 3, X//2])
    assert computed(tape.javascript(), [[4.0]]) == [[7, True, 2.0, 7, 2]]
    assert Tape([7]).javascript() == "()=>{return [7]}" and "7.0" not in tape.javascript() and "0.5" in tape.javascript()
    with pytest.raises(NotImplementedError, match="geometric has no JavaScript"):
        from capacity import geometric
        Tape([geometric(X, 3)]).javascript()
