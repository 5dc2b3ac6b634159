"""Random clusters and topics, requested of Kafka's published placers and of ours."""

from random import Random
from typing import Any

import pytest

from rackspan.errors import ReplicaPlacementException
from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.kafka.java_random import JavaRandom, Lcg64
from rackspan.placement.kafka.rack_alternated import assign_replicas
from rackspan.placement.kafka.striped import StripedReplicaPlacer
from tests.compat import ivy
from tests.compat.kafka_placers import Request, request, run_requests

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(
        ivy.java() is None, reason="needs a JDK 17 or newer on the path, such as openjdk-17-jre-headless"
    ),
]

# "Aa" and "BB" hash alike in Java, the last two sort differently by code unit than by code point.
RACK_NAMES = ("r1", "r2", "r3", "us-east-1a", "us-east-1b", "Aa", "BB", "rack with space", "\uff21", "𝄞")

RUNS = [pytest.param(500, id="500"), pytest.param(5000, id="5000", marks=pytest.mark.soak)]


def random_brokers(rng: Random, *, striped: bool) -> list[UsableBroker]:
    """From one broker to forty: even, uneven and many racks, none, some brokers without; ids in any order."""
    count = rng.choice([1, 2, 3, 5, 6, 9, 12, rng.randint(1, 40)])
    names = rng.sample(RACK_NAMES, rng.randint(1, len(RACK_NAMES)))
    if rng.random() < 0.2:
        names = [f"rack-{number}" for number in range(rng.randint(1, 40))]
    even, none, fenced = rng.random() < 0.4, rng.random(), rng.choice([0.0, 0.0, 0.1, 0.6])
    return [
        UsableBroker(
            BrokerId(broker),
            None if _rackless(rng, none) else RackId(names[place % len(names)] if even else rng.choice(names)),
            striped and rng.random() < fenced,
        )
        for place, broker in enumerate(rng.sample(range(200), count))
    ]


def _rackless(rng: Random, kind: float) -> bool:
    return kind < 0.15 or (kind > 0.9 and rng.random() < 0.2)


def random_request(rng: Random, placer: str) -> tuple[Request, list[UsableBroker]]:
    brokers = random_brokers(rng, striped=placer == "striped")
    return (
        request(
            placer,
            brokers,
            partitions=rng.choice([rng.randint(0, 3), rng.randint(1, 80), rng.randint(1, 400)]),
            replicas=random_replicas(rng, len(brokers)),
            start_index=rng.choice([None, rng.randint(0, 60)]),
            start_partition=rng.choice([0, 0, rng.randint(0, 90)]),
            rng=rng.choice(["java", "lcg64"]),
            seed=rng.randint(-(2**63), 2**63 - 1),
            topics=rng.choice([1, 1, 1, 3]),
        ),
        brokers,
    )


def random_replicas(rng: Random, brokers: int) -> int:
    """Mostly a number that can be had."""
    if rng.random() < 0.1:
        return rng.choice([0, brokers + 1])
    return min(brokers, rng.choice([1, 2, 3, 3, rng.randint(1, brokers)]))


def ours(requested: Request, brokers: list[UsableBroker]) -> dict[str, Any]:
    place = striped if requested["placer"] == "striped" else rack_alternated
    try:
        return {"topics": place(requested, brokers)}
    except ReplicaPlacementException as refusal:
        return {"error": str(refusal)}


def striped(requested: Request, brokers: list[UsableBroker]) -> list[list[list[int]]]:
    placer = StripedReplicaPlacer((Lcg64 if requested["rng"] == "lcg64" else JavaRandom)(requested["seed"]))
    topics = range(requested["topics"])
    return [placer.place(0, requested["partitions"], requested["replicas"], brokers).replicas.tolist() for _ in topics]


def rack_alternated(requested: Request, brokers: list[UsableBroker]) -> list[list[list[int]]]:
    rng = JavaRandom(requested["seed"])
    figures = (
        requested["partitions"],
        requested["replicas"],
        rng,
        requested["start_index"],
        requested["start_partition"],
    )
    return [assign_replicas(brokers, *figures).replicas.tolist() for _ in range(requested["topics"])]


@pytest.mark.parametrize("placer", ["rack-alternated", "striped"])
@pytest.mark.parametrize("runs", RUNS)
def test_every_replica_is_where_kafka_puts_it(placer: str, runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Topics as small as these then come from arrays too where racks are many.
    monkeypatch.setattr("rackspan.placement.kafka.striped.FEW_ROUNDS", 0)
    rng = Random(f"{placer} {runs}")
    requested = [random_request(rng, placer) for _ in range(runs)]
    responses = run_requests([one for one, _ in requested], timeout_seconds=300)
    refused = 0
    for (one, brokers), kafka in zip(requested, responses, strict=True):
        assert ours(one, brokers) == kafka, one
        refused += "error" in kafka
    # Both kinds of response must have been compared, or the requests are no good.
    assert runs / 20 < refused < runs / 3


@pytest.mark.rest
@pytest.mark.parametrize("placer", ["rack-alternated", "striped"])
def test_a_large_topic_on_uneven_racks_or_on_few_brokers_is_where_kafka_puts_it(placer: str) -> None:
    rng = Random(placer)
    brokers = [
        UsableBroker(BrokerId(broker), RackId(rng.choice("aaabbc")), placer == "striped" and rng.random() < 0.05)
        for broker in range(1000)
    ]
    requested = request(placer, brokers, 60_000, 4, seed=3, rng="java", topics=1, start_index=None, start_partition=77)
    few = [UsableBroker(BrokerId(broker), RackId(f"r{broker % 9}"), False) for broker in range(12)]
    of_few = {**requested, **request(placer, few, 6_000, 3, seed=3, rng="java", topics=1)}
    kafka, kafka_of_few = run_requests([requested, of_few], timeout_seconds=120)
    assert ours(requested, brokers) == kafka
    assert ours(of_few, few) == kafka_of_few
