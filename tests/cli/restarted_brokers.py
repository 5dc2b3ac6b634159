"""A command for `restart watch --exec` that lets the test, which owns the brokers, restart them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def command_that_calls(restart: Callable[[list[int]], None], folder: Path) -> Iterator[str]:
    """The command: it writes the ids of its brokers to a file, and ends once `restart` has returned."""
    request, ended = folder / "request", threading.Event()

    def serve() -> None:
        while not ended.wait(0.05):
            if request.exists() and (text := request.read_text()).endswith("\n"):
                restart([int(broker) for broker in text.split(",")])
                request.unlink()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"echo {{brokers}} > {request}; while [ -e {request} ]; do sleep 0.1; done"
    finally:
        ended.set()
        thread.join()
