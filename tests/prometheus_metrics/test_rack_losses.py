"""The gauges of losses against the documents of `rackspan outage` and `rackspan audit`, read by Prometheus' own parser."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from rackspan import api
from rackspan.acks.watch import watch_readings
from rackspan.audit import RackPolicy, rack_losses, snapshot_batch
from rackspan.audit.json_format import outage_document
from rackspan.audit.policy import Survive
from rackspan.model import BrokerId, ClusterSnapshot, Controller, RackId
from rackspan.prometheus_metrics.families import watch_families
from rackspan.prometheus_metrics.rack_losses import ClusterLosses, rack_loss_families
from tests.acks.test_watch import GONE
from tests.snapshots import of_one_topic
from tests.strategies import policies, with_known_controllers

Series = dict[tuple[str, ...], float]

STATES = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks", "after_reassignment")


def read(families: Iterator[Family]) -> Series:
    """By the name without its beginning, then the values of the labels but those of the cluster."""
    made = list(families)

    class Once(Collector):
        def collect(self) -> Any:
            return made

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return {
        (
            sample.name.removeprefix("rackspan_"),
            *(sample.labels[label] for label in ("lost_rack", "state") if label in sample.labels),
        ): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }


def series(snapshot: ClusterSnapshot, policy: RackPolicy = RackPolicy()) -> Series:
    losses = rack_losses(snapshot, snapshot_batch(snapshot, policy))
    return read(rack_loss_families([ClusterLosses(snapshot.cluster_id, None, losses, snapshot.taken_at)]))


def cluster(racks: str = "abc", **changed: Any) -> ClusterSnapshot:
    """Brokers 1, 2, … in these racks, and one partition on the first three."""
    changed = {"config": {"min.insync.replicas": "2"}, **changed}
    at = dict(enumerate(racks, start=1))
    return of_one_topic(at, [[1, 2, 3][: len(racks)]], **changed)


@given(with_known_controllers(), policies())
def test_the_gauges_are_the_document_of_outage(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    snapshot = replace(snapshot, partial=("sizes of broker 3",))
    now, losses = api.outage(snapshot, policy)
    document = outage_document(snapshot, now, losses)
    wanted: Series = {}
    for loss in document["losses"]:
        (rack,) = loss["racks"]
        wanted["rack_loss_survived", rack] = loss["as_required"]
        for state in STATES:
            harmed: list[Any] = loss["topics"]
            wanted["rack_loss_partitions", rack, state] = sum(topic[state] for topic in harmed)
        quorum = loss["controller_quorum"]
        if quorum is not None:
            left = wanted["rack_loss_controllers", rack, "left"] = _certain(quorum, snapshot)
            wanted["rack_loss_controllers", rack, "lost"] = len(quorum["lost"])
            wanted["rack_loss_controllers", rack, "unknown_rack"] = quorum["surviving"] - left
            assert (2 * left > quorum["voters"]) == quorum["certain"]
    found = series(snapshot, policy)
    assert {key: value for key, value in found.items() if len(key) > 1} == wanted
    assert found["rack_loss_known",] == 1


def _certain(quorum: Any, snapshot: ClusterSnapshot) -> int:
    """The voters left for certain: on one machine, all of the surviving."""
    on_one_machine = all(broker.host in ("127.0.0.1", "localhost", "::1") for broker in snapshot.brokers)
    return int(quorum["surviving"] - (0 if on_one_machine else len(quorum["unknown_rack"])))


@given(with_known_controllers(), policies())
def test_what_is_not_known_is_no_sample_and_never_0(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    """Of a snapshot that lacks something: harm that is found stays, that there is none is not shown."""
    known = series(replace(snapshot, partial=()), policy)
    lacking = series(replace(snapshot, partial=("topics: not authorized",)), policy)
    assert lacking.pop(("rack_loss_known",)) == 0
    assert lacking.items() <= known.items()
    assert not [key for key, value in lacking.items() if key[0] == "rack_loss_partitions" and value == 0]
    assert not [key for key, value in lacking.items() if key[0].endswith("survived") and value == 1]
    harmed = {key for key, value in known.items() if key[0] == "rack_loss_partitions" and value > 0}
    assert harmed <= lacking.keys()


def test_a_topic_without_a_spare_replica_and_controllers_without_a_spare_are_not_survived() -> None:
    assert series(cluster())["any_rack_loss_survived",] == 1
    without_a_spare = series(cluster(config={"min.insync.replicas": "3"}))
    assert without_a_spare["any_rack_loss_survived",] == 0
    assert without_a_spare["rack_loss_partitions", "a", "under_min_isr"] == 1
    voters = tuple(Controller(BrokerId(one), RackId(rack)) for one, rack in ((101, "a"), (102, "a"), (103, "b")))
    controllers = series(replace(cluster(), controllers=voters))
    assert (controllers["rack_loss_survived", "a"], controllers["rack_loss_survived", "b"]) == (0, 1)
    assert controllers["rack_loss_controllers", "a", "left"] == 1
    assert controllers["any_rack_loss_survived",] == 0


@pytest.mark.parametrize(("survive", "survived"), [(Survive.RACK, 0), (Survive.BROKER, 1), (Survive.NONE, 1)])
def test_what_the_policy_accepts_is_survived_and_still_counted(survive: Survive, survived: int) -> None:
    snapshot = of_one_topic({1: "a", 2: "a", 3: "b"}, [[1, 2]], config={"min.insync.replicas": "1"})
    found = series(snapshot, RackPolicy(topic_survive={"orders": survive}))
    assert found["rack_loss_partitions", "a", "offline"] == 1
    assert found["rack_loss_survived", "a"] == survived


def test_racks_whose_names_are_alike_are_not_survived_for_certain() -> None:
    """The audit ends with 2, though no loss of one of the names does harm."""
    found = series(cluster("Aab"))
    assert {found["rack_loss_survived", rack] for rack in ("A", "a", "b")} == {1}
    assert found["any_rack_loss_survived",] == 0


def test_a_cluster_without_a_rack_to_lose_is_not_survived() -> None:
    """Nothing is lost with a rack, and no loss is survived either: an alert on single racks would be silent."""
    snapshot = of_one_topic({1: None, 2: None}, [[1, 2]], config={"min.insync.replicas": "1"})
    assert series(snapshot)["any_rack_loss_survived",] == 0


def test_a_cluster_without_partitions_has_no_verdict() -> None:
    assert ("any_rack_loss_survived",) not in series(of_one_topic({1: "a", 2: "b"}, []))


def test_a_cluster_of_which_nothing_is_known_at_present_is_not_known_and_keeps_no_value() -> None:
    assert read(rack_loss_families([ClusterLosses("id-1", "Europe", None, None)])) == {("rack_loss_known",): 0}


def test_series_have_the_id_and_the_name_of_their_cluster() -> None:
    losses = rack_losses(cluster(), snapshot_batch(cluster(), RackPolicy()))
    taken_at = datetime(2026, 11, 21, 2, tzinfo=UTC)
    named = [ClusterLosses("id-1", "Europe", losses, taken_at), ClusterLosses("id-2", None, losses, None)]
    labels = {
        (sample.labels["cluster_id"], sample.labels["cluster"])
        for family in rack_loss_families(named)
        for sample in family.samples
    }
    assert labels == {("id-1", "Europe"), ("id-2", "id-2")}
    found = read(rack_loss_families(named[:1]))
    assert found["rack_loss_snapshot_timestamp_seconds",] == 1795226400


def test_a_watch_that_cannot_read_the_cluster_serves_none_of_it() -> None:
    readings: list[Any] = [(0, cluster()), (1, GONE), (2, cluster())]
    served = [read(watch_families(watch, partitions=False)) for watch in watch_readings(readings, RackPolicy())]
    assert [("any_rack_loss_survived",) in of_watch for of_watch in served] == [True, False, True]
    assert [("rack_loss_known",) in of_watch for of_watch in served] == [True, False, True]
