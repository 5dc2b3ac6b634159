"""Clients of tests, whose ends have a limit."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

Client = TypeVar("Client")

CLOSE_SECONDS = 10.0


@contextmanager
def closing(client: Client, seconds: float = CLOSE_SECONDS) -> Iterator[Client]:
    """Close a client of any Kafka library at the end of the block. A close that hangs is left behind, and is a warning of the test.

    A client without `close`, as librdkafka's older producers, is flushed. Errors: those of its close.
    """
    # Imported here: a test run that closes nothing need not have it.
    from rackspan import ends

    with ends.closing(client, seconds, say=warnings.warn):
        yield client
