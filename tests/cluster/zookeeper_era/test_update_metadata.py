"""KIP-36's request, byte by byte as the text has it: written by hand here, and read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.zookeeper_era.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndPoint,
    UpdateMetadataPartition,
    UpdateMetadataRequest,
    read_broker,
    read_update_metadata,
    write_broker,
    write_update_metadata,
)
from rackspan.errors import MalformedRequest
from rackspan.kafka_bytes import ByteReader

HOST1 = UpdateMetadataEndPoint(9092, "host1")
SECURE = UpdateMetadataEndPoint(9093, "host1", 1)

BROKER_0 = "000100070005 686f73743100002384"
"""id 65543, host "host1", port 9092."""
BROKER_1 = "000100070000000200002384 0005 686f737431 000000002385 0005 686f737431 0001"
"""id 65543, two end points: port first, then host, then protocol."""
RACK = "0003 646331"
NO_RACK = "ffff"

HEADER = "0006 {version:04x} 00000009 0002 633100000005 00000003"
"""Key 6, the version, correlation id 9, client "c1"; controller 5 in epoch 3."""
STATES = "000000010001 74 00000002 00000003 00000007 0000000400000002 00000007 000000080000000000000001 00000007"
"""t-2, controller epoch 3, leader 7 in epoch 4, ISR 7 and 8, version 0, replicas 7."""


def golden(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


@pytest.mark.parametrize(
    ("version", "rack", "wanted"),
    [
        (0, "dc1", BROKER_0),
        (1, "dc1", BROKER_1),
        (2, "dc1", BROKER_1 + RACK),
        (2, None, BROKER_1 + NO_RACK),
    ],
)
def test_a_broker_on_the_wire(version: int, rack: str | None, wanted: str) -> None:
    broker = UpdateMetadataBroker(65543, (HOST1, SECURE), rack)
    assert write_broker(broker, version) == golden(wanted)
    read = read_broker(ByteReader(golden(wanted)), version)
    assert read == UpdateMetadataBroker(
        65543, (HOST1, SECURE)[: None if version else 1], rack if version == 2 else None
    )


def request(*brokers: UpdateMetadataBroker) -> UpdateMetadataRequest:
    partition = UpdateMetadataPartition("t", 2, 3, 7, 4, (7, 8), 0, (7,))
    return UpdateMetadataRequest(9, "c1", 5, 3, (partition,), brokers)


@pytest.mark.parametrize(("version", "broker"), [(0, BROKER_0), (1, BROKER_1), (2, BROKER_1 + RACK)])
def test_the_whole_request(version: int, broker: str) -> None:
    wanted = golden(HEADER.format(version=version) + STATES + "00000001" + broker)
    assert write_update_metadata(request(UpdateMetadataBroker(65543, (HOST1, SECURE), "dc1")), version) == wanted
    read = read_update_metadata(wanted)
    assert read.partitions == request().partitions
    assert (read.correlation_id, read.client_id, read.controller_id, read.controller_epoch) == (9, "c1", 5, 3)
    assert [one.rack for one in read.brokers] == ["dc1" if version == 2 else None]


NUMBERS = st.integers(-(2**31), 2**31 - 1)
TEXTS = st.text(max_size=9)
POINTS = st.builds(UpdateMetadataEndPoint, NUMBERS, TEXTS, st.integers(0, 3))
BROKERS = st.builds(UpdateMetadataBroker, NUMBERS, st.lists(POINTS, max_size=3).map(tuple), st.none() | TEXTS)


@given(st.lists(BROKERS, max_size=4))
def test_what_version_2_writes_it_reads(brokers: list[UpdateMetadataBroker]) -> None:
    update = request(*brokers)
    assert read_update_metadata(write_update_metadata(update, 2)) == update


@given(st.integers(0, 200))
def test_a_request_cut_short_is_refused(size: int) -> None:
    whole = write_update_metadata(request(UpdateMetadataBroker(7, (HOST1,), "dc1")), 2)
    if size < len(whole):
        with pytest.raises(MalformedRequest):
            read_update_metadata(whole[:size])


@pytest.mark.parametrize("data", ["0003 0000 00000000 ffff", "0006 0003 00000000 ffff"])
def test_other_requests_and_versions_are_refused(data: str) -> None:
    with pytest.raises(MalformedRequest):
        read_update_metadata(golden(data))
    with pytest.raises(ValueError, match="version 3"):
        write_update_metadata(request(), 3)
