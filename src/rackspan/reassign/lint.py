"""Checks any plan: ours, Kafka's, Cruise Control's, topicmappr's or a hand-made one.

A plan is checked for its targets, for the replica sets on the way, and for needless copies. The rules on placement are
those of `audit`; only what is specific to plans is here.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit import Finding, PartitionBatch, RackPolicy, Severity, in_order, snapshot_batch
from rackspan.audit.constraints.cluster import rack_names_alike
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.constraints.remedies import set_min_insync_replicas, target_that_survives
from rackspan.audit.constraints.survival import SURVIVAL_CONSTRAINTS
from rackspan.audit.constraints.wording import failed_replicas
from rackspan.model import (
    INT32_MAX,
    NO_BROKER,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    PartitionColumns,
    any_in_row,
    count_in_row,
    lengths,
    padded_lists,
    unpadded,
)
from rackspan.model.partitions import flattened, listed_in, padded, unpadded_rows
from rackspan.reassign.document import ANY_LOG_DIR, EMPTY, Fault, ListedPartition, ReassignmentDocument, faults
from rackspan.reassign.intermediate import refuses_midway
from rackspan.reassign.optimizer.bounds import needs
from rackspan.reassign.problem import PLANNED_FACTOR_MAX, reassignment_problem
from rackspan.reassign.reassignment_plan import (
    PartitionReassignment,
    ReassignmentColumns,
    ReassignmentPlan,
    reassignment_columns,
    rows_held,
)
from rackspan.reassign.request import ReassignmentRequest
from rackspan.reassign.safety import less_safe, placement_safety, staying_replicas, words
from rackspan.text import count_noun, noun_and_ids

OF_THE_TARGET = frozenset(
    {
        "rack-spread",
        "min-insync-racks-satisfiable",
        "min-insync-replicas-forces-racks",
        "min-insync-replicas-satisfiable",
    }
)
"""Constraints of audit that a target must keep; the others are about the present."""

OF_RACKS_IN_SYNC = frozenset({"min-insync-racks-satisfiable", "min-insync-replicas-forces-racks"})
"""Those of them that the most even spread may break too: then another replication factor, config or cluster is needed."""

FORCES_RACKS = "min-insync-replicas-forces-racks"
"""The one constraint that a larger replica set can break: two replicas of one rack may be in sync while it moves."""

EMPTY_REMEDY = "none: there is nothing to move; Kafka's own tool refuses the file, rackspan reassign apply does not"
REMEDY = "correct the file, or let rackspan reassign plan write one"


def lint(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    reassignment: ReassignmentPlan | ReassignmentDocument,
    request: ReassignmentRequest = ReassignmentRequest(),
) -> list[Finding]:
    """Everything wrong with a plan, or a file, for this cluster, violations first.

    A violation means that Kafka refuses the plan or that racks are less safe than required, during it or after. Faults of
    a file use the words of Kafka's own tool. A plan that moves nothing has no findings. `request`: what the plan was made for;
    what it drains does not count as a place for replicas, and what it requires is no finding.
    """
    if isinstance(reassignment, ReassignmentPlan) and not len(reassignment):
        return []
    document = _document(reassignment)
    batch, rows = snapshot_batch(snapshot, policy), _row_numbers(snapshot, document)
    broken = list(faults(document))
    listed = _listed(rows, document, broken)
    found = [
        *rack_names_alike(batch.members),
        *map(_finding, broken),
        *_unknown(batch, rows, document),
        *_of_log_dirs(document),
    ]
    diskless = batch.required.diskless[listed.rows]
    found += [_diskless(listed.entries[at]) for at in np.flatnonzero(diskless).tolist()]
    listed = listed.take(~diskless)
    for at in np.flatnonzero(_may_have_findings(batch, request, listed)).tolist():
        found += _of_entry(batch, request, listed.entries[at], int(listed.rows[at]))
    if listed.entries:
        placement = list(_placement(batch, request, listed))
        misplaced = {
            (finding.topic, finding.partition) for finding in placement if finding.severity is Severity.VIOLATION
        }
        less = list(_less_safe(batch, listed, misplaced))
        reported = misplaced | {(finding.topic, finding.partition) for finding in less}
        reported |= {
            (finding.topic, finding.partition) for finding in placement if finding.constraint in OF_RACKS_IN_SYNC
        }
        found += [
            *placement,
            *([] if request.allow_fewer_racks else less),
            *_not_survived(batch, request, listed, reported),
            *_needless(snapshot, policy, request, listed),
        ]
    return in_order(found)


def known_reassignments(snapshot: ClusterSnapshot, document: ReassignmentDocument) -> ReassignmentColumns:
    """The entries of a document that are sound and whose partitions exist, with the replicas of the snapshot as `undo`."""
    listed = _listed(_row_numbers(snapshot, document), document, list(faults(document)))
    targets, undo = map(unpadded_rows, (listed.targets, snapshot.partitions.replicas[listed.rows]))
    return reassignment_columns(
        PartitionReassignment(entry.topic, entry.partition, target, original)
        for entry, target, original in zip(listed.entries, targets, undo, strict=True)
        if target
    )


@dataclass(frozen=True, slots=True)
class _Listed:
    """Entries without fault whose partitions exist. `rows` (N,) are theirs in the snapshot.

    `targets` (N, width) are their replicas, without ids that are too large for any broker.
    """

    entries: list[ListedPartition]
    rows: Int64s
    targets: Int32s

    def take(self, chosen: Bools) -> "_Listed":
        """These entries only."""
        entries = [self.entries[at] for at in np.flatnonzero(chosen).tolist()]
        return _Listed(entries, self.rows[chosen], self.targets[chosen])


def _document(reassignment: ReassignmentPlan | ReassignmentDocument) -> ReassignmentDocument:
    if isinstance(reassignment, ReassignmentDocument):
        return reassignment
    columns = reassignment.columns()
    topics = map(columns.topics.__getitem__, columns.topic.tolist())
    return ReassignmentDocument(
        tuple(map(ListedPartition, topics, columns.partition.tolist(), unpadded_rows(columns.replicas)))
    )


def _listed(rows: Int64s, document: ReassignmentDocument, broken: Sequence[Fault]) -> _Listed:
    """`rows`: what `_row_numbers` returns."""
    faulty = {(fault.topic, fault.partition) for fault in broken}
    found = [
        (entry, row)
        for entry, row in zip(document.partitions, rows.tolist(), strict=True)
        if row >= 0 and (entry.topic, entry.partition) not in faulty
    ]
    targets = [entry.replicas if max(entry.replicas) <= INT32_MAX else _valid_ids(entry.replicas) for entry, _ in found]
    known = np.array([row for _, row in found], dtype=np.int64)
    return _Listed([entry for entry, _ in found], known, padded_lists(targets))


def _valid_ids(replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(broker for broker in replicas if broker <= INT32_MAX)


def _row_numbers(snapshot: ClusterSnapshot, document: ReassignmentDocument) -> Int64s:
    """The snapshot's row of each entry, −1 where it has no such partition. Shape (entries,)."""
    codes: dict[str, int] = {}
    topic = [codes.setdefault(entry.topic, len(codes)) for entry in document.partitions]
    # No partition has an id below 0 or beyond Kafka's own.
    ids = [entry.partition if 0 <= entry.partition <= INT32_MAX else -1 for entry in document.partitions]
    partition, nothing = np.array(ids, dtype=np.int32), np.empty((len(ids), 0), dtype=np.int32)
    entries = ReassignmentColumns(tuple(codes), np.array(topic, dtype=np.int32), partition, nothing, nothing)
    rows, held = rows_held(snapshot, entries)
    return np.where(held & (partition >= 0), rows, -1)


def _finding(fault: Fault) -> Finding:
    if fault.constraint == EMPTY:
        return Finding(EMPTY, Severity.WARNING, fault.reason, EMPTY_REMEDY)
    return Finding(fault.constraint, Severity.VIOLATION, fault.reason, REMEDY, fault.topic, fault.partition)


def _diskless(entry: ListedPartition) -> Finding:
    return Finding(
        constraint="plan-diskless-topic",
        severity=Severity.WARNING,
        topic=entry.topic,
        partition=entry.partition,
        reason="it is of a diskless topic, of which brokers hold no data: its placement is not judged",
        remedy="leave it out of the file: any broker serves it",
    )


def _unknown(batch: PartitionBatch, rows: Int64s, document: ReassignmentDocument) -> Iterator[Finding]:
    """Partitions and brokers the cluster does not have. `rows`: what `_row_numbers` returns."""
    brokers = batch.members.listed
    for entry, row in zip(document.partitions, rows.tolist(), strict=True):
        if row < 0:
            why = f"Unable to find partition: {entry.name}"
            yield Finding("plan-unknown-partition", Severity.VIOLATION, why, REMEDY, entry.topic, entry.partition)
        if not brokers.issuperset(entry.replicas):
            for broker in dict.fromkeys(entry.replicas):
                if broker >= 0 and broker not in brokers:
                    why = f"Unknown broker id {broker}"
                    yield Finding("plan-unknown-broker", Severity.VIOLATION, why, REMEDY, entry.topic, entry.partition)


def _of_log_dirs(document: ReassignmentDocument) -> Iterator[Finding]:
    """Entries that name log directories: a move inside a broker is not judged."""
    for entry in document.partitions:
        if entry.log_dirs and (named := dict.fromkeys(entry.named_log_dirs)):
            yield Finding(
                constraint="plan-names-log-dirs",
                severity=Severity.WARNING,
                topic=entry.topic,
                partition=entry.partition,
                reason=f"it names log directories ({', '.join(named)}): moves inside a broker are not judged, and rackspan reassign apply refuses them",
                remedy=f'write "{ANY_LOG_DIR}" for each, or carry it out with kafka-reassign-partitions',
            )


def _may_have_findings(batch: PartitionBatch, request: ReassignmentRequest, listed: _Listed) -> Bools:
    """The entries that `_of_entry` has findings for, and maybe a few more. Shape (N,)."""
    rows, targets = listed.rows, listed.targets
    new = _new(targets, batch.rows.replicas[rows])
    closed = (batch.members.listed - batch.members.alive) | batch.members.excluded_ids
    required = batch.replication_factor[rows] if request.replication_factor is None else request.replication_factor
    return np.asarray(
        (np.fromiter((len(entry.replicas) for entry in listed.entries), np.int64, len(rows)) != required)
        | (lengths(targets) != required)
        | batch.reassigning[rows]
        | any_in_row(np.isin(targets, sorted(request.leaving)))
        | any_in_row(np.isin(targets, sorted(closed)))
        | any_in_row(listed_in(targets, batch.rows.offline_replicas[rows]))
        | (any_in_row(new) & batch.leaderless[rows])
        | (count_in_row(new) == lengths(targets))
    )


def _new(targets: Int32s, current: Int32s) -> Bools:
    """Which of the targets are not among the current replicas. Shape as `targets`."""
    new = targets != NO_BROKER
    for column in current.T:
        new &= targets != column[:, None]
    return np.asarray(new)


def _of_entry(
    batch: PartitionBatch, request: ReassignmentRequest, entry: ListedPartition, row: int
) -> Iterator[Finding]:
    """What one entry does to its partition, placement apart."""

    def finding(constraint: str, severity: Severity, reason: str, remedy: str) -> Finding:
        return Finding(constraint, severity, reason, remedy, entry.topic, entry.partition)

    now, factor = batch.rows.row(row), int(batch.replication_factor[row])
    new = [broker for broker in entry.replicas if broker not in now.replicas]
    why = _wrong_factor(len(entry.replicas), factor, request.replication_factor)
    if why is not None:
        remedy = "give --replication-factor N where it is meant, or keep the factor"
        yield finding("plan-replication-factor", Severity.WARNING, why, remedy)
    if now.adding_replicas or now.removing_replicas:
        why = "it is being reassigned already: the plan would replace that"
        yield finding(
            "plan-reassignment-in-progress",
            Severity.WARNING,
            why,
            "wait for it, or first cancel it with rackspan reassign cancel --in-flight",
        )
    drained = [broker for broker in entry.replicas if broker in request.leaving]
    if drained:
        why = f"brokers to drain would hold it: {','.join(map(str, drained))}"
        yield finding("plan-drained-broker", Severity.VIOLATION, why, REMEDY)
    if new and batch.leaderless[row]:
        why = f"it has no leader to copy from: replicas {','.join(map(str, new))} would never finish"
        yield finding("plan-offline-partition", Severity.VIOLATION, why, "bring back a replica that was in sync first")
    members = batch.members
    fenced = [broker for broker in new if broker in members.listed and broker not in members.alive]
    if fenced:
        why = f"fenced brokers cannot receive: {','.join(map(str, fenced))}; the move would not end"
        yield finding("plan-fenced-broker", Severity.VIOLATION, why, "bring them back first, or name others")
    waiting = [
        broker
        for broker in entry.replicas
        if broker in members.listed and broker not in members.alive and broker not in new
    ]
    if waiting and set(entry.replicas) != set(now.replicas):
        why = (
            f"replicas stay on fenced brokers: {','.join(map(str, waiting))}; the move ends once they are back in sync"
        )
        yield finding("plan-fenced-broker", Severity.WARNING, why, "bring them back first, or name others")
    failed = [broker for broker in failed_replicas(batch, row) if broker in entry.replicas]
    if failed and set(entry.replicas) != set(now.replicas):
        why = f"replicas stay in failed log directories: {','.join(map(str, failed))}; the move ends once they are back in sync"
        yield finding("failed-log-dir", Severity.WARNING, why, "repair their disks first, or name others")
    excluded = [broker for broker in new if broker in members.excluded_ids]
    if excluded:
        why = f"excluded brokers get nothing new: {','.join(map(str, excluded))}"
        yield finding("plan-excluded-broker", Severity.VIOLATION, why, "name others, or end the exclusion")
    # A partition of one replica cannot move in any other way: its leader copies it, and serves until the copy is in sync.
    if len(new) == len(entry.replicas) and not (len(new) == factor == 1):
        why = "every replica is replaced at once: until all copies are in sync nothing of the target counts"
        yield finding("plan-replaces-all", Severity.WARNING, why, "keep one replica, or move in two steps")


def _wrong_factor(listed: int, factor: int, required: int | None) -> str | None:
    """The reason why an entry has the wrong number of replicas; None if it has the right one. `factor`: the present one."""
    if listed == (factor if required is None else required):
        return None
    if required is None:
        return f"the replication factor changes from {factor} to {listed}"
    return f"it has {count_noun(listed, 'replica')}, and replication factor {required} is required"


def _placement(batch: PartitionBatch, request: ReassignmentRequest, listed: _Listed) -> Iterator[Finding]:
    """Audit's constraints on the targets, and on target ∪ current while the copies run.

    A warning where no plan with as many replicas meets the constraint: the file is as good as any, and what is left is to
    be done by other means, once it is executed.
    """
    rows, targets = listed.rows, listed.targets
    there = arrived = _batch_with(batch, rows, targets)
    staying = tuple(broker for broker in batch.members.brokers if broker.id not in request.leaving)
    if request.leaving and staying:
        # Replicas are spread evenly over the racks that are left once the drained brokers are empty.
        arrived = replace(there, members=replace(batch.members, brokers=staying))
    at_best = _at_best(batch.take(rows), arrived, request)
    for constraint in PARTITION_CONSTRAINTS:
        if constraint.name in OF_THE_TARGET:
            for row in np.flatnonzero(constraint.broken(arrived)).tolist():
                found = constraint.finding(arrived, row)
                lenient = constraint.name in OF_RACKS_IN_SYNC and at_best[row]
                yield _once_it_is_done(found) if lenient else found
    current = batch.rows.replicas[rows]
    left_behind = np.where(_new(current, targets), current, np.int32(NO_BROKER))
    moving = _batch_with(batch, rows, padded(*flattened(np.hstack([targets, left_behind]))))
    yield from _on_the_way(there, moving)
    yield from _refused_on_the_way(batch, moving, rows, targets)


def _at_best(now: PartitionBatch, arrived: PartitionBatch, request: ReassignmentRequest) -> Bools:
    """Targets that are spread as evenly as any with the replicas that the partition has, or that are required. Shape (P,).

    A replica that counts in no rack stays where it is in every plan, and the remedy is to give its broker one; a replica that
    the file itself puts in no rack is the file's fault.
    """
    required = now.replication_factor if request.replication_factor is None else request.replication_factor
    uneven = any_in_row(arrived.replica_rack_counts > arrived.even_rack_counts)
    return np.asarray((arrived.replication_factor == required) & ~uneven & (_in_no_rack(arrived) <= _in_no_rack(now)))


def _in_no_rack(batch: PartitionBatch) -> Int64s:
    """The replicas of each partition that count in no rack. Shape (P,)."""
    return np.asarray(np.count_nonzero((batch.rows.replicas != NO_BROKER) & (batch.replica_racks < 0), axis=1))


def _once_it_is_done(finding: Finding) -> Finding:
    return replace(finding, severity=Severity.WARNING, reason=f"once it is done, {finding.reason}")


def _less_safe(
    batch: PartitionBatch, listed: _Listed, misplaced: Set[tuple[str | None, int | None]]
) -> Iterator[Finding]:
    """Targets that survive less of the loss of a rack than the replicas of now, and are not `misplaced` besides."""
    now, value = batch.rows.take(listed.rows), batch.required.min_insync_replicas[listed.rows]
    staying = staying_replicas(now.replicas, now.removing_replicas)
    before, after = (
        placement_safety(batch.members.rack_map, replicas, value) for replicas in (staying, listed.targets)
    )
    alone = batch.required.left_alone[listed.rows]
    for at in np.flatnonzero(less_safe(before, after) & ~alone).tolist():
        entry, one = listed.entries[at], np.array([at])
        if (entry.topic, entry.partition) not in misplaced:
            yield Finding(
                constraint="plan-less-safe",
                severity=Severity.VIOLATION,
                topic=entry.topic,
                partition=entry.partition,
                reason=f"it would be left {words(before.take(one), after.take(one))}",
                remedy="name brokers in more racks, or accept it with --allow-fewer-racks",
            )


def _not_survived(
    batch: PartitionBatch,
    request: ReassignmentRequest,
    listed: _Listed,
    reported: Set[tuple[str | None, int | None]],
) -> Iterator[Finding]:
    """Targets that do not survive the loss that their topic has to survive, and are not `reported` besides.

    A violation where the file itself changes the number of replicas, and where the partition survives with as many now. A
    warning elsewhere: only brokers that are back, or on more racks, would make a target of that number survive.
    `reported` has what the request accepts, too.
    """
    rows = listed.rows
    now, arrived = batch.take(rows), _batch_with(batch, rows, listed.targets)
    lost, largest = np.zeros(len(rows), dtype=np.bool_), batch.topic_replication_factor
    survived = ~np.any([constraint.broken(now) for constraint in SURVIVAL_CONSTRAINTS], axis=0)
    for constraint in SURVIVAL_CONSTRAINTS:
        broken = constraint.broken(arrived) & ~lost
        lost |= broken
        for at in np.flatnonzero(broken).tolist():
            entry, factor = listed.entries[at], int(batch.replication_factor[rows[at]])
            if (entry.topic, entry.partition) in reported:
                continue
            kept, as_many = (len(entry.replicas) == number for number in (request.replication_factor or factor, factor))
            yield Finding(
                constraint=constraint.name,
                severity=Severity.WARNING if kept and not (as_many and survived[at]) else Severity.VIOLATION,
                topic=entry.topic,
                partition=entry.partition,
                reason=f"once it is done, {constraint.reason(arrived, at)}",
                remedy=str(target_that_survives(arrived, at, int(largest[batch.rows.topic[rows[at]]]))),
            )


def _on_the_way(arrived: PartitionBatch, moving: PartitionBatch) -> Iterator[Finding]:
    """Partitions whose minimum forces racks at the end of the move, but not while it lasts."""
    (constraint,) = (
        partition_constraint
        for partition_constraint in PARTITION_CONSTRAINTS
        if partition_constraint.name == FORCES_RACKS
    )
    for row in np.flatnonzero(constraint.broken(moving) & ~constraint.broken(arrived)).tolist():
        one, listed = constraint.finding(moving, row), unpadded(moving.rows.replicas[row])
        yield replace(
            one,
            constraint="plan-intermediate-forces-racks",
            severity=Severity.WARNING,
            reason=f"while it moves, replicas are {','.join(map(str, listed))}: {one.reason}",
            remedy="raise min.insync.replicas until the move is done, or accept it for that time",
        )


def _refused_on_the_way(
    batch: PartitionBatch, moving: PartitionBatch, rows: Int64s, targets: Int32s
) -> Iterator[Finding]:
    """Partitions whose min.insync.replicas is above their replication factor, and requires more as soon as they have more."""
    for at in np.flatnonzero(refuses_midway(batch, rows, targets)).tolist():
        row, name = int(rows[at]), moving.topic(at)
        value, in_sync = int(moving.required.min_insync_replicas[at]), int(batch.isr_size[row])
        held = int(lengths(batch.rows.replicas[row : row + 1])[0])
        total = int(lengths(moving.rows.replicas[at : at + 1])[0])
        yield Finding(
            constraint="plan-intermediate-refuses-writes",
            severity=Severity.WARNING,
            topic=name,
            partition=int(moving.rows.partition[at]),
            reason=(
                f"acks=all is refused from the start of the move until {count_noun(min(value, total) - in_sync, 'copy')} "
                f"{'is' if min(value, total) - in_sync == 1 else 'are'} in sync: min.insync.replicas {value} is above replication factor {held}, "
                f"and is counted as {min(value, total)} once there are {count_noun(total, 'replica')}; before Kafka 3.7 acks=all is refused already"
            ),
            remedy=f"{set_min_insync_replicas(batch, row, held)}; raise it to {value} again once the move is done",
        )


def _batch_with(batch: PartitionBatch, rows: Int64s, replicas: Int32s) -> PartitionBatch:
    """The rows as if `replicas` (N, width) were their replicas, all in sync."""
    now = batch.rows.take(rows)
    nothing = np.full((len(rows), 0), NO_BROKER, dtype=np.int32)
    there = PartitionColumns(
        topic=now.topic,
        partition=now.partition,
        leader=replicas[:, 0].copy(),
        replicas=replicas.copy(),
        isr=replicas.copy(),
        adding_replicas=nothing,
        removing_replicas=nothing.copy(),
        offline_replicas=nothing.copy(),
        size_bytes=now.size_bytes,
    )
    return PartitionBatch(batch.members, batch.topics, there, batch.required.of(rows))


def _needless(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    request: ReassignmentRequest,
    listed: _Listed,
) -> Iterator[Finding]:
    """A warning for copies beyond what the constraints and the request need; balance may need any."""
    if request.balance:
        return
    now = reassignment_problem(snapshot, policy, replace(request, topics=None))
    # Where the replicas of a topic are whose placement is left alone, its owner decides.
    spread = ~now.left_alone[listed.rows]
    rows, targets = listed.rows[spread], listed.targets[spread]
    moves = int(np.count_nonzero(_new(targets, now.rows.replicas[rows])))
    wanted = np.minimum(lengths(targets), min(len(now.shares.least) - 1, PLANNED_FACTOR_MAX))
    uncounted = np.count_nonzero((now.replica_index[rows] >= 0) & (now.replica_racks[rows] < 0), axis=1)
    enough = int(needs(now.replica_racks[rows], uncounted, wanted, now.shares).additions.sum())
    if moves > enough:
        emptied = sorted({*_emptied(snapshot, targets, rows)} - request.leaving)
        meant = f"--drain {','.join(map(str, emptied))}" if emptied else "--balance"
        drained = f"; it empties {noun_and_ids('broker', emptied)}" if emptied else ""
        yield Finding(
            constraint="plan-needless-moves",
            severity=Severity.WARNING,
            reason=f"it copies {count_noun(moves, 'replica')}; the constraints of these partitions need {enough}{drained}",
            remedy=f"if meant, lint it with {meant}; else rackspan reassign plan",
        )


def _emptied(snapshot: ClusterSnapshot, targets: Int32s, rows: Int64s) -> list[int]:
    """The brokers that hold replicas now and none once the plan is done. `targets` (N, width) of the N `rows`."""
    held = snapshot.partitions.replicas
    left = np.concatenate([np.delete(held, rows, axis=0).ravel(), targets.ravel()])
    return [broker for broker in np.setdiff1d(held, left).tolist() if broker != NO_BROKER]
