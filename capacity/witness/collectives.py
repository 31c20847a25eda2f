"""Collectives as programs of one rank: `run(ring_all_reduce, inputs)` of `capacity.witness.spmd` runs one on every rank.

    blocks      a list of P values, block j for rank j; the caller's list is left as it is
    op          any two-argument function; "associative" or "commutative" says what it must be besides
    like        values of the shape that comes, where the receiver cannot know it

A root, shape or number of blocks that does not fit is a ValueError (in `run`, the cause of a ProgramError).  All but
the bidirectional ring, the groups and the all-to-alls say what they hold, for a `stepper`.
P = comm.size.  A value is anything with `op` (and, over a real network, a shape): it is replaced, never changed in
place.  A tag is the number of the block that travels, or a tuple of them for a list of blocks; 0 is a whole vector.
"""
from math import prod
from operator import add


# A whole vector from or to one rank: binomial trees of ceil(log2 P) rounds.  Numbers count from the root.

def binomial_broadcast(comm, x, root=0):
    """x on the root (elsewhere None, or a value of its shape) -> x on every rank.  ceil(log2 P) rounds."""
    me, rank = _from_root(comm, root)
    comm.holds([x if me == 0 else None])
    for d in reversed(_powers(comm.size)):
        if me % (2*d) == 0 and me + d < comm.size:
            comm.send(x, rank(me + d), tag=0)
        elif me % (2*d) == d:
            x = comm.recv(rank(me - d), like=x, tag=0)
            comm.holds([x])
    return x


def binomial_reduce(comm, x, root=0, op=add):
    """x on every rank -> x0 + x1 + ... on the root, None elsewhere: the broadcast with its messages reversed.

    ceil(log2 P) rounds.  op: associative for root 0, commutative for another.
    """
    me, rank = _from_root(comm, root)
    comm.holds([x])
    for d in _powers(comm.size):
        if me % (2*d) == 0 and me + d < comm.size:
            x = op(x, comm.recv(rank(me + d), like=x, tag=0))
            comm.holds([x])
        elif me % (2*d) == d:
            comm.send(x, rank(me - d), tag=0)
            x = None
            comm.holds([x])
    return x


def binomial_scatter(comm, blocks, root=0):
    """blocks on the root (elsewhere None, or values of their shapes) -> block r on rank r.  ceil(log2 P) rounds."""
    P, (me, rank) = comm.size, _from_root(comm, root)
    blocks = [None]*P if blocks is None and me else _blocks(comm, blocks)
    comm.holds([None]*P if me else blocks)
    for d in reversed(_powers(P)):
        if me % (2*d) == 0 and me + d < P:
            out = tuple(rank(v) for v in range(me + d, min(me + 2*d, P)))
            comm.send([blocks[j] for j in out], rank(me + d), tag=out)
            blocks = [None if j in out else b for j, b in enumerate(blocks)]
        elif me % (2*d) == d:
            into = tuple(rank(v) for v in range(me, min(me + d, P)))
            got = comm.recv(rank(me - d), like=[blocks[j] for j in into], tag=into)
            blocks = [got[into.index(j)] if j in into else None for j in range(P)]
        else:
            continue
        comm.holds(blocks)
    return blocks[comm.rank]


def binomial_gather(comm, x, root=0, like=None):
    """x on every rank -> the list of them on the root, None elsewhere: the scatter with its messages reversed.

    ceil(log2 P) rounds.  like: P values of the blocks' shapes, if they are not all as x.
    """
    P, (me, rank) = comm.size, _from_root(comm, root)
    like = _like(comm, like, x)
    blocks = _only(x, comm)
    comm.holds(blocks)
    for d in _powers(P):
        if me % (2*d) == 0 and me + d < P:
            into = tuple(rank(v) for v in range(me + d, min(me + 2*d, P)))
            got = comm.recv(rank(me + d), like=[like[j] for j in into], tag=into)
            for j, value in zip(into, got):
                blocks[j] = value
        elif me % (2*d) == d:
            out = tuple(rank(v) for v in range(me, min(me + d, P)))
            comm.send([blocks[j] for j in out], rank(me - d), tag=out)
            blocks = [None]*P
        else:
            continue
        comm.holds(blocks)
    return None if me else blocks


def chain_broadcast(comm, segments, root=0):
    """k segments on the root (elsewhere [None]*k) -> the k segments on every rank, one behind the other.

    P - 2 + k rounds for P of at least 2.
    """
    me, rank = _from_root(comm, root)
    segments, sends = _list("segments", segments), []
    comm.holds([None]*len(segments) if me else segments)
    for s in range(len(segments)):
        if me > 0:
            segments[s] = comm.recv(rank(me - 1), like=segments[s], tag=s)
            comm.holds(segments[:s + 1] + [None]*(len(segments) - s - 1))
        if me + 1 < comm.size:
            sends.append(comm.isend(segments[s], rank(me + 1), tag=s))
    for send in sends:
        send.wait()
    return segments


# Rings: P - 1 rounds of one block.

def ring_reduce_scatter(comm, blocks, op=add):
    """P blocks on every rank -> the sum of all blocks r on rank r.  P - 1 rounds; op: commutative."""
    P, r, blocks = comm.size, comm.rank, _blocks(comm, blocks)
    comm.holds(blocks)
    for s in range(P - 1):
        out, into = (r - s - 1) % P, (r - s - 2) % P
        got = comm.sendrecv(blocks[out], (r + 1) % P, (r - 1) % P, like=blocks[into], sendtag=out, recvtag=into)
        blocks[into], blocks[out] = op(got, blocks[into]), None
        comm.holds(blocks)
    return blocks[r]


def ring_all_gather(comm, x, like=None):
    """x on every rank -> the list of them on every rank.  P - 1 rounds.

    like: P values of the blocks' shapes, if they are not all as x.
    """
    P, r, like = comm.size, comm.rank, _like(comm, like, x)
    blocks = _only(x, comm)
    comm.holds(blocks)
    for s in range(P - 1):
        out, into = (r - s) % P, (r - s - 1) % P
        blocks[into] = comm.sendrecv(blocks[out], (r + 1) % P, (r - 1) % P, like=like[into], sendtag=out, recvtag=into)
        comm.holds(blocks)
    return blocks


def ring_all_reduce(comm, blocks, op=add):
    """P blocks on every rank -> the P sums on every rank.  2 (P - 1) rounds; op: commutative."""
    blocks = _blocks(comm, blocks)
    return ring_all_gather(comm, ring_reduce_scatter(comm, blocks, op), like=blocks)


def bidirectional_ring_all_reduce(comm, blocks, op=add):
    """P pairs of halves on every rank -> the P pairs of sums on every rank; first halves go right, second ones left.

    2 (P - 1) rounds of half a block each way, with two ports; op: commutative.
    """
    P, r = comm.size, comm.rank
    blocks = [_list("pair", pair) for pair in _blocks(comm, blocks)]
    like = [list(pair) for pair in blocks]

    def exchange(s, t):
        """Halves of the blocks s behind and ahead go out, of those t behind and ahead come in."""
        (a, b), (c, d) = ((r - s) % P, (r + s) % P), ((r - t) % P, (r + t) % P)
        sends = [comm.isend(blocks[a][0], (r + 1) % P, tag=a), comm.isend(blocks[b][1], (r - 1) % P, tag=b)]
        recvs = [comm.irecv((r - 1) % P, like=like[c][0], tag=c), comm.irecv((r + 1) % P, like=like[d][1], tag=d)]
        x, y = [recv.wait() for recv in recvs]
        for send in sends:
            send.wait()
        return c, x, d, y

    for s in range(1, P):
        c, x, d, y = exchange(s, s + 1)
        blocks[c][0], blocks[d][1] = op(x, blocks[c][0]), op(y, blocks[d][1])
    for s in range(P - 1):
        c, x, d, y = exchange(s, s + 1)
        blocks[c][0], blocks[d][1] = x, y
    return [tuple(pair) for pair in blocks]


# Partners at distances 1, 2, 4, ...: few rounds.

def recursive_doubling_all_reduce(comm, x, op=add):
    """x on every rank -> x0 + x1 + ... on every rank, P a power of two.  log2 P rounds; op: associative."""
    if comm.size & (comm.size - 1):
        raise ValueError(f"P = {comm.size} ranks; allowed: a power of two")
    comm.holds([x])
    for d in _powers(comm.size):
        partner = comm.rank ^ d
        got = comm.sendrecv(x, partner, partner, like=x, sendtag=0, recvtag=0)
        x = op(x, got) if comm.rank < partner else op(got, x)
        comm.holds([x])
    return x


def halving_doubling_all_reduce(comm, blocks, op=add, nearest_first=False):
    """Blocks on every rank -> their sums on every rank.  2 log2 P rounds for P a power of two.

    For another P, 2^k < P < 2^(k+1): 2 k + 2 rounds; the ranks from 2^k on hand all they have to rank r - 2^k and
    get the result from it (there may be any number of blocks; a multiple of 2^k shares them out evenly).
    The partner in the first round is half the ranks away, or with nearest_first next to it.  op: commutative;
    associative is enough for P a power of two with nearest_first.
    """
    P, r, blocks = comm.size, comm.rank, _list("blocks", blocks)
    Q = 1 << (P.bit_length() - 1)                             # the ranks that halve and double
    everything, like = tuple(range(len(blocks))), list(blocks)
    comm.holds(blocks)
    if r >= Q:
        comm.send(blocks, r - Q, tag=everything)
        comm.holds([None]*len(blocks))
        blocks = comm.recv(r - Q, like=like, tag=everything)
        comm.holds(blocks)
        return blocks
    if r + Q < P:
        got = comm.recv(r + Q, like=like, tag=everything)
        blocks = [op(x, y) for x, y in zip(blocks, got)]
        comm.holds(blocks)
    owner = [q for q in range(Q) for _ in range(q*len(blocks)//Q, (q + 1)*len(blocks)//Q)]
    bits = _powers(Q) if nearest_first else _powers(Q)[::-1]
    mine, rounds = everything, []
    for bit in bits:                                          # halve: keep the blocks of owners on my side of the bit
        partner = r ^ bit
        out = tuple(j for j in mine if (owner[j] ^ r) & bit)
        mine = tuple(j for j in mine if j not in out)
        got = comm.sendrecv([blocks[j] for j in out], partner, partner, like=[like[j] for j in mine],
                            sendtag=out, recvtag=mine)
        for j, value in zip(mine, got):
            blocks[j] = op(blocks[j], value) if r < partner else op(value, blocks[j])
        for j in out:
            blocks[j] = None
        rounds.append((partner, mine, out))
        comm.holds(blocks)
    for partner, out, into in reversed(rounds):               # double: the same exchanges, last one first
        got = comm.sendrecv([blocks[j] for j in out], partner, partner, like=[like[j] for j in into],
                            sendtag=out, recvtag=into)
        for j, value in zip(into, got):
            blocks[j] = value
        comm.holds(blocks)
    if r + Q < P:
        comm.send(blocks, r + Q, tag=everything)
    return blocks


def bruck_all_gather(comm, x, like=None):
    """x on every rank -> the list of them on every rank.  ceil(log2 P) rounds and P - 1 blocks, for any P.

    like: P values of the blocks' shapes, if they are not all as x.
    """
    P, r, like = comm.size, comm.rank, _like(comm, like, x)
    blocks = _only(x, comm)
    comm.holds(blocks)
    for d in _powers(P):                                      # rank r has blocks r, ..., r + d - 1
        out = tuple((r + i) % P for i in range(min(d, P - d)))
        into = tuple((j + d) % P for j in out)
        got = comm.sendrecv([blocks[j] for j in out], (r - d) % P, (r + d) % P, like=[like[j] for j in into],
                            sendtag=out, recvtag=into)
        for j, value in zip(into, got):
            blocks[j] = value
        comm.holds(blocks)
    return blocks


def bruck_reduce_scatter(comm, blocks, op=add):
    """P blocks on every rank -> the sum of all blocks r on rank r: the transpose of `bruck_all_gather`.

    Its rounds in reverse order, its messages in reverse direction, and what was copied is summed.
    ceil(log2 P) rounds and P - 1 blocks, for any P; op: commutative.
    """
    P, r, blocks = comm.size, comm.rank, _blocks(comm, blocks)
    comm.holds(blocks)
    for d in reversed(_powers(P)):
        into = tuple((r + i) % P for i in range(min(d, P - d)))
        out = tuple((j + d) % P for j in into)
        got = comm.sendrecv([blocks[j] for j in out], (r + d) % P, (r - d) % P, like=[blocks[j] for j in into],
                            sendtag=out, recvtag=into)
        for j, value in zip(into, got):
            blocks[j] = op(blocks[j], value)
        for j in out:
            blocks[j] = None
        comm.holds(blocks)
    return blocks[r]


def bruck_all_reduce(comm, blocks, op=add):
    """P blocks on every rank -> the P sums on every rank.  2 ceil(log2 P) rounds for any P; op: commutative."""
    blocks = _blocks(comm, blocks)
    return bruck_all_gather(comm, bruck_reduce_scatter(comm, blocks, op), like=blocks)


def window_all_reduce(comm, x, op=add):
    """x on every rank -> x0 + x1 + ... on every rank.  ceil(log2 P) rounds for any P; op: commutative.

    Every rank sums a window of the w ranks before it.  w reads the bits of P - 1: each round turns it into 2 w, or
    into 2 w + 1 where the sender puts its own x on top.  Each rank starts its sum elsewhere, so rounding may differ.
    """
    P, r, w, window = comm.size, comm.rank, 0, None
    comm.holds([x])
    for bit in f"{P - 1:b}" if P > 1 else "":
        if bit == "0":
            out, d = window, w
        else:
            out, d = x if window is None else op(window, x), w + 1
        got = comm.sendrecv(out, (r + d) % P, (r - d) % P, like=x, sendtag=0, recvtag=0)
        window = got if window is None else op(got, window)
        w += d
        comm.holds([op(window, x)])
    return x if window is None else op(window, x)


class _Group:
    """Some of the ranks, as a comm of their own that sends and receives at once."""

    def __init__(self, comm, ranks):
        self._comm, self._ranks = comm, ranks
        self.rank, self.size = ranks.index(comm.rank), len(ranks)

    def sendrecv(self, value, to, source, **how):
        return self._comm.sendrecv(value, self._ranks[to], self._ranks[source], **how)

    def holds(self, blocks):
        """The player shows whole runs."""


def grouped_all_reduce(comm, blocks, op=add):
    """g blocks on every rank -> the g sums on every rank; g divides P.  g = 1: windows; g = P: Bruck.

    2 ceil(log2 g) + ceil(log2 (P/g)) rounds: sums are scattered in groups of g neighbors, counterparts of the P/g
    groups all-reduce theirs by windows, the groups gather.  op: commutative.
    """
    P, r, g = comm.size, comm.rank, len(blocks)
    if not g or P % g:
        raise ValueError(f"blocks has {g} values; allowed: a divisor of P = {P}")
    near, across = _Group(comm, range(r//g*g, r//g*g + g)), _Group(comm, range(r % g, P, g))
    mine = bruck_reduce_scatter(near, blocks, op)
    return bruck_all_gather(near, window_all_reduce(across, mine, op), like=blocks)


# Two trees at once

def double_tree(P):
    """Two lists of parents (None at a root): no rank has children in both trees if P is even, only rank 0 if odd.

    Tree 1 hangs rank r from the rank that its lowest bit points to; tree 2 is tree 1 mirrored (P even) or shifted by
    one rank (P odd).  ValueError for a P that is not 1, 2, ...
    """
    if not (hasattr(P, "__index__") and P >= 1):
        raise ValueError(f"P = {P!r}; allowed: 1, 2, ...")
    P = int(P)

    def parent(r):
        bit = r & -r
        up = (r ^ bit) | (2*bit)
        return up if up < P else r ^ bit

    first = [None] + [parent(r) for r in range(1, P)]
    moved = (lambda r: P - 1 - r) if P % 2 == 0 else (lambda r: (r + 1) % P)
    second = [None]*P
    for r in range(1, P):
        second[moved(r)] = moved(first[r])
    return first, second


def double_tree_all_reduce(comm, segments, op=add):
    """2 k segments on every rank -> their sums on every rank: even ones over tree 1, odd ones over tree 2.

    Sums go up the two trees and come down again, one segment behind the other: about 4 (k + log2 P) rounds, because
    a rank has two children to hear from, and to tell, in one tree only.  op: commutative.
    """
    segments = _list("segments", segments)
    if len(segments) % 2:
        raise ValueError(f"segments has {len(segments)} values; allowed: an even number, half of them for each tree")
    P, r, like = comm.size, comm.rank, list(segments)
    trees = [(t, up[r], [c for c in range(P) if up[c] == r]) for t, up in enumerate(double_tree(P))]
    comm.holds(segments)
    trees.sort(key=lambda tree: (len(tree[2]), -tree[0]))     # first the one where this rank waits for nobody:
    ahead = ((P - 1).bit_length() + 1)//2 if P > 3 else 0     # there its segments go that much ahead
    sends, recvs = [], {}
    for i in range(-2*ahead, len(segments), 2):               # up
        for t, parent, children in trees:
            s = i + t if children else i + t + 2*ahead
            if 0 <= s < len(segments):
                for child in children:
                    segments[s] = op(segments[s], comm.recv(child, like=like[s], tag=s))
                    comm.holds(segments)
                if parent is not None:
                    sends.append(comm.isend(segments[s], parent, tag=s))
    for i in range(0, len(segments), 2):                      # down
        for t, parent, children in reversed(trees):           # first the one where others wait for this rank
            s = i + t
            if parent is not None:
                recvs[s] = comm.irecv(parent, like=like[s], tag=s)
            for child in children:
                if parent is not None:
                    segments[s] = recvs[s].wait()
                    comm.holds(segments)
                sends.append(comm.isend(segments[s], child, tag=s))
    for s, recv in recvs.items():
        segments[s] = recv.wait()
        comm.holds(segments)
    for send in sends:
        send.wait()
    return segments


# All-to-all

def pairwise_all_to_all(comm, blocks, like=None):
    """Block j for rank j on every rank -> the block from rank i at place i on every rank.  P - 1 rounds of one block.

    like: P values of the shapes that come, if they are not all as block r.
    """
    P, r, blocks = comm.size, comm.rank, _blocks(comm, blocks)
    like = _like(comm, like, blocks[r])
    got = _only(blocks[r], comm)
    for d in range(1, P):
        to, source = (r + d) % P, (r - d) % P
        got[source] = comm.sendrecv(blocks[to], to, source, like=like[source], sendtag=to, recvtag=r)
    return got


def bruck_all_to_all(comm, blocks):
    """Block j for rank j on every rank -> the block from rank i at place i on every rank, all of one shape.

    ceil(log2 P) rounds: a block for the rank i ahead travels by the bits of i, which are its tag.
    """
    P, r = comm.size, comm.rank
    blocks = _blocks(comm, blocks)
    ahead = blocks[r:] + blocks[:r]                           # ahead[i]: on its way to the rank i further on
    for d in _powers(P):
        moving = tuple(i for i in range(P) if i & d)
        got = comm.sendrecv([ahead[i] for i in moving], (r + d) % P, (r - d) % P, like=[ahead[i] for i in moving],
                            sendtag=moving, recvtag=moving)
        for i, value in zip(moving, got):
            ahead[i] = value
    return [ahead[(r - i) % P] for i in range(P)]             # what came from i places back


# Several levels: rings along the axes of a grid of ranks

def torus_all_reduce(comm, blocks, shape, op=add):
    """P blocks on every rank of a grid of this shape -> the P sums on every rank.

    The last axis varies fastest from rank to rank.  Rings reduce-scatter along the axes, last axis first, each axis
    on what the one before it left, and all-gather back in reverse: 2 sum(p - 1) rounds; op: commutative.
    """
    blocks = _blocks(comm, blocks)
    like, axes = list(blocks), _axes(comm, shape)
    comm.holds(blocks)
    for line, parts in axes:
        _reduce_scatter_line(comm, blocks, line, parts, op)
    for line, parts in reversed(axes):
        _all_gather_line(comm, blocks, line, parts, like)
    return blocks


def torus_all_gather(comm, x, shape, like=None):
    """x on every rank of a grid of this shape -> the list of them on every rank.  sum(p - 1) rounds.

    Rings along the axes, first axis first.  like: P values of the blocks' shapes, if they are not all as x.
    """
    blocks, like = _only(x, comm), _like(comm, like, x)
    comm.holds(blocks)
    for line, parts in reversed(_axes(comm, shape)):
        _all_gather_line(comm, blocks, line, parts, like)
    return blocks


def hierarchical_all_reduce(comm, blocks, node_size, op=add):
    """P blocks on every rank -> the P sums on every rank, for nodes of ranks 0 to G-1, G to 2G-1 and so on.

    Reduce-scatter inside each node, ring all-reduce of each share across the nodes, all-gather inside:
    a torus of nodes by ranks.  2 (G - 1) + 2 (P/G - 1) rounds; op: commutative.
    """
    if node_size not in range(1, comm.size + 1) or comm.size % node_size:
        raise ValueError(f"node_size = {node_size!r}; allowed: a divisor of P = {comm.size}")
    return torus_all_reduce(comm, blocks, (comm.size//node_size, node_size), op)


def _axes(comm, shape):
    """(line, parts) for every axis, last first: the ranks of this rank's line, and the blocks that each one keeps."""
    shape = tuple(_list("shape", shape))
    if any(p not in range(1, comm.size + 1) for p in shape) or prod(shape) != comm.size:
        raise ValueError(f"shape = {shape!r}; allowed: sizes whose product is P = {comm.size}")
    axes, stride = [], 1
    for p in map(int, reversed(shape)):
        line = [comm.rank + (i - comm.rank//stride % p)*stride for i in range(p)]
        stride *= p
        axes.append((line, [tuple(range(q % stride, comm.size, stride)) for q in line]))
    return axes


def _reduce_scatter_line(comm, blocks, line, parts, op):
    """`ring_reduce_scatter` around the ranks of `line`: line[i] ends with the sums of the blocks in parts[i]."""
    p, i = len(line), line.index(comm.rank)
    for s in range(p - 1):
        out, into = parts[(i - s - 1) % p], parts[(i - s - 2) % p]
        got = comm.sendrecv([blocks[j] for j in out], line[(i + 1) % p], line[i - 1],
                            like=[blocks[j] for j in into], sendtag=out, recvtag=into)
        for j, value in zip(into, got):
            blocks[j] = op(value, blocks[j])
        for j in out:
            blocks[j] = None
        comm.holds(blocks)


def _all_gather_line(comm, blocks, line, parts, like):
    """`ring_all_gather` around the ranks of `line`: everyone gets the blocks in all parts."""
    p, i = len(line), line.index(comm.rank)
    for s in range(p - 1):
        out, into = parts[(i - s) % p], parts[(i - s - 1) % p]
        got = comm.sendrecv([blocks[j] for j in out], line[(i + 1) % p], line[i - 1],
                            like=[like[j] for j in into], sendtag=out, recvtag=into)
        for j, value in zip(into, got):
            blocks[j] = value
        comm.holds(blocks)


def _powers(P):
    """[1, 2, 4, ...] below P: ceil(log2 P) of them."""
    return [1 << k for k in range((P - 1).bit_length())]


def _from_root(comm, root):
    """This rank's number when the root has number 0, and the rank of a number."""
    P = comm.size
    if root not in range(P):
        raise ValueError(f"root = {root!r}; allowed: 0 to {P - 1}")
    return (comm.rank - root) % P, lambda v: (v + root) % P


def _blocks(comm, blocks, name="blocks"):
    """A list of the caller's blocks, one for each rank."""
    blocks = _list(name, blocks)
    if len(blocks) != comm.size:
        raise ValueError(f"{name} has {len(blocks)} values; allowed: one for each rank, P = {comm.size}")
    return blocks


def _like(comm, like, x):
    """What comes from each rank: values of these shapes, or all as x."""
    return [x]*comm.size if like is None else _blocks(comm, like, "like")


def _list(name, values):
    """A new list of the caller's values."""
    if not hasattr(values, "__iter__"):
        raise ValueError(f"{name} = {values!r}; allowed: a list")
    return list(values)


def _only(x, comm):
    """P blocks of which only this rank's is there."""
    return [x if j == comm.rank else None for j in range(comm.size)]
