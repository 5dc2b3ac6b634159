"""A gateway before Apache Kafka, and before the embedded cluster, behaves as the cluster behind it: every behaviour compared."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from rackspan.cluster import EmbeddedCluster
from tests.conformance import recorded
from tests.conformance.behaviour import BEHAVIOURS, Outcome, looked_at
from tests.conformance.differences import AT_MOST, DIFFERENCES, OF_THE_GATEWAY, WITHHELD
from tests.conformance.subject import CONFIG, LOST, RACKS, Subject
from tests.conformance.subjects import kafka_cluster, kafka_subject
from tests.gateway.running import running
from tests.kafka_fixtures import started

KAFKAS = recorded.read()


def plain(outcome: Outcome) -> Outcome:
    """As it is compared; an exception by its text, so that all of them are in one list."""
    return repr(outcome) if isinstance(outcome, Exception) else recorded.plain(outcome)


def differing(outcomes: dict[str, Outcome], others: dict[str, Outcome]) -> dict[str, Outcome]:
    return {name: one for name, outcome in outcomes.items() if (one := plain(outcome)) != others[name]}


@pytest.fixture(scope="module")
def kafkas() -> Iterator[tuple[Subject, Subject]]:
    """Apache Kafka, and the same cluster through a gateway."""
    with contextmanager(started)(kafka_cluster()) as cluster, running(cluster.bootstrap_servers) as gateway:
        direct = kafka_subject(cluster)
        yield direct, replace(direct, name=f"gateway, {direct.name}", bootstrap_servers=gateway.bootstrap_servers)


@pytest.mark.kafka
@pytest.mark.soak
def test_a_gateway_before_kafka_differs_from_kafka_only_where_listed(kafkas: tuple[Subject, Subject]) -> None:
    outcomes = looked_at(kafkas[1], BEHAVIOURS)
    assert set(outcomes) == set(BEHAVIOURS)
    assert differing(outcomes, KAFKAS) == {name: one.outcome for name, one in OF_THE_GATEWAY.items()}


@pytest.mark.kafka
def test_a_gateway_before_kafka_offers_every_api_in_every_version_but_those_listed(
    kafkas: tuple[Subject, Subject],
) -> None:
    kafka, gateway = (
        {
            one["api_key"]: (one["min_version"], one["max_version"])
            for one in subject.request("ApiVersions", 2)["api_keys"]
        }
        for subject in kafkas
    )
    assert {key: versions for key, versions in kafka.items() if gateway.get(key) != versions}.keys() == WITHHELD.keys()
    assert gateway.keys() == kafka.keys() - WITHHELD.keys()


@pytest.mark.slow
def test_a_gateway_before_the_embedded_cluster_differs_only_where_either_does() -> None:
    with (
        EmbeddedCluster(racks=tuple(RACKS.values()), brokers=len(RACKS), config=CONFIG, seed=2) as cluster,
        running(cluster.bootstrap_servers) as gateway,
    ):
        rack = RACKS[LOST]
        subject = Subject(
            "a gateway before the embedded cluster",
            gateway.bootstrap_servers,
            lambda: cluster.lose_rack(rack),
            lambda: cluster.restore_rack(rack),
        )
        outcomes = looked_at(subject, BEHAVIOURS)
    assert set(outcomes) == set(BEHAVIOURS)
    assert differing(outcomes, KAFKAS) == {name: one.outcome for name, one in (DIFFERENCES | OF_THE_GATEWAY).items()}


def test_a_listed_difference_of_the_gateway_is_one() -> None:
    assert {name for name, one in OF_THE_GATEWAY.items() if one.outcome == KAFKAS[name]} == set()
    assert len(OF_THE_GATEWAY) <= AT_MOST
    assert all(one.reason for one in OF_THE_GATEWAY.values())
    assert all(WITHHELD.values())
