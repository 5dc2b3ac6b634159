"""What the sink does with acknowledgements, errors and lost racks, by a producer whose every report the test decides."""

from collections.abc import Callable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnreachable,
    NotEnoughRacks,
    NotEnoughRacksAfterAppend,
    RetriableProduceError,
    UsageError,
)
from rackspan.kafka_source.cluster import SourceMetadata, SourcePartition, SourceTopic
from rackspan.kafka_source.writing import sender
from rackspan.kafka_source.writing.options import parse_sink
from rackspan.kafka_source.writing.rows import OutgoingRow
from rackspan.kafka_source.writing.sender import RowSender

RACKS = {1: "r1", 2: "r2", 3: "r3"}
BOTH: tuple[int, ...] = (1, 2)
ALONE: tuple[int, ...] = (1,)


class FakeProducer:
    """Acknowledges at `flush`. A row without a partition goes to the one that its value names."""

    def __init__(self, error: int | None = None, full: int = 0) -> None:
        self.sent: list[tuple[str, int, Any]] = []
        self.on_flush: Callable[[], None] = lambda: None
        self.slow = 0
        """Calls of `flush` after which records are still under way."""
        self.has_offsets = True
        self._error = error
        self._full = full
        self._reports: list[Callable[[], None]] = []

    def produce(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        partition: int = -1,
        *,
        on_delivery: Any = None,
        headers: Any = None,
    ) -> None:
        if self._full:
            self._full -= 1
            raise BufferError
        number = int(value) if partition == -1 else partition
        self.sent.append((topic, number, value))
        offset = len(self.sent) if self.has_offsets else None
        message = SimpleNamespace(topic=lambda: topic, partition=lambda: number, offset=lambda: offset)
        error = None if self._error is None else KafkaError(self._error)
        self._reports.append(lambda: on_delivery(error, message))

    def poll(self, seconds: float) -> int:
        return 0

    def flush(self, seconds: float) -> int:
        if self.slow:
            self.slow -= 1
            self.on_flush()
            return 1
        for report in self._reports:
            report()
        self._reports.clear()
        self.on_flush()
        return 0


class World:
    """A topic of two partitions, whose ISR the test changes; time passes by sleeping."""

    def __init__(self, producer: FakeProducer | None = None, **options: str) -> None:
        self.producer = producer or FakeProducer()
        self.isr = {0: BOTH, 1: BOTH}
        self.seconds = 0.0
        self.on_sleep: Callable[[], None] = lambda: None
        given = {"kafka.bootstrap.servers": "h:1", "progressTimeoutMs": "60000", **options}
        self.verified: list[Mapping[tuple[str, int], int | None]] = []
        self.sender = RowSender(
            parse_sink(given), self.producer, self.metadata, self.verify, self.sleep, lambda: self.seconds
        )

    def metadata(self, topics: Iterable[str]) -> SourceMetadata:
        topic = SourceTopic(None, {number: SourcePartition(1, (1, 2), isr) for number, isr in self.isr.items()})
        return SourceMetadata(
            RACKS, {"orders": topic}, {name: "UNKNOWN_TOPIC_OR_PARTITION (3)" for name in topics if name != "orders"}
        )

    def verify(self, end_offsets: Mapping[tuple[str, int], int | None]) -> dict[tuple[str, int], RetriableProduceError]:
        """The logs of exactly those who are in sync have everything."""
        self.verified.append(end_offsets)
        lacking = {(topic, number): self.isr.get(number, ()) for topic, number in end_offsets}
        return {
            (topic, number): NotEnoughRacksAfterAppend(f"{topic}-{number}: held in {len(isr)}")
            for (topic, number), isr in lacking.items()
            if len(isr) < 2
        }

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.on_sleep()


def rows(*partitions: int, fixed: bool = False, topic: str = "orders") -> list[OutgoingRow]:
    return [OutgoingRow(topic, number if fixed else None, b"k", str(number), None) for number in partitions]


def guarded(policy: str = "fail", producer: FakeProducer | None = None) -> World:
    return World(producer, **{"min.insync.racks": "2", "underMinRacks": policy})


def test_rows_are_sent_in_order_and_counted() -> None:
    world = World()
    world.sender.send(rows(0, 1, 0))
    report = world.sender.finish()
    assert [number for _, number, _ in world.producer.sent] == [0, 1, 0]
    assert (report.records, report.size_bytes, report.sent_again) == ({"orders": 3}, 6, 0)


@pytest.mark.parametrize("calls", [3, 1000])
def test_acknowledgements_are_waited_for_until_the_timeout(calls: int) -> None:
    world = World()
    world.producer.slow = calls

    def half_a_second() -> None:
        world.seconds += 0.5

    world.producer.on_flush = half_a_second
    world.sender.send(rows(0, 1))
    if calls * 0.5 < 60:
        assert world.sender.finish().records == {"orders": 2}
        return
    with pytest.raises(ClusterUnreachable, match="records were not acknowledged for 60 s"):
        world.sender.finish()


def test_a_full_queue_is_waited_for() -> None:
    world = World(FakeProducer(full=2))
    world.sender.send(rows(0))
    world.sender.finish()
    assert len(world.producer.sent) == 1


@pytest.mark.parametrize(
    ("code", "kind", "message"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ClusterRequestFailed, "orders-1: a record was refused"),
        (KafkaError.MSG_SIZE_TOO_LARGE, ClusterRequestFailed, r"raise kafka\.max\.request\.size and the topic's"),
        (KafkaError._MSG_TIMED_OUT, ClusterUnreachable, "orders-1: a record was not acknowledged for 60 s"),
    ],
)
@pytest.mark.parametrize("racks", ["1", "2"])
def test_a_record_that_is_not_acknowledged_fails_the_task(
    code: int, kind: type[Exception], message: str, racks: str
) -> None:
    world = World(FakeProducer(error=code), **{"min.insync.racks": racks})
    with pytest.raises(kind, match=message):  # noqa: PT012 — with a guard the error comes with the group
        world.sender.send(rows(1))
        world.sender.finish()


def test_a_topic_or_partition_that_there_is_not_is_refused_before_anything_is_sent() -> None:
    world = World()
    with pytest.raises(ClusterRequestFailed, match=r"topic orderz: UNKNOWN_TOPIC_OR_PARTITION \(3\); create it"):
        world.sender.send(rows(0, topic="orderz"))
    with pytest.raises(ClusterRequestFailed, match="orders has 2 partitions, and a row names 2"):
        world.sender.send(rows(0, 2, fixed=True))
    assert world.producer.sent == []


def test_of_topics_that_there_are_not_the_first_by_name_is_refused() -> None:
    world = World()
    with pytest.raises(ClusterRequestFailed, match=r"^topic a: UNKNOWN_TOPIC_OR_PARTITION \(3\); create it"):
        world.sender.send([row for name in "gfedcba" for row in rows(0, topic=name)])


def test_a_producer_that_cannot_be_made_is_an_error_of_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def producer(_settings: object) -> None:
        raise KafkaException(KafkaError(KafkaError._INVALID_ARG, "No such configuration property"))

    monkeypatch.setattr(sender, "Producer", producer)
    options = parse_sink({"kafka.bootstrap.servers": "h:1"})
    with pytest.raises(ClusterRequestFailed) as failed, sender.opened_sender(options):
        pass
    assert str(failed.value) == "the producer cannot be started: No such configuration property"


def test_without_enough_racks_nothing_is_sent() -> None:
    world = guarded()
    world.isr = {0: ALONE, 1: ALONE}
    world.sender.send(rows(0, 1))
    with pytest.raises(NotEnoughRacks, match=r"orders-0: in-sync racks r1 = 1 < min\.insync\.racks 2"):
        world.sender.finish()
    assert world.producer.sent == []


def test_a_partition_that_a_row_names_has_to_have_the_racks_itself() -> None:
    world = guarded()
    world.isr[1] = ALONE
    world.sender.send(rows(0, 1, fixed=True))
    with pytest.raises(NotEnoughRacks, match="orders-1: in-sync racks r1 = 1"):
        world.sender.finish()
    assert world.producer.sent == []


def test_racks_that_are_lost_after_the_append_fail_the_write() -> None:
    world = guarded()
    world.producer.on_flush = lambda: world.isr.update({1: ALONE})
    world.sender.send(rows(0, 1))
    with pytest.raises(NotEnoughRacksAfterAppend, match="orders-1: held in 1"):
        world.sender.finish()


def test_a_partition_without_rows_may_lack_racks() -> None:
    world = guarded()
    world.isr[1] = ALONE
    world.sender.send(rows(0, 0))
    assert world.sender.finish().records == {"orders": 2}


def test_waiting_sends_when_the_racks_are_back() -> None:
    world = guarded("wait")
    world.isr = {0: ALONE, 1: ALONE}

    def back_after_ten_seconds() -> None:
        assert world.producer.sent == [] or world.isr[0] == BOTH
        if world.seconds > 10:
            world.isr = {0: BOTH, 1: BOTH}

    world.on_sleep = back_after_ten_seconds
    world.sender.send(rows(0, 1))
    report = world.sender.finish()
    assert report.waited_seconds > 10
    assert report.sent_again == 0
    assert len(world.producer.sent) == 2


def test_waiting_sends_again_what_was_acknowledged_by_too_few_racks() -> None:
    world = guarded("wait")
    lost = iter([{1: ALONE}])
    world.producer.on_flush = lambda: world.isr.update(next(lost, {}))

    def back_after_ten_seconds() -> None:
        if world.seconds > 10:
            world.isr[1] = BOTH

    world.on_sleep = back_after_ten_seconds
    world.sender.send(rows(0, 1, 1))
    report = world.sender.finish()
    assert [number for _, number, _ in world.producer.sent] == [0, 1, 1, 1, 1]
    assert (report.records, report.sent_again) == ({"orders": 3}, 2)


@pytest.mark.parametrize("lost_at_flush", [True, False])
def test_waiting_ends_with_the_timeout(lost_at_flush: bool) -> None:
    world = guarded("wait")
    if lost_at_flush:
        world.producer.on_flush = lambda: world.isr.update({0: ALONE, 1: ALONE})
    else:
        world.isr = {0: ALONE, 1: ALONE}
    world.sender.send(rows(0))
    with pytest.raises(NotEnoughRacks):
        world.sender.finish()
    assert 60 < world.seconds < 70


def test_racks_that_come_and_go_end_with_the_timeout_too() -> None:
    world = guarded("wait")
    world.producer.on_flush = lambda: world.isr.update({0: ALONE, 1: ALONE})

    world.on_sleep = lambda: world.isr.update({0: BOTH, 1: BOTH})
    world.sender.send(rows(0))
    with pytest.raises(NotEnoughRacksAfterAppend):
        world.sender.finish()
    assert 60 < world.seconds < 70
    assert len(world.producer.sent) > 10


def test_a_topic_that_vanishes_counts_as_without_racks() -> None:
    world = guarded()
    world.producer.on_flush = world.isr.clear
    world.sender.send(rows(0))
    with pytest.raises(NotEnoughRacksAfterAppend, match="orders-0: held in 0"):
        world.sender.finish()


def test_the_last_offset_of_each_partition_is_verified() -> None:
    world = guarded()
    world.sender.send(rows(0, 1, 0, 0))
    world.sender.finish()
    # Offsets are counted over both partitions here; the first record has 1.
    assert world.verified == [{("orders", 0): 5, ("orders", 1): 3}]


def test_a_record_without_an_offset_is_verified_by_the_end_of_its_log() -> None:
    """Of a batch that was repeated confluent-kafka has no offset."""
    world = guarded()
    world.producer.has_offsets = False
    world.sender.send(rows(0, 1))
    world.sender.finish()
    assert world.verified == [{("orders", 0): None, ("orders", 1): None}]


def test_large_writes_are_verified_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "GROUP_ROWS", 10)
    world, flushes = guarded(), []
    world.producer.on_flush = lambda: flushes.append(len(world.producer.sent))
    world.sender.send(rows(0) * 11)
    assert flushes == [10]
    world.sender.finish()
    assert flushes[1] == 11


def test_large_records_are_verified_in_smaller_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "GROUP_BYTES", 6)
    world, flushes = guarded(), []
    world.producer.on_flush = lambda: flushes.append(len(world.producer.sent))
    world.sender.send(rows(0) * 4)
    assert flushes == [3]


def test_the_producer_is_idempotent_and_waits_for_all_whatever_is_configured_beside_it() -> None:
    settings = sender._producer_settings(
        parse_sink(
            {
                "kafka.bootstrap.servers": "h:1",
                "kafka.compression.type": "zstd",
                "kafka.linger.ms": "7",
                "progressTimeoutMs": "9000",
            }
        )
    )
    assert (settings["enable.idempotence"], settings["acks"]) == (True, "all")
    assert (settings["bootstrap.servers"], settings["delivery.timeout.ms"]) == ("h:1", 9000)
    assert (settings["compression.type"], settings["linger.ms"]) == ("zstd", 7)
    assert settings["partitioner"] == "murmur2_random"
    assert sender._producer_settings(parse_sink({"kafka.bootstrap.servers": "h:1"}))["linger.ms"] == 20


@pytest.mark.parametrize("option", ["kafka.enable.idempotence", "kafka.acks"])
def test_weaker_settings_of_the_producer_are_refused(option: str) -> None:
    with pytest.raises(UsageError, match=option):
        parse_sink({"kafka.bootstrap.servers": "h:1", option: "false" if "idem" in option else "1"})
