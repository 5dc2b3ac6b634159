"""The report of a failed test about its cluster: brokers, incomplete partitions, metrics, warnings."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rackspan.cluster.api.status import ClusterStatus
    from rackspan.practice.faults import PracticeCluster

LOGGER: Final = "rackspan.cluster"
KEPT_LINES: Final = 50
"""The last lines explain a failure best, even after an hour of warnings."""


class ClusterWarnings(logging.Handler):
    """Collects the last warnings of the cluster while the block runs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

    def __enter__(self) -> ClusterWarnings:
        logging.getLogger(LOGGER).addHandler(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        logging.getLogger(LOGGER).removeHandler(self)


def status_lines(cluster: PracticeCluster) -> str:
    """The status as text, or why it cannot be read."""
    try:
        return "\n".join(_lines(cluster.status()))
    except Exception as error:
        # The report of the test's own failure must not be lost for this one.
        return f"the cluster could not be read: {error}"


def _lines(status: ClusterStatus) -> Iterator[str]:
    for broker in status.brokers:
        yield f"broker {broker.id}  rack {broker.rack}  {broker.address}  {', '.join(broker.states)}"
    yield from _section("links", status.links)
    yield from _section("partitions that are not whole", status.partitions)
    yield from _section("metrics that are not 0", status.metrics)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield f"{title}:"
        yield from (f"  {line}" for line in shown[:KEPT_LINES])
    if len(shown) > KEPT_LINES:
        yield f"  and {len(shown) - KEPT_LINES} more"
