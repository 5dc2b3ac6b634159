"""Every request and response, compared with kio's own codec and with kafka-python."""

from collections.abc import Callable
from io import BytesIO
from random import Random
from struct import pack
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import CreateTopicsRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kio.serial import entity_reader, entity_writer

from rackspan.errors import MalformedRequest
from rackspan.kafka_bytes import ByteReader
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import (
    RequestHeader,
    read_body,
    read_header,
    read_response,
    write_body,
    write_element,
    write_response,
)
from rackspan.wire.compiled import read_value, struct_reader, struct_writer
from rackspan.wire.kio_schemas import load_request_schema, load_response_schema
from rackspan.wire.messages.api_versions import ApiVersionsResponseData
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from rackspan.wire.schema import FieldShape, StructShape, request_shape, response_shape

PAIRS = [(key, version) for key, versions in VERSIONS.items() for version in versions]


def random_struct(shape: StructShape, rng: Random) -> WireStruct:
    fields = [*shape.fields, *(field for _, field in shape.tagged)]
    return shape.values(**{field.name: random_field(field, rng) for field in fields})


def random_field(field: FieldShape, rng: Random) -> Any:
    if field.nullable and rng.random() < 0.3:
        return None
    if field.array:
        return tuple(random_item(field.kind, rng) for _ in range(rng.randrange(4)))
    return random_item(field.kind, rng)


def random_item(kind: str | StructShape, rng: Random) -> Any:
    if isinstance(kind, StructShape):
        return random_struct(kind, rng)
    draws: dict[str, Callable[[], Any]] = {
        "bool": lambda: rng.random() < 0.5,
        "int8": lambda: rng.randrange(-128, 128),
        "int16": lambda: rng.randrange(-(2**15), 2**15),
        "uint16": lambda: rng.randrange(2**16),
        "int32": lambda: rng.randrange(-(2**31), 2**31),
        "int64": lambda: rng.randrange(-(2**63), 2**63),
        "float64": lambda: rng.random(),
        "string": lambda: "é" * rng.randrange(200),
        "bytes": lambda: rng.randbytes(rng.randrange(200)),
        "records": lambda: memoryview(rng.randbytes(rng.randrange(10_000))),
        "uuid": lambda: UUID(bytes=rng.randbytes(16)) if rng.random() < 0.8 else None,
        # What kio can hold: codes of its enum, times in the range of datetime.
        "error_code": lambda: rng.randrange(-1, 120),
        "timedelta_i32": lambda: rng.randrange(2**31),
        "timedelta_i64": lambda: rng.randrange(2**40),
        "datetime_i64": lambda: rng.randrange(2**41),
    }
    return draws[kind]()


def written(shape: StructShape, values: WireStruct) -> bytes:
    parts: list[bytes] = []
    struct_writer(shape)(parts, values)
    return b"".join(parts)


@pytest.mark.parametrize(("key", "version"), PAIRS)
@pytest.mark.parametrize("side", ["request", "response"])
def test_kio_and_this_codec_read_and_write_the_same_bytes(key: ApiKey, version: int, side: str) -> None:
    shape = request_shape(key, version) if side == "request" else response_shape(key, version)
    entity: Any = load_request_schema(key, version) if side == "request" else load_response_schema(key, version)
    for seed in range(6):
        values = random_struct(shape, Random(seed))
        ours = written(shape, values)
        theirs, size = entity_reader(entity)(ours, 0)
        assert size == len(ours)
        collected = BytesIO()
        entity_writer(entity)(collected, theirs)
        assert collected.getvalue() == ours
        again = read_value(struct_reader(shape), ByteReader(ours))
        assert written(shape, again) == ours
        assert again == values


BROKERS = [(1, "127.0.0.1", 9092, "r1"), (2, "127.0.0.1", 9093, None)]
TOPIC_ID = UUID(int=77)


@pytest.mark.parametrize("version", range(14))
def test_kafka_python_reads_a_metadata_response(version: int) -> None:
    partition = MetadataResponsePartition(
        partition_index=3, leader_id=2, leader_epoch=9, replica_nodes=(2, 1), isr_nodes=(2,), offline_replicas=(1,)
    )
    body = MetadataResponseData(
        brokers=[MetadataResponseBroker(node_id=n, host=host, port=port, rack=rack) for n, host, port, rack in BROKERS],
        cluster_id="c" if version > 1 else None,
        controller_id=1,
        topics=[MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])],
    )
    theirs = MetadataResponse.decode(b"".join(write_body(ApiKey.METADATA, version, body)), version=version)
    racks = [broker.rack for broker in theirs.brokers] if version else [None, None]
    assert racks == (["r1", None] if version else [None, None])
    (topic,) = theirs.topics
    (partition,) = topic.partitions
    assert (topic.name, partition.partition_index, partition.leader_id) == ("t", 3, 2)
    assert (list(partition.replica_nodes), list(partition.isr_nodes)) == ([2, 1], [2])
    if version >= 5:
        assert list(partition.offline_replicas) == [1]
    if version >= 10:
        assert topic.topic_id == TOPIC_ID


def sent_by_kafka_python(request: Any, version: int) -> bytes:
    request.with_header(correlation_id=5, client_id="someone")
    return bytes(request.encode(version=version, header=True, framed=False))


@pytest.mark.parametrize("version", range(14))
def test_a_metadata_request_of_kafka_python_is_read(version: int) -> None:
    topic = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(topics=[topic(name="a"), topic(name="b")], allow_auto_topic_creation=True)
    data = sent_by_kafka_python(request, version)
    header = read_header(data)
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (3, version, 5, "someone")
    assert [topic.name for topic in read_body(data, header).topics] == ["a", "b"]


def test_an_error_code_that_kafka_lacks_is_written_unchanged() -> None:
    data = b"".join(write_body(ApiKey.METADATA, 13, MetadataResponseData(error_code=1001)))
    assert MetadataResponse.decode(data, version=13).error_code == 1001


def test_the_header_of_an_api_versions_response_has_no_tags() -> None:
    parts = write_response(RequestHeader(18, 4, 6, None, 0), ApiVersionsResponseData())
    assert parts[0] == pack(">i", 6)
    assert write_response(RequestHeader(3, 12, 6, None, 0), MetadataResponseData())[0] == pack(">i", 6) + b"\0"


@pytest.mark.parametrize("seed", range(40))
def test_a_request_cut_anywhere_is_malformed_and_nothing_else(seed: int) -> None:
    rng = Random(seed)
    key, version = rng.choice(PAIRS)
    whole = pack(">hhih", key, version, 1, 2) + b"me"
    flexible = request_shape(key, version).flexible
    whole += (b"\0" if flexible else b"") + written(
        request_shape(key, version), random_struct(request_shape(key, version), rng)
    )
    for end in range(8, len(whole), max(1, len(whole) // 50)):
        cut = whole[:end]
        with pytest.raises(MalformedRequest):
            read_body(cut, read_header(cut))


@pytest.mark.parametrize("claim", [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\x7f"])
def test_an_array_length_of_two_thousand_million_is_malformed_and_costs_nothing(claim: bytes) -> None:
    data = pack(">hhih", 3, 12, 1, -1) + b"\0" + claim + b"\x01\0\0"
    with pytest.raises(MalformedRequest, match="elements"):
        read_body(data, read_header(data))


@pytest.mark.parametrize(("key", "version"), [(3, 99), (999, 0), (-1, -1), (4, 0)])
def test_a_version_without_a_schema_is_malformed(key: int, version: int) -> None:
    with pytest.raises(MalformedRequest, match=str(key)):
        read_header(pack(">hhih", key, version, 1, -1))


def test_create_topics_requests_of_every_version_are_read() -> None:
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[topic(name="a", num_partitions=3, replication_factor=2, assignments=[], configs=[])], timeout_ms=7,
        validate_only=False,
    )  # fmt: skip
    for version in range(2, 8):
        data = sent_by_kafka_python(request, version)
        body = read_body(data, read_header(data))
        assert (body.timeout, body.topics[0].num_partitions) == (7, 3), version


@pytest.mark.parametrize("version", [0, 8, 9, 13])
def test_an_element_that_is_encoded_beforehand_gives_the_same_bytes(version: int) -> None:
    partition = MetadataResponsePartition(partition_index=0, replica_nodes=(1, 2))
    topics = [MetadataResponseTopic(name=name, partitions=[partition]) for name in ("a", "b")]
    whole = write_body(ApiKey.METADATA, version, MetadataResponseData(topics=topics))
    elements: Any = [write_element(ApiKey.METADATA, version, "topics", topic) for topic in topics]
    spliced = write_body(ApiKey.METADATA, version, MetadataResponseData(topics=elements))
    assert b"".join(spliced) == b"".join(whole)


@pytest.mark.slow
def test_a_response_of_millions_of_elements_is_read() -> None:
    """Metadata of a million partitions has seven million. A server reads two million of a request, a client what a broker sends."""
    replicas = range(2_100_000)
    partition = MetadataResponsePartition(replica_nodes=replicas)
    response = MetadataResponseData(topics=[MetadataResponseTopic(name="t", partitions=[partition])])
    sent = b"".join(write_response(RequestHeader(ApiKey.METADATA, 8, 1, None, 0), response))
    read = read_response(ApiKey.METADATA, 8, sent)
    assert read.topics[0].partitions[0].replica_nodes == tuple(replicas)
