"""The environment in which a notebook gives the same bytes every time, on every x86-64 machine."""

ENVIRONMENT = {
    "PYTHONHASHSEED": "0",              # the order of a set
    "SOURCE_DATE_EPOCH": "0",           # dates inside files
    # The last bit of a sum depends on the width of the vector unit and on the number of threads.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
    "JUPYTER_PLATFORM_DIRS": "1",       # silences a warning of jupyter_core
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
