"""Only what has changed in the metadata is written anew."""

from uuid import UUID

from rackspan.cluster.context import MAX_CACHED_RESPONSES, MetadataCache
from rackspan.cluster.core.metadata import (
    EMPTY_IMAGE,
    BrokerChanged,
    BrokerRegistered,
    MetadataImage,
    PartitionSet,
    PartitionState,
    TopicCreated,
    TopicDeleted,
    TopicImage,
    apply_records,
)
from rackspan.model.ids import BrokerId, TopicPartition

ONE = BrokerId(1)


def topic(name: str, number: int) -> list[TopicCreated | PartitionSet]:
    return [
        TopicCreated(name, UUID(int=number)),
        PartitionSet(TopicPartition(name, 0), PartitionState((ONE,), (ONE,), ONE)),
    ]


def image() -> MetadataImage:
    registered = BrokerRegistered(ONE, 0, 1, None, "127.0.0.1", 9092)
    return apply_records(EMPTY_IMAGE, [registered, *topic("b", 1), *topic("a", 2)])


class Writer:
    """Encodes topics as their names and records which."""

    def __init__(self) -> None:
        self.written: list[str] = []

    def __call__(self, topic: TopicImage) -> bytes:
        self.written.append(topic.name)
        return f"{topic.name}{len(topic.partitions)}".encode()


def test_a_topic_is_encoded_again_when_it_has_changed_and_no_other_is() -> None:
    kept, writer, before = MetadataCache(), Writer(), image()
    assert kept.topics(12, before, writer) == [b"a1", b"b1"]
    grown = apply_records(before, [PartitionSet(TopicPartition("b", 1), PartitionState((ONE,), (ONE,), ONE))])
    assert kept.topics(12, grown, writer) == [b"a1", b"b2"]
    assert writer.written == ["a", "b", "b"]


def test_a_topic_that_was_deleted_and_created_again_is_encoded_again() -> None:
    kept, writer, before = MetadataCache(), Writer(), image()
    kept.topics(12, before, writer)
    without = apply_records(before, [TopicDeleted("a", UUID(int=2))])
    assert kept.topics(12, without, writer) == [b"b1"]
    kept.topics(12, apply_records(without, topic("a", 3)), writer)
    assert writer.written == ["a", "b", "a"]


def test_every_topic_is_encoded_again_when_a_broker_is_fenced_or_the_version_differs() -> None:
    kept, writer, before = MetadataCache(), Writer(), image()
    kept.topics(12, before, writer)
    kept.topics(12, apply_records(before, [BrokerChanged(ONE, 0, False, False)]), writer)
    kept.topics(13, apply_records(before, [BrokerChanged(ONE, 0, False, False)]), writer)
    assert writer.written == ["a", "b"] * 3


def test_responses_are_cached_until_the_metadata_changes_and_never_many() -> None:
    kept = MetadataCache()
    assert kept.response((12, None), lambda: b"first") == b"first"
    assert kept.response((12, None), lambda: b"second") == b"first"
    kept.drop_responses()
    assert kept.response((12, None), lambda: b"third") == b"third"
    for number in range(3 * MAX_CACHED_RESPONSES):
        kept.response((12, (f"topic-{number}",)), lambda: b"")
    assert len(kept) == MAX_CACHED_RESPONSES
