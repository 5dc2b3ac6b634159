"""A read of the metadata log counts once a majority of the controllers has confirmed the leader. Controllers of few lines here."""

import asyncio
import gc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.gateway.upstream import quorum as quorum_module
from rackspan.gateway.upstream.quorum import TOPIC, MetadataQuorum
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseReplicaState,
    DescribeQuorumResponseTopicData,
)
from rackspan.wire.messages.fetch import FetchableTopicResponse, FetchResponseData, FetchResponsePartitionData
from tests.client.fake_broker import FakeBroker, Handle, ProvingBroker
from tests.waiting import WITHIN_SECONDS

NONE, NOT_LEADER, FENCED_EPOCH = 0, 6, 74


def fetched(error: int) -> Handle:
    async def respond(_request: Any) -> FetchResponseData:
        partition = FetchResponsePartitionData(partition_index=0, error_code=error, high_watermark=0, records=[])
        return FetchResponseData(responses=[FetchableTopicResponse(partitions=[partition])])

    return respond


def described(controllers: list[FakeBroker]) -> Handle:
    """By controller 1, the leader in epoch 0."""

    async def respond(_request: Any) -> DescribeQuorumResponseData:
        voters = [DescribeQuorumResponseReplicaState(replica_id=one) for one in range(1, len(controllers) + 1)]
        partition = DescribeQuorumResponsePartitionData(leader_id=1, leader_epoch=0, current_voters=voters)
        nodes = [
            DescribeQuorumResponseNode(
                node_id=number,
                listeners=[DescribeQuorumResponseListener(name="C", host="127.0.0.1", port=one.port)],
            )
            for number, one in enumerate(controllers, 1)
        ]
        topic = DescribeQuorumResponseTopicData(topic_name=TOPIC, partitions=[partition])
        return DescribeQuorumResponseData(topics=[topic], nodes=nodes)

    return respond


@asynccontextmanager
async def quorum(
    *others: int, identity: IdentityMode = IdentityMode.ADDRESS, placed: Sequence[int] = ()
) -> AsyncIterator[tuple[MetadataQuorum, list[FakeBroker]]]:
    """Controller 1 leads; the others respond with these errors to a request in its epoch. `placed` are who responds at their addresses."""
    controllers: list[FakeBroker] = [ProvingBroker(number, release=(4, 3)) for number in placed]
    controllers = controllers or [FakeBroker() for _ in range(1 + len(others))]
    for one, error in zip(controllers, (NONE, *others), strict=True):
        await one.start()
        one.handles[ApiKey.FETCH] = fetched(error)
    controllers[0].handles[ApiKey.DESCRIBE_QUORUM] = described(controllers)
    read = MetadataQuorum((("127.0.0.1", controllers[0].port),), Login(), None, identity)
    try:
        yield read, controllers
    finally:
        read.close()
        for one in controllers:
            await one.close()


async def offset_read(*others: int) -> int:
    async with quorum(*others) as (read, _):
        return (await read.current()).offset


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("others", [(), (NOT_LEADER, NOT_LEADER), (FENCED_EPOCH, NOT_LEADER), (NONE,) * 4])
def test_a_majority_is_enough(others: tuple[int, ...]) -> None:
    assert asyncio.run(offset_read(*others)) == 0
    # A coroutine that nobody awaited warns when it is collected.
    gc.collect()


@pytest.mark.parametrize("others", [(FENCED_EPOCH,), (FENCED_EPOCH, FENCED_EPOCH)])
def test_a_leader_that_others_have_replaced_is_not_believed(others: tuple[int, ...]) -> None:
    with pytest.raises(ClusterUnreachable, match=rf"1 of {1 + len(others)} controllers confirm"):
        asyncio.run(offset_read(*others))


@pytest.mark.parametrize("identity", list(IdentityMode))
def test_a_leader_at_the_address_of_another_voter_does_not_confirm_itself(identity: IdentityMode) -> None:
    async def scenario(*placed: int) -> int:
        async with quorum(NONE, FENCED_EPOCH, identity=identity, placed=placed) as (read, _):
            return (await read.current()).offset

    assert asyncio.run(scenario(1, 2, 3)) == 0
    if identity is IdentityMode.ADDRESS:
        assert asyncio.run(scenario(1, 1, 3)) == 0
        return
    words = r"^1 of 3 controllers confirm .*; another one responds at the address of controller 2 \(Unexpected"
    with pytest.raises(ClusterUnreachable, match=words):
        asyncio.run(scenario(1, 1, 3))


def test_a_controller_that_is_silent_is_not_waited_for_where_a_majority_has_confirmed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quorum_module, "READ_SECONDS", 2 * WITHIN_SECONDS)

    async def scenario() -> int:
        async with quorum(NOT_LEADER, NOT_LEADER) as (read, controllers):
            del controllers[2].handles[ApiKey.FETCH]
            async with asyncio.timeout(WITHIN_SECONDS):
                return (await read.current()).offset

    assert asyncio.run(scenario()) == 0


def test_a_response_without_the_log_is_an_error() -> None:
    async def scenario() -> None:
        async with quorum() as (read, controllers):

            async def nothing(_request: Any) -> FetchResponseData:
                return FetchResponseData()

            controllers[0].handles[ApiKey.FETCH] = nothing
            await read.current()

    with pytest.raises(ClusterRequestFailed, match="holds no topic"):
        asyncio.run(scenario())
