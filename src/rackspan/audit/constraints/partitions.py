"""Constraints on partitions. Each has a name, a test, a reason in words, and the command that repairs it.

A constraint tests a whole batch at once and writes a reason only for the rows that break it. To add one: two functions
and a line in PARTITION_CONSTRAINTS. What a partition breaks for one cause is reported once (`reported`).
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.constraints import remedies
from rackspan.audit.constraints.constraint import PartitionConstraint
from rackspan.audit.constraints.known_words import FindingColumns, KnownWords
from rackspan.audit.constraints.survival import SURVIVAL_CONSTRAINTS
from rackspan.audit.constraints.wording import (
    by_rack,
    failed_words,
    held_by_rack,
    listed,
    out_of_sync,
    unlisted,
    unlisted_in_sync,
)
from rackspan.audit.findings import Finding
from rackspan.model import NO_BROKER, Bools, Int64s, any_in_row, shown
from rackspan.text import count_noun


def _rack_spread_broken(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.uneven & ~batch.required.left_alone)


def _rack_spread_reason(batch: PartitionBatch, row: int) -> str:
    racks = batch.members.rack_map.racks
    factor = int(batch.replication_factor[row])
    even = [count for count in batch.members.even_counts(factor) if count]
    return (
        f"{factor} replicas are in {count_noun(int(batch.replica_rack_count[row]), 'rack')} ({by_rack(batch, row)}); "
        f"{count_noun(len(racks), 'rack')} would hold them as {'+'.join(map(str, even))}"
    )


def _racks_unsatisfiable(batch: PartitionBatch) -> Bools:
    required = batch.required.min_insync_racks
    return np.asarray((required > 1) & (batch.replica_rack_count < required))


def _racks_unsatisfiable_reason(batch: PartitionBatch, row: int) -> str:
    required, racks = int(batch.required.min_insync_racks[row]), len(batch.members.rack_map.racks)
    factor = int(batch.replication_factor[row])
    why = f"replicas are in {count_noun(int(batch.replica_rack_count[row]), 'rack')} ({by_rack(batch, row)})"
    if racks < required:
        why += f", and the cluster has {count_noun(racks, 'rack')}"
    elif factor < required:
        why += f", and replication factor {factor} cannot span {required}"
    return f"min.insync.racks {required} can never be met: {why}"


def _racks_not_forced(batch: PartitionBatch) -> Bools:
    required = batch.required.min_insync_racks
    # A placement that cannot span k racks is reported by min-insync-racks-satisfiable.
    return np.asarray(
        (required > 1)
        & (batch.required.min_insync_replicas < batch.forcing_value)
        & (batch.replica_rack_count >= required)
    )


def _racks_not_forced_reason(batch: PartitionBatch, row: int) -> str:
    required = int(batch.required.min_insync_racks[row])
    now = int(batch.required.min_insync_replicas[row])
    text = (
        f"min.insync.replicas {now} lets {count_noun(required - 1, 'rack')} alone acknowledge ({by_rack(batch, row)}); "
    )
    if batch.required.enforced[row]:
        return text + f"only brokers that enforce min.insync.racks {required} prevent it, as Apache Kafka's do not"
    return text + f"{int(batch.forcing_value[row])} would force {required} racks"


def _replicas_unsatisfiable(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.replication_factor < batch.required.min_insync_replicas)


def _replicas_unsatisfiable_reason(batch: PartitionBatch, row: int) -> str:
    factor = int(batch.replication_factor[row])
    return (
        f"min.insync.replicas {int(batch.required.min_insync_replicas[row])} is above replication factor {factor}: Kafka counts "
        f"it as {factor}, so that acks=all takes every replica in sync; before 3.7 it refuses acks=all always"
    )


def _offline(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.rows.leader == NO_BROKER)


def _offline_reason(batch: PartitionBatch, row: int) -> str:
    return f"no leader; in sync last: {held_by_rack(batch, batch.partition(row).isr)}{failed_words(batch, row)}"


def _under_min_isr(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.isr_size < batch.min_isr)


def _under_min_isr_reason(batch: PartitionBatch, row: int) -> str:
    return (
        f"{int(batch.isr_size[row])} in sync ({listed(batch.partition(row).isr)}), min.insync.replicas "
        f"{_min_isr_words(batch, row)}: acks=all is refused; out of sync: {listed(out_of_sync(batch, row))}"
        f"{failed_words(batch, row)}"
    )


def _min_isr_words(batch: PartitionBatch, row: int) -> str:
    """`2`, or `3 (counted as 2, all there are)`."""
    required, held_to = int(batch.required.min_insync_replicas[row]), int(batch.min_isr[row])
    return str(required) if required == held_to else f"{required} (counted as {held_to}, all there are)"


def _under_min_racks(batch: PartitionBatch) -> Bools:
    required = batch.required.min_insync_racks
    return np.asarray((required > 1) & (batch.isr_rack_count < required))


def _under_min_racks_reason(batch: PartitionBatch, row: int) -> str:
    names = batch.members.rack_map.names(batch.isr_racks[row].tolist())
    refused = (
        "acks=all is refused" if batch.required.enforced[row] else "what is acknowledged now can be lost with them"
    )
    return (
        f"in-sync racks {listed([shown(name) for name in names])} = {len(names)} < min.insync.racks "
        f"{int(batch.required.min_insync_racks[row])}: {refused}; out of sync: {listed(out_of_sync(batch, row))}"
        f"{failed_words(batch, row)}"
    )


def _under_replicated(batch: PartitionBatch) -> Bools:
    # What a reassignment is copying to a live broker, or is about to remove, is reported by reassignment-in-progress.
    in_sync = np.zeros(batch.rows.replicas.shape, dtype=np.bool_)
    for column in batch.rows.isr.T:
        in_sync |= batch.rows.replicas == column[:, None]
    return any_in_row(batch.staying & ~in_sync & ~batch.being_copied)


def _under_replicated_reason(batch: PartitionBatch, row: int) -> str:
    absent, copied = remedies.out_of_sync_and_staying(batch, row), remedies.being_copied(batch, row)
    out_of = len(batch.partition(row).replicas)
    more = f"; being copied: {held_by_rack(batch, copied)}" if copied else ""
    return (
        f"{int(batch.isr_size[row])} of {count_noun(out_of, 'replica')} in sync; out of sync: "
        f"{held_by_rack(batch, absent)}{more}{failed_words(batch, row)}"
    )


def _on_unknown_broker(batch: PartitionBatch) -> Bools:
    return any_in_row((batch.replica_index < 0) & (batch.rows.replicas != NO_BROKER))


def _on_unknown_broker_reason(batch: PartitionBatch, row: int) -> str:
    hidden = unlisted_in_sync(batch, row)
    down = [broker for broker in unlisted(batch, row) if broker not in hidden]
    states = [
        *([f"{'' if not hidden else f'{listed(down)} '}down"] if down else []),
        *([f"{listed(hidden)} in sync, so that a listener of theirs is missing and not they"] if hidden else []),
    ]
    return f"replicas on brokers the cluster does not list: {listed(unlisted(batch, row))}; {', '.join(states)}, and their racks unknown"


def _reassigning(batch: PartitionBatch) -> Bools:
    return batch.reassigning


def _reassigning_reason(batch: PartitionBatch, row: int) -> str:
    view = batch.partition(row)
    return f"replicas {listed(view.replicas)}, adding {listed(view.adding_replicas)}, removing {listed(view.removing_replicas)}"


def _warn(_batch: PartitionBatch, rows: Int64s) -> Bools:
    return np.ones(len(rows), dtype=np.bool_)


def _warn_if_enforced(batch: PartitionBatch, rows: Int64s) -> Bools:
    return batch.required.enforced[rows]


PARTITION_CONSTRAINTS: Final = (
    PartitionConstraint("offline", _offline, _offline_reason, remedies.bring_back_last_in_sync),
    PartitionConstraint("under-min-isr", _under_min_isr, _under_min_isr_reason, remedies.bring_back_out_of_sync),
    PartitionConstraint("under-min-racks", _under_min_racks, _under_min_racks_reason, remedies.bring_back_racks),
    PartitionConstraint("unknown-broker", _on_unknown_broker, _on_unknown_broker_reason, remedies.bring_back_or_drain),
    PartitionConstraint(
        "min-insync-racks-satisfiable",
        _racks_unsatisfiable,
        _racks_unsatisfiable_reason,
        remedies.make_racks_satisfiable,
    ),
    *SURVIVAL_CONSTRAINTS,
    PartitionConstraint("rack-spread", _rack_spread_broken, _rack_spread_reason, remedies.repair),
    PartitionConstraint(
        "min-insync-replicas-forces-racks",
        _racks_not_forced,
        _racks_not_forced_reason,
        remedies.harden,
        _warn_if_enforced,
        remedies.before_hardening,
    ),
    PartitionConstraint(
        "min-insync-replicas-satisfiable",
        _replicas_unsatisfiable,
        _replicas_unsatisfiable_reason,
        remedies.lower_min_insync_replicas,
        _warn,
    ),
    PartitionConstraint("reassignment-in-progress", _reassigning, _reassigning_reason, remedies.end_or_cancel, _warn),
    PartitionConstraint(
        "under-replicated", _under_replicated, _under_replicated_reason, remedies.bring_back_missing, _warn
    ),
)
"""In the order in which they are repaired: what is wrong now, then the placement, then configs, then what is under way."""

STATES_NOW: Final = ("offline", "under-min-isr", "under-min-racks", "unknown-broker")
"""Constraints on the present state, the worst first. A partition is reported under one of them."""


def reported(batch: PartitionBatch) -> dict[str, Bools]:
    """Which constraints each partition is reported under, by name: one cause is one finding. Masks of shape (P,).

    A partition without a leader is offline and nothing else: no command repairs it before it is back. Of the present
    states the worst is reported. A placement or config that cannot survive the loss is reported once, whichever
    constraints it breaks, by its worst consequence; the warnings that follow from a violation are left out.
    """
    # Copies, since some masks are the batch's own.
    found = {constraint.name: np.array(constraint.broken(batch)) for constraint in PARTITION_CONSTRAINTS}
    movable = ~found["offline"] & ~found["unknown-broker"]
    found["min-insync-racks-satisfiable"] &= movable
    # Racks that the replicas never span are missing at present too, whichever brokers are back.
    found["under-min-racks"] &= ~found["min-insync-racks-satisfiable"]
    at_present = np.zeros(len(batch.rows), dtype=np.bool_)
    for name in STATES_NOW:
        found[name] &= ~at_present
        at_present |= found[name]
    lost = found["min-insync-racks-satisfiable"].copy()
    for constraint in SURVIVAL_CONSTRAINTS:
        # What a missing broker causes is its present state, where that is reported already.
        found[constraint.name] &= movable & ~lost & (batch.worst_loss_placed.harmed | ~at_present)
    for constraint in SURVIVAL_CONSTRAINTS:
        lost |= found[constraint.name]
    for name in ("rack-spread", "min-insync-replicas-forces-racks", "min-insync-replicas-satisfiable"):
        found[name] &= movable & ~lost
    found["under-replicated"] &= ~at_present & ~lost
    return found


def partition_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """The findings of every constraint for every partition of the batch, one for each cause."""
    return iter(finding_columns(batch, KnownWords()))


def finding_columns(batch: PartitionBatch, known: KnownWords) -> FindingColumns:
    """The same as columns, for one batch or many. `known` has words of earlier ones."""
    found = list(map(np.flatnonzero, reported(batch).values()))
    constraint = np.repeat(np.arange(len(found)), list(map(len, found)))
    return FindingColumns(batch, PARTITION_CONSTRAINTS, constraint, np.concatenate(found), known)


BY_NAME: Final = {constraint.name: constraint for constraint in PARTITION_CONSTRAINTS}
