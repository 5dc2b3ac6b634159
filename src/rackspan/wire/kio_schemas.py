"""kio's generated classes, without what kio brings along where hypothesis is installed.

kio registers a strategy for each of its types as soon as it can import hypothesis, which is there wherever tests are
written: a third of a second before an embedded cluster can answer. Nothing here draws them.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _left_out(module: str) -> Iterator[None]:
    """An import of the module fails meanwhile, unless it has been imported already: then it costs nothing more."""
    if module in sys.modules:
        yield
        return
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


with _left_out("hypothesis"):
    # A few milliseconds; the schemas themselves are imported one by one, as they are asked for.
    importlib.import_module("kio.static.primitive")

from kio.index import KioIndexError, load_request_schema, load_response_schema  # noqa: E402

__all__ = ["KioIndexError", "load_request_schema", "load_response_schema"]
