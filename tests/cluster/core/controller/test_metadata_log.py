"""Brokers' fetches of metadata: at once, when there is more, at the deadline; records or, from too far behind, an image."""

from rackspan.cluster.core.controller.metadata_log import MetadataLog
from rackspan.cluster.core.messages import FetchMetadata, FetchMetadataResponse, Send
from rackspan.cluster.core.metadata import EMPTY_IMAGE, ProducerIdsAllocated
from rackspan.model.ids import BrokerId

WAIT_MS = 100


def records(first: int, end: int) -> list[ProducerIdsAllocated]:
    """One a number, so that the record at offset n is number n."""
    return [ProducerIdsAllocated(number) for number in range(first, end)]


def log_of(count: int, kept: int = 1_000) -> MetadataLog:
    log = MetadataLog(WAIT_MS, kept)
    for number in range(count):
        log.write(records(number, number + 1))
    return log


def fetch(offset: int, broker: int = 1) -> FetchMetadata:
    return FetchMetadata(BrokerId(broker), 70 + broker, offset)


def test_what_is_there_is_sent_at_once_from_the_brokers_offset_on() -> None:
    log = log_of(3)
    assert log.image.offset == 3
    assert log.fetch(0, 1, fetch(1)) == [Send(1, FetchMetadataResponse(71, 1, tuple(records(1, 3))))]
    assert log.fetch(0, 1, fetch(0)) == [Send(1, FetchMetadataResponse(71, 0, tuple(records(0, 3))))]
    assert log.responses(99_000) == [], "nobody waits"


def test_a_broker_that_has_all_waits_for_more_and_no_longer_than_its_deadline() -> None:
    log = log_of(3)
    assert (log.fetch(5, 1, fetch(3)), log.fetch(6, 2, fetch(3, broker=2))) == ([], [])
    assert log.responses(5 + WAIT_MS - 1) == []
    assert log.responses(5 + WAIT_MS) == [Send(1, FetchMetadataResponse(71, 3, ()))]
    log.write(records(3, 5))
    assert log.responses(7) == [Send(2, FetchMetadataResponse(72, 3, tuple(records(3, 5))))]
    assert log.responses(99_000) == [], "each is sent once"


def test_only_the_newest_fetch_of_a_broker_waits() -> None:
    log = log_of(3)
    log.fetch(5, 1, fetch(3))
    log.fetch(50, 1, fetch(3))
    assert log.responses(5 + WAIT_MS) == []
    assert len(log.fetch(60, 1, fetch(0))) == 1
    assert log.responses(99_000) == [], "the fetch from the start has replaced the one that waited"


def test_nothing_written_changes_nothing() -> None:
    log = MetadataLog(WAIT_MS, 10)
    log.write([])
    assert log.image is EMPTY_IMAGE


def test_records_are_dropped_beyond_twice_what_is_kept_and_an_image_takes_their_place() -> None:
    log = log_of(20, kept=10)
    assert log.fetch(0, 1, fetch(0)) == [Send(1, FetchMetadataResponse(71, 0, tuple(records(0, 20))))]
    log.write(records(20, 21))
    assert log.fetch(0, 1, fetch(11)) == [Send(1, FetchMetadataResponse(71, 11, tuple(records(11, 21))))]
    assert log.fetch(0, 1, fetch(10)) == [Send(1, FetchMetadataResponse(71, 10, (), log.image))]
    for number in range(21, 32):
        log.write(records(number, number + 1))
    assert log.fetch(0, 1, fetch(22)) == [Send(1, FetchMetadataResponse(71, 22, tuple(records(22, 32))))]
    assert log.fetch(0, 1, fetch(21)) == [Send(1, FetchMetadataResponse(71, 21, (), log.image))]
