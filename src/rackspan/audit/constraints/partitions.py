"""Constraints on partitions. Each has a name, a test, a reason in words, and the command that repairs it.

A constraint tests a whole batch at once and writes a reason only for the rows that break it. To add one: two functions
and a line in PARTITION_CONSTRAINTS.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import PartitionBatch
from rackspan.audit.findings import Finding, Severity
from rackspan.model.ids import NO_BROKER, shown
from rackspan.model.partitions import Bools, any_in_row, lengths, unpadded
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True)
class PartitionConstraint:
    """A rule that each partition meets or breaks.

    `broken` returns a mask of shape (P,); `reason` and `remedy` return the words for one broken row.
    """

    name: str
    broken: Callable[[PartitionBatch], Bools]
    reason: Callable[[PartitionBatch, int], str]
    remedy: Callable[[PartitionBatch, int], str]
    severity: Callable[[PartitionBatch, int], Severity] = lambda _batch, _row: Severity.VIOLATION

    def findings(self, batch: PartitionBatch) -> Iterator[Finding]:
        return (finding for _row, finding in self.findings_by_row(batch))

    def findings_by_row(self, batch: PartitionBatch) -> Iterator[tuple[int, Finding]]:
        for row in np.flatnonzero(self.broken(batch)).tolist():
            yield row, self.finding(batch, row)

    def finding(self, batch: PartitionBatch, row: int) -> Finding:
        return Finding(
            constraint=self.name,
            severity=self.severity(batch, row),
            topic=batch.topic(row),
            partition=int(batch.rows.partition[row]),
            reason=self.reason(batch, row),
            remedy=self.remedy(batch, row),
        )


def _rack_spread_broken(batch: PartitionBatch) -> Bools:
    # Where every replica's rack is known both sides have the same sum, so "none above" means equal. A replica on an
    # unknown broker may be in any rack: the constraint is broken only if no rack for it could make the spread even.
    return any_in_row(batch.replica_rack_counts > batch.even_rack_counts)


def _rack_spread_reason(batch: PartitionBatch, row: int) -> str:
    racks = batch.members.rack_map.racks
    factor = int(batch.replication_factor[row])
    even = [count for count in batch.members.even_counts(factor) if count]
    return (
        f"{factor} replicas stand on {count_noun(int(batch.replica_rack_count[row]), 'rack')} ({_by_rack(batch, row)}); "
        f"{count_noun(len(racks), 'rack')} would hold them as {'+'.join(map(str, even))}"
    )


def _racks_unsatisfiable(batch: PartitionBatch) -> Bools:
    required = batch.required.min_insync_racks
    return np.asarray((required > 1) & (batch.replica_rack_count < required))


def _racks_unsatisfiable_reason(batch: PartitionBatch, row: int) -> str:
    required, racks = int(batch.required.min_insync_racks[row]), len(batch.members.rack_map.racks)
    factor = int(batch.replication_factor[row])
    why = f"replicas stand on {count_noun(int(batch.replica_rack_count[row]), 'rack')} ({_by_rack(batch, row)})"
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
    text = f"min.insync.replicas {now} lets {count_noun(required - 1, 'rack')} alone acknowledge ({_by_rack(batch, row)}); "
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
    return f"no leader; in sync last: {_held_by_rack(batch, unpadded(batch.rows.isr[row]))}"


def _under_min_isr(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.isr_size < batch.min_isr)


def _under_min_isr_reason(batch: PartitionBatch, row: int) -> str:
    return (
        f"{int(batch.isr_size[row])} in sync ({_listed(unpadded(batch.rows.isr[row]))}), min.insync.replicas "
        f"{_min_isr_words(batch, row)}: acks=all is refused; out of sync: {_listed(_out_of_sync(batch, row))}"
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
        f"in-sync racks {_listed([shown(name) for name in names])} = {len(names)} < min.insync.racks "
        f"{int(batch.required.min_insync_racks[row])}: {refused}; out of sync: {_listed(_out_of_sync(batch, row))}"
    )


def _under_replicated(batch: PartitionBatch) -> Bools:
    return np.asarray(batch.isr_size < lengths(batch.rows.replicas))


def _under_replicated_reason(batch: PartitionBatch, row: int) -> str:
    missing = _out_of_sync(batch, row)
    return f"{int(batch.isr_size[row])} of {len(unpadded(batch.rows.replicas[row]))} replicas in sync; out of sync: {_held_by_rack(batch, missing)}"


def _bring_back_missing(batch: PartitionBatch, row: int) -> str:
    return f"bring back {_brokers(_out_of_sync(batch, row))}, or wait until in sync"


def _on_unknown_broker(batch: PartitionBatch) -> Bools:
    return any_in_row((batch.replica_index < 0) & (batch.rows.replicas != NO_BROKER))


def _on_unknown_broker_reason(batch: PartitionBatch, row: int) -> str:
    return (
        f"replicas on brokers the cluster does not list: {_listed(_unknown(batch, row))}; dead, and their racks unknown"
    )


def _reassigning(batch: PartitionBatch) -> Bools:
    adding, removing = batch.rows.adding_replicas, batch.rows.removing_replicas
    return any_in_row(adding != NO_BROKER) | any_in_row(removing != NO_BROKER)


def _reassigning_reason(batch: PartitionBatch, row: int) -> str:
    view = batch.rows.row(row)
    return f"replicas {_listed(view.replicas)}, adding {_listed(view.adding_replicas)}, removing {_listed(view.removing_replicas)}"


def _warn(_batch: PartitionBatch, _row: int) -> Severity:
    return Severity.WARNING


def _warn_if_enforced(batch: PartitionBatch, row: int) -> Severity:
    return Severity.WARNING if batch.required.enforced[row] else Severity.VIOLATION


def _repair(batch: PartitionBatch, row: int) -> str:
    return f"rackspan reassign plan --topic {batch.topic(row)}"


def _make_racks_satisfiable(batch: PartitionBatch, row: int) -> str:
    required = int(batch.required.min_insync_racks[row])
    if len(batch.members.rack_map.racks) < required:
        return "add racks, or lower min.insync.racks"
    if int(batch.replication_factor[row]) < required:
        return f"{_repair(batch, row)} --replication-factor {required}, or lower min.insync.racks"
    return _repair(batch, row)


def _harden(batch: PartitionBatch, row: int) -> str:
    required = f" --min-insync-racks {int(batch.required.min_insync_racks[row])}"
    # A topic's own minimum is in its config; one that comes from the policy has to be repeated on the command line.
    return f"rackspan acks harden --topic {batch.topic(row)}{'' if batch.required.enforced[row] else required}"


def _lower_min_insync_replicas(batch: PartitionBatch, row: int) -> str:
    return (
        f"rackspan reassign plan --topic {batch.topic(row)} --replication-factor "
        f"{int(batch.required.min_insync_replicas[row])}, or lower min.insync.replicas"
    )


def _bring_back_out_of_sync(batch: PartitionBatch, row: int) -> str:
    # Fewer in sync than min.insync.replicas, which counts at most all replicas: one at least is missing.
    return f"bring back {_brokers(_out_of_sync(batch, row))}"


def _bring_back_racks(batch: PartitionBatch, row: int) -> str:
    missing = _out_of_sync(batch, row)
    return f"bring back {_brokers(missing)}" if missing else _make_racks_satisfiable(batch, row)


def _bring_back_last_in_sync(batch: PartitionBatch, row: int) -> str:
    last = unpadded(batch.rows.isr[row]) or unpadded(batch.rows.replicas[row])
    return f"bring back {_brokers(last)}" if len(last) == 1 else f"bring back one of {_brokers(last)}"


def _bring_back_or_drain(batch: PartitionBatch, row: int) -> str:
    unknown = _unknown(batch, row)
    return f"bring back {_brokers(unknown)}, or rackspan reassign plan --drain {_listed(unknown)}"


def _wait(_batch: PartitionBatch, _row: int) -> str:
    return "wait for it, or rackspan reassign cancel"


def _unknown(batch: PartitionBatch, row: int) -> tuple[int, ...]:
    return unpadded(batch.rows.replicas[row][batch.replica_index[row] < 0])


def _out_of_sync(batch: PartitionBatch, row: int) -> list[int]:
    in_sync = set(unpadded(batch.rows.isr[row]))
    return [broker for broker in unpadded(batch.rows.replicas[row]) if broker not in in_sync]


PARTITION_CONSTRAINTS: Final = (
    PartitionConstraint("rack-spread", _rack_spread_broken, _rack_spread_reason, _repair),
    PartitionConstraint(
        "min-insync-racks-satisfiable", _racks_unsatisfiable, _racks_unsatisfiable_reason, _make_racks_satisfiable
    ),
    PartitionConstraint(
        "min-insync-replicas-forces-racks", _racks_not_forced, _racks_not_forced_reason, _harden, _warn_if_enforced
    ),
    PartitionConstraint(
        "min-insync-replicas-satisfiable",
        _replicas_unsatisfiable,
        _replicas_unsatisfiable_reason,
        _lower_min_insync_replicas,
        _warn,
    ),
    PartitionConstraint("offline", _offline, _offline_reason, _bring_back_last_in_sync),
    PartitionConstraint("under-min-isr", _under_min_isr, _under_min_isr_reason, _bring_back_out_of_sync),
    PartitionConstraint("under-min-racks", _under_min_racks, _under_min_racks_reason, _bring_back_racks),
    PartitionConstraint("under-replicated", _under_replicated, _under_replicated_reason, _bring_back_missing, _warn),
    PartitionConstraint("unknown-broker", _on_unknown_broker, _on_unknown_broker_reason, _bring_back_or_drain),
    PartitionConstraint("reassignment-in-progress", _reassigning, _reassigning_reason, _wait, _warn),
)
"""In order: placement, then what is wrong now, then what is under way."""


def partition_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """The findings of every constraint for every partition of the batch."""
    return (finding for _row, finding in partition_findings_by_row(batch))


def partition_findings_by_row(batch: PartitionBatch) -> Iterator[tuple[int, Finding]]:
    """The same, each with its row of the batch, since a batch may hold partitions of several snapshots."""
    return (found for constraint in PARTITION_CONSTRAINTS for found in constraint.findings_by_row(batch))


def _by_rack(batch: PartitionBatch, row: int) -> str:
    """`r1: 1,4; r2: 2`, the fullest rack first."""
    leaving = set(unpadded(batch.rows.removing_replicas[row]))
    return _held_by_rack(batch, [broker for broker in unpadded(batch.rows.replicas[row]) if broker not in leaving])


def _held_by_rack(batch: PartitionBatch, brokers: Sequence[int]) -> str:
    rack_of = batch.members.rack_map.rack_of
    held: dict[str, list[int]] = {}
    for broker in brokers:
        held.setdefault(shown(rack_of[broker]) if broker in rack_of else "rack unknown", []).append(broker)
    fullest_first = sorted(held.items(), key=lambda item: (-len(item[1]), item[0]))
    return "; ".join(f"{rack}: {_listed(ids)}" for rack, ids in fullest_first) or "nobody"


def _listed(items: Iterable[object]) -> str:
    return ",".join(map(str, items)) or "none"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"
