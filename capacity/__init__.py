"""The algebra of distributed training, as code you can call.

    from capacity import GB, accelerator, ring_all_reduce_time, show, us
    show(ring_all_reduce_time(n=1*GB, P=8, alpha=2*us, beta=450*GB), "s")      # '3.92 ms'

The public names of the package can be imported from here, those of its programs of ranks too:

    from capacity import link, ring_all_reduce, run
    run(ring_all_reduce, [[1, 2], [3, 4]], link=link("nvlink4")).results       # [[4, 6], [4, 6]]

`Link` is any alpha and beta of a simulated wire, and `Run` what `run` returns; a link that was published, with its
source, is a `PublishedLink`, and a published training run a `PublishedRun`.  General words stand in their modules:
`search`, `matmul` and `conversion` in `capacity.placement`, `ticks` and `label` in `capacity.pictures.plot`.  Modules
load when a name is first asked for, so `import capacity` costs numpy and nothing else.
"""
import functools
import importlib
import importlib.util
import sys
import types

from .algebra import ceil, exp, floor, geometric, lambertw, log, log2, maximum, minimum, sqrt, where
from .units import (GB, GFLOPS, KiB, MB, MiB, GiB, PB, PFLOPS, TB, TFLOPS, TiB, Bytes, BytesPerSecond, Count, Dollars,
                    DollarsPerSecond, Flops, FlopsPerByte, FlopsPerSecond, Share, Group, Index, PerSecond, PowerOfTwo,
                    Ratio, Seconds, Unit, day, hour, kB, minute, ms, ns, show, us, year)

_HOME = {
    "grammar": ["Formula", "REGISTRY", "formula"],
    "notation": ["NOTATION"],
    "hardware": ["Accelerator", "Cluster", "PublishedLink", "accelerator", "accelerators", "cluster", "clusters",
                 "clusters_from_toml", "link", "links"],
    "huggingface": ["model_from_config"],
    "transformer": ["Experts", "Latent", "Transformer", "model"],
    "layout": ["Layout"],
    "stack": ["Stack"],
    "placement": ["Placement"],
    "footprint": ["Buffers", "Footprint", "Kernels", "Policy", "Saved", "activation_table", "buffers", "kernels", "memory",
                  "policies"],
    "step": ["Step", "estimate", "matmul_share"],
    "runs": ["MemoryRun", "PublishedRun", "memory_runs", "published_rows", "published_runs",
             "refused_rows", "scaling_runs", "overtrained_runs", "mixtral_runs",
             "unseen_runs"],
    "protocol": ["Bench"],
    "planner": ["Candidate", "Failures", "Plan", "plan"],
    "launch": ["launch_options"],
    "fits": ["FittedLink", "Surface", "bootstrap", "fit_link", "fit_loss_surface", "isoflop_vertex"],
    "pictures.plot": ["COLOR", "figure", "figure_style"],
    "pictures.explorer": ["Axis", "Slider", "Y", "explore"],
    "pictures.player": ["stepper"],
    "pictures.duty": ["on_duty"],
    "pictures.chart": ["explore_schedules", "gantt"],
    "pictures.diagram": ["Sketch", "drawing", "scenes"],
    "pictures.scores": ["confront", "scoreboard"],
    "pictures.tables": ["named", "recall", "table"],
    "pictures.questions": ["answer", "guess", "quiz"],
    "pictures.decision": ["Choice", "Column", "Field", "Switch", "Verdict", "decide"],
    "witness.schedule": ["Infeasible", "Op", "Schedule", "dualpipe", "flow_shop", "gpipe", "interleaved", "one_f_one_b",
                 "simulate", "zb_h1", "zb_h2", "zb_v"],
    "witness.spmd": ["Deadlock", "Link", "Mismatch", "ProgramError", "Run", "run", "two_level"],
    "witness.collectives": ["bidirectional_ring_all_reduce", "binomial_broadcast", "binomial_gather", "binomial_reduce",
                   "binomial_scatter", "bruck_all_gather", "bruck_all_reduce", "bruck_all_to_all",
                   "bruck_reduce_scatter", "chain_broadcast", "double_tree", "double_tree_all_reduce", "grouped_all_reduce",
                   "halving_doubling_all_reduce", "hierarchical_all_reduce", "pairwise_all_to_all",
                   "recursive_doubling_all_reduce", "ring_all_gather", "ring_all_reduce", "ring_reduce_scatter",
                   "torus_all_gather", "torus_all_reduce", "window_all_reduce"],
}
_WORDS = [name for name, x in globals().items() if not name.startswith("_") and not isinstance(x, types.ModuleType)]
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}


def __getattr__(name):
    if name == "__all__":
        return __dir__()
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _MODULE_OF:
        return getattr(importlib.import_module("." + _MODULE_OF[name], __name__), name)
    if _is_module(name):
        return importlib.import_module("." + name, __name__)
    if name in _formulas():
        return _formulas()[name]
    import difflib                                # costs as much as the whole package: when it is needed
    close = [*_data(name), *difflib.get_close_matches(name, __dir__(), 3)]
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    error = ImportError if sys._getframe(1).f_code.co_name == "_handle_fromlist" else AttributeError     # `from capacity import name`
    raise error(f"capacity has no {name!r}{hint}")


@functools.cache
def _is_module(name):
    return importlib.util.find_spec("." + name, __name__) is not None


def _data(name):
    """The entries of the tables that a name may mean, as one writes them: H100 is accelerator("h100-sxm")."""
    read = importlib.import_module(".specs", __name__).read
    asked = name.lower().replace("_", "-")
    for kind in ("accelerator", "link", "cluster", "model"):
        keys = [key for key in read(kind + "s") if asked in key or asked.replace("-", "") == key.replace("-", "").replace(".", "")]
        yield from (f'{kind}("{key}")' for key in keys[:3])


def _formulas():
    return importlib.import_module(".formulas", __name__).REGISTRY


def __dir__():
    return sorted({*_WORDS, *_MODULE_OF, *_formulas()})

