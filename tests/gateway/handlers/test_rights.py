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
UNKNOWN_TOPIC, NO_RIGHT = 3, 29


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
    errors = {name: rights.error(session, name) for name in names}
    assert errors == dict.fromkeys(names, NO_RIGHT) | {"all": 0, "write": 0, "gone": UNKNOWN_TOPIC}
    assert rights.error(session, "never-requested") == UNKNOWN_TOPIC
    other = cast("ClientSession", Client())
    assert rights.error(other, "write") == UNKNOWN_TOPIC, "rights are those of one connection"
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
    assert rights.error(session, "orders") == 0, "until others are reported"
    assert rights.unknown(session, ["orders", "pay"], 115.5) == {"orders", "pay"}


def test_the_rights_of_topics_that_are_named_once_are_forgotten() -> None:
    """A client that names another topic in every request would take memory without end."""
    rights, client = WriteRights(), Client()
    for number in range(1000):
        session = read(rights, client, f"topic-{number}", now=float(number))
    assert len(rights._known[session]) <= 21


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), MalformedRequest("no response")])
def test_a_client_whose_rights_cannot_be_read_may_write_nothing(error: Exception) -> None:
    rights = WriteRights()
    session = read(rights, Client(error=error), "orders")
    assert rights.error(session, "orders") == UNKNOWN_TOPIC
    assert rights.unknown(session, ["orders"], 100.5) == set()
    assert rights.unknown(session, ["orders"], 100.6) == {"orders"}


def test_a_topic_that_the_broker_does_not_know_yet_is_no_missing_right_and_soon_requested_again() -> None:
    """Its metadata is late: clients give up after TOPIC_AUTHORIZATION_FAILED, and send again after its own error."""
    rights, client = WriteRights(), Client(topic("new", -(2**31), error=UNKNOWN_TOPIC))
    session = read(rights, client, "new")
    assert rights.error(session, "new") == UNKNOWN_TOPIC
    assert (rights.unknown(session, ["new"], 100.5), rights.unknown(session, ["new"], 100.6)) == (set(), {"new"})
    client.topics = (topic("new", WRITE),)
    read(rights, client, "new", now=100.6)
    assert rights.error(session, "new") == 0


def test_a_right_that_was_taken_away_is_gone_with_the_next_response() -> None:
    rights, client = WriteRights(), Client(topic("orders", WRITE))
    session = read(rights, client, "orders")
    client.topics = (topic("orders", READ),)
    read(rights, client, "orders", now=111.0)
    assert rights.error(session, "orders") == NO_RIGHT
