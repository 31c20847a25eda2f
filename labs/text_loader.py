"""How many samples a second does one core feed, and how much do its times spread?  A loader of text, in two ways.

    python labs/text_loader.py [--record capacity/specs/recorded/text-loader.json]

A batch is 8 samples of 4,096 tokens.  The documents are the files of Python's own library.
    tokens   a file of 16-bit tokens is mapped into memory, and windows at random places are copied
    text     documents are opened in random order, split into words, signs and spaces, looked up in a vocabulary and packed;
             the splitter merges no byte pairs, which would cost more
One process, standard library and numpy; the files are in the page cache.  Each batch is timed twice: by the clock on the wall,
which also runs while others have the core, and by the time that this process had it.
"""
import argparse
import json
import os
import platform
import random
import re
import sysconfig
import tempfile
import time
from collections import Counter
from datetime import date
from itertools import islice
from pathlib import Path

import numpy as np

BATCH, LENGTH, REPEATS = 8, 4096, 5
PARTS = re.compile(r" ?\w+|[^\w\s]|\s+")


def documents():
    """The paths of all files of the library that are text, in order."""
    library = Path(sysconfig.get_paths()["stdlib"])
    return [p for p in sorted(library.rglob("*.py")) if "site-packages" not in p.parts and readable(p)]


def readable(path):
    try:
        return bool(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:                       # some tests of the library are meant to be none
        return False


def encode(text, vocabulary):
    """The number of each part; those outside of the vocabulary are 0."""
    return [vocabulary.get(part, 0) for part in PARTS.findall(text)]


def mapped(path, seed):
    """Batches of windows at random places of a file of tokens."""
    tokens, rng = np.memmap(path, np.uint16, "r"), np.random.default_rng(seed)
    while True:
        starts = rng.integers(len(tokens) - LENGTH + 1, size=BATCH)
        yield np.stack([tokens[i:i + LENGTH] for i in starts]).astype(np.int64)


def split(paths, vocabulary, seed):
    """Batches of packed documents, each read and split when it is needed."""
    paths, held = paths.copy(), []
    random.Random(seed).shuffle(paths)
    for path in paths:
        held += encode(path.read_text(encoding="utf-8"), vocabulary)
        while len(held) >= BATCH*LENGTH:
            yield np.array(held[:BATCH*LENGTH], np.int64).reshape(BATCH, LENGTH)
            del held[:BATCH*LENGTH]


def timed(batches):
    """Seconds of each batch: on the wall, and of this process."""
    rows, before = [], (time.perf_counter(), time.process_time())
    for batch in batches:
        assert batch.shape == (BATCH, LENGTH)
        now = time.perf_counter(), time.process_time()
        rows.append((now[0] - before[0], now[1] - before[1]))
        before = time.perf_counter(), time.process_time()
    return np.array(rows).T


def summary(seconds):
    """Mean, deviation and 99th percentile of one repeat, in seconds."""
    return [float(f"{x:.4g}") for x in (seconds.mean(), seconds.std(), np.quantile(seconds, .99))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", type=Path)
    record, paths, load = parser.parse_args().record, documents(), [os.getloadavg()[0]]
    texts = [p.read_text(encoding="utf-8") for p in paths]
    counts = Counter(part for text in texts for part in PARTS.findall(text))
    vocabulary = {part: k for k, (part, _) in enumerate(counts.most_common(2**16 - 1), 1)}
    assert all("".join(PARTS.findall(text)) == text for text in texts), "parts make up the text"
    tokens = np.array([t for text in texts for t in encode(text, vocabulary)], np.uint16)
    loaders = {"tokens": [], "text": []}
    with tempfile.TemporaryDirectory() as folder:
        tokens.tofile(file := Path(folder)/"tokens")
        for seed in range(REPEATS):
            runs = {"tokens": timed(islice(mapped(file, seed), 2000)), "text": timed(split(paths, vocabulary, seed))}
            load.append(os.getloadavg()[0])
            for name, (wall, own) in runs.items():
                loaders[name].append({"batches": len(wall), "wall": summary(wall), "own": summary(own)})
    found = {"machine": {"device": f"{device()}, {os.cpu_count()} cores", "system": f"{platform.system()} {platform.machine()}",
                         "python": platform.python_version(), "numpy": np.__version__,
                         "load": [round(min(load), 1), round(max(load), 1)]},
             "date": str(date.today()), "batch": [BATCH, LENGTH],
             "what": "seconds of a batch in one process: mean, deviation and 99th percentile of each repeat, by the clock on the "
                     "wall and by the time that the process had a core; load: processes that wanted one of the cores",
             "documents": len(paths), "bytes": sum(len(t.encode()) for t in texts), "tokens": len(tokens),
             "unknown": int((tokens == 0).sum()), "loaders": loaders}
    print(json.dumps(found, indent=1))
    if record:
        record.write_text(json.dumps(found, indent=1) + "\n")


def device():
    """What the processor calls itself, where Linux says it."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", info.read_text()) if info.exists() else []
    return names[0] if names else platform.processor()


if __name__ == "__main__":
    main()
