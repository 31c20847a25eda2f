"""Serve a folder on this machine only.

    python tools/serve.py _build/html

Port 8000, or the next free one. `serve` is the same for tests: it picks any free port and stops by itself.
"""
import functools
import http.server
import sys
import threading
from contextlib import contextmanager
from pathlib import Path


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def bind(folder, ports):
    """A server on the first free port of `ports`; OSError if none is free."""
    handler = functools.partial(Quiet, directory=str(folder))
    for port in ports:
        try:
            return Server(("127.0.0.1", port), handler)
        except OSError as e:
            taken = e
    raise taken


@contextmanager
def serve(folder):
    """The address at which `folder` is served while the block runs."""
    server = bind(folder, [0])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def main(folder):
    if not (Path(folder) / "index.html").exists():
        sys.exit(f"{folder} holds no book yet: make html")
    server = bind(folder, [*range(8000, 8100), 0])
    print(f"The book: http://127.0.0.1:{server.server_port}/   (stop with Ctrl+C)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main(*sys.argv[1:])
