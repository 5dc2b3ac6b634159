"""Reads a source at a fixed interval: each time a snapshot, or the error that prevented it."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

from rackspan.errors import RackspanError
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.sources.source import Source


def readings(
    source: Source,
    seconds: float,
    *,
    afterwards: Source | None = None,
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[tuple[float, ClusterSnapshot | RackspanError]]:
    """A reading every `seconds` by the clock `now`, each with the time it ended, until the caller stops iterating.

    From the second reading on, `afterwards` is read instead, if given: the same cluster with fewer requests. A reading that
    takes longer than the interval is followed by the next one at once; missed readings are not repeated.
    """
    due = now()
    for current in chain([source], repeat(afterwards or source)):
        reading = _read(current)
        yield now(), reading
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _read(source: Source) -> ClusterSnapshot | RackspanError:
    try:
        return source.read().snapshot
    except RackspanError as error:
        return error
