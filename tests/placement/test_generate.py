"""Reassignments from scratch, on the cases of Kafka's own tests of --generate."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rackspan.errors import InvalidReplicationFactor, PartialRacks, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.placement.generate import generate, unknown_brokers
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.new_partitions import PlacerChoice

CASES: dict[str, Any] = {
    case["id"]: case
    for case in json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())["cases"]
}
RACKS = {0: "rack0", 1: "rack0", 2: None, 3: "rack1", 4: "rack1", 5: "rack2"}
CURRENT = {"bar-0": [2, 3, 0], "foo-0": [0, 1, 2], "foo-1": [1, 2, 3]}
ALTERNATED = PlacerChoice("rack-alternated")


def cluster(racks: dict[int, str | None] | None = None, fenced: int | None = None) -> ClusterSnapshot:
    """The topics of Kafka's tests on brokers 0 to 5."""
    known = racks or dict.fromkeys(RACKS)
    return ClusterSnapshot(
        brokers=tuple(
            Broker(BrokerId(one), None if rack is None else RackId(rack), fenced=one == fenced)
            for one, rack in known.items()
        ),
        topics=(Topic(TopicName("bar")), Topic(TopicName("foo"))),
        partitions=columns(
            topic=[0, 1, 1],
            partition=[0, 0, 1],
            leader=[row[0] for row in CURRENT.values()],
            replicas=list(CURRENT.values()),
            isr=list(CURRENT.values()),
        ),
    )


def brokers_of(case: str) -> list[int]:
    return [int(one) for one in CASES[case]["input"]["broker_list"].split(",")]


def test_too_few_brokers_are_refused_in_the_words_of_kafka_4_0() -> None:
    case = "r-generate-too-few"
    with pytest.raises(InvalidReplicationFactor) as refused:
        generate(cluster(), ["foo", "bar"], brokers_of(case), ALTERNATED, JavaRandom(0))
    assert str(refused.value) == CASES[case]["expect"]["up_to_4.0"]
    with pytest.raises(InvalidReplicationFactor) as refused:
        generate(cluster(), ["foo", "bar"], brokers_of(case), PlacerChoice("striped"), JavaRandom(0))
    assert str(refused.value) == CASES[case]["expect"]["from_4.1"]


def test_an_unknown_topic_is_refused_in_kafkas_words() -> None:
    case = CASES["r-generate-unknown-topic"]
    with pytest.raises(UsageError) as refused:
        generate(cluster(), case["input"]["topics"], [0, 1, 2, 3], ALTERNATED, JavaRandom(0))
    assert str(refused.value) == case["expect"]["error"]


def test_partial_racks_are_refused_unless_racks_are_ignored() -> None:
    case = CASES["r-generate-inconsistent"]
    listed = brokers_of("r-generate-inconsistent")
    with pytest.raises(PartialRacks, match=r"^Not all brokers have rack information\."):
        generate(cluster(RACKS), ["foo"], listed, ALTERNATED, JavaRandom(0))
    ignoring = generate(cluster(RACKS), ["foo"], listed, PlacerChoice("rack-alternated", {}, True), JavaRandom(0))
    current = {f"{one.topic}-{one.partition}": list(one.current) for one in ignoring}
    assert current == case["expect"]["disabled_current"]


@pytest.mark.parametrize("placer", ["rack-alternated", "striped", "balanced"])
def test_only_listed_brokers_are_proposed(placer: str) -> None:
    case = CASES["r-generate-fewer"]
    found = generate(cluster(), ["foo", "bar"], brokers_of("r-generate-fewer"), PlacerChoice(placer), JavaRandom(0))
    assert {f"{one.topic}-{one.partition}": list(one.current) for one in found} == case["expect"]["current"]
    assert {broker for one in found for broker in one.proposed} <= set(case["expect"]["proposed_brokers_subset_of"])
    assert [one.topic for one in found] == ["foo", "foo", "bar"]


def test_balanced_counts_what_stays_and_what_was_proposed_before() -> None:
    """bar stays on 2, 3, 0 and is led by 2; foo's two leaders come to 1 and 3, or one of them to 0."""
    found = generate(cluster(), ["foo"], [0, 1, 2, 3], PlacerChoice("balanced"), JavaRandom(0))
    assert 2 not in [one.proposed[0] for one in found]
    both = generate(cluster(), ["foo", "bar"], [0, 1, 2, 3], PlacerChoice("balanced"), JavaRandom(0))
    held = np.bincount([broker for one in both for broker in one.proposed], minlength=4)
    assert sorted(held.tolist()) == [2, 2, 2, 3]
    assert len({one.proposed[0] for one in both}) == 3


def test_fenced_and_unknown_brokers_are_named_and_passed_over() -> None:
    snapshot = cluster(fenced=3)
    assert unknown_brokers(snapshot, [0, 3, 77]) == [3, 77]
    found = generate(snapshot, ["foo"], [0, 1, 2, 3, 77], ALTERNATED, JavaRandom(0))
    assert {broker for one in found for broker in one.proposed} == {0, 1, 2}
