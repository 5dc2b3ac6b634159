"""A log directory that failed is named with its broker, and what is advised can be done and loses nothing."""

import re
from dataclasses import replace

from rackspan.audit import Finding, RackPolicy, audit
from rackspan.audit.constraints.cluster import failed_log_dir_lines
from rackspan.audit.policy import Survive
from rackspan.model import ClusterSnapshot
from rackspan.reassign import ReassignmentRequest, plan, snapshot_after
from tests.snapshots import of_one_topic

RACKS = {1: "a", 2: "b", 3: "c", 4: "c"}
MIN_TWO = {"min.insync.replicas": "2"}


def cluster(
    failed: dict[int, tuple[str, ...]], racks: dict[int, str] = RACKS, *, leader: int = 1, fenced: tuple[int, ...] = ()
) -> ClusterSnapshot:
    """orders-0 on 3, 1 and 2, of which 3 is in a failed directory and 1 and 2 are in sync; orders-1 is well."""
    snapshot = of_one_topic(
        racks,
        [[3, 1, 2], [1, 2, 3]],
        isr=[[1, 2], [1, 2, 3]],
        leader=[leader, 1],
        fenced=fenced,
        config=MIN_TWO,
        more={"offline_replicas": [[3], []]},
    )
    brokers = tuple(replace(one, failed_log_dirs=failed.get(int(one.id), ())) for one in snapshot.brokers)
    return replace(snapshot, brokers=brokers)


def findings(snapshot: ClusterSnapshot, constraint: str) -> list[Finding]:
    return [one for one in audit(snapshot, RackPolicy()).findings if one.constraint == constraint]


def test_a_failed_directory_is_a_warning_with_its_path_its_broker_and_what_it_holds() -> None:
    (found,) = findings(cluster({3: ("/data/b",)}), "failed-log-dir")
    assert found.severity == "warning"
    assert found.reason == (
        "log directory /data/b of broker 3 (rack c) has failed, and the broker is up: 1 replica there is not served"
    )
    assert found.remedy == "repair or replace its disk and restart broker 3, or rackspan reassign plan --drain 3"


def test_a_disk_is_not_to_be_replaced_while_other_topics_are_not_judged() -> None:
    judged = audit(cluster({3: ("/data/b",)}), RackPolicy(), re.compile("orders"))
    (found,) = [one for one in judged.findings if one.constraint == "failed-log-dir"]
    assert found.remedy == "repair its disk and restart broker 3, or rackspan reassign plan --drain 3"


def test_a_directory_that_held_nothing_is_named_too() -> None:
    snapshot = of_one_topic({1: "a", 2: "b"}, [[1, 2]])
    well, failing = snapshot.brokers
    snapshot = replace(snapshot, brokers=(well, replace(failing, failed_log_dirs=("/data/b", "/data/c"))))
    (found,) = findings(snapshot, "failed-log-dir")
    assert found.reason.startswith("log directories /data/b, /data/c of broker 2 (rack b) have failed")
    # Broker 2 is the only one of its rack: without it replicas would be in fewer racks.
    assert found.remedy == "repair or replace its disk and restart broker 2"


def test_replicas_are_enough_to_know_of_a_failed_directory_whose_path_is_not_known() -> None:
    (found,) = findings(cluster({}), "failed-log-dir")
    assert found.reason.startswith("a log directory of broker 3 (rack c) has failed")
    (line,) = failed_log_dir_lines(cluster({}))
    assert line.startswith("a log directory of broker 3 (rack c) has failed, and the broker is up")


def test_a_broker_that_is_down_is_fenced_and_nothing_else() -> None:
    snapshot = cluster({3: ("/data/b",)}, fenced=(3,))
    assert findings(snapshot, "failed-log-dir") == []
    assert list(failed_log_dir_lines(snapshot)) == []
    assert findings(snapshot, "fenced-broker")


def test_nothing_waits_for_a_replica_in_a_failed_directory() -> None:
    remedies = [one.remedy for one in audit(cluster({3: ("/data/b",)}), RackPolicy()).findings]
    assert "repair the disk of broker 3 and restart it, or rackspan reassign plan --drain 3 --topic orders" in remedies
    assert not [one for one in remedies if "wait until" in one or "kafka-leader-election.sh --boot" in one]


def test_the_drain_that_is_advised_leaves_no_replica_in_the_failed_directory() -> None:
    snapshot = cluster({3: ("/data/b",)})
    planned = plan(snapshot, RackPolicy(), ReassignmentRequest(drain=frozenset({3})))
    after = snapshot_after(snapshot, planned)
    assert after.partitions.offline_replicas[after.partitions.offline_replicas >= 0].size == 0
    assert [row.isr for row in after.partitions] == [row.replicas for row in after.partitions]


def test_no_drain_is_advised_that_costs_a_rack() -> None:
    remedies = [one.remedy for one in audit(cluster({}, {1: "a", 2: "b", 3: "c"}), RackPolicy()).findings]
    assert "repair the disk of broker 3 and restart it" in remedies
    assert not [one for one in remedies if "--drain" in one]


def test_a_preferred_leader_in_a_failed_directory_is_not_to_be_elected() -> None:
    assert findings(cluster({3: ("/data/b",)}), "preferred-leader") == []
    # The same partition once the disk is back and the replica in sync: then an election works.
    well = replace(cluster({}), partitions=of_one_topic(RACKS, [[3, 1, 2], [1, 2, 3]], leader=[1, 1]).partitions)
    assert findings(well, "preferred-leader")


def last_in_sync(replicas: list[int], isr: list[int], offline: list[int]) -> ClusterSnapshot:
    return of_one_topic(RACKS, [replicas], isr=[isr], leader=[-1], config=MIN_TWO, more={"offline_replicas": [offline]})


def test_what_loses_records_comes_last_with_its_condition_and_what_is_lost() -> None:
    (found,) = findings(last_in_sync([3, 1, 2], [3], [3]), "offline")
    assert found.remedy == (
        "repair the disk of broker 3 with what is on it, and restart it; only if its disk is lost for good: an unclean election "
        "(kafka-leader-election.sh --election-type unclean), which loses the records that brokers 1,2 lack"
    )
    (alone,) = findings(last_in_sync([3], [3], [3]), "offline")
    assert alone.remedy.endswith("; if its disk is lost for good, so are the records of the partition")
    (disk,) = findings(last_in_sync([3, 1, 2], [3], [3]), "failed-log-dir")
    assert disk.remedy == (
        "repair its disk with what is on it, and restart broker 3: 1 partition has no other copy in sync, and an empty disk loses its records"
    )


def test_nothing_that_loses_records_is_advised_where_it_is_not_known_who_was_in_sync() -> None:
    (found,) = findings(last_in_sync([3, 1, 2], [], [3]), "offline")
    assert found.remedy == "repair the disk of broker 3 with what is on it, and restart it"
    # Whether that disk has the last copy is not known either: it is not to be replaced by an empty one.
    (disk,) = findings(last_in_sync([3, 1, 2], [], [3]), "failed-log-dir")
    assert disk.remedy.startswith("repair its disk with what is on it, and restart broker 3: 1 partition has no other")
    # Broker 1 is in sync and up: no election loses anything, once there are controllers to hold it.
    (found,) = findings(last_in_sync([3, 1, 2], [3, 1], [3]), "offline")
    assert found.remedy == "repair the disk of broker 3 with what is on it, and restart it"


def test_a_broker_that_holds_nothing_is_not_to_be_drained() -> None:
    snapshot = of_one_topic({1: "a", 2: "b", 3: "b"}, [[1, 2]])
    *others, empty = snapshot.brokers
    (found,) = findings(replace(snapshot, brokers=(*others, replace(empty, failed_log_dirs=("/d",)))), "failed-log-dir")
    assert found.remedy == "repair or replace its disk and restart broker 3"


def test_a_reassignment_waits_for_the_disk_of_the_replica_that_it_adds_or_that_is_left() -> None:
    """Kafka ends it once the added replicas, and one of the target, are in sync."""
    adding = of_one_topic(
        RACKS,
        [[1, 2, 3]],
        isr=[[1, 2]],
        config=MIN_TWO,
        more={"adding_replicas": [[3]], "removing_replicas": [[2]], "offline_replicas": [[3]]},
    )
    (found,) = findings(adding, "reassignment-in-progress")
    cancel = "rackspan reassign cancel --in-flight"
    assert found.remedy == f"repair the disk of broker 3 and restart it and wait for it, or {cancel}"
    left = of_one_topic(
        RACKS, [[1, 2]], isr=[[1]], config=MIN_TWO, more={"removing_replicas": [[1]], "offline_replicas": [[2]]}
    )
    (found,) = findings(left, "reassignment-in-progress")
    assert found.remedy == f"repair the disk of broker 2 and restart it and wait for it, or {cancel}"


def test_no_drain_is_advised_of_a_topic_that_has_to_stay_in_its_rack() -> None:
    """Broker 3 is one of two in rack c, and 4 holds the partition already."""
    snapshot = of_one_topic(RACKS, [[4, 3]], isr=[[4]], config=MIN_TWO, more={"offline_replicas": [[3]]})
    policy = RackPolicy(topic_survive={"orders": Survive.NONE})
    (found,) = [one for one in audit(snapshot, policy).findings if one.constraint == "failed-log-dir"]
    assert found.remedy == "repair or replace its disk and restart broker 3"
    assert plan(snapshot, policy, ReassignmentRequest(drain=frozenset({3}))).infeasible
