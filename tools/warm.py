"""Kernels for the tests: each a fresh process, forked from one that has imported the libraries and run nothing.

`install()` makes every KernelManager of this process start its kernels so (on Linux; elsewhere nothing changes).  What
`tools/execute.py` writes comes from kernels that start by themselves, so a notebook must also stand without this.
"""
import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

LIBRARIES = ["ipykernel.kernelapp", "ipykernel.ipkernel", "matplotlib.pyplot", "sympy", "scipy.optimize", "ipywidgets",
             # what a kernel imports when it starts
             "ipykernel.debugger", "IPython.core.completerlib", "IPython.extensions.storemagic", "psutil", "sqlite3",
             "tornado.platform.asyncio",
             # what their first figure, and the first expression that is made simpler, would import
             "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "PIL.BmpImagePlugin", "PIL.GifImagePlugin",
             "PIL.JpegImagePlugin", "PIL.PpmImagePlugin", "sympy.assumptions.satask", "sympy.physics.units", "sympy.tensor.tensor",
             "capacity.pictures.drawings", "capacity.pictures.paper"]


@functools.cache
def server():
    """The process that forks; it ends with its input, and its kernels with it."""
    return subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Forked:
    """As much of a Popen as a provisioner asks for."""
    stdin = stdout = stderr = None

    def __init__(self, **order):
        server().stdin.write(json.dumps(order) + "\n")
        server().stdin.flush()
        self.pid = int(server().stdout.readline())

    def send_signal(self, number):
        os.kill(self.pid, number)
        while number == signal.SIGKILL and self.poll() is None:
            time.sleep(.001)

    def poll(self):
        with contextlib.suppress(ProcessLookupError):
            return os.kill(self.pid, 0)
        return 0

    def wait(self):
        return 0


@functools.cache
def folder():
    """Where the kernels of this process have their sockets, until it ends."""
    return tempfile.TemporaryDirectory(prefix="kernels-")


class Warm(LocalProvisioner):
    async def pre_launch(self, **kwargs):
        """Sockets are files: a port that was free when it was chosen may be taken when the kernel binds it."""
        self.parent.transport = "ipc"
        self.parent.connection_file = os.path.join(folder().name, f"{self.kernel_id}.json")
        return await super().pre_launch(**kwargs)

    async def launch_kernel(self, cmd, cwd=None, env=None, **popen):
        self.process = Forked(argv=cmd[cmd.index("-f"):], cwd=cwd or os.getcwd(), env=env)
        self.pid, self.cwd = self.process.pid, cwd
        return self.connection_info


def install():
    if sys.platform == "linux":
        factory = KernelProvisionerFactory.instance()
        factory.provisioners["warm"] = EntryPoint("warm", "warm:Warm", factory.GROUP_NAME)
        factory.default_provisioner_name = "warm"


def settle():
    """What is loaded now stays to the end: garbage is looked for among what comes later, and seldom."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(200_000, 50, 100)


def kernel(argv, cwd, env):
    """What `python -m ipykernel_launcher` does, in a process of its own."""
    from ipykernel.kernelapp import launch_new_instance
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))
    for number in (signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    launch_new_instance(argv)


def serve():
    del sys.path[0]                                         # tools/, which no kernel sees
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"        # as a kernel does before matplotlib is imported
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)           # the dead are forgotten at once
    import capacity
    for name in [*LIBRARIES, *(f"capacity.{module}" for module in capacity._HOME)]:
        importlib.import_module(name)
    inspect.getmodule(serve.__code__)                       # finds every module's file, as a kernel's first traceback would
    settle()
    for line in sys.stdin:
        if pid := os.fork():
            print(pid, flush=True)
        else:
            return kernel(**json.loads(line))


if __name__ == "__main__":
    serve()
