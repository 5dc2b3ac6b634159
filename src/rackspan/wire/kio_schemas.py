"""kio's schemas, imported without hypothesis.

Where hypothesis is installed, kio registers a strategy for each of its types. That takes a third of a second before an
embedded cluster can start, and nothing here uses the strategies.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """In the block an import of the module fails, unless it is imported already: then it costs nothing."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]  # None in sys.modules makes an import fail.
    try:
        yield
    finally:
        del sys.modules[module]


with _left_out("hypothesis"):
    # A few milliseconds. Each schema is imported when it is first loaded.
    importlib.import_module("kio.static.primitive")

from kio.index import KioIndexError, load_request_schema, load_response_schema  # noqa: E402 - after the modules that must not be imported

__all__ = ["KioIndexError", "load_request_schema", "load_response_schema"]
