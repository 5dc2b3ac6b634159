import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from itertools import chain, combinations, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from rackspan.errors import RackspanError, ReplicaPlacementException, UsageError
from rackspan.model import BrokerId
from rackspan.placement import TopicAssignment
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.registry import ENTRY_POINT_GROUP
from rackspan.placement.spec import run
from rackspan.placement.usable_brokers import UsableBroker
from tests.depth import at_depth
from tests.placement.test_registry import HERE

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())["cases"]
AS_SPEC = {
    "partitions": "partitions",
    "rf": "replication_factor",
    "startIndex": "start_index",
    "startPartition": "start_partition",
    "seed": "seed",
    "rng": "rng",
}
PLACERS = {"adminutils": "rack-alternated", "striped": "striped"}
EXACT = [
    case
    for case in CASES
    if case.get("job", {}).get("algo") in PLACERS
    and case["job"].get("rng") != "zero"
    and "assignments" in case["expect"]
]


def document(**changes: Any) -> dict[str, Any]:
    brokers = [{"id": broker, "rack": f"r{broker % 3}"} for broker in range(6)]
    return {"brokers": brokers, "partitions": 6, "replication_factor": 3, "placer": "rack-alternated", **changes}


def brokers(*racks: str | None) -> list[dict[str, Any]]:
    return [{"id": broker, "rack": rack} for broker, rack in enumerate(racks)]


@pytest.mark.parametrize("case", EXACT, ids=lambda case: case["id"])
def test_the_spec_of_a_kafka_case_gives_kafkas_assignment(case: dict[str, Any]) -> None:
    job = case["job"]
    spec = {AS_SPEC[key]: value for key, value in job.items() if key in AS_SPEC}
    document_of = run({**spec, "brokers": job["brokers"], "placer": PLACERS[job["algo"]]}, Random(1))
    assert document_of["assignments"] == case["expect"]["assignments"][0]


def test_brokers_are_not_excluded_at_the_cost_of_racks_and_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match=r"with brokers 0,3 excluded, the replicas of a partition would be 2\+1"):
        run(document(), Random(1), exclusion=Exclusion(frozenset(map(BrokerId, (0, 3)))))
    with pytest.raises(UsageError, match="--exclude-brokers: the spec has no broker 9"):
        run(document(), Random(1), exclusion=Exclusion(frozenset({BrokerId(9)})))
    without_3 = run(document(), Random(1), exclusion=Exclusion(frozenset({BrokerId(3)})))
    assert {broker for replicas in without_3["assignments"].values() for broker in replicas} == {0, 1, 2, 4, 5}


def test_the_document_has_the_range_of_leaders_and_replicas_and_the_bound() -> None:
    # Two racks of one and two brokers: the lone broker must hold every partition.
    document_of = run(
        document(brokers=brokers("a", "b", "b"), replication_factor=2, start_index=0, partitions=3), Random(1)
    )
    assert document_of == {
        "assignments": {"0": [0, 1], "1": [1, 0], "2": [2, 0]},
        "leaders": {"min": 1, "max": 1},
        "replicas": {"min": 1, "max": 3, "bound": 3},
    }


@pytest.mark.parametrize("seed", range(at_depth(check=20, test=60, soak=3_000)))
def test_no_placement_is_below_the_least_that_the_fullest_broker_can_hold(seed: int) -> None:
    rng = Random(seed)
    racks = [rng.choice("abc") for _ in range(rng.randint(2, 9))]
    listed = [{**broker, "fenced": rng.random() < 0.3} for broker in brokers(*racks)]
    for placer in ("rack-alternated", "striped", "balanced", f"{__name__}:InTurn"):
        for mode in ("safe", "disabled"):
            spec = document(
                brokers=listed,
                partitions=rng.randint(1, 30),
                replication_factor=rng.randint(1, len(racks)),
                placer=placer,
                configs={"replica.placer.rack.aware": mode},
            )
            try:
                replicas = run(spec, rng)["replicas"]
            except ReplicaPlacementException:
                continue  # As many replicas as there are brokers that this placer uses cannot be had.
            assert replicas["bound"] <= replicas["max"], spec


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_of_rack_alternated_is_the_least_of_all_placements_with_a_replica_in_each_rack(seed: int) -> None:
    rng = Random(seed)
    racks = [rng.choice("ab") for _ in range(4)] + [rng.choice("abc")]
    partitions, replicas = rng.randint(1, 3), rng.randint(1, 5)
    spec = document(brokers=brokers(*racks), partitions=partitions, replication_factor=replicas)
    of_one = [
        held
        for held in combinations(range(5), replicas)
        if len({racks[broker] for broker in held}) == min(replicas, len(set(racks)))
    ]
    least = min(
        max(Counter(chain.from_iterable(placement)).values()) for placement in product(of_one, repeat=partitions)
    )
    assert run(spec, rng)["replicas"]["bound"] == least


class InTurn:
    """A placer that ignores racks."""

    def configure(self, configs: Mapping[str, str]) -> None: ...

    def place(self, start: int, partitions: int, replicas: int, brokers: Sequence[UsableBroker]) -> TopicAssignment:
        ids = sorted(broker.id for broker in brokers if not broker.fenced)
        ids += sorted(broker.id for broker in brokers if broker.fenced)
        return TopicAssignment.of([ids[(p + r) % len(ids)] for r in range(replicas)] for p in range(partitions))

    def close(self) -> None: ...


def test_keys_begin_at_the_start_partition() -> None:
    document_of = run(document(start_partition=4, partitions=2, start_index=0), Random(1))
    assert list(document_of["assignments"]) == ["4", "5"]


@pytest.mark.parametrize("placer", ["rack-alternated", "striped"])
def test_a_seed_makes_a_placer_repeatable_whatever_the_callers_rng(placer: str) -> None:
    first, second = (run(document(placer=placer, seed=7, partitions=99), Random(rng)) for rng in (1, 2))
    assert first == second


def test_without_a_seed_the_callers_rng_decide() -> None:
    assert run(document(partitions=99), Random(1)) == run(document(partitions=99), Random(1))
    plans = [json.dumps(run(document(partitions=99), Random(rng))) for rng in range(3)]
    assert all(one != other for one, other in combinations(plans, 2))


@pytest.mark.parametrize("mode", ["safe", "disabled"])
def test_partial_racks_can_be_ignored(mode: str) -> None:
    spec = document(brokers=brokers("a", "a", None), partitions=3, replication_factor=2, start_index=0, rack_aware=mode)
    document_of = run(spec, Random(1))
    assert document_of["assignments"] == {"0": [0, 1], "1": [1, 2], "2": [2, 0]}
    assert document_of["replicas"]["bound"] == 2


def test_to_striped_rackless_brokers_are_one_more_rack() -> None:
    spec = document(brokers=brokers("a", "a", None, None), replication_factor=2, placer="striped", partitions=40)
    assert all({broker // 2 for broker in row} == {0, 1} for row in run(spec, Random(1))["assignments"].values())


def test_configs_reach_the_placer() -> None:
    spec = document(configs={"replica.placer.start.index": "0"}, partitions=1)
    assert run(spec, Random(1))["assignments"]["0"][0] == 0


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"partitions": 0}, "Number of partitions must be larger than 0."),
        ({"replication_factor": -1}, "Replication factor must be larger than 0."),
        ({"replication_factor": 7}, "Replication factor: 7 larger than available brokers: 6."),
        (
            {"brokers": brokers("a", None), "replication_factor": 2},
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment without rack information. No rack: broker 1",
        ),
        (
            {"placer": "striped", "replication_factor": 0},
            "Invalid replication factor 0: the replication factor must be positive.",
        ),
        (
            {"placer": "striped", "replication_factor": 7},
            "The target replication factor of 7 cannot be reached because only 6 broker(s) are registered.",
        ),
        (
            {"placer": "striped", "brokers": [{"id": 0, "fenced": True}], "replication_factor": 1},
            "All brokers are currently fenced.",
        ),
        (
            {"placer": "striped", "partitions": -1},
            "Number of partitions was set to an invalid non-positive value.",
        ),
        (
            {"configs": {"replica.placer.rack.aware": "no"}},
            "replica.placer.rack.aware is 'no', expected enforced, safe or disabled; fix the config",
        ),
    ],
)
def test_what_no_placement_can_meet_is_refused_by_the_placer(changes: dict[str, Any], line: str) -> None:
    with pytest.raises(RackspanError) as refusal:
        run(document(**changes), Random(1))
    assert str(refusal.value) == line


def test_a_placer_that_is_installed_places_a_spec() -> None:
    first = EntryPoint("first", HERE, ENTRY_POINT_GROUP)
    placed = run(document(placer="first"), Random(1), installed=lambda: [first])
    assert placed["assignments"] == {str(partition): [0, 1, 2] for partition in range(6)}


def test_an_unknown_placer_is_refused_with_those_there_are() -> None:
    with pytest.raises(RackspanError, match="is 'round-robin', but there is no such placer; choose balanced, "):
        run(document(placer="round-robin"), Random(1), installed=list)
