"""What a group would read across racks with other settings or another assignment of its partitions."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rackspan.advice.advice import Advice
from rackspan.advice.measured import MeasuredTraffic, Remedy, Terms, saving
from rackspan.clients import ClientFinding, GroupReads, ReplicaSelectors
from rackspan.clients.causes import SELECTOR_REMEDY, assignment_finding
from rackspan.clients.reads import read_again
from rackspan.errors import InvalidGroup, InvalidProblem, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.model.group import GroupKind
from rackspan.streams.live import CapturedGroup, StreamsGroup, capture_group, streams_group
from rackspan.streams.live.group_audit import AT_BEST, active_at_best
from rackspan.streams.live.streams_group import STREAMS_PROTOCOL
from rackspan.streams.problem import TaskId
from rackspan.text import count_noun, human_bytes
from rackspan.traffic import TrafficFlow, consume_flows
from rackspan.traffic.what_if import (
    reading_at_home,
    reading_best_assigned,
    reading_by_tasks,
    selecting_by_rack,
)

_BY_CLIENT: Final = ("no-client-rack", "rack-not-reported", "unknown-client-rack", "wrong-client-rack")
"""Causes that settings of clients remove."""

NO_SELECTOR: Final = "no-replica-selector"
"""The cause that a setting of brokers removes."""

_UNDO: Final = "take the settings back and restart"


@dataclass(frozen=True, slots=True)
class ReadingGroup:
    """A group as it reads now or would read, and the replica selectors of the brokers then."""

    reads: GroupReads
    selectors: Mapping[int, ReplicaSelectors]

    @property
    def id(self) -> str:
        return self.reads.group.group_id


def selector_saving(
    traffic: MeasuredTraffic, groups: Sequence[ReadingGroup], findings: Sequence[ClientFinding], terms: Terms
) -> tuple[Advice, list[ReadingGroup]] | None:
    """Brokers that select replicas by rack, if members of several groups name racks without effect; the groups as they read then.

    It is one change for all of them, so it is one piece of advice. Of a single group it is part of `read-in-rack`.
    """
    without_effect = {each.group for each in findings if each.cause == NO_SELECTOR}
    if len(without_effect) < 2:
        return None
    remedy = Remedy(
        kind="read-in-rack",
        reason=f"client.rack is set and has no effect in {len(without_effect)} groups: brokers direct every reader to the leader",
        command=SELECTOR_REMEDY,
        cost=f"a restart of {_every_broker(traffic)}",
        undo=_UNDO,
    )
    changed = _before_selecting_brokers(traffic, groups)
    advice = saving(remedy, _flows(traffic, groups), _flows(traffic, changed), terms)
    return None if advice is None else (advice, changed)


def group_savings(
    traffic: MeasuredTraffic, groups: Sequence[ReadingGroup], at: int, findings: Sequence[ClientFinding], terms: Terms
) -> tuple[list[Advice], list[ReadingGroup]]:
    """The advice about the group at an index, each on top of the one before, and how all groups read once it is followed.

    `findings` are those of this group. Other groups change if brokers have to select replicas by rack: the first advice
    with that saves what all groups save by it.
    """
    groups = list(groups)
    advised: list[Advice] = []
    for remedies in (_at_home, _through_gateways, _assigned, _by_strategy):
        found = remedies(traffic, groups[at], findings)
        if found is None:
            continue
        remedy, changed = found
        then = [changed]
        now = [groups[at]]
        if directs_to_leaders(groups[at]) and not directs_to_leaders(changed):
            others = [each for other, each in enumerate(groups) if other != at]
            now, then = [*now, *others], [*then, *_before_selecting_brokers(traffic, others)]
        advice = saving(remedy, _flows(traffic, now), _flows(traffic, then), terms)
        if advice is not None:
            advised.append(advice)
            groups[at] = changed
            if len(then) > 1:
                groups = [*then[1 : at + 1], changed, *then[at + 1 :]]
    return advised, groups


def directs_to_leaders(group: ReadingGroup) -> bool:
    """Whether brokers direct every reader to the leader."""
    return ReplicaSelectors.LEADER in group.selectors.values()


def _before_selecting_brokers(traffic: MeasuredTraffic, groups: Sequence[ReadingGroup]) -> list[ReadingGroup]:
    """The groups before brokers all of which select replicas by rack."""
    selectors = selecting_by_rack(traffic.snapshot)
    return [ReadingGroup(read_again(group.reads, traffic.snapshot, selectors), selectors) for group in groups]


def _flows(traffic: MeasuredTraffic, groups: Sequence[ReadingGroup]) -> tuple[TrafficFlow, ...]:
    return consume_flows(traffic.snapshot, traffic.volumes, [group.reads for group in groups], traffic.progress)


def _at_home(
    traffic: MeasuredTraffic, group: ReadingGroup, findings: Sequence[ClientFinding]
) -> tuple[Remedy, ReadingGroup] | None:
    """The client.rack of every member whose clients can be configured, before brokers that select replicas by rack."""
    gateway = _members_for_gateways(traffic, group, findings)
    causes = [each for each in findings if each.cause in _BY_CLIENT and not gateway.issuperset(each.members)]
    members = {member for each in causes for member in each.members} - gateway
    selector = [each for each in findings if each.cause == NO_SELECTOR]
    if not members and not selector:
        return None
    brokers = _selecting(traffic, group)
    home = _read_at_home(traffic.snapshot, group, members, selecting=bool(brokers))
    restarts = [*([count_noun(len(members), "member")] if members else []), *brokers.values()]
    remedy = Remedy(
        kind="read-in-rack",
        reason="; ".join(each.reason for each in (*causes, *selector)),
        command="; ".join(dict.fromkeys((*(each.remedy for each in causes), *brokers))),
        cost=f"a restart of {' and of '.join(restarts)}" if restarts else "",
        undo=_UNDO,
        group=group.id,
    )
    return remedy, home


def _through_gateways(
    traffic: MeasuredTraffic, group: ReadingGroup, findings: Sequence[ClientFinding]
) -> tuple[Remedy, ReadingGroup] | None:
    """`[readers]` of gateways, for members that read through one, or whose clients report no rack."""
    members = _members_for_gateways(traffic, group, findings)
    if not members:
        return None
    through = {
        member.member.member_id
        for member in group.reads.members
        if member.member.client_id in traffic.through_gateway and member.member.member_id in members
    }
    cost = "SIGHUP to the gateways, no restart"
    if through != members:
        cost = (
            f"a gateway in each rack before {count_noun(len(members - through), 'member')}, with its bootstrap.servers"
        )
    command = "set [readers] rack in the file of each gateway to the rack of the members that read through it"
    if any(each.cause in ("unknown-client-rack", "wrong-client-rack") for each in findings):
        command += " and replace.client.rack = true"
    brokers = _selecting(traffic, group)
    reason = (
        f"{len(members)} of {count_noun(len(group.reads.group.members), 'member')} "
        f"{'read through a gateway that writes no rack into fetches' if through == members else 'with a client that reports no rack'}"
    )
    remedy = Remedy(
        kind="gateway-rack",
        reason=reason,
        command="; ".join((command, *brokers)),
        cost="; ".join((cost, *(f"a restart of {each}" for each in brokers.values()))),
        undo="take [readers] back, and SIGHUP",
        group=group.id,
    )
    return remedy, _read_at_home(traffic.snapshot, group, members, selecting=bool(brokers))


def _members_for_gateways(
    traffic: MeasuredTraffic, group: ReadingGroup, findings: Sequence[ClientFinding]
) -> frozenset[str]:
    """The members with a cause that a gateway's `[readers]` removes, and that read through one or report no rack."""
    client_ids = {member.member_id: member.client_id for member in group.reads.group.members}
    return frozenset(
        member
        for each in findings
        if each.cause in _BY_CLIENT
        for member in each.members
        if each.cause == "rack-not-reported" or client_ids.get(member) in traffic.through_gateway
    )


def _read_at_home(
    snapshot: ClusterSnapshot, group: ReadingGroup, members: set[str] | frozenset[str], *, selecting: bool
) -> ReadingGroup:
    """The group once members name their rack. Brokers are as they are if they are not `selecting`, unknown ones as if they did."""
    home, by_rack = reading_at_home(group.reads, snapshot, members), selecting_by_rack(snapshot)
    if selecting or not directs_to_leaders(group):
        return ReadingGroup(home, by_rack)
    known = {broker: each for broker, each in group.selectors.items() if each is ReplicaSelectors.LEADER}
    return ReadingGroup(read_again(home, snapshot, by_rack | known), by_rack | known)


def _selecting(traffic: MeasuredTraffic, group: ReadingGroup) -> dict[str, str]:
    """How brokers are made to select replicas by rack, and which are restarted, if they have to be.

    They have to if a member reads from one that directs every reader to the leader, and is not known to be in its rack.
    """
    needed = any(
        read.selector is ReplicaSelectors.LEADER and (member.rack is None or read.leader != member.rack)
        for member in group.reads.members
        for read in member.reads
    )
    return {SELECTOR_REMEDY: f"{_every_broker(traffic)}, once for all groups"} if needed else {}


def _every_broker(traffic: MeasuredTraffic) -> str:
    return f"each of {count_noun(len(traffic.snapshot.brokers), 'broker')}"


def _assigned(
    traffic: MeasuredTraffic, group: ReadingGroup, _findings: Sequence[ClientFinding]
) -> tuple[Remedy, ReadingGroup] | None:
    """An assignor that looks at racks (KIP-881)."""
    if group.reads.group.protocol == STREAMS_PROTOCOL or not _each_in_one_place(group):
        return None
    cause = next(iter(assignment_finding(group.reads)), None)
    if cause is None:
        return None
    best = read_again(reading_best_assigned(group.reads), traffic.snapshot, group.selectors)
    remedy = Remedy(
        kind="assignor",
        reason=cause.reason,
        command=cause.remedy,
        cost=f"a restart of {count_noun(len(group.reads.members), 'member')}",
        undo=_UNDO,
        group=group.id,
    )
    return remedy, replace(group, reads=best)


def _by_strategy(
    traffic: MeasuredTraffic, group: ReadingGroup, _findings: Sequence[ClientFinding]
) -> tuple[Remedy, ReadingGroup] | None:
    """A rack-aware strategy of Kafka Streams (KIP-925), whose tasks move with all their partitions."""
    described = group.reads.group
    if not _each_in_one_place(group) or not (
        described.kind is GroupKind.STREAMS or described.protocol == STREAMS_PROTOCOL
    ):
        return None
    try:
        running = _in_racks(streams_group(described), group)
        captured = capture_group(running, traffic.snapshot, {})
        best = active_at_best(captured)
    except (InvalidGroup, InvalidProblem, UsageError):
        return None
    if best is None:
        return None
    assigned = reading_by_tasks(group.reads, running, best)
    if assigned is None:
        return None
    moved = {task for process in running.processes for task in process.active if best[task] != process.process_id}
    then = read_again(assigned, traffic.snapshot, group.selectors)
    protocol = (
        "set group.protocol=classic (brokers look at no racks, KIP-1071) and "
        if described.kind is GroupKind.STREAMS
        else "set "
    )
    remedy = Remedy(
        kind="strategy",
        reason=f"{count_noun(len(moved), 'task')} of {len(best)} would run elsewhere under {AT_BEST} (KIP-925), as balanced",
        command=f"{protocol}rack.aware.assignment.strategy={AT_BEST} and restart; see rackspan streams audit --group {described.group_id}",
        cost=f"a restart of {count_noun(len(running.processes), 'process', plural='processes')}; state of {_restored(traffic.snapshot, captured, moved)} is restored once",
        undo=_UNDO,
        group=group.id,
    )
    return remedy, replace(group, reads=then)


def _each_in_one_place(group: ReadingGroup) -> bool:
    """Whether no member stands for several racks, as one whose rack is not known does."""
    return len(group.reads.members) == len(group.reads.group.members) and all(
        member.rack is not None for member in group.reads.members
    )


def _in_racks(running: StreamsGroup, group: ReadingGroup) -> StreamsGroup:
    """The group with the racks that its members name once the advice so far is followed."""
    rack_of = {member.member.client_id: member.rack for member in group.reads.members}
    return replace(
        running,
        processes=tuple(
            replace(
                process,
                threads=tuple(
                    replace(thread, rack=rack_of.get(thread.client_id), can_send_rack=True)
                    for thread in process.threads
                ),
            )
            for process in running.processes
        ),
    )


def _restored(snapshot: ClusterSnapshot, captured: CapturedGroup, moved: Collection[TaskId]) -> str:
    """The size of the changelogs of tasks that move."""
    stateful = [task["changelog"] for task in captured.document["tasks"] if task["id"] in moved and task["stateful"]]
    if not stateful:
        return "no task"
    if not all(stateful):
        return "unknown size"
    logs = {log for changelogs in stateful for log in changelogs}
    rows = snapshot.partitions
    names = [str(topic.name) for topic in snapshot.topics]
    sizes = {
        f"{names[topic]}:{partition}": size
        for topic, partition, size in zip(
            rows.topic.tolist(), rows.partition.tolist(), rows.size_bytes.tolist(), strict=True
        )
    }
    of_logs = [sizes.get(log, -1) for log in logs]
    return "unknown size" if min(of_logs) < 0 else human_bytes(sum(of_logs))
