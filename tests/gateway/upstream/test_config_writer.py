"""Records of the config topic: written again if they are refused, and held by as many racks as their value requires."""

import asyncio
import re
from typing import Any

import pytest

from rackspan.errors import ClusterUnreachable
from rackspan.gateway.upstream import config_writer
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.produce import PartitionProduceResponse, ProduceResponseData, TopicProduceResponse
from tests.client.fake_broker import Handle
from tests.gateway.upstream.test_config_topic import CONFIGS, Leader, Log, dead_port, followed, metadata, until


def refusing(log: Log, *refusals: tuple[int, str | None]) -> Handle:
    """Produce with these errors, one after the other, and then the log's own response."""
    left = list(refusals)

    async def produce(request: Any) -> ProduceResponseData:
        if not left:
            return await log.produce(request)
        code, message = left.pop(0)
        refused = PartitionProduceResponse(index=0, error_code=code, error_message=message)
        return ProduceResponseData(responses=[TopicProduceResponse(name=CONFIGS, partition_responses=[refused])])

    return produce


def test_a_record_that_is_refused_is_written_again() -> None:
    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, leader):
            leader.handles[ApiKey.PRODUCE] = refusing(log, (6, None), (19, "too few"))
            await topic.write(b"a", b"1")
            assert replayed == [(b"a", b"1")]

    asyncio.run(scenario())


@pytest.mark.parametrize(("refusal", "shown"), [((6, None), "error 6"), ((19, "too few"), "too few")])
def test_a_record_that_cannot_be_written_is_an_error_with_the_last_reason(
    monkeypatch: pytest.MonkeyPatch, refusal: tuple[int, str | None], shown: str
) -> None:
    monkeypatch.setattr(config_writer, "WRITE_SECONDS", 0.25)

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, _, leader):
            leader.handles[ApiKey.PRODUCE] = refusing(log, *[refusal] * 9)
            expected = (
                f"configs could not be written to 1 rack in 0.25 s, or not be read after that: {shown}; look at its"
            )
            with pytest.raises(ClusterUnreachable, match=re.escape(expected)):
                await topic.write(b"a", b"1")

    asyncio.run(scenario())


def test_a_record_that_the_other_racks_do_not_show_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Broker 2 is in sync by the metadata, and is not there."""
    monkeypatch.setattr(config_writer, "WRITE_SECONDS", 0.4)

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, replayed, leader):
            leader.handles[ApiKey.METADATA] = metadata({1: leader.port, 2: dead_port()}, 1, 5)
            await topic._cluster.refresh()
            with pytest.raises(
                ClusterUnreachable, match=r"could not be written to 2 racks in 0\.4 s, .*: no response; look"
            ):
                await topic.write(b"a", b"1", racks=2)
            # It is there all the same: what requires too much refuses, and loses nothing.
            await until(lambda: replayed == [(b"a", b"1")])

    asyncio.run(scenario())
