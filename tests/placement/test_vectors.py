"""Placements of Kafka's own tests, comments and KIP texts, and some that its 4.0.0 classes made.

No placement, so tested elsewhere: `ctl-*` (what a controller responds), `topics-*` (an option of kafka-topics.sh),
`r-*` (kafka-reassign-partitions.sh), `t-assignment-string` (directories, which brokers choose). `modes` is
test_rack_modes.py's, `brokerlist` test_rack_stripes.py's, `kip-draft-racks` a property in test_rack_alternated.py,
`t-assignment-equal` test_placer.py's.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, PartialRacks, ReplicaPlacementException
from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.kafka.java_random import JavaRandom, Lcg64, RandomGenerator
from rackspan.placement.kafka.rack_alternated import assign_replicas, rack_alternated
from rackspan.placement.kafka.striped import StripedReplicaPlacer
from tests.placement.rigged_rng import ZeroRng

Rows: TypeAlias = list[list[int]]

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())["cases"]
PLACING = [case for case in CASES if "job" in case]
ELSEWHERE = {"modes", "brokerlist", "kip-draft-racks", "t-assignment-equal"}
OTHER_PACKAGES = ("ctl-", "topics-", "r-", "t-assignment-string")
KAFKA_CALLS_IT = {
    InvalidPartitions: "InvalidPartitionsException",
    InvalidReplicationFactor: "InvalidReplicationFactorException",
    PartialRacks: "AdminOperationException",
}


def placed(job: dict[str, Any]) -> list[Rows]:
    """One list of rows a topic; the rng go on from one topic to the next, as a controller's do."""
    brokers = [
        UsableBroker(BrokerId(one["id"]), None if one.get("rack") is None else RackId(one["rack"]), one["fenced"])
        for one in job["brokers"]
    ]
    if job["algo"] == "alternate":
        return [[[int(broker) for broker in rack_alternated(brokers)]]]
    rng = rng_of(job)
    if job["algo"] == "adminutils":
        start = job["startIndex"] if job["startIndex"] >= 0 else None
        assigned = assign_replicas(brokers, job["partitions"], job["rf"], rng, start, first_partition(job))
        return [assigned.replicas.tolist()]
    placer = StripedReplicaPlacer(rng)
    topics = range(job.get("topics", 1))
    return [placer.place(0, job["partitions"], job["rf"], brokers).replicas.tolist() for _ in topics]


def rng_of(job: dict[str, Any]) -> RandomGenerator:
    kinds: dict[str, Any] = {"java": JavaRandom, "lcg64": Lcg64, "zero": lambda _: ZeroRng()}
    rng: RandomGenerator = kinds[job.get("rng", "java")](job.get("seed", 17))
    return rng


def first_partition(job: dict[str, Any]) -> int:
    return max(0, int(job.get("startPartition", 0)))


def stats(job: dict[str, Any], rows: Rows) -> dict[str, Any]:
    rack_of = {one["id"]: one.get("rack") or "(none)" for one in job["brokers"]}
    leaders, held = Counter(dict.fromkeys(rack_of, 0)), Counter(dict.fromkeys(rack_of, 0))
    leaders.update(row[0] for row in rows)
    held.update(broker for row in rows for broker in row)
    spread = [len({rack_of[broker] for broker in row}) for row in rows]
    per_rack = Counter(rack_of[broker] for row in rows for broker in row)
    return {
        "partitions": len(rows),
        "leaders_min": min(leaders.values()),
        "leaders_max": max(leaders.values()),
        "replicas_min": min(held.values()),
        "replicas_max": max(held.values()),
        "replicas_per_rack": {rack: per_rack[rack] for rack in rack_of.values()},
        "brokers_per_rack": Counter(rack_of.values()),
        "rack_violations": sum(
            racks < min(len(set(rack_of.values())), len(row)) for racks, row in zip(spread, rows, strict=True)
        ),
        "leaders_per_broker": {str(broker): count for broker, count in leaders.items()},
        "replicas_per_broker": {str(broker): count for broker, count in held.items()},
    }


def as_expected(case: dict[str, Any], what: str, topics: list[Rows]) -> Any:
    """What was placed, in the form in which the case states it."""
    rows = [row for topic in topics for row in topic]
    first = first_partition(case["job"])
    match what:
        case "assignments":
            return [{str(first + index): row for index, row in enumerate(topic)} for topic in topics]
        case "replicas_each":
            (each,) = {len(set(row)) for row in rows}
            return each
        case "pair_counts":
            return Counter(",".join(map(str, row)) for row in rows)
        case "leader_sets":
            return {
                str(first + index): {"leader": row[0], "replicas": sorted(row)} for index, row in enumerate(topics[0])
            }
        case _:
            found = stats(case["job"], rows)
            return {name: found[name] for name in case["expect"]["stats"]}


@pytest.mark.parametrize("case", PLACING, ids=lambda case: case["id"])
def test_a_placement_is_kafkas(case: dict[str, Any]) -> None:
    if "error" in case["expect"]:
        with pytest.raises(ReplicaPlacementException) as refusal:
            placed(case["job"])
        assert (KAFKA_CALLS_IT[type(refusal.value)], str(refusal.value)) == (
            case["expect"]["error_class"],
            case["expect"]["error"],
        )
        return
    topics = placed(case["job"])
    for what, expected in case["expect"].items():
        assert as_expected(case, what, topics) == expected, what


def test_every_case_has_its_place() -> None:
    strays = [
        case["id"]
        for case in CASES
        if "job" not in case and case["id"] not in ELSEWHERE and not case["id"].startswith(OTHER_PACKAGES)
    ]
    assert strays == []
