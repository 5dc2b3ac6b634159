"""Both clusters, each started once."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conformance.behaviour import Outcome, looked_at, through_a_loss
from tests.conformance.subject import Subject
from tests.conformance.subjects import embedded, kafka_cluster, kafka_subject
from tests.kafka_fixtures import started


@pytest.fixture(scope="session")
def embedded_subject() -> Iterator[Subject]:
    with embedded() as subject:
        yield subject


@pytest.fixture(scope="session")
def embedded_loss(embedded_subject: Subject) -> dict[str, Outcome]:
    return through_a_loss(embedded_subject)


@pytest.fixture(scope="session")
def kafka_outcomes(request: pytest.FixtureRequest) -> dict[str, Outcome]:
    """The outcomes of every behaviour that this run tries on Kafka, all at once; Kafka has ended before the first is compared."""
    wanted = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and "kafka_outcomes" in item.fixturenames
    ]
    with contextmanager(started)(kafka_cluster()) as cluster:
        return looked_at(kafka_subject(cluster), wanted)
