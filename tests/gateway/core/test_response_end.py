"""The end of Fetch, ShareFetch and ShareAcknowledge responses, found and rewritten however the bytes are cut.

Fetch responses are written and read by wire/; those of share groups by kio itself.
"""

import io
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_response_schema
from kio.serial import entity_reader, entity_writer

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import SHARE_ACKNOWLEDGE, SHARE_FETCH
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.response_end import EndFinder, rewritten_end
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader, read_response, write_response
from rackspan.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchResponseAbortedTransaction,
    FetchResponseData,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
)
from tests.gateway.core.addresses import renamed


def fetched(endpoints: int, *, host: str = "upstream.example") -> FetchResponseData:
    partitions = [
        FetchResponsePartitionData(
            partition_index=0,
            records=[b"r" * 70_000],
            aborted_transactions=[FetchResponseAbortedTransaction(producer_id=1, first_offset=2)],
        ),
        FetchResponsePartitionData(partition_index=1, error_code=6, records=[], aborted_transactions=None),
    ]
    topics = [FetchableTopicResponse(topic_id=UUID(int=number), partitions=partitions) for number in (1, 2)]
    nodes = [FetchResponseNodeEndpoint(node_id=one, host=host, port=one, rack="a") for one in range(1, endpoints + 1)]
    return FetchResponseData(throttle_time=5, session_id=9, responses=topics, node_endpoints=nodes)


def written(version: int, body: FetchResponseData) -> bytes:
    return b"".join(map(bytes, write_response(RequestHeader(ApiKey.FETCH, version, 77, None, 0), body)))


def passed(
    api_key: int, version: int, response: bytes, sizes: list[int], addresses: Addresses, *, same_size: bool
) -> bytes:
    """As a session passes it: forwarded up to the end, the end rewritten."""
    finder, at, forwarded = EndFinder(api_key, version), 0, b""
    for size in sizes:
        part = memoryview(response)[at : at + size]
        before = finder.feed(part)
        if before is not None:
            forwarded += bytes(part[:before])
            break
        forwarded += bytes(part)
        at += size
    return forwarded + rewritten_end(api_key, response[len(forwarded) :], addresses, same_size=same_size)


def cuts(response: bytes, seed: int) -> list[int]:
    rng = Random(seed)
    sizes: list[int] = []
    while sum(sizes) < len(response):
        sizes.append(rng.choice((1, 2, 3, 7, 50, 4000, 100_000)))
    return sizes


@pytest.mark.parametrize("version", [16, 17, 18])
@pytest.mark.parametrize("endpoints", [0, 1, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_fetch_response_keeps_its_size_and_all_but_the_addresses(version: int, endpoints: int, seed: int) -> None:
    original = written(version, fetched(endpoints))
    changed = passed(ApiKey.FETCH, version, original, cuts(original, seed), renamed(), same_size=True)
    assert len(changed) == len(original)
    wanted = read_response(ApiKey.FETCH, version, original)
    for one in wanted.node_endpoints:
        one.host, one.port = f"gateway-{one.node_id}", 9000 + one.node_id
    assert read_response(ApiKey.FETCH, version, changed) == wanted


@pytest.mark.parametrize("host_bytes", [*range(1, 40), 120, 127, 128, 129, 130, 131, 132, 200])
def test_every_gap_can_be_padded(host_bytes: int) -> None:
    original = written(17, fetched(2, host="h" * host_bytes))
    changed = passed(ApiKey.FETCH, 17, original, [len(original)], renamed(), same_size=True)
    assert len(changed) == len(original)
    nodes = read_response(ApiKey.FETCH, 17, changed).node_endpoints
    assert [one.host for one in nodes] in ([], ["gateway-1", "gateway-2"])
    assert b"hhhhhhhhhh" not in changed


def test_addresses_that_do_not_fit_are_left_out_unless_the_size_may_change() -> None:
    original = written(17, fetched(1, host="x"))
    short = passed(ApiKey.FETCH, 17, original, [len(original)], renamed(), same_size=True)
    assert read_response(ApiKey.FETCH, 17, short).node_endpoints == ()
    longer = passed(ApiKey.FETCH, 17, original, [len(original)], renamed(), same_size=False)
    assert [one.host for one in read_response(ApiKey.FETCH, 17, longer).node_endpoints] == ["gateway-1"]


def share_response(api_key: int, version: int) -> tuple[Any, bytes]:
    """By kio: one partition that moved, and where its new leader is."""
    schema: Any = load_response_schema(api_key, version)
    module = __import__(schema.__module__, fromlist=["*"])
    leader = module.LeaderIdAndEpoch(leader_id=2, leader_epoch=3)
    more: dict[str, Any] = {}
    if api_key == SHARE_FETCH:
        acquired = module.AcquiredRecords(first_offset=0, last_offset=1, delivery_count=1)
        more = {"acknowledge_error_code": 0, "records": b"r" * 5000, "acquired_records": (acquired,)}
    partition = module.PartitionData(
        partition_index=0, error_code=module.ErrorCode.not_leader_or_follower, current_leader=leader, **more
    )
    topic_type = module.ShareFetchableTopicResponse if api_key == SHARE_FETCH else module.ShareAcknowledgeTopicResponse
    endpoint = module.NodeEndpoint(node_id=2, host="upstream.example", port=1, rack="b")
    common = {"throttle_time": timedelta(0), "error_code": module.ErrorCode.none}
    if api_key == SHARE_FETCH or version >= 2:
        common["acquisition_lock_timeout"] = timedelta(seconds=30)
    topic = topic_type(topic_id=UUID(int=1), partitions=(partition,))
    response = schema(**common, responses=(topic,), node_endpoints=(endpoint,))
    buffer = io.BytesIO()
    entity_writer(schema)(buffer, response)
    return schema, b"\x00\x00\x00\x07\x00" + buffer.getvalue()


@pytest.mark.parametrize("api_key", [SHARE_FETCH, SHARE_ACKNOWLEDGE])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("same_size", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_share_groups_find_new_leaders_at_the_gateway(api_key: int, version: int, same_size: bool, seed: int) -> None:
    schema, original = share_response(api_key, version)
    # kio skips no tagged field, so the addresses are as long as those they replace.
    addresses = renamed("gatewayexample")
    changed = passed(api_key, version, original, cuts(original, seed), addresses, same_size=same_size)
    assert len(changed) == len(original)
    read, _ = entity_reader(schema)(changed, 5)
    assert [(one.node_id, one.host, one.port) for one in read.node_endpoints] == [(2, "gatewayexample-2", 9002)]


def test_an_end_that_contradicts_itself_closes_the_connection() -> None:
    with pytest.raises(MalformedRequest):
        rewritten_end(ApiKey.FETCH, b"\x01\x00\x7f\x02", renamed(), same_size=True)


@pytest.mark.parametrize("version", range(4, 19))
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_preferred_replicas_and_bytes_of_records_are_found_in_every_version(version: int, size: int) -> None:
    aborted = [FetchResponseAbortedTransaction(producer_id=1, first_offset=2)]
    topics = [
        FetchableTopicResponse(
            topic=f"topic-{number}",
            topic_id=UUID(int=number),
            partitions=[
                FetchResponsePartitionData(partition_index=0, records=[b"r" * 300], aborted_transactions=aborted),
                FetchResponsePartitionData(partition_index=3, records=[], preferred_read_replica=6 + number),
            ],
        )
        for number in (1, 2)
    ]
    response, found = (
        written(version, FetchResponseData(session_id=9, responses=topics)),
        list[tuple[bytes | str, int, int, int]](),
    )
    finder = EndFinder(ApiKey.FETCH, version, lambda *partition: found.append(partition))
    for at in range(0, len(response), size):
        finder.feed(memoryview(response)[at : at + size])
    names = ["topic-1", "topic-2"] if version < 13 else [UUID(int=1).bytes, UUID(int=2).bytes]
    replicas = [-1, -1] if version < 11 else [7, 8]
    assert found == [
        each
        for name, replica in zip(names, replicas, strict=True)
        for each in ((name, 0, -1, 300), (name, 3, replica, 0))
    ]
