"""Reads a source at a fixed interval: each time a snapshot, or the error that prevented it."""

from collections.abc import Callable, Iterator
from typing import Final

from rackspan.audit.drift.unread import Unread, unread
from rackspan.errors import RackspanError
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.sources.source import Source

WHOLE_SECONDS: Final = 3600.0
"""How often all of a cluster is read, for topics that have been hidden from the user meanwhile."""


def readings(
    source: Source,
    seconds: float,
    *,
    afterwards: Source | None = None,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[tuple[float, ClusterSnapshot | RackspanError]]:
    """A reading every `seconds` by the clock `now`, each with the time it ended, until the caller stops iterating.

    Between two readings of `source`, WHOLE_SECONDS apart, `afterwards` is read instead, if given: the same cluster with fewer
    requests, in which a hidden topic does not show. While `source` has a topic that could not be read, it is read each time. A
    reading that takes longer than the interval is followed by the next one at once. Missed readings are not repeated.
    """
    due = whole_due = now()
    while True:
        whole = afterwards is None or now() >= whole_due
        reading = _read(source if whole else afterwards or source)
        yield now(), reading
        if whole and isinstance(reading, ClusterSnapshot) and Unread.TOPICS not in unread(reading.partial):
            whole_due = now() + WHOLE_SECONDS
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _read(source: Source) -> ClusterSnapshot | RackspanError:
    try:
        return source.read().snapshot
    except RackspanError as error:
        return error
