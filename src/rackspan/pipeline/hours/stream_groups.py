"""Rows of the table `stream_groups`: what the active tasks of each Kafka Streams group cost across racks now, and by each strategy.

Tasks, partitions and costs are KIP-925's: a partition crosses racks if it has "no replica in same rack", whichever replica serves it and whether
brokers let clients read from followers. Bytes cross racks by the replica that serves each partition (KIP-392), as in `consumer_groups`.
Method: the audit of `streams audit`, kept as long as a group and the racks of its partitions stay the same. Bound: three assignments a group and
change. Tests: tests/pipeline/hours/test_stream_groups.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rackspan.clients import GroupReads
from rackspan.clients.reads import read_again
from rackspan.errors import InvalidGroup, InvalidProblem, UsageError
from rackspan.model.group import GroupDescription, GroupKind
from rackspan.streams import Strategy, capture_group, streams_group
from rackspan.streams.live import StreamsGroup
from rackspan.streams.live.capture import CapturedProblem
from rackspan.streams.live.group_audit import ActiveTasks, StrategyDocument, StreamsAuditDocument, audit_with_tasks
from rackspan.streams.live.streams_group import STREAMS_PROTOCOL
from rackspan.streams.problem import HIGH_AVAILABILITY_COSTS
from rackspan.traffic import ClusterReading
from rackspan.traffic.what_if import reading_by_tasks

_COUNTS: Final = (
    *("clients", "tasks", "tasks_across_now", "tasks_across_best", "tasks_moved", "partitions_across_now"),
    *("partitions_across_best", "standby_across_now", "standby_across_best", "cost_now", "cost_best"),
)


class StreamGroups:
    """Makes the rows of one cluster's readings in order of time."""

    def __init__(self) -> None:
        self._audits: dict[str, _Audited] = {}
        self._reads: dict[str, tuple[_Audited, GroupReads, Mapping[str, GroupReads | None]]] = {}

    def rows(self, reading: ClusterReading) -> Iterator[dict[str, Any]]:
        """A row for each strategy of each Kafka Streams group with members, without the bytes of the hour."""
        for group in reading.groups:
            if group.members and _is_streams(group):
                shared = {"group_id": group.group_id, "read_at": reading.read_at, "kind": str(group.kind)}
                yield from ({**shared, **row} for row in self._of_group(group, reading))

    def reading_by_strategy(self, reads: GroupReads, reading: ClusterReading) -> Mapping[str, GroupReads | None]:
        """What a Kafka Streams group would read by each strategy, None where that is not known; of other groups nothing.

        Each partition is served by the replica that serves its reader then: selectors of brokers stay as they are.
        """
        if not _is_streams(reads.group):
            return {}
        key = reads.group.group_id
        try:
            audited = self._audit(reads.group, reading)
        except (InvalidGroup, InvalidProblem, UsageError):
            return dict.fromkeys(map(str, Strategy))
        known = self._reads.get(key)
        if known is None or known[0] is not audited or known[1].members != reads.members:
            running = streams_group(reads.group)
            found = {str(name): _read_by(tasks, running, reads, reading) for name, tasks in audited.tasks.items()}
            known = self._reads[key] = audited, reads, found
        return known[2]

    def _of_group(self, group: GroupDescription, reading: ClusterReading) -> Iterator[dict[str, Any]]:
        try:
            audit = self._audit(group, reading).document
        except (InvalidGroup, InvalidProblem, UsageError) as error:
            for strategy in Strategy:
                yield {"strategy": str(strategy), **dict.fromkeys(_COUNTS), "known": False, "reason": str(error)}
            return
        for strategy, best in audit["strategies"].items():
            yield {"strategy": str(strategy), **_costs(audit, best)}

    def _audit(self, group: GroupDescription, reading: ClusterReading) -> "_Audited":
        if group.kind is GroupKind.CLASSIC:
            raise InvalidGroup(
                f"group {group.group_id} is of the classic protocol, of which readings have no tasks: only its members know them; "
                f"see rackspan streams audit --group {group.group_id}"
            )
        running = streams_group(group)
        captured = capture_group(running, reading.snapshot, {})
        known = self._audits.get(group.group_id)
        if known is None or known.captured != captured.document:
            known = _Audited(captured.document, *audit_with_tasks(running, captured))
            self._audits[group.group_id] = known
        return known


@dataclass(frozen=True, slots=True)
class _Audited:
    """What was captured of a group, its audit, and the active tasks by strategy."""

    captured: CapturedProblem
    document: StreamsAuditDocument
    tasks: Mapping[Strategy, ActiveTasks]


def _is_streams(group: GroupDescription) -> bool:
    return group.kind is GroupKind.STREAMS or group.protocol == STREAMS_PROTOCOL


def _read_by(
    tasks: ActiveTasks, running: StreamsGroup, reads: GroupReads, reading: ClusterReading
) -> GroupReads | None:
    assigned = reading_by_tasks(reads, running, tasks)
    return None if assigned is None else read_again(assigned, reading.snapshot, reading.selectors)


def _costs(audit: StreamsAuditDocument, best: StrategyDocument) -> dict[str, Any]:
    now = audit["now"]
    costs = _traffic(now["cost"]["stateful"], now["cost"]["stateless"]), _traffic_of(best)
    known = None not in costs
    return {
        "clients": len(audit["clients"]),
        "tasks": audit["tasks"]["stateful"] + audit["tasks"]["stateless"],
        "tasks_across_now": now["cross_rack_tasks"],
        "tasks_across_best": best["cross_rack_tasks"],
        "tasks_moved": best["moved"]["active"],
        "partitions_across_now": now["cross_rack"]["active"],
        "partitions_across_best": best["cross_rack"]["active"],
        "standby_across_now": now["cross_rack"]["standby"],
        "standby_across_best": best["cross_rack"]["standby"],
        "cost_now": costs[0],
        "cost_best": costs[1],
        "known": known,
        # Without a price the audit says first why.
        "reason": best["reason"] if known else audit["unknown"][0],
    }


def _traffic_of(best: StrategyDocument) -> int | None:
    """The cost without that of tasks that leave where the assignor put them first, which running tasks do not have either."""
    proof = best["certificate"]["stateful"]
    moved = 0 if proof is None else proof["moved"] * HIGH_AVAILABILITY_COSTS.non_overlap
    traffic = _traffic(best["cost"]["stateful"], best["cost"]["stateless"])
    return None if traffic is None else traffic - moved


def _traffic(stateful: float | None, stateless: float | None) -> int | None:
    return None if stateful is None or stateless is None else int(stateful + stateless)
