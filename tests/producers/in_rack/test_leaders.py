"""The leaders' racks that confluent-kafka's admin client reads: when they are read, and what counts when they cannot be."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from rackspan.producers.in_rack import confluent
from rackspan.producers.in_rack.confluent import InRackProducer, _Leaders


class Admin:
    """Stands for AdminClient: each reading gets `response`, None as long as there is none, and an exception as its error."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.response: Any = None
        self.readings: list[Future[Any]] = []

    def describe_topics(self, topics: Any, **_: Any) -> dict[str, Future[Any]]:
        reading: Future[Any] = Future()
        self.readings.append(reading)
        if isinstance(self.response, Exception):
            reading.set_exception(self.response)
        elif self.response is not None:
            reading.set_result(self.response)
        return {"orders": reading}


def described(*racks: str | None) -> Any:
    """A partition for each rack of a leader; "none": without a leader."""
    leaders = [None if rack == "none" else SimpleNamespace(rack=rack) for rack in racks]
    return SimpleNamespace(partitions=[SimpleNamespace(id=at, leader=leader) for at, leader in enumerate(leaders)])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]  # As on a machine that has just started.
    monkeypatch.setattr(confluent, "AdminClient", Admin)
    monkeypatch.setattr(confluent, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(confluent, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def leaders() -> tuple[_Leaders, Admin]:
    made = _Leaders({"bootstrap.servers": "127.0.0.1:1"})
    admin: Any = made._admin
    return made, admin


def test_leaders_are_read_every_thirty_seconds_and_the_old_ones_count_meanwhile(clock: list[float]) -> None:
    found, admin = leaders()
    admin.response = described("r1", None, "", "none")
    assert found.racks("orders") == {0: "r1", 1: None, 2: None}
    admin.response = None
    clock[0] += 29
    assert found.racks("orders")[0] == "r1"
    assert len(admin.readings) == 1
    clock[0] += 1
    for _ in range(2):
        assert found.racks("orders")[0] == "r1"
    assert len(admin.readings) == 2
    admin.readings[1].set_result(described("r2"))
    assert found.racks("orders") == {0: "r2"}
    assert len(admin.readings) == 2


@pytest.mark.parametrize("error", [KafkaException("no such topic"), None], ids=["refused", "late"])
def test_leaders_that_cannot_be_read_are_as_they_were_and_a_warning(
    clock: list[float], error: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    found, admin = leaders()
    admin.response = error
    assert found.racks("orders") == {}
    [message] = caplog.messages
    assert message.startswith("the leaders of orders could not be read, and its records are not kept in the rack: ")
    clock[0] += 30
    admin.response = described("r1")
    assert found.racks("orders") == {0: "r1"}
    clock[0] += 30
    admin.response = KafkaException("gone")
    assert found.racks("orders") == {0: "r1"}


@pytest.mark.parametrize("servers", ["bootstrap.servers", "metadata.broker.list"])
def test_the_admin_client_has_the_producers_connection_and_none_of_its_other_settings(
    clock: list[float], servers: str
) -> None:
    connection = {
        servers: "127.0.0.1:1",
        "client.id": "shop",
        "security.protocol": "SASL_SSL",
        "sasl.username": "u",
        "ssl.ca.location": "ca",
        "enable.ssl.certificate.verification": False,
        "socket.timeout.ms": 1000,
    }
    made: Any = _Leaders({**connection, "acks": "1", "linger.ms": 5, "partitioner": "murmur2_random"})
    assert made._admin.config == connection


def test_the_bytes_of_values_are_counted_and_a_bound_on_skew_is_passed_on() -> None:
    producer = InRackProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, "r1", skew_max=1.0)
    producer._leaders = SimpleNamespace(racks=lambda _: {0: "r1", 1: "r2"})  # type: ignore[assignment]
    for _ in range(40):
        producer.produce("orders", bytes(1_000))
    sent = producer._in_rack._topics["orders"].sent_bytes
    assert sum(sent.values()) == 40_000
    # With a bound of 1 the other rack gets as many, but for a batch and a record.
    assert abs(sent[0] - sent[1]) <= 16_384 + 1_000
    producer.purge()
