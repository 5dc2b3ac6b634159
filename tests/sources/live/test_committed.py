"""Committed offsets by group, and what is reported of those that cannot be read."""

import asyncio
from typing import Any

import pytest

from rackspan.errors import ClusterUnreachable
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from rackspan.sources.live.committed import CommittedOffsets, committed_offsets
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.group_offsets import (
    OffsetFetchResponseData,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from rackspan.wire.messages.groups import ListGroupsResponseData
from tests.scripted_connection import ScriptedConnection, listing

CONSUMER = ("classic", "consumer")


def fetched(*rows: tuple[int, int, int]) -> OffsetFetchResponseData:
    """Partitions of orders: number, offset, error code."""
    partitions = [
        OffsetFetchResponsePartition(partition_index=index, committed_offset=offset, error_code=error)
        for index, offset, error in rows
    ]
    return OffsetFetchResponseData(topics=[OffsetFetchResponseTopic(name="orders", partitions=partitions)])


def read(connection: ScriptedConnection) -> CommittedOffsets:
    found: CommittedOffsets = connection.run(committed_offsets, connection)
    return found


def test_the_offsets_of_every_group_come_from_its_coordinator() -> None:
    sent: list[tuple[str, int | None]] = []

    def fetch(request: Any, broker: int | None) -> OffsetFetchResponseData:
        sent.append((request.group_id, broker))
        assert request.topics is None
        # Partition 1 has no committed offset, partition 2 an error, and 0 is an offset.
        return fetched((0, 0, 0), (1, -1, 0), (2, 7, ErrorCode.UNSTABLE_OFFSET_COMMIT), (3, 9, 0))

    connection = ScriptedConnection(
        {ApiKey.LIST_GROUPS: listing({1: {"a": CONSUMER}, 2: {"b": CONSUMER}}), ApiKey.OFFSET_FETCH: fetch}
    )
    offsets = {TopicPartition("orders", 0): 0, TopicPartition("orders", 3): 9}
    assert read(connection) == CommittedOffsets(
        {"a": offsets, "b": offsets},
        tuple(f"offsets of group {group}: UNSTABLE_OFFSET_COMMIT of 1 partition" for group in "ab"),
    )
    assert sorted(sent) == [("a", 1), ("b", 2)]


def test_groups_that_cannot_be_read_are_named_with_the_reason_and_others_are_kept() -> None:
    codes = {
        "secret": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "shares": ErrorCode.GROUP_ID_NOT_FOUND,
        "moves": ErrorCode.NOT_COORDINATOR,
    }

    def fetch(request: Any, _: int | None) -> OffsetFetchResponseData | Exception:
        if request.group_id == "late":
            return TimeoutError("no response in time")
        response = fetched((0, 5, 0))
        response.error_code = codes.get(request.group_id, 0)
        return response

    names = dict.fromkeys((*codes, "late", "fine"), CONSUMER)

    def list_groups(request: Any, broker: int | None) -> Any:
        refused = ListGroupsResponseData(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return refused if broker == 2 else listing({1: names})(request, broker)

    assert read(ScriptedConnection({ApiKey.LIST_GROUPS: list_groups, ApiKey.OFFSET_FETCH: fetch})) == CommittedOffsets(
        {"shares": {}, "fine": {TopicPartition("orders", 0): 5}},
        (
            "offsets of group secret: this user needs Describe on Group secret",
            "offsets of group moves: NOT_COORDINATOR",
            "offsets of group late: no response in time",
            "the groups of broker 2: COORDINATOR_LOAD_IN_PROGRESS",
        ),
    )


def test_a_fault_of_ours_is_raised_and_not_reported_as_a_group_that_cannot_be_read() -> None:
    responses = {ApiKey.LIST_GROUPS: listing({1: {"a": CONSUMER}}), ApiKey.OFFSET_FETCH: lambda *_: KeyError("ours")}
    with pytest.raises(KeyError, match="ours"):
        read(ScriptedConnection(responses))


def test_a_list_of_brokers_that_is_not_received_is_one_line() -> None:
    connection = ScriptedConnection({ApiKey.METADATA: lambda *_: TimeoutError("no response to METADATA in time")})
    with pytest.raises(
        ClusterUnreachable, match=r"^the list of brokers was not received: no response in time; raise --"
    ):
        read(connection)


class Counting(ScriptedConnection):
    """Counts the requests that are without a response at once."""

    waiting, most_waiting = 0, 0

    async def call(self, *words: Any, **more: Any) -> Any:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await asyncio.sleep(0)
        self.waiting -= 1
        return await super().call(*words, **more)


def test_thousands_of_groups_do_not_wait_for_each_other() -> None:
    """Over a connection of 20 ms they would take minutes, and what reads them has 30 s."""
    groups = {f"g{number:03}": CONSUMER for number in range(250)}
    connection = Counting(
        {ApiKey.LIST_GROUPS: listing({1: groups}), ApiKey.OFFSET_FETCH: lambda *_: fetched((0, 5, 0))}
    )
    assert [*read(connection).by_group] == [*groups]
    assert connection.most_waiting == 100
