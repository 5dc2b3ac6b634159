"""Verification of transactional batches by the partition's leader, with faults (KIP-890).

Without faults it is compared with Kafka: conformance/behaviours/errors.py.
"""

from collections.abc import Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.core.process import BrokerProcess
from rackspan.testing import pausing
from tests.conformance.behaviours.fetch import begin, ended, of_a_ready_coordinator
from tests.conformance.subject import Subject, fresh
from tests.conformance.wire import Body, batch

NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3) as started:
        yield started


@pytest.fixture
def subject(cluster: EmbeddedCluster) -> Subject:
    return Subject("embedded", cluster.bootstrap_servers, lambda: None, lambda: None)


class Transaction:
    """A transaction with one partition, whose leader is not the coordinator, and no batch so far."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.name = subject, fresh("txn")
        self.coordinator = subject.coordinator(self.name, 1)
        self.leader, other = (broker for broker in (1, 2, 3) if broker != self.coordinator)
        self.topic = subject.topic(replicas=[[self.leader, other, self.coordinator]])
        self.producer = subject.producer_id(self.name)
        assert begin(subject, self.name, self.producer, self.topic) == 0

    def send(self, sequence: int, version: int = 9, broker: int | None = None) -> Body:
        """To the leader, or to `broker`: a test with a paused broker names the leader, since the paused one may be queried for it."""
        data = batch(b"x", producer=self.producer, sequence=sequence, transactional=True)
        return self.subject.produce(self.topic, data, transactional_id=self.name, version=version, broker=broker)

    def send_until_ready(self, sequence: int) -> int:
        return of_a_ready_coordinator(lambda: int(self.send(sequence)["error_code"]))


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_leader_that_cannot_verify_responds_with_an_error_that_every_client_retries(
    cluster: EmbeddedCluster, subject: Subject, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokerProcess, "request_timeout_ms", 200)
    transaction = Transaction(subject)
    with pausing(cluster, transaction.coordinator):
        response = transaction.send(0, version, transaction.leader)
    assert response["error_code"] == NOT_ENOUGH_REPLICAS
    assert "Unable to verify" in response["error_message"]
    assert transaction.send_until_ready(0) == 0


def test_after_the_first_batch_nothing_is_verified_again(
    cluster: EmbeddedCluster, subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction = Transaction(subject)
    assert transaction.send_until_ready(0) == 0
    monkeypatch.setattr(BrokerProcess, "request_timeout_ms", 0)
    cluster.cut(transaction.leader, transaction.coordinator)
    responses = [transaction.send(0, 9), transaction.send(0, 12)]
    assert [(response["error_code"], response["base_offset"]) for response in responses] == [(0, 0), (0, 0)]
    cluster.heal(transaction.leader, transaction.coordinator)


def test_the_next_leader_finds_the_transaction_in_its_own_log(cluster: EmbeddedCluster, subject: Subject) -> None:
    transaction = Transaction(subject)
    assert transaction.send_until_ready(0) == 0
    before = subject.leader(transaction.topic)
    cluster.stop(before)
    cluster.restart(before)
    assert subject.leader(transaction.topic) != before
    assert transaction.send_until_ready(1) == 0
    assert ended(subject, transaction.topic, transaction.name, transaction.producer, committed=True) == 0
    assert subject.end(transaction.topic) == 3
