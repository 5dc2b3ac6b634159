"""What a failed test says of its cluster: brokers, partitions that are not whole, metrics, and what was warned of."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rackspan.cluster import EmbeddedCluster
    from rackspan.cluster.api.status import ClusterStatus

LOGGER: Final = "rackspan.cluster"
KEPT_LINES: Final = 50
"""A test that fails after an hour of warnings is explained by the last of them."""


class Warnings(logging.Handler):
    """The cluster's warnings while the block runs, the last ones of them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self) -> Warnings:
        logging.getLogger(LOGGER).addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger(LOGGER).removeHandler(self)


def state(cluster: EmbeddedCluster) -> str:
    """A page of it; in words where the cluster cannot be asked any more."""
    try:
        return "\n".join(_lines(cluster.status()))
    except Exception as error:
        # The test has failed already, and that is what its reader must see.
        return f"the cluster could not be asked: {error}"


def _lines(status: ClusterStatus) -> Iterator[str]:
    for broker in status.brokers:
        yield f"broker {broker.id}  rack {broker.rack}  {broker.address}  {', '.join(broker.states)}"
    yield from _listed("links", status.links)
    yield from _listed("partitions that are not whole", status.partitions)
    yield from _listed("metrics that are not 0", status.metrics)


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield f"{title}:"
        yield from (f"  {line}" for line in shown[:KEPT_LINES])
    if len(shown) > KEPT_LINES:
        yield f"  and {len(shown) - KEPT_LINES} more"
