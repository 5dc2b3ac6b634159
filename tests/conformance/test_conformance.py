"""The embedded cluster behaves as Apache Kafka does: every behaviour looked at in both, the outcomes compared as values."""

from collections import Counter

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.conformance import recorded
from tests.conformance.behaviour import BEHAVIOURS, Outcome
from tests.conformance.behaviours import AREAS
from tests.conformance.differences import AT_MOST, DIFFERENCES
from tests.conformance.subject import Subject
from tests.conformance.subjects import kafka_subject

KAFKAS = recorded.read()


def seen(name: str, subject: Subject, loss: dict[str, Outcome]) -> Outcome:
    outcome = loss[name] if BEHAVIOURS[name].loses_a_broker else BEHAVIOURS[name].look(subject)
    if isinstance(outcome, Exception):
        raise outcome
    return recorded.plain(outcome)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_embedded_cluster_does_as_kafka_did(
    name: str, embedded_subject: Subject, embedded_loss: dict[str, Outcome]
) -> None:
    difference = DIFFERENCES.get(name)
    wanted = difference.embedded if difference else KAFKAS[name]
    assert seen(name, embedded_subject, embedded_loss) == wanted


@pytest.mark.kafka
# Soak until it has been green ten times in a row: a few behaviours still ask a coordinator that may be busy.
@pytest.mark.soak
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_kafka_does_as_it_did(name: str, conformance_kafka: KafkaCluster, kafka_loss: dict[str, Outcome]) -> None:
    assert seen(name, kafka_subject(conformance_kafka), kafka_loss) == KAFKAS[name]


def test_a_listed_difference_is_one() -> None:
    assert {name for name, one in DIFFERENCES.items() if one.embedded == KAFKAS[name]} == set()
    assert len(DIFFERENCES) <= AT_MOST
    assert all(one.reason for one in DIFFERENCES.values())


def test_there_are_behaviours_enough_of_every_area() -> None:
    count = Counter(one.area for one in BEHAVIOURS.values())
    assert sum(count.values()) >= 120
    assert {area: number for area, number in count.items() if number < 10} == {}
    assert set(count) == set(AREAS)


def test_what_is_recorded_is_what_is_looked_at() -> None:
    assert set(KAFKAS) == set(BEHAVIOURS)
