import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, Severity
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, UnrackedPolicy, columns
from rackspan.plan.reassignment_file import read_reassignment
from rackspan.reassign import (
    ListedPartition,
    ReassignmentDocument,
    ReassignmentPlan,
    ReassignmentRequest,
    known_reassignments,
    lint,
    plan,
    snapshot_after,
)
from rackspan.reassign.document import faults
from rackspan.reassign.lint import OF_RACKS_IN_SYNC
from tests.audit import brute_force as audit_brute_force
from tests.reassign import brute_force
from tests.reassign.instances import cluster, instance
from tests.reassign.plans import targets
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())["cases"]
REFUSED = [case for case in VECTORS if case["id"].startswith("r-execute-parse-err")]
PARSED = [case for case in VECTORS if case["id"] in ("r-execute-parse-ok", "r-execute-parse-dirs")]
SIX = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def orders(
    replicas: list[int],
    isr: list[int] | None = None,
    config: dict[str, str] | None = None,
    adding: tuple[int, ...] = (),
    removing: tuple[int, ...] = (),
) -> ClusterSnapshot:
    """Topic orders with one partition, on six brokers in three racks."""
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker), RackId(rack), broker == 6) for broker, rack in SIX.items()),
        topics=(Topic(TopicName("orders"), config=config or {}),),
        partitions=columns(
            topic=[0],
            partition=[0],
            leader=[(replicas if isr is None else [*isr, -1])[0]],
            replicas=[replicas],
            isr=[replicas if isr is None else isr],
            adding_replicas=[adding],
            removing_replicas=[removing],
        ),
    )


def move(*replicas: int, topic: str = "orders", partition: int = 0) -> ReassignmentDocument:
    return ReassignmentDocument((ListedPartition(topic, partition, replicas),))


def severities(
    snapshot: ClusterSnapshot, document: ReassignmentDocument, policy: RackPolicy = RackPolicy()
) -> dict[str, str]:
    return {one.constraint: str(one.severity) for one in lint(snapshot, policy, document)}


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["id"])
def test_a_file_kafka_refuses_is_refused_in_kafkas_words(case: dict[str, Any]) -> None:
    document = read_reassignment(json.dumps(case["input"]))
    assert next(faults(document)).reason == case["expect"]["error"]
    snapshot = cluster([[0, 1], [1, 2]], {0: "a", 1: "b", 2: "c", 3: "a", 4: "b"})
    found = lint(snapshot, RackPolicy(), document)
    severity = Severity.WARNING if not case["input"]["partitions"] else Severity.VIOLATION
    assert case["expect"]["error"] in [one.reason for one in found if one.severity is severity]


@pytest.mark.parametrize("case", PARSED, ids=lambda case: case["id"])
def test_a_file_kafka_reads_has_no_fault(case: dict[str, Any]) -> None:
    document = read_reassignment(json.dumps(case["input"]))
    assert list(faults(document)) == []
    assert {entry.name: list(entry.replicas) for entry in document.partitions} == case["expect"]["partitions"]
    dirs = {
        f"{entry.name}-{broker}": log_dir
        for entry in document.partitions
        for broker, log_dir in zip(entry.replicas, entry.log_dirs or (), strict=True)
        if log_dir != "any"
    }
    assert dirs == case["expect"]["log_dirs"]


def test_unknown_brokers_and_partitions_are_named_as_kafka_names_them() -> None:
    cases = {case["id"]: case for case in VECTORS}
    case = cases["r-execute-unknown-broker"]
    entries = [ListedPartition("foo", int(name[-1]), tuple(to)) for name, to in case["input"]["proposed"].items()]
    racks = {broker: f"r{broker}" for broker in case["input"]["brokers"]}
    found = lint(cluster([[0, 1]], racks), RackPolicy(), ReassignmentDocument(tuple(entries)))
    assert case["expect"]["error"] in [one.reason for one in found]
    missing = cases["r-missing-partition"]
    found = lint(cluster([[0, 1]], racks), RackPolicy(), move(0, 1, topic="foo", partition=10))
    assert missing["expect"]["error"] in [one.reason for one in found]


def test_a_target_in_one_rack_breaks_the_rack_spread() -> None:
    assert severities(orders([1, 3, 5]), move(1, 2, 5)) == {
        "rack-spread": "violation",
        "plan-needless-moves": "warning",
    }


def test_a_target_that_keeps_every_rule_is_clean() -> None:
    assert severities(orders([1, 2, 3]), move(1, 5, 3)) == {}


def test_a_target_is_held_against_the_minimums_of_its_topic() -> None:
    found = severities(orders([1, 3, 5], config={"min.insync.racks": "3", "min.insync.replicas": "3"}), move(1, 3))
    assert found["min-insync-racks-satisfiable"] == "violation"
    assert found["min-insync-replicas-satisfiable"] == "warning"
    assert found["plan-replication-factor"] == "warning"


def test_two_replicas_of_a_rack_may_acknowledge_alone_while_one_replaces_the_other() -> None:
    snapshot = orders([1, 3, 5], config={"min.insync.replicas": "2"})
    found = lint(snapshot, RackPolicy(min_insync_racks=2), move(2, 3, 5))
    (on_the_way,) = [one for one in found if one.constraint == "plan-intermediate-forces-racks"]
    assert on_the_way.reason.startswith("while it moves, replicas are 2,3,5,1: min.insync.replicas 2 lets 1 rack alone")


@pytest.mark.parametrize(
    ("snapshot", "document", "constraint", "severity"),
    [
        (orders([1, 3, 5]), move(1, 3, 6), "plan-fenced-broker", "violation"),
        (orders([1, 3, 5], isr=[]), move(1, 4, 5), "plan-offline-partition", "violation"),
        (orders([1, 3, 5]), move(2, 4, 6), "plan-replaces-all", "warning"),
        (orders([1, 3, 5]), move(1, 3), "plan-replication-factor", "warning"),
        (orders([1, 3, 5]), move(), "plan-no-replicas", "violation"),
        (orders([1, 3, 5]), move(1, 3, -2), "plan-unknown-broker", "violation"),
        (orders([1, 3, 5]), move(1, 3, 2**40), "plan-unknown-broker", "violation"),
        (orders([1, 3, 5]), move(1, 3, 5, topic="nobody"), "plan-unknown-partition", "violation"),
        (
            orders([1, 3, 5, 4], adding=(4,), removing=(3,)),
            move(1, 3, 5),
            "plan-reassignment-in-progress",
            "warning",
        ),
    ],
)
def test_what_only_a_plan_can_get_wrong_has_a_name(
    snapshot: ClusterSnapshot, document: ReassignmentDocument, constraint: str, severity: str
) -> None:
    assert severities(snapshot, document)[constraint] == severity


@pytest.mark.parametrize("name", ["labelled", "five percent", "broker lost"])
def test_our_own_plans_have_nothing_to_find(name: str) -> None:
    snapshot = instance(name, 1_000)
    assert {
        one.constraint
        for one in lint(snapshot, RackPolicy(), plan(snapshot, request=ReassignmentRequest(replace_missing=True)))
    } <= {"plan-replaces-all"}


@given(snapshots(), policies(), st.sampled_from([None, 1, 3]))
def test_no_plan_of_ours_is_refused(snapshot: ClusterSnapshot, policy: RackPolicy, factor: int | None) -> None:
    planned = plan(snapshot, policy, ReassignmentRequest(replication_factor=factor))
    request = ReassignmentRequest(replication_factor=factor)
    assert [one for one in lint(snapshot, policy, planned, request) if one.severity is Severity.VIOLATION] == []


def test_a_plan_and_its_file_have_the_same_findings() -> None:
    snapshot = instance("broker lost", 1_000)
    planned = plan(
        snapshot, request=ReassignmentRequest(replication_factor=2, replace_missing=True, allow_fewer_racks=True)
    )
    document = ReassignmentDocument(tuple(ListedPartition(*target) for target in targets(planned)))
    assert lint(snapshot, RackPolicy(), planned) == lint(snapshot, RackPolicy(), document) != []


def test_a_plan_that_drains_a_broker_is_clean_for_the_request_it_was_made_for() -> None:
    snapshot = cluster([[1, 2, 4]], {1: "a", 2: "b", 3: "b", 4: "c"})
    request = ReassignmentRequest(drain=frozenset({4}), allow_fewer_racks=True)
    planned = plan(snapshot, request=request)
    assert lint(snapshot, RackPolicy(), planned, request) == []
    assert "rack-spread" in {one.constraint for one in lint(snapshot, RackPolicy(), planned)}
    kept = ReassignmentDocument((ListedPartition("topic-000000", 0, (1, 3, 4)),))
    assert "plan-drained-broker" in {one.constraint for one in lint(snapshot, RackPolicy(), kept, request)}


def test_a_replication_factor_that_was_required_is_no_finding_and_another_is() -> None:
    snapshot, request = cluster([[1, 3]], {1: "a", 2: "b", 3: "b", 4: "c"}), ReassignmentRequest(replication_factor=3)
    assert lint(snapshot, RackPolicy(), plan(snapshot, request=request), request) == []
    two = ReassignmentDocument((ListedPartition("topic-000000", 0, (1, 4)),))
    (found, *_) = (
        one for one in lint(snapshot, RackPolicy(), two, request) if one.constraint == "plan-replication-factor"
    )
    assert found.reason == "it has 2 replicas, and replication factor 3 is required"


@pytest.mark.slow
@given(
    snapshots(), policies(), st.sampled_from([None, 1, 2, 3, 4]), st.booleans(), st.booleans(), st.booleans(), st.data()
)
def test_lint_refuses_nothing_that_plan_makes_for_the_same_request(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    factor: int | None,
    reorder: bool,
    balance: bool,
    replaced: bool,
    data: st.DataObject,
) -> None:
    ids = [int(broker.id) for broker in snapshot.brokers]
    gone = {broker for row in snapshot.partitions for broker in row.replicas} - set(ids)
    away = frozenset(data.draw(st.sets(st.sampled_from(ids), max_size=len(ids) - 1)))
    away |= frozenset(data.draw(st.sets(st.sampled_from(sorted(gone)))) if gone else ())
    request = ReassignmentRequest(
        drain=frozenset() if replaced else away,
        replace=away if replaced else frozenset(),
        replication_factor=factor,
        reorder_leaders=reorder,
        balance=balance,
        replace_missing=data.draw(st.booleans()),
        allow_fewer_racks=data.draw(st.booleans()),
    )
    planned = plan(snapshot, policy, request)
    found = lint(snapshot, policy, planned, request)
    if not request.allow_fewer_racks:
        before = brute_force.survival(snapshot, policy)
        after = brute_force.survival(snapshot_after(snapshot, planned), policy)
        assert [row for row, (now, then) in enumerate(zip(before, after, strict=True)) if not then >= now] == []
    if not request.replace_missing:
        changed = {one.topic_partition for one in planned.partitions()}
        assert not any(set(one.undo) & (gone - away) for one in planned.partitions()), changed
    # What no plan can meet is a warning: configs, and racks that are not there.
    assert [one for one in found if one.severity is Severity.VIOLATION] == []
    assert not {"plan-needless-moves", "plan-replication-factor"} & {one.constraint for one in found}


def test_a_plan_that_uses_an_excluded_broker_is_a_violation_and_one_that_keeps_it_is_none() -> None:
    excluding = RackPolicy(excluded_brokers=frozenset({3}))
    assert severities(orders([1, 5, 4]), move(1, 5, 3), excluding)["plan-excluded-broker"] == "violation"
    assert "plan-excluded-broker" not in severities(orders([1, 5, 3]), move(5, 1, 3), excluding)


@pytest.mark.parametrize(
    ("racks", "reason"),
    [
        (3, "min.insync.replicas 1 lets 2 racks alone acknowledge (a: 1; b: 3; c: 5); 3 would force 3 racks"),
        (
            4,
            "min.insync.racks 4 can never be met: replicas are in 3 racks (a: 1; b: 3; c: 5), and the cluster has 3 racks",
        ),
    ],
)
def test_racks_in_sync_that_no_target_of_as_many_replicas_has_are_a_warning_of_what_comes(
    racks: int, reason: str
) -> None:
    found = lint(orders([1, 2, 3]), RackPolicy(min_insync_racks=racks), move(1, 3, 5))
    assert [(one.severity, one.reason) for one in found] == [(Severity.WARNING, f"once it is done, {reason}")]


def test_a_target_that_does_not_survive_a_rack_is_a_violation_where_the_file_chose_its_replicas() -> None:
    snapshot = orders([1], config={"min.insync.replicas": "2"})
    (found,) = [one for one in lint(snapshot, RackPolicy(), move(1, 3)) if one.severity is Severity.VIOLATION]
    assert (found.constraint, found.remedy) == (
        "accepts-writes-after-rack-loss",
        "rackspan reassign plan --topic orders --replication-factor 3",
    )
    assert found.reason.startswith("once it is done, the loss of rack a or b leaves too few in sync for acks=all")
    # Required by the request: reported, and not refused.
    request = ReassignmentRequest(replication_factor=2)
    on_purpose = {one.constraint: one.severity for one in lint(snapshot, RackPolicy(), move(1, 3), request)}
    assert on_purpose == dict.fromkeys(
        ("accepts-writes-after-rack-loss", "plan-intermediate-refuses-writes"), Severity.WARNING
    )
    assert severities(orders([1]), move(3))["survives-rack-loss"] == "warning"


def test_a_target_of_as_many_replicas_that_ends_a_survival_is_a_violation() -> None:
    """Of two racks, and with broker 1 fenced: 2 and 3 are in sync in both of them, 4 and 3 in one."""
    snapshot = orders([1, 2, 3], isr=[2, 3])
    brokers = tuple(replace(broker, fenced=broker.id == 1) for broker in snapshot.brokers if broker.id < 5)
    found = severities(replace(snapshot, brokers=brokers), move(1, 4, 3))
    assert found == {
        "survives-rack-loss": "violation",
        "plan-needless-moves": "warning",
        "plan-fenced-broker": "warning",
    }


def test_a_minimum_above_the_factor_refuses_writes_as_soon_as_replicas_are_added() -> None:
    """Brokers count min.insync.replicas as at most the replicas there are: by hand, for each number of them."""
    for minimum, replicas, isr, target, refused in (
        (2, [1], [1], (1, 3, 5), True),
        (1, [1], [1], (1, 3, 5), False),
        (3, [1, 2], [1, 2], (1, 3), True),
        (2, [1, 2], [1, 2], (1, 3), False),
        (3, [1, 2], [1], (1, 3), False),  # Refused already.
        (4, [1, 2, 3], [1, 2, 3], (3, 2, 1), False),  # Nothing is added.
    ):
        snapshot = orders(replicas, isr, {"min.insync.replicas": str(minimum)})
        found = severities(snapshot, move(*target))
        assert ("plan-intermediate-refuses-writes" in found) == refused, (minimum, replicas, isr, target)


@pytest.mark.slow
@given(snapshots(), policies(), st.data())
def test_no_target_that_a_loss_stops_is_without_a_finding(
    snapshot: ClusterSnapshot, policy: RackPolicy, data: st.DataObject
) -> None:
    ids = [int(broker.id) for broker in snapshot.brokers]
    names = [topic.name for topic in snapshot.topics]
    rows = list(snapshot.partitions)
    entries = tuple(
        ListedPartition(
            names[row.topic],
            row.partition,
            tuple(data.draw(st.permutations(ids))[: data.draw(st.integers(1, len(ids)))]),
        )
        for row in rows[:3]
    )
    found = {(one.topic, one.partition) for one in lint(snapshot, policy, ReassignmentDocument(entries))}
    cluster_document = audit_brute_force.document(snapshot)
    racks = audit_brute_force.rack_of(cluster_document, policy)
    for entry in entries:
        (topic,) = (one for one in cluster_document["topics"] if one["name"] == entry.topic)
        target = {
            **next(one for one in topic["partitions"] if one["partition"] == entry.partition),
            "replicas": list(entry.replicas),
            "removing_replicas": [],
        }
        lost = audit_brute_force.lost_by(cluster_document, topic, target, racks, policy, present=True)
        assert lost is None or (entry.topic, entry.partition) in found, (entry, lost)


@pytest.mark.slow
@given(snapshots(), policies(), st.data())
def test_racks_that_a_target_does_not_guarantee_are_a_warning_only_where_no_target_of_as_many_replicas_would(
    snapshot: ClusterSnapshot, policy: RackPolicy, data: st.DataObject
) -> None:
    """Every other set of as many brokers is tried. Where replicas count in no rack, these are what to repair instead."""
    rows, ids = list(snapshot.partitions), [int(broker.id) for broker in snapshot.brokers]
    assume(rows)
    one = data.draw(st.sampled_from(rows))
    factor = min(len(set(one.replicas) - set(one.removing_replicas)), len(ids))
    chosen = tuple(data.draw(st.permutations(ids))[:factor])
    document = ReassignmentDocument((ListedPartition(snapshot.topics[one.topic].name, one.partition, chosen),))
    found = lint(snapshot, policy, document)
    warned = [two for two in found if two.reason.startswith("once it is done, min.insync")]
    lenient = {two.constraint for two in warned if not two.remedy.startswith("set broker.rack on broker")}
    cluster_document = audit_brute_force.document(snapshot)
    racks = audit_brute_force.rack_of(cluster_document, policy)
    topic = next(two for two in cluster_document["topics"] if two["name"] == document.partitions[0].topic)

    def broken(target: tuple[int, ...]) -> set[str]:
        moved = {"replicas": list(target), "isr": list(target), "leader": target[0]}
        emptied: dict[str, list[int]] = {"adding_replicas": [], "removing_replicas": []}
        return audit_brute_force.broken(cluster_document, topic, {**moved, **emptied}, racks, policy)

    others = list(combinations(ids, len(chosen)))
    spanning = [two for two in others if "min-insync-racks-satisfiable" not in broken(two)]
    forcing = [two for two in spanning if "min-insync-replicas-forces-racks" not in broken(two)]
    better = {"min-insync-racks-satisfiable": spanning, "min-insync-replicas-forces-racks": forcing}
    assert {name: better[name] for name in lenient if better[name]} == {}


@pytest.mark.parametrize(
    ("target", "factor", "severity"),
    [
        ((1, 4), None, "warning"),
        ((1, 2), None, "violation"),
        ((1, 3, 5, 2), None, "violation"),
        ((1, 3, 5, 2), 4, "warning"),
        ((1, 7), None, "violation"),
    ],
)
def test_what_no_target_can_meet_is_a_warning_unless_the_file_has_a_hand_in_it(
    target: tuple[int, ...], factor: int | None, severity: str
) -> None:
    """min.insync.replicas 1 forces 2 racks nowhere: a config. Another spread, number or broker without a rack is the file's."""
    snapshot = orders([1, 3], config={"min.insync.replicas": "1"})
    brokers = (*snapshot.brokers, Broker(BrokerId(7), None, False))
    policy = RackPolicy(unracked=UnrackedPolicy.IGNORE, min_insync_racks=2)
    request = ReassignmentRequest(replication_factor=factor)
    found = lint(replace(snapshot, brokers=brokers), policy, move(*target), request)
    about_racks = {str(one.severity) for one in found if one.constraint in OF_RACKS_IN_SYNC}
    assert about_racks == {severity}


def test_the_sound_entries_of_a_document_are_those_with_their_replicas_of_now_as_undo() -> None:
    document = ReassignmentDocument(
        (
            ListedPartition("orders", 0, (2, 4, 6)),
            ListedPartition("orders", 1, (2, 4, 6)),
            ListedPartition("payments", 0, (1,)),
            ListedPartition("payments", 0, (2,)),
        )
    )
    known = known_reassignments(orders([1, 3, 5]), document)
    assert [(one.topic, one.partition, one.replicas, one.undo) for one in known] == [
        ("orders", 0, (2, 4, 6), (1, 3, 5))
    ]
    twice = ReassignmentDocument((ListedPartition("orders", 0, (2, 4)), ListedPartition("orders", 0, (4, 6))))
    assert len(known_reassignments(orders([1, 3, 5]), twice)) == 0


def test_a_config_that_cannot_be_met_hides_no_loss_that_the_target_does_not_survive() -> None:
    found = severities(orders([1], config={"min.insync.replicas": "3"}), move(1, 3))
    assert found["min-insync-replicas-satisfiable"] == "warning"
    assert found["accepts-writes-after-rack-loss"] == "violation"


def reasons(
    snapshot: ClusterSnapshot,
    document: ReassignmentDocument,
    request: ReassignmentRequest = ReassignmentRequest(),
    policy: RackPolicy = RackPolicy(),
) -> dict[str, tuple[str, str]]:
    return {one.constraint: (one.reason, one.remedy) for one in lint(snapshot, policy, document, request)}


def test_several_brokers_of_a_finding_are_listed_in_the_order_of_the_file() -> None:
    snapshot = orders([1], isr=[])
    fenced = tuple(replace(one, fenced=one.id in (2, 3)) for one in snapshot.brokers)
    found = reasons(
        replace(snapshot, brokers=fenced),
        move(3, 2, 5, 4),
        ReassignmentRequest(drain=frozenset({5, 4})),
        RackPolicy(excluded_brokers=frozenset({4, 5})),
    )
    write = "correct the file, or let rackspan reassign plan write one"
    assert {name: found[name] for name in found if name.startswith("plan-") and name != "plan-needless-moves"} == {
        "plan-drained-broker": ("brokers to drain would hold it: 5,4", write),
        "plan-offline-partition": (
            "it has no leader to copy from: replicas 3,2,5,4 would never finish",
            "bring back a replica that was in sync first",
        ),
        "plan-fenced-broker": (
            "fenced brokers cannot receive: 3,2; the move would not end",
            "bring them back first, or name others",
        ),
        "plan-excluded-broker": ("excluded brokers get nothing new: 5,4", "name others, or end the exclusion"),
        "plan-replaces-all": (
            "every replica is replaced at once: until all copies are in sync nothing of the target counts",
            "keep one replica, or move in two steps",
        ),
        "plan-replication-factor": (
            "the replication factor changes from 1 to 4",
            "give --replication-factor N where it is meant, or keep the factor",
        ),
    }


def test_a_replica_that_stays_on_a_fenced_broker_holds_up_the_end_of_a_move() -> None:
    """Broker 6 is fenced. Kafka ends a move once every replica of it is in sync, so one that only reorders does not wait."""
    assert reasons(orders([1, 3, 6], isr=[1, 3]), move(2, 3, 6))["plan-fenced-broker"] == (
        "replicas stay on fenced brokers: 6; the move ends once they are back in sync",
        "bring them back first, or name others",
    )
    assert severities(orders([1, 3, 6], isr=[1, 3]), move(2, 3, 6))["plan-fenced-broker"] == "warning"
    assert "plan-fenced-broker" in severities(orders([1, 3, 6], isr=[1, 3]), move(1, 6))
    assert "plan-fenced-broker" not in severities(orders([1, 3, 6], isr=[1, 3]), move(3, 1, 6))
    assert "plan-fenced-broker" not in severities(orders([1, 3, 6], isr=[1, 3]), move(1, 3, 5))


def test_a_replica_that_stays_in_a_failed_log_directory_holds_up_the_end_of_a_move() -> None:
    """Its broker is up, and it gets in sync no more than that of a fenced broker before its disk is repaired."""
    snapshot = of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3]], isr=[[1, 2]], more={"offline_replicas": [[3]]})
    assert severities(snapshot, move(2, 3))["failed-log-dir"] == "warning"
    assert "failed-log-dir" not in severities(snapshot, move(1, 2))
    assert "failed-log-dir" not in severities(snapshot, move(3, 2, 1))


def test_a_partition_that_moves_already_has_its_remedy() -> None:
    found = reasons(orders([1, 3, 5, 4], adding=(4,), removing=(3,)), move(1, 3, 5))
    assert found["plan-reassignment-in-progress"] == (
        "it is being reassigned already: the plan would replace that",
        "wait for it, or first cancel it with rackspan reassign cancel --in-flight",
    )
    assert "plan-reassignment-in-progress" not in reasons(orders([1, 3, 5]), move(1, 3, 5))


@pytest.mark.parametrize(
    ("start", "target", "replaced"),
    [([1], (2,), False), ([1, 3], (2, 4), True), ([1, 3], (2, 3), False), ([1], (3, 5), True), ([1, 3], (5,), True)],
)
def test_every_replica_is_replaced_at_once_unless_there_is_one_alone(
    start: list[int], target: tuple[int, ...], replaced: bool
) -> None:
    assert ("plan-replaces-all" in severities(orders(start), move(*target))) == replaced


@pytest.mark.parametrize(
    ("placed", "targets", "request_", "words"),
    [
        ([[1, 3]], [(2, 3)], ReassignmentRequest(), "it copies 1 replica; the constraints of these partitions need 0; it empties broker 1"),
        (
            [[1, 3], [1, 3]],
            [(2, 4), (2, 3)],
            ReassignmentRequest(),
            "it copies 3 replicas; the constraints of these partitions need 0; it empties broker 1",
        ),
        (
            [[1, 3], [1, 3]],
            [(2, 4), (2, 4)],
            ReassignmentRequest(),
            "it copies 4 replicas; the constraints of these partitions need 0; it empties brokers 1,3",
        ),
        # Another partition keeps broker 1; one that is drained is not emptied for nothing.
        ([[1, 3], [1, 3]], [(2, 3)], ReassignmentRequest(), "it copies 1 replica; the constraints of these partitions need 0"),
        (
            [[1, 3]],
            [(2, 4)],
            ReassignmentRequest(drain=frozenset({1})),
            "it copies 2 replicas; the constraints of these partitions need 1; it empties broker 3",
        ),
        ([[1, 3]], [(2, 3)], ReassignmentRequest(drain=frozenset({1})), None),
        ([[1, 2]], [(2, 3)], ReassignmentRequest(), None),
        ([[1, 3]], [(3, 1)], ReassignmentRequest(), None),
        ([[1, 3]], [(2, 4)], ReassignmentRequest(balance=True), None),
    ],
)  # fmt: skip
def test_copies_that_nothing_needs_are_counted_with_the_brokers_that_they_empty(
    placed: list[list[int]], targets: list[tuple[int, ...]], request_: ReassignmentRequest, words: str | None
) -> None:
    entries = tuple(ListedPartition("topic-000000", number, target) for number, target in enumerate(targets))
    found = reasons(cluster(placed, SIX), ReassignmentDocument(entries), request_)
    assert found.get("plan-needless-moves", (None, None))[0] == words


def test_copies_that_nothing_needs_are_linted_again_with_what_was_meant() -> None:
    drained = reasons(cluster([[1, 3]], SIX), ReassignmentDocument((ListedPartition("topic-000000", 0, (2, 4)),)))
    assert drained["plan-needless-moves"][1] == "if meant, lint it with --drain 1,3; else rackspan reassign plan"
    kept = reasons(cluster([[1, 3]] * 2, SIX), ReassignmentDocument((ListedPartition("topic-000000", 0, (2, 3)),)))
    assert kept["plan-needless-moves"][1] == "if meant, lint it with --balance; else rackspan reassign plan"


def test_unknown_brokers_and_partitions_are_each_a_finding_once() -> None:
    document = ReassignmentDocument(
        (ListedPartition("orders", 0, (1, 8, 9, 8)), ListedPartition("orders", 7, (1, 3, 5)))
    )
    found = lint(orders([1, 3, 5]), RackPolicy(), document)
    write = "correct the file, or let rackspan reassign plan write one"
    assert [
        (one.constraint, one.partition, one.reason, one.remedy) for one in found if "-unknown-" in one.constraint
    ] == [
        ("plan-unknown-broker", 0, "Unknown broker id 8", write),
        ("plan-unknown-broker", 0, "Unknown broker id 9", write),
        ("plan-unknown-partition", 7, "Unable to find partition: orders-7", write),
    ]


def test_a_target_that_is_less_safe_says_what_is_lost_unless_that_is_accepted() -> None:
    found = reasons(orders([1, 3, 5]), move(1, 3))
    assert found["plan-less-safe"] == (
        "it would be left in 2 racks instead of 3",
        "name brokers in more racks, or accept it with --allow-fewer-racks",
    )
    accepted = reasons(orders([1, 3, 5]), move(1, 3), ReassignmentRequest(allow_fewer_racks=True))
    assert "plan-less-safe" not in accepted
    # What breaks the spread is reported as that.
    assert "plan-less-safe" not in reasons(orders([1, 3, 5]), move(1, 2, 3))


def test_an_empty_file_is_a_warning_and_an_empty_plan_nothing() -> None:
    (found,) = lint(orders([1]), RackPolicy(), ReassignmentDocument(()))
    assert (found.constraint, found.severity, found.topic, found.partition) == (
        "plan-empty", Severity.WARNING, None, None,
    )  # fmt: skip
    assert found.remedy == (
        "none: there is nothing to move; Kafka's own tool refuses the file, rackspan reassign apply does not"
    )
    assert lint(orders([1]), RackPolicy(), ReassignmentPlan(None, {}, ())) == []


def test_a_minimum_that_forces_racks_only_at_the_end_of_the_move_has_its_remedy() -> None:
    snapshot = orders([1, 3, 5], config={"min.insync.replicas": "2"})
    found = reasons(snapshot, move(2, 3, 5), policy=RackPolicy(min_insync_racks=2))
    assert found["plan-intermediate-forces-racks"][1] == (
        "raise min.insync.replicas until the move is done, or accept it for that time"
    )


def test_a_partition_whose_placement_is_reported_hides_no_loss_of_the_next() -> None:
    snapshot = cluster([[1], [1]], SIX)
    strict = (replace(snapshot.topics[0], config={"min.insync.replicas": "2"}),)
    entries = (ListedPartition("topic-000000", 0, (1, 2, 3)), ListedPartition("topic-000000", 1, (1, 3)))
    found = lint(replace(snapshot, topics=strict), RackPolicy(), ReassignmentDocument(entries))
    about = {(one.constraint, one.partition) for one in found if one.severity is Severity.VIOLATION}
    assert about == {("rack-spread", 0), ("accepts-writes-after-rack-loss", 1)}
