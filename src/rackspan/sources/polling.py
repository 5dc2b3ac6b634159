"""One source read again and again: what it said each time, or why it said nothing."""

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
    """A reading every so many seconds by the clock `now`, each with the moment it was done, until the caller stops.

    From the second on it is `afterwards` that is read, if given: the same cluster asked for less. One that takes longer than its time is followed by the next at once; those missed are not made up for.
    """
    due = now()
    for one in chain([source], repeat(afterwards or source)):
        reading = _read(one)
        yield now(), reading
        due = max(due + seconds, now())
        sleep(max(0.0, due - now()))


def _read(source: Source) -> ClusterSnapshot | RackspanError:
    try:
        return source.read().snapshot
    except RackspanError as error:
        return error
