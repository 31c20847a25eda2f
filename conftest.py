"""Tests and the kernels they start run in the same environment as tools/execute.py."""
import os

from reproducible import ENVIRONMENT

os.environ.update(ENVIRONMENT)
