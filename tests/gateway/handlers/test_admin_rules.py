"""What admin requests become on their way to the cluster and back, by sessions and clusters of few lines without a network."""

import asyncio
from copy import deepcopy
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.errors import ClusterUnreachable
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.policies import FilePolicies, Policies
from rackspan.gateway.handlers.admin import AdminHandler, _may_create
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.configs import (
    AlterConfigsRequestData,
    DescribeConfigsRequestData,
    IncrementalAlterConfigsRequestData,
)
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequestData,
    DeleteRecordsResponseData,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
)
from rackspan.wire.messages.topics import (
    CreatePartitionsRequestData,
    CreateTopicsRequestData,
    DeletableTopicResult,
    DeleteTopicsRequestData,
    DeleteTopicsResponseData,
    DeleteTopicState,
)
from tests.gateway.core.addresses import renamed
from tests.gateway.handlers.test_config_requests import Reporting, Store

CONFIGS_ID, ORDERS_ID, OLD_ID = UUID(int=1), UUID(int=2), UUID(int=3)
KEY = "min.insync.racks"
REFUSED = (
    "configs has the values of min.insync.racks and is altered or deleted at the brokers only, not through a gateway"
)


class Session:
    """A client's session whose broker responds to each request with the next of these, and keeps what was sent to it."""

    def __init__(self, *responses: WireStruct) -> None:
        self._responses = list(responses)
        self.sent: list[tuple[ApiKey, int, str | None, Any]] = []

    async def call(self, key: ApiKey, version: int, client_id: str | None, body: WireStruct) -> WireStruct:
        self.sent.append((key, version, client_id, deepcopy(body)))
        return self._responses.pop(0)


class Cluster(Reporting):
    """Three brokers in as many racks; a topic is reported at once."""

    def __init__(self, *errors: int) -> None:
        super().__init__(*errors or (0,))

    def all_brokers(self) -> tuple[Broker, ...]:
        return tuple(Broker(BrokerId(one), RackId(f"r{one}")) for one in (1, 2, 3))


class KeptStore(Store):
    """A config topic whose id is known."""

    topic_id: UUID | None = CONFIGS_ID


class FullStore(KeptStore):
    """It takes nothing more."""

    async def write(self, key: bytes, value: bytes | None, racks: int) -> None:
        raise ClusterUnreachable("no leader")


def handled(
    body: WireStruct,
    *responses: WireStruct,
    store: Store | None = None,
    version: int | None = None,
    placer: bool = False,
    policies: Policies | None = None,
    extended: bool = False,
    cluster: Cluster | None = None,
    addresses: Addresses | None = None,
) -> tuple[Any, Session]:
    """The response to a client's request, and the session with what was sent to the broker meanwhile."""
    key, newest = KEYS[type(body)]
    session = Session(*responses)
    backend = SimpleNamespace(
        cluster=cluster or Cluster(),
        policies=policies or Policies(FilePolicies()),
        placer=object() if placer else None,
        config=SimpleNamespace(extended_error_codes=extended),
    )
    handler = AdminHandler(cast("Any", backend), addresses or renamed(), cast("Any", store))
    header = RequestHeader(key, newest if version is None else version, 7, "shop", 0)
    response = asyncio.run(cast("Any", handler._handles[key](cast("Any", session), header, body)))
    return response, session


KEYS = {
    DeleteTopicsRequestData: (ApiKey.DELETE_TOPICS, 6),
    DeleteRecordsRequestData: (ApiKey.DELETE_RECORDS, 2),
    CreateTopicsRequestData: (ApiKey.CREATE_TOPICS, 7),
    CreatePartitionsRequestData: (ApiKey.CREATE_PARTITIONS, 3),
    MetadataRequestData: (ApiKey.METADATA, 9),
    IncrementalAlterConfigsRequestData: (ApiKey.INCREMENTAL_ALTER_CONFIGS, 1),
    AlterConfigsRequestData: (ApiKey.ALTER_CONFIGS, 2),
    DescribeConfigsRequestData: (ApiKey.DESCRIBE_CONFIGS, 4),
}

KEPT = DeletableTopicResult(name="configs", topic_id=CONFIGS_ID, error_code=29, error_message=REFUSED)
DELETED = DeletableTopicResult(name="orders", topic_id=ORDERS_ID)


@pytest.mark.parametrize(
    ("names", "states", "sent_names", "sent_states", "kept"),
    [
        (["configs", "orders"], [], ["orders"], [], 1),
        (["orders", "configs", "configs"], [], ["orders"], [], 2),
        (
            [],
            [("orders", None), ("configs", None), (None, CONFIGS_ID), (None, ORDERS_ID)],
            [],
            [("orders", None), (None, ORDERS_ID)],
            2,
        ),
        (["orders"], [], ["orders"], [], 0),
        ([], [], [], [], 0),
    ],
)
def test_topics_are_deleted_by_name_and_id_but_for_the_config_topic(
    names: list[str],
    states: list[tuple[str | None, UUID | None]],
    sent_names: list[str],
    sent_states: list[tuple[str | None, UUID | None]],
    kept: int,
) -> None:
    topics = [DeleteTopicState(name=name, topic_id=topic_id) for name, topic_id in states]
    body = DeleteTopicsRequestData(topic_names=names, topics=topics, timeout=9)
    response, session = handled(body, DeleteTopicsResponseData(responses=[DELETED]), store=KeptStore())
    ((key, version, client_id, sent),) = session.sent
    assert (key, version, client_id, sent.timeout) == (ApiKey.DELETE_TOPICS, 6, "shop", 9)
    assert sent.topic_names == sent_names
    assert [(one.name, one.topic_id) for one in sent.topics] == sent_states
    assert response.responses == [DELETED, *[KEPT] * kept]


def test_a_request_that_deletes_the_config_topic_alone_does_not_reach_the_cluster() -> None:
    for body in (
        DeleteTopicsRequestData(topic_names=["configs"]),
        DeleteTopicsRequestData(topics=[DeleteTopicState(name="configs")]),
        DeleteTopicsRequestData(topics=[DeleteTopicState(name=None, topic_id=CONFIGS_ID)]),
    ):
        response, session = handled(body, store=KeptStore())
        assert (response.responses, session.sent) == ([KEPT], [])


def test_while_the_config_topics_id_is_not_known_no_other_topic_is_taken_for_it() -> None:
    store = KeptStore()
    store.topic_id = None
    body = DeleteTopicsRequestData(topics=[DeleteTopicState(name="orders", topic_id=None)])
    response, session = handled(body, DeleteTopicsResponseData(responses=[DELETED]), store=store)
    assert (response.responses, len(session.sent)) == ([DELETED], 1)


def records(name: str, *partitions: int) -> DeleteRecordsTopic:
    return DeleteRecordsTopic(
        name=name, partitions=[DeleteRecordsPartition(partition_index=one, offset=5) for one in partitions]
    )


def test_records_are_deleted_but_for_the_config_topics() -> None:
    def deleted(name: str, low_watermark: int, error: int, *partitions: int) -> DeleteRecordsTopicResult:
        results = [
            DeleteRecordsPartitionResult(partition_index=one, low_watermark=low_watermark, error_code=error)
            for one in partitions
        ]
        return DeleteRecordsTopicResult(name=name, partitions=results)

    accepted = DeleteRecordsResponseData(topics=[deleted("orders", 5, 0, 0)])
    body = DeleteRecordsRequestData(topics=[records("configs", 0, 1), records("orders", 0)])
    response, session = handled(body, deepcopy(accepted), store=KeptStore())
    assert response.topics == [deleted("orders", 5, 0, 0), deleted("configs", -1, 29, 0, 1)]
    assert [one.name for one in session.sent[0][3].topics] == ["orders"]
    response, session = handled(DeleteRecordsRequestData(topics=[records("configs", 0)]), store=KeptStore())
    assert (response.topics, session.sent) == ([deleted("configs", -1, 29, 0)], [])
    response, session = handled(
        DeleteRecordsRequestData(topics=[records("orders", 0)]), deepcopy(accepted), store=KeptStore()
    )
    assert (response.topics, len(session.sent)) == (accepted.topics, 1)
    response, session = handled(DeleteRecordsRequestData(), DeleteRecordsResponseData(), store=KeptStore())
    assert (response.topics, len(session.sent)) == ([], 1)


@pytest.mark.parametrize(
    ("topics", "allowed", "may"),
    [
        (["orders"], True, True),
        (["orders"], False, False),
        (["__consumer_offsets"], True, False),
        (["__consumer_offsets", "orders"], True, True),
        ([""], True, False),
        ([None], True, False),
        ([], True, False),
        (None, True, False),
    ],
)
def test_metadata_may_create_the_topics_that_it_names_but_kafkas_own(
    topics: list[str | None] | None, allowed: bool, may: bool
) -> None:
    named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
    assert bool(_may_create(MetadataRequestData(topics=named, allow_auto_topic_creation=allowed))) is may
