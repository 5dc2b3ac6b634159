"""The config topic at the start of a gateway: created if it is missing, or an error that says what to do."""

import asyncio
import re
from typing import Any

import pytest

from rackspan.client.login import Login
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable
from rackspan.gateway.upstream import config_topic
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import (
    MetadataResponseData,
    MetadataResponseTopic,
)
from rackspan.wire.messages.topics import CreatableTopic, CreatableTopicResult, CreateTopicsResponseData
from tests.gateway.upstream.test_config_topic import CONFIGS, Log, brokers, cluster_of, lines_of, metadata


def started(
    created: CreatableTopicResult | None, brokers_up: int = 1, *, create: bool = True
) -> tuple[ConfigTopic, list[CreatableTopic]]:
    """The config topic of a gateway that starts where it is missing, and the topics that it requests. None: it is not missing.

    Errors: those of ConfigTopic.start.
    """
    requested: list[CreatableTopic] = []
    log = Log()

    async def create_topics(request: Any) -> CreateTopicsResponseData:
        requested.extend(request.topics)
        return CreateTopicsResponseData(topics=[created] if created else [])

    async def scenario() -> ConfigTopic:
        async with brokers(1) as (leader,):
            described = metadata({1: leader.port}, 1, 5)
            missing = MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=CONFIGS)

            async def metadata_of(request: Any) -> WireStruct | None:
                if created is not None and not requested:
                    return MetadataResponseData(topics=[missing])
                return await described(request)

            leader.handles |= {
                ApiKey.METADATA: metadata_of,
                ApiKey.CREATE_TOPICS: create_topics,
                ApiKey.FETCH: log.fetch,
                ApiKey.LIST_OFFSETS: log.list_offsets,
            }
            cluster = cluster_of(*[leader.port] * brokers_up)
            topic = ConfigTopic(CONFIGS, cluster, Login(), lambda _key, _value: None, create=create)
            try:
                await topic.start()
            finally:
                topic.close()
                cluster.close()
            return topic

    return asyncio.run(scenario()), requested


def creation(error: int = 0, message: str | None = None) -> CreatableTopicResult:
    return CreatableTopicResult(name=CONFIGS, error_code=error, error_message=message)


@pytest.mark.parametrize(("brokers_up", "factor", "in_sync"), [(1, 1, "1"), (2, 2, "1"), (3, 3, "2"), (5, 3, "2")])
def test_a_config_topic_that_is_missing_is_created_compacted_with_one_partition(
    brokers_up: int, factor: int, in_sync: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic, (requested,) = started(creation(), brokers_up)
    assert topic.current
    assert (requested.name, requested.num_partitions, requested.replication_factor) == (CONFIGS, 1, factor)
    assert {config.name: config.value for config in requested.configs} == {
        "cleanup.policy": "compact",
        "min.insync.replicas": in_sync,
        "compression.type": "uncompressed",
        "segment.bytes": "1048576",
        "message.timestamp.type": "LogAppendTime",
    }
    (line,) = lines_of(caplog)
    assert line.startswith("the config topic configs did not exist and was created: no topic has a value")


def test_a_config_topic_that_another_gateway_created_meanwhile_is_read(caplog: pytest.LogCaptureFixture) -> None:
    topic, _ = started(creation(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'configs' already exists."))
    assert topic.current
    assert lines_of(caplog) == []


def test_a_config_topic_that_is_there_is_not_created() -> None:
    topic, requested = started(None)
    assert (topic.current, requested) == (True, [])


@pytest.mark.parametrize(("message", "shown"), [("Authorization failed.", "Authorization failed."), (None, "29")])
def test_a_config_topic_that_cannot_be_created_ends_the_start(message: str | None, shown: str) -> None:
    expected = f"the config topic configs could not be created: {shown}; create it with cleanup.policy=compact"
    with pytest.raises(ClusterRequestFailed, match=re.escape(expected)):
        started(creation(ErrorCode.TOPIC_AUTHORIZATION_FAILED, message))


def test_a_config_topic_that_is_not_to_be_created_is_missed() -> None:
    with pytest.raises(
        ClusterRequestFailed, match=r"configs does not exist, and acknowledgements\.config\.topic\.create"
    ):
        started(creation(), create=False)


def test_a_config_topic_that_cannot_be_read_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_topic, "START_SECONDS", 0.2)

    async def scenario() -> None:
        async with brokers(1) as (silent,):
            cluster = cluster_of(silent.port)
            with pytest.raises(
                ClusterUnreachable, match=r"configs could not be read in 0\.2 s; does the gateway's principal"
            ):
                await ConfigTopic(CONFIGS, cluster, Login(), lambda _key, _value: None).start()
            cluster.close()

    asyncio.run(scenario())
