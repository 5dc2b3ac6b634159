"""kio's schemas, imported without hypothesis.

Where hypothesis is installed, kio registers a strategy for each of its types. That takes a third of a second before an
embedded cluster can start, and nothing here uses the strategies.
"""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


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

from kio.index import KioIndexError  # noqa: E402 - after the modules that must not be imported
from kio.index import load_request_schema as kio_request_schema  # noqa: E402 - as above
from kio.index import load_response_schema as kio_response_schema  # noqa: E402 - as above

from rackspan.wire import kafka_4_4  # noqa: E402 - as above


@cache
def load_request_schema(api_key: int, version: int) -> Any:
    """kio's class of a request, or the one that kio lacks. Errors: KioIndexError."""
    added = kafka_4_4.REQUESTS.get((api_key, version))
    return kio_request_schema(api_key, version) if added is None else added()


@cache
def load_response_schema(api_key: int, version: int) -> Any:
    """kio's class of a response, or the one that kio lacks. Errors: KioIndexError."""
    added = kafka_4_4.RESPONSES.get((api_key, version))
    return kio_response_schema(api_key, version) if added is None else added()


__all__ = ["KioIndexError", "load_request_schema", "load_response_schema"]
