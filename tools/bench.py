"""The package's own speed, as medians: import, a scalar call, a sweep of a million points, a plan.

    python tools/bench.py
"""
import statistics
import subprocess
import sys
import timeit

import numpy as np

from capacity import GB, cluster, model, plan, ring_all_reduce_time, us

IMPORT = "import time, numpy; start = time.perf_counter(); import capacity; print(time.perf_counter() - start)"
FORMULA = "import time, numpy; start = time.perf_counter(); from capacity import ring_all_reduce_time; print(time.perf_counter() - start)"


def median_of_processes(code, times=9):
    return statistics.median(float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                                  check=True).stdout) for _ in range(times))


def median(function, number, repeat=9):
    return statistics.median(timeit.repeat(function, number=number, repeat=repeat))/number


def main():
    print(f"import capacity, beyond numpy:        {1e3*median_of_processes(IMPORT):7.1f} ms   (at most 150)")
    print(f"... and every formula:                {1e3*median_of_processes(FORMULA):7.1f} ms")
    scalar = median(lambda: ring_all_reduce_time(1*GB, 8, 2*us, 450*GB), 100_000)
    print(f"a formula of four numbers:            {1e6*scalar:7.2f} µs   (at most 3)")
    n = np.geomspace(1, 1e10, 10**6)
    sweep = median(lambda: ring_all_reduce_time(n, 8, 2*us, 450*GB), 10)
    by_hand = median(lambda: 2*2e-6*(8 - 1) + 2*n*(8 - 1)/(8*450e9), 10)
    print(f"a formula of a million points:        {1e3*sweep:7.2f} ms   ({sweep/by_hand:.2f} x numpy by hand; at most 2)")
    found = [plan(model("gpt3-175b"), cluster("dgx-a100", 4096), 1536, 2048, prune=False) for _ in range(5)]
    seconds = statistics.median(p.seconds for p in found)
    rate = found[0].legal/seconds/1e6
    print(f"all {found[0].legal:,} layouts of GPT-3:      {1e3*seconds:7.0f} ms   ({rate:.0f} million a second; at least 2)")


if __name__ == "__main__":
    main()
