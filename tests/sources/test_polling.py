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


def test_later_readings_use_the_second_source() -> None:
    time, light = Time(1), Time(1, 1)
    readings_made = readings(
        Source("x", time.read), 10, afterwards=Source("x", light.read), now=lambda: time.now, sleep=time.sleep
    )
    assert [timestamp for timestamp, _ in islice(readings_made, 3)] == [101, 110, 120]
    assert (time.now, light.now) == (120, 102)
