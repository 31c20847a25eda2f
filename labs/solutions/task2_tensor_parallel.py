"""Task 2, its blanks filled.

Each rank has one term of the output, so `Leave` sums forward, and the gradient of the sum is the same for every term. Each rank
reads the whole x, so `Enter` copies forward, and the gradient of a copied x is the sum of what all copies want.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import task2_tensor_parallel as task
from processes import lab, summed

task.Enter.backward = staticmethod(lambda ctx, grad: summed(grad))
task.Leave.forward = staticmethod(lambda ctx, x: summed(x))
task.Leave.backward = staticmethod(lambda ctx, grad: grad)

if __name__ == "__main__":
    lab(task.main)
