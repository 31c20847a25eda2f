"""What happens in turn in the drawings of chapters 2, 14 and 18, and the loader of text that chapter 3a times."""
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from capacity.pictures.drawings import folding, replicas, roofline
from capacity.witness.splits.folded import Fold

sys.path.insert(0, str(Path(__file__).resolve().parents[1]/"labs"))
import text_loader

WIDTHS = 680, 644, 336, 300


@pytest.mark.parametrize("side, edge", [(6, 1), (6, 2), (6, 3), (8, 4), (4, 4)])
def test_tiles_multiply_each_pair_once_and_move_the_numbers_of_the_lemma(side, edge):
    walk = roofline.tiles(side, edge)
    assert sorted(turn for turn, *_ in walk) == [*itertools.product(range(side//edge), repeat=3)]
    assert walk[-1][1:] == (2*side**3//edge, side**2)
    moved = [read + written for _, read, written in walk]
    assert moved == sorted(moved) and moved[0] == 2*edge**2 + (edge == side)*edge**2


@pytest.mark.parametrize("W", WIDTHS)
def test_drawings_keep_inside_their_sheet(W):
    sheets = [roofline.tile_walk(W, 6, edge, m) for edge in (1, 2, 3) for m in (0, 1, -1)]
    sheets += [replicas.moment(W, [back]*3, [3e-3]*3, now*1e-3, 15.5e-3) for back in (2e-3, 4e-3) for now in (2, 8, 15)]
    sheets += [folding.two_meshes(W, Fold(t=t, d=8//t, e=e)) for t in (1, 2) for e in (2, 4, 8)]
    assert [s.faults() for s in sheets] == [[]]*len(sheets)


def test_what_is_still_to_come_is_dashed():
    """Bars of 15 ms: none is filled at first; at 3 ms the GPU has done 3 and the network 1; all are at the end."""
    def filled(now):
        bars = [s for s in replicas.moment(600, [2e-3]*3, [3e-3]*3, now, 15.5e-3).shapes if getattr(s, "h", 0) == 20]
        return sum(s.w for s in bars if s.fill)/sum(s.w for s in bars if not s.fill)
    assert filled(0) == 0 and filled(3e-3) == pytest.approx(4/15, abs=1e-3) and filled(11e-3) == pytest.approx(1)


def test_parts_make_up_the_text_and_batches_the_documents(tmp_path, monkeypatch):
    texts = ["def f(x):\n    return x\n"*40, "é = 'ü'  # 1.5\n\n"*30, ""]
    assert ["".join(text_loader.PARTS.findall(t)) for t in texts] == texts
    paths = [tmp_path/f"{k}.py" for k in range(len(texts))]
    for path, text in zip(paths, texts):
        path.write_text(text, encoding="utf-8")
    vocabulary = {part: k for k, part in enumerate(sorted({p for t in texts for p in text_loader.PARTS.findall(t)}), 1)}
    monkeypatch.setattr(text_loader, "LENGTH", 16)
    batches = list(text_loader.split(paths, vocabulary, 0))
    flat = np.concatenate([b.ravel() for b in batches]).tolist()
    assert {b.shape for b in batches} == {(8, 16)} and 0 not in flat
    orders = [sum((text_loader.encode(texts[i], vocabulary) for i in order), []) for order in itertools.permutations(range(3))]
    assert any(tokens[:len(flat)] == flat and len(tokens) - len(flat) < 8*16 for tokens in orders)


def test_windows_are_pieces_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(text_loader, "LENGTH", 16)
    np.arange(100, dtype=np.uint16).tofile(tmp_path/"tokens")
    batch = next(text_loader.mapped(tmp_path/"tokens", 0))
    assert (np.diff(batch) == 1).all() and len(set(batch[:, 0])) > 1 and batch.max() < 100
