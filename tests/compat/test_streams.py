"""Random groups, requested of Kafka's published assignors and of ours."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

import pytest

from rackspan.streams import KAFKA, Options, assign, options_named
from rackspan.streams.client_state import ClientState
from rackspan.streams.formats import KAFKA_KEYS, from_document
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS
from rackspan.streams.standby import optimize_standby, placer_for
from tests.compat import ivy
from tests.compat.streams_oracle import request, run_requests
from tests.compat.streams_tags import kafkas_responses
from tests.streams.problems import Document, problem, with_standbys
from tests.streams.vectors import TAG_CASES

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(
        ivy.java() is None, reason="needs a JDK 17 or newer on the path, such as openjdk-17-jre-headless"
    ),
]

STRATEGIES = ("min_traffic", "balance_subtopology")
TAGS = ((), ("zone",), ("zone", "cluster"))

SIZES = [
    pytest.param(100, id="100"),
    pytest.param(1000, id="1000", marks=pytest.mark.soak),
]
ASSIGNOR_SIZES = [
    pytest.param(40, id="40"),
    pytest.param(400, id="400", marks=pytest.mark.soak),
]


def responses(requested: list[tuple[str, Document, str]]) -> Iterator[tuple[Document, dict[str, Any]]]:
    """Each problem with Kafka's response; an error in Kafka fails the test, and so does a missing response."""
    kafka = run_requests(
        [request(mode, document, movable) for mode, document, movable in requested], timeout_seconds=900
    )
    for (_, document, _), response in zip(requested, kafka, strict=True):
        assert "error" not in response, (response, document)
        yield document, response


@pytest.mark.parametrize("count", SIZES)
def test_no_active_assignment_costs_more_or_less_than_kafkas(count: int) -> None:
    rng = Random(count)
    documents = [problem(rng) for _ in range(count)]
    requested = [("active", _under(document, strategy), "any") for document in documents for strategy in STRATEGIES]
    mismatches = [
        (document["config"], ours["cost"], kafka["cost"])
        for document, kafka in responses(requested)
        if not _costs_as_kafkas(ours := assign(document, "optimize"), kafka)
        or _counts(ours["assignment"]) != _counts(kafka["assignment"])
    ]
    assert mismatches == []


def _costs_as_kafkas(ours: Mapping[str, Any], kafka: dict[str, Any]) -> bool:
    """Equal; but where every task costs the same everywhere, Kafka's balance_subtopology pays to move tasks and ours moves none."""
    if ours["note"] == "equal-cost":
        stays = all(proof["moved"] == 0 for proof in ours["certificate"].values())
        return stays and all(ours["cost"][kind] <= kafka["cost"][kind] for kind in kafka["cost"])
    return bool(ours["cost"] == kafka["cost"])


@pytest.mark.rest
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("assignor", ["high-availability", "sticky"])
def test_where_costs_are_equal_kafka_without_racks_has_the_same_assignment(assignor: str, strategy: str) -> None:
    """KIP-925, section 6: rack awareness is not used there. Kafka's own classes with strategy none are the reference."""
    documents = []
    for seed in range(20):
        document = _under(problem(Random(seed), standbys=seed % 3), strategy)
        documents.append({**document, "partitions": {name: ["elsewhere"] for name in document["partitions"]}})
    unaware = [(assignor, _under(document, "none"), "any") for document in documents]
    for document, (_, kafka) in zip(documents, responses(unaware), strict=True):
        ours = assign(document, assignor)
        assert (ours["enabled"], ours["note"]) == (True, "equal-cost")
        assert ours["assignment"] == _clients(kafka["assignment"])


@pytest.mark.rest
@pytest.mark.parametrize("assignor", ["high-availability", "sticky"])
@pytest.mark.parametrize("count", ASSIGNOR_SIZES)
def test_without_racks_every_task_is_where_kafka_puts_it(assignor: str, count: int) -> None:
    """Placement, balance, movements, warm-ups, tags and stickiness, task by task: no tie is left to chance."""
    rng = Random(count)
    documents = [
        problem(rng, "none", standbys, tags) for standbys in (0, 1, 2) for tags in TAGS for _ in range(count // 9 + 1)
    ]
    for document, kafka in responses([(assignor, document, "any") for document in documents]):
        ours = assign(document, assignor)
        assert ours["assignment"] == _clients(kafka["assignment"])
        assert ours["probing_rebalance"] == kafka["probing_rebalance"]


def test_the_recorded_cases_with_tags_and_racks_are_kafkas() -> None:
    assert kafkas_responses() == TAG_CASES


def test_configs_have_kafkas_names_and_defaults() -> None:
    [kafka] = run_requests([{"mode": "configs"}], timeout_seconds=60)
    # KIP-925 names it; Kafka never shipped it.
    ours = KAFKA_KEYS.keys() - {"rack.aware.assignment.enabled"}
    assert ours <= kafka["defaults"].keys()
    assert {key for key in ours if key.startswith("rack.aware.")} == {
        key for key in kafka["defaults"] if key.startswith("rack.aware.")
    }
    unset = from_document({"config": None, **_EMPTY}).configs
    assert from_document({"config": {key: kafka["defaults"][key] for key in ours}, **_EMPTY}).configs == unset


_EMPTY: Document = {
    "clients": [{"process_id": "00000000-0000-0000-0000-000000000001", "threads": 1}],
    "tasks": [],
    "partitions": {},
}


@pytest.mark.parametrize("movable", ["any", "racks"])
@pytest.mark.parametrize("count", ASSIGNOR_SIZES)
def test_standby_exchanges_cost_the_same_as_kafkas_and_the_joint_optimum_never_more(movable: str, count: int) -> None:
    rng = Random(count)
    documents = [with_standbys(rng, problem(rng)) for _ in range(count)]
    for document, kafka in responses([("standby", document, movable) for document in documents]):
        assert _standby_cost(document, movable, options_named("joint-standbys")) <= kafka["cost"]["standby"]
        if document["config"]["non_overlap_cost"] != 0:
            # With nothing to pay for moving, Kafka's cycles shuffle equal costs, and later pairs see the difference.
            assert _standby_cost(document, movable, KAFKA) == kafka["cost"]["standby"]


def _standby_cost(document: Document, movable: str, options: Options) -> int:
    given = from_document(document)
    assert given.initial_active is not None
    assert given.initial_standby is not None
    owner = given.initial_active.tolist()
    table = [
        ClientState(
            index, client, {task for task, at in enumerate(owner) if at == index}, set(given.initial_standby[index])
        )
        for index, client in enumerate(given.clients)
    ]
    placer = placer_for(given, table, across_racks=movable == "racks")
    return optimize_standby(given, table, given.configs.costs(HIGH_AVAILABILITY_COSTS), placer.may_move, options)


def _under(document: Document, strategy: str) -> Document:
    return {**document, "config": {**document["config"], "strategy": strategy}}


def _clients(assignment: Document) -> Document:
    return {
        process_id: {"active": held.get("active", []), "standby": held.get("standby", [])}
        for process_id, held in assignment.items()
    }


def _counts(assignment: Document) -> dict[str, int]:
    return {process_id: len(held.get("active", [])) for process_id, held in sorted(assignment.items())}
