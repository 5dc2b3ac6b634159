"""Constraints: what must hold. Each one has its name, its test, its reason and the verb that mends it.

A constraint on partitions tests a whole batch at once and words a reason only for the rows that break it. To add one:
two functions and a line in PARTITION_CONSTRAINTS.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import Evidence
from rackspan.audit.findings import Finding, Severity
from rackspan.model.ids import NO_BROKER, shown
from rackspan.model.partitions import Bools, any_in_row, lengths, unpadded


@dataclass(frozen=True, slots=True)
class PartitionConstraint:
    """A rule that each partition keeps or breaks.

    `broken` gives a mask of shape (P,); `reason` and `remedy` word one broken row.
    """

    name: str
    broken: Callable[[Evidence], Bools]
    reason: Callable[[Evidence, int], str]
    remedy: Callable[[Evidence, int], str]
    severity: Callable[[Evidence, int], Severity] = lambda _seen, _row: Severity.VIOLATION

    def findings(self, seen: Evidence) -> Iterator[Finding]:
        return (finding for _row, finding in self.findings_by_row(seen))

    def findings_by_row(self, seen: Evidence) -> Iterator[tuple[int, Finding]]:
        for row in np.flatnonzero(self.broken(seen)).tolist():
            yield row, self.finding(seen, row)

    def finding(self, seen: Evidence, row: int) -> Finding:
        return Finding(
            constraint=self.name,
            severity=self.severity(seen, row),
            topic=seen.topic(row),
            partition=int(seen.rows.partition[row]),
            reason=self.reason(seen, row),
            remedy=self.remedy(seen, row),
        )


def _rack_spread_broken(seen: Evidence) -> Bools:
    # Where every replica's rack is known both sides sum to the same, so "none above" means equal. A replica on an
    # unknown broker leaves its place open: the rest is broken only if no rack for it could make the spread even.
    return any_in_row(seen.replica_rack_counts > seen.even_rack_counts)


def _rack_spread_reason(seen: Evidence, row: int) -> str:
    racks = seen.registered.rack_map.racks
    factor = int(seen.replication_factor[row])
    even = [count for count in seen.registered.even_counts(factor) if count]
    return (
        f"{factor} replicas stand on {_count(int(seen.replica_rack_count[row]), 'rack')} ({_by_rack(seen, row)}); "
        f"{_count(len(racks), 'rack')} would hold them as {'+'.join(map(str, even))}"
    )


def _racks_unsatisfiable(seen: Evidence) -> Bools:
    asked = seen.asked.min_insync_racks
    return np.asarray((asked > 1) & (seen.replica_rack_count < asked))


def _racks_unsatisfiable_reason(seen: Evidence, row: int) -> str:
    asked, racks = int(seen.asked.min_insync_racks[row]), len(seen.registered.rack_map.racks)
    factor = int(seen.replication_factor[row])
    why = f"replicas stand on {_count(int(seen.replica_rack_count[row]), 'rack')} ({_by_rack(seen, row)})"
    if racks < asked:
        why += f", and the cluster has {_count(racks, 'rack')}"
    elif factor < asked:
        why += f", and replication factor {factor} cannot span {asked}"
    return f"min.insync.racks {asked} can never be met: {why}"


def _racks_not_forced(seen: Evidence) -> Bools:
    asked = seen.asked.min_insync_racks
    # A placement that cannot span k racks is min-insync-racks-satisfiable's to tell.
    return np.asarray(
        (asked > 1) & (seen.asked.min_insync_replicas < seen.forcing_value) & (seen.replica_rack_count >= asked)
    )


def _racks_not_forced_reason(seen: Evidence, row: int) -> str:
    asked = int(seen.asked.min_insync_racks[row])
    now = int(seen.asked.min_insync_replicas[row])
    text = f"min.insync.replicas {now} lets {_count(asked - 1, 'rack')} alone acknowledge ({_by_rack(seen, row)}); "
    if seen.asked.enforced[row]:
        return text + f"only brokers that enforce min.insync.racks {asked} prevent it, as Apache Kafka's do not"
    return text + f"{int(seen.forcing_value[row])} would force {asked} racks"


def _replicas_unsatisfiable(seen: Evidence) -> Bools:
    return np.asarray(seen.replication_factor < seen.asked.min_insync_replicas)


def _replicas_unsatisfiable_reason(seen: Evidence, row: int) -> str:
    factor = int(seen.replication_factor[row])
    return (
        f"min.insync.replicas {int(seen.asked.min_insync_replicas[row])} is above replication factor {factor}: Kafka counts "
        f"it as {factor}, so that acks=all takes every replica in sync; before 3.7 it refuses acks=all always"
    )


def _offline(seen: Evidence) -> Bools:
    return np.asarray(seen.rows.leader == NO_BROKER)


def _offline_reason(seen: Evidence, row: int) -> str:
    return f"no leader; in sync last: {_held_by_rack(seen, unpadded(seen.rows.isr[row]))}"


def _under_min_isr(seen: Evidence) -> Bools:
    return np.asarray(seen.isr_size < seen.min_isr)


def _under_min_isr_reason(seen: Evidence, row: int) -> str:
    return (
        f"{int(seen.isr_size[row])} in sync ({_listed(unpadded(seen.rows.isr[row]))}), min.insync.replicas "
        f"{_min_isr_words(seen, row)}: acks=all is refused; out of sync: {_listed(_out_of_sync(seen, row))}"
    )


def _min_isr_words(seen: Evidence, row: int) -> str:
    """`2`, or `3 (counted as 2, all there are)`."""
    asked, held_to = int(seen.asked.min_insync_replicas[row]), int(seen.min_isr[row])
    return str(asked) if asked == held_to else f"{asked} (counted as {held_to}, all there are)"


def _under_min_racks(seen: Evidence) -> Bools:
    asked = seen.asked.min_insync_racks
    return np.asarray((asked > 1) & (seen.isr_rack_count < asked))


def _under_min_racks_reason(seen: Evidence, row: int) -> str:
    names = seen.registered.rack_map.names(seen.isr_racks[row].tolist())
    refused = "acks=all is refused" if seen.asked.enforced[row] else "what is acknowledged now can be lost with them"
    return (
        f"in-sync racks {_listed([shown(name) for name in names])} = {len(names)} < min.insync.racks "
        f"{int(seen.asked.min_insync_racks[row])}: {refused}; out of sync: {_listed(_out_of_sync(seen, row))}"
    )


def _under_replicated(seen: Evidence) -> Bools:
    return np.asarray(seen.isr_size < lengths(seen.rows.replicas))


def _under_replicated_reason(seen: Evidence, row: int) -> str:
    missing = _out_of_sync(seen, row)
    return f"{int(seen.isr_size[row])} of {len(unpadded(seen.rows.replicas[row]))} replicas in sync; out of sync: {_held_by_rack(seen, missing)}"


def _bring_back_missing(seen: Evidence, row: int) -> str:
    return f"bring back {_brokers(_out_of_sync(seen, row))}, or wait until in sync"


def _on_unknown_broker(seen: Evidence) -> Bools:
    return any_in_row((seen.replica_index < 0) & (seen.rows.replicas != NO_BROKER))


def _on_unknown_broker_reason(seen: Evidence, row: int) -> str:
    return (
        f"replicas on brokers the cluster does not list: {_listed(_unknown(seen, row))}; dead, and their racks unknown"
    )


def _reassigning(seen: Evidence) -> Bools:
    adding, removing = seen.rows.adding_replicas, seen.rows.removing_replicas
    return any_in_row(adding != NO_BROKER) | any_in_row(removing != NO_BROKER)


def _reassigning_reason(seen: Evidence, row: int) -> str:
    view = seen.rows.row(row)
    return f"replicas {_listed(view.replicas)}, adding {_listed(view.adding_replicas)}, removing {_listed(view.removing_replicas)}"


def _warn(_seen: Evidence, _row: int) -> Severity:
    return Severity.WARNING


def _warn_if_enforced(seen: Evidence, row: int) -> Severity:
    return Severity.WARNING if seen.asked.enforced[row] else Severity.VIOLATION


def _repair(seen: Evidence, row: int) -> str:
    return f"rackspan reassign plan --topic {seen.topic(row)}"


def _make_racks_satisfiable(seen: Evidence, row: int) -> str:
    asked = int(seen.asked.min_insync_racks[row])
    if len(seen.registered.rack_map.racks) < asked:
        return "add racks, or lower min.insync.racks"
    if int(seen.replication_factor[row]) < asked:
        return f"{_repair(seen, row)} --replication-factor {asked}, or lower min.insync.racks"
    return _repair(seen, row)


def _harden(seen: Evidence, row: int) -> str:
    asked = f" --min-insync-racks {int(seen.asked.min_insync_racks[row])}"
    # What the topic itself asks, its own config says again; what the policy asks has to be said again.
    return f"rackspan acks harden --topic {seen.topic(row)}{'' if seen.asked.enforced[row] else asked}"


def _lower_min_insync_replicas(seen: Evidence, row: int) -> str:
    return (
        f"rackspan reassign plan --topic {seen.topic(row)} --replication-factor "
        f"{int(seen.asked.min_insync_replicas[row])}, or lower min.insync.replicas"
    )


def _bring_back_out_of_sync(seen: Evidence, row: int) -> str:
    # Fewer in sync than min.insync.replicas, which counts at most all replicas: one at least is missing.
    return f"bring back {_brokers(_out_of_sync(seen, row))}"


def _bring_back_racks(seen: Evidence, row: int) -> str:
    missing = _out_of_sync(seen, row)
    return f"bring back {_brokers(missing)}" if missing else _make_racks_satisfiable(seen, row)


def _bring_back_last_in_sync(seen: Evidence, row: int) -> str:
    last = unpadded(seen.rows.isr[row]) or unpadded(seen.rows.replicas[row])
    return f"bring back {_brokers(last)}" if len(last) == 1 else f"bring back one of {_brokers(last)}"


def _bring_back_or_drain(seen: Evidence, row: int) -> str:
    unknown = _unknown(seen, row)
    return f"bring back {_brokers(unknown)}, or rackspan reassign plan --drain {_listed(unknown)}"


def _wait(_seen: Evidence, _row: int) -> str:
    return "wait for it, or rackspan reassign cancel"


def _unknown(seen: Evidence, row: int) -> tuple[int, ...]:
    return unpadded(seen.rows.replicas[row][seen.replica_index[row] < 0])


def _out_of_sync(seen: Evidence, row: int) -> list[int]:
    in_sync = set(unpadded(seen.rows.isr[row]))
    return [broker for broker in unpadded(seen.rows.replicas[row]) if broker not in in_sync]


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
"""Placement first, then what is wrong now, then what is on its way."""


def partition_findings(seen: Evidence) -> Iterator[Finding]:
    """Every constraint that every partition of the batch breaks."""
    return (finding for _row, finding in partition_findings_by_row(seen))


def partition_findings_by_row(seen: Evidence) -> Iterator[tuple[int, Finding]]:
    """The same, each with its row in the batch: one batch may hold partitions of several snapshots."""
    return (found for constraint in PARTITION_CONSTRAINTS for found in constraint.findings_by_row(seen))


def _by_rack(seen: Evidence, row: int) -> str:
    """`r1: 1,4; r2: 2`, the fullest rack first."""
    leaving = set(unpadded(seen.rows.removing_replicas[row]))
    return _held_by_rack(seen, [broker for broker in unpadded(seen.rows.replicas[row]) if broker not in leaving])


def _held_by_rack(seen: Evidence, brokers: Sequence[int]) -> str:
    rack_of = seen.registered.rack_map.rack_of
    held: dict[str, list[int]] = {}
    for broker in brokers:
        held.setdefault(shown(rack_of[broker]) if broker in rack_of else "rack unknown", []).append(broker)
    fullest_first = sorted(held.items(), key=lambda item: (-len(item[1]), item[0]))
    return "; ".join(f"{rack}: {_listed(ids)}" for rack, ids in fullest_first) or "nobody"


def _listed(items: Iterable[object]) -> str:
    return ",".join(map(str, items)) or "none"


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
