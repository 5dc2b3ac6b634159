from dataclasses import replace
from itertools import islice

from rackspan.errors import ClusterUnreachable, RackspanError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, columns
from rackspan.model.snapshot import ReadSnapshot
from rackspan.sources.polling import readings
from rackspan.sources.source import Source

SNAPSHOT = ClusterSnapshot(
    brokers=(Broker(BrokerId(1), None),),
    topics=(),
    partitions=columns(topic=[], partition=[], leader=[], replicas=[], isr=[]),
)
GONE = ClusterUnreachable("nobody answers")


class Time:
    """A clock that reading and sleeping move."""

    def __init__(self, *costs: float) -> None:
        self.now, self.slept = 100.0, list[float]()
        self._outcomes: list[ClusterSnapshot | RackspanError] = [SNAPSHOT, GONE, SNAPSHOT]
        self._costs = list(costs)

    def read(self) -> ReadSnapshot:
        self.now += self._costs.pop(0)
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, RackspanError):
            raise outcome
        return ReadSnapshot(outcome, ())

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_readings_come_in_their_time_with_failures_in_their_place() -> None:
    time = Time(1, 2, 1)
    readings_made = list(islice(readings(Source("x", time.read), 10, now=lambda: time.now, sleep=time.sleep), 3))
    assert readings_made == [(101, SNAPSHOT), (112, GONE), (121, SNAPSHOT)]
    assert time.slept == [9, 8]


def test_a_reading_that_takes_longer_is_followed_at_once_and_nothing_is_made_up_for() -> None:
    time = Time(25, 1, 1)
    readings_made = list(islice(readings(Source("x", time.read), 10, now=lambda: time.now, sleep=time.sleep), 3))
    assert [timestamp for timestamp, _ in readings_made] == [125, 126, 136]
    assert time.slept == [0, 9]


def test_a_topic_that_is_hidden_is_looked_for_until_it_shows_and_once_an_hour() -> None:
    """The second source does not see it: a metric would call the rest of the cluster all of it."""
    now, read = [0.0], list[str]()
    hidden = replace(SNAPSHOT, partial=("topics secret: on disk but not shown to this user",))
    whole = iter([hidden, hidden, *[SNAPSHOT] * 3])

    def of(name: str) -> Source:
        def reading() -> ReadSnapshot:
            read.append(name)
            return ReadSnapshot(next(whole) if name == "whole" else SNAPSHOT, ())

        return Source(name, reading)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    made = readings(of("whole"), 1200, afterwards=of("light"), now=lambda: now[0], sleep=sleep)
    found = [reading for _, reading in islice(made, 7)]
    assert read == ["whole", "whole", "whole", "light", "light", "whole", "light"]
    assert [reading is hidden for reading in found] == [True, True, *[False] * 5]


def test_later_readings_use_the_second_source() -> None:
    time, light = Time(1), Time(1, 1)
    readings_made = readings(
        Source("x", time.read), 10, afterwards=Source("x", light.read), now=lambda: time.now, sleep=time.sleep
    )
    assert [timestamp for timestamp, _ in islice(readings_made, 3)] == [101, 110, 120]
    assert (time.now, light.now) == (120, 102)
