"""What a client may write to, by its broker's responses of few lines without a network."""

import asyncio
from typing import Any, cast

import pytest

from rackspan.errors import MalformedRequest
from rackspan.gateway.handlers.rights import WriteRights
from rackspan.gateway.net.session import ClientSession
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic

READ, WRITE = 1 << 3, 1 << 4


class Client:
    """A session whose broker reports these topics, or that fails."""

    def __init__(self, *topics: MetadataResponseTopic, error: Exception | None = None) -> None:
        self.topics, self._error = topics, error
        self.requested: list[tuple[int, int, str | None, Any]] = []

    async def call(self, key: int, version: int, client_id: str | None, request: Any) -> MetadataResponseData:
        self.requested.append((key, version, client_id, request))
        if self._error is not None:
            raise self._error
        return MetadataResponseData(topics=self.topics)


def topic(name: str | None, operations: int, error: int = 0) -> MetadataResponseTopic:
    return MetadataResponseTopic(name=name, error_code=error, topic_authorized_operations=operations)


def read(rights: WriteRights, client: Client, *topics: str, now: float = 100.0) -> ClientSession:
    session = cast("ClientSession", client)
    asyncio.run(rights.read(session, topics, now))
    return session


def test_a_client_may_write_to_topics_whose_operations_have_write() -> None:
    rights = WriteRights()
    names = ("all", "broken", "gone", "none", "other", "read", "unreported", "write")
    client = Client(
        topic("write", WRITE),
        topic("all", READ | WRITE),
        topic("read", READ),
        topic("none", 0),
        topic("other", ~WRITE),
        # A broker that does not report operations.
        topic("unreported", -(2**31)),
        topic("broken", WRITE, error=29),
        topic(None, WRITE),
    )
    session = read(rights, client, *names)
    assert [name for name in names if rights.may_write(session, name)] == ["all", "write"]
    assert not rights.may_write(session, "never-requested")
    other = cast("ClientSession", Client())
    assert not rights.may_write(other, "write"), "rights are those of one connection"
    assert rights.unknown(session, names, 100.0) == set(), "nor is one requested again that the broker did not name"
    assert rights.unknown(other, names, 100.0) == {*names}


def test_the_rights_of_topics_are_requested_with_the_clients_own_and_create_no_topic() -> None:
    client = Client()
    read(WriteRights(), client, "pay", "orders")
    ((key, version, client_id, request),) = client.requested
    assert (key, version, client_id) == (ApiKey.METADATA, 8, None)
    assert [one.name for one in request.topics] == ["orders", "pay"]
    assert (request.allow_auto_topic_creation, request.include_topic_authorized_operations) == (False, True)


def test_rights_are_known_for_ten_seconds() -> None:
    rights = WriteRights()
    client = Client(topic("orders", WRITE))
    session = read(rights, client, "orders")
    client.topics = (topic("pay", WRITE),)
    read(rights, client, "pay", now=105.0)
    assert rights.unknown(session, ["orders", "pay", "other"], 110.0) == {"other"}
    assert rights.unknown(session, ["orders", "pay"], 110.5) == {"orders"}
    assert rights.may_write(session, "orders"), "until others are reported"
    assert rights.unknown(session, ["orders", "pay"], 115.5) == {"orders", "pay"}


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), MalformedRequest("no response")])
def test_a_client_whose_rights_cannot_be_read_may_write_nothing(error: Exception) -> None:
    rights = WriteRights()
    session = read(rights, Client(error=error), "orders")
    assert not rights.may_write(session, "orders")
    assert rights.unknown(session, ["orders"], 110.0) == set()


def test_a_right_that_was_taken_away_is_gone_with_the_next_response() -> None:
    rights, client = WriteRights(), Client(topic("orders", WRITE))
    session = read(rights, client, "orders")
    client.topics = (topic("orders", READ),)
    read(rights, client, "orders", now=111.0)
    assert not rights.may_write(session, "orders")
