"""Compacted topics: which records are left when the log cleaner has run, on every replica.

A segment ends where a record is more than segment.ms younger than its first one: records carry times of their own, so
that nothing has to wait. What is written after that is the active segment, and is not compacted.
"""

import time
from typing import Any

from tests.conformance.behaviour import Outcome, behaviour
from tests.conformance.subject import BROKERS, Subject
from tests.conformance.wire import Body, batch, batches, records
from tests.waiting import eventually

SEGMENT_MS = 1_000


class CompactedTopic:
    """A topic that is compacted as soon as anything is dirty, and the time of its next segment."""

    def __init__(self, subject: Subject, policy: str = "compact", dirty_ratio: str = "0.0001", **configs: Any) -> None:
        self.subject = subject
        self.name = subject.topic(
            cleanup_policy=policy, segment_ms=SEGMENT_MS, min_cleanable_dirty_ratio=dirty_ratio, **configs
        )
        self.time_ms = int(time.time() * 1_000) - 600_000

    def write(
        self,
        *pairs: tuple[str, str | None],
        compression: int = 0,
        producer: tuple[int, int] = (-1, -1),
        sequence: int = -1,
    ) -> list[int]:
        """One batch in the segment of now. Error and base offset."""
        written = batch(
            *(None if value is None else value.encode() for _, value in pairs),
            keys=[key.encode() for key, _ in pairs],
            times=[self.time_ms + number for number in range(len(pairs))],
            compression=compression,
            producer=producer,
            sequence=sequence,
        )
        response = self.subject.produce(self.name, written)
        return [response["error_code"], response["base_offset"]]

    def roll(self, key: str = "active") -> None:
        """Begin a segment, with a record of another key."""
        self.time_ms += 10 * SEGMENT_MS
        self.write((key, "x"))

    def read(self, broker: int) -> Outcome:
        """Offset and value of each record of one replica; every broker here is in a rack of its own.

        Kafka returns no more than one segment at a time, and once those before it are empty the next one.
        """
        found: list[list[Any]] = []
        offset, end = 0, self.subject.end(self.name) or 0
        while offset < end:
            data = self.subject.fetch(self.name, offset, broker=broker, rack=f"r{broker}", max_wait_ms=100)["records"]
            read = batches(data)
            if not read:
                break
            found += [record for record in records(data) if record[0] >= offset]
            offset = read[-1].last_offset_delta + read[-1].base_offset + 1
        return found

    def left(self, *offsets: int) -> Outcome:
        """What every replica has, once each has records only at these offsets."""
        for broker in BROKERS:
            eventually(
                lambda broker=broker: [record[0] for record in self.read(broker)] == list(offsets),  # type: ignore[misc]
                f"broker {broker} has {offsets} of {self.name}",
            )
        return [self.read(broker) for broker in BROKERS]


@behaviour("compaction")
def of_each_key_the_last_record_is_left_at_its_offset(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject)
    for number in range(3):
        topic.write(("a", f"a{number}"), ("b", f"b{number}"))
    topic.roll()
    left = topic.left(4, 5, 6)
    earliest = subject.offsets(topic.name, -2)["offset"]
    return [left, earliest, subject.end(topic.name)]


@behaviour("compaction")
def of_a_batch_single_records_are_left(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject)
    topic.write(("a", "a0"), ("b", "b0"), ("c", "c0"))
    topic.write(("b", "b1"))
    topic.roll()
    left = topic.left(0, 2, 3, 4)
    first = topic.time_ms - 10 * SEGMENT_MS
    at = [subject.offsets(topic.name, first + delta)["offset"] for delta in (0, 1, 2, 3)]
    return [left, at]


@behaviour("compaction")
def records_in_compressed_batches_are_compacted(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject)
    topic.write(("a", "a0"), ("b", "b0"), ("c", "c0"), compression=1)
    topic.write(("a", "a1"), ("c", "c1"), compression=1)
    topic.roll()
    return topic.left(1, 3, 4, 5)


@behaviour("compaction")
def the_active_segment_is_not_compacted(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject)
    topic.write(("a", "a0"))
    topic.write(("a", "a1"))
    topic.roll("a")
    topic.write(("a", "a3"))
    return topic.left(1, 2, 3)


@behaviour("compaction")
def a_tombstone_stays_for_delete_retention_ms_and_its_key_is_gone(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject, delete_retention_ms="86400000")
    topic.write(("a", "a0"), ("b", "b0"))
    topic.write(("a", None))
    topic.roll()
    first = topic.left(1, 2, 3)
    topic.write(("b", "b1"))
    topic.roll("other")
    return [first, topic.left(2, 3, 4, 5)]


@behaviour("compaction")
def a_tombstone_whose_time_is_over_is_removed_by_the_next_compaction(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject, delete_retention_ms="0")
    topic.write(("a", "a0"), ("b", "b0"))
    topic.write(("a", None))
    topic.roll()
    first = topic.left(1, 2, 3)
    topic.write(("b", "b1"))
    topic.roll("other")
    return [first, topic.left(3, 4, 5)]


@behaviour("compaction")
def a_producers_numbers_go_on_after_its_records_were_removed(subject: Subject) -> Outcome:
    topic, producer = CompactedTopic(subject), subject.producer_id()
    topic.write(("a", "a0"), producer=producer, sequence=0)
    topic.write(("a", "a1"), producer=producer, sequence=1)
    topic.write(("a", "a2"))
    topic.roll()
    left = topic.left(2, 3)
    repeated = topic.write(("a", "a1"), producer=producer, sequence=1)
    skipped = topic.write(("a", "a3"), producer=producer, sequence=3)
    return [left, repeated, skipped, topic.write(("a", "a3"), producer=producer, sequence=2)]


@behaviour("compaction")
def what_is_clean_enough_is_left_alone(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject, dirty_ratio="0.9")
    other = CompactedTopic(subject)
    for one in (topic, other):
        one.write(("a", "a0"))
        one.write(("a", "a1" * 1_000))
        one.roll()
        one.left(1, 2)
        one.write(("a", "a3"))
        one.roll("other")
    return [other.left(2, 3, 4), topic.left(1, 2, 3, 4)[0]]


@behaviour("compaction")
def records_are_compacted_after_min_compaction_lag_ms(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject, min_compaction_lag_ms="86400000")
    other = CompactedTopic(subject)
    for one in (topic, other):
        one.write(("a", "a0"))
        one.write(("a", "a1"))
        one.roll()
    return [other.left(1, 2), topic.left(0, 1, 2)[0]]


@behaviour("compaction")
def a_log_without_compaction_keeps_every_record_until_its_policy_changes(subject: Subject) -> Outcome:
    topic = CompactedTopic(subject, policy="delete", retention_ms="-1")
    topic.write(("a", "a0"))
    topic.write(("a", "a1"))
    topic.roll()
    before = topic.left(0, 1, 2)[0]
    one: Body = {"name": "cleanup.policy", "config_operation": 0, "value": "compact"}
    resources = [{"resource_type": 2, "resource_name": topic.name, "configs": [one]}]
    subject.request("IncrementalAlterConfigs", 1, resources=resources, validate_only=False)
    return [before, topic.left(1, 2)]
