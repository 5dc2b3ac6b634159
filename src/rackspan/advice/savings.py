"""Advice that keeps bytes in their rack: today's flows beside those of the same groups with other settings.

    settings of clients and brokers ──► another assignment, on top of it ──► a replica in each rack, its copies paid for

Each is compared with the one before, so that no byte is saved twice. A saving below a threshold is left out.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from rackspan.advice.advice import Advice, Concern
from rackspan.audit import RackPolicy
from rackspan.clients import ClientFinding, GroupReads
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot
from rackspan.model.ids import RackId
from rackspan.model.partitions import UNKNOWN_SIZE, lengths
from rackspan.reassign import ReassignmentRequest, plan
from rackspan.text import count_noun, human_bytes
from rackspan.traffic import GroupProgress, PriceFile, TrafficFlow, TrafficPath, Volumes, bill, consume_flows
from rackspan.traffic.json_format import MONTH_SECONDS
from rackspan.traffic.what_if import reading_at_home, reading_best_assigned, reading_where_replicas_are

LEAST_BYTES_A_MONTH: Final = 10 * 2**30
"""Savings below it are left out: at 0.02 a GB they are 20 cents."""

_BY_SETTINGS: Final = (
    "no-client-rack",
    "rack-not-reported",
    "unknown-client-rack",
    "wrong-client-rack",
    "no-replica-selector",
)
"""Causes that settings of clients or brokers remove."""


@dataclass(frozen=True, slots=True)
class MeasuredTraffic:
    """What was measured in `seconds`: the cluster, its volumes, and who reads what."""

    snapshot: ClusterSnapshot
    volumes: Volumes
    reads: Sequence[GroupReads]
    progress: GroupProgress
    seconds: float


def savings(
    traffic: MeasuredTraffic,
    findings: Sequence[ClientFinding],
    policy: RackPolicy = RackPolicy(),
    prices: PriceFile | None = None,
    least_bytes_a_month: int = LEAST_BYTES_A_MONTH,
) -> Iterator[Advice]:
    """`findings` are those of the groups in `traffic`."""
    racks = sorted({broker.rack for broker in traffic.snapshot.brokers if broker.rack})
    found = [_settings(traffic, reads, racks, findings, prices) for reads in traffic.reads]
    found += [_assignment(traffic, reads, racks, findings, prices) for reads in traffic.reads]
    topics = sorted({topic for each in findings if each.cause == "no-replica-in-rack" for topic in each.topics})
    found += [_replicas(traffic, topic, racks, policy, prices) for topic in topics]
    for advice in found:
        if advice is not None and (advice.bytes_a_month or 0) >= least_bytes_a_month:
            yield advice


def _settings(
    traffic: MeasuredTraffic,
    reads: GroupReads,
    racks: Sequence[RackId],
    findings: Sequence[ClientFinding],
    prices: PriceFile | None,
) -> Advice | None:
    """The client.rack of every member, and brokers that select replicas by rack."""
    causes = [each for each in _of_group(findings, reads) if each.cause in _BY_SETTINGS]
    if not causes:
        return None
    now, then = _flows(traffic, [reads]), _flows(traffic, [reading_at_home(reads, racks)])
    members = {member for each in causes if each.cause != "no-replica-selector" for member in each.members}
    restarts = [count_noun(len(members), "member")] if members else []
    if any(each.cause == "no-replica-selector" for each in causes):
        restarts.append(f"each of {count_noun(len(traffic.snapshot.brokers), 'broker')}")
    return _advice(
        traffic,
        now,
        then,
        prices,
        kind="read-in-rack",
        reason="; ".join(each.reason for each in causes),
        command="; ".join(dict.fromkeys(each.remedy for each in causes)),
        cost=f"a restart of {' and of '.join(restarts)}",
        undo="take the settings back and restart",
        group=reads.group.group_id,
    )


def _assignment(
    traffic: MeasuredTraffic,
    reads: GroupReads,
    racks: Sequence[RackId],
    findings: Sequence[ClientFinding],
    prices: PriceFile | None,
) -> Advice | None:
    """An assignor that looks at racks, once members read in their own rack where they can."""
    cause = next((each for each in _of_group(findings, reads) if each.cause == "assignment"), None)
    if cause is None:
        return None
    home = reading_at_home(reads, racks)
    return _advice(
        traffic,
        _flows(traffic, [home]),
        _flows(traffic, [reading_at_home(reading_best_assigned(reads), racks)]),
        prices,
        kind="assignor",
        reason=cause.reason,
        command=cause.remedy,
        cost=f"a restart of {count_noun(len(reads.members), 'member')}",
        undo="take the setting back and restart",
        group=reads.group.group_id,
    )


def _replicas(
    traffic: MeasuredTraffic, topic: str, racks: Sequence[RackId], policy: RackPolicy, prices: PriceFile | None
) -> Advice | None:
    """A replica of the topic in each rack. What its copies cross racks with counts against it."""
    name = topic.replace(".", r"\.")
    rows = traffic.snapshot.partitions
    code = next(code for code, each in enumerate(traffic.snapshot.topics) if each.name == topic)
    chosen = rows.topic == code
    factor = max(len(racks), int(lengths(rows.replicas[chosen]).max(initial=0)))
    more = factor > int(lengths(rows.replicas[chosen]).min(initial=0))
    request = ReassignmentRequest(topics=name, replication_factor=factor if more else None)
    try:
        planned = plan(traffic.snapshot, policy, request)
    except UsageError:
        return None
    if planned.infeasible or not planned.moves or planned.cost is None:
        return None
    home = [reading_at_home(reads, racks) for reads in traffic.reads]
    everywhere = frozenset(racks)
    then = [reading_at_home(reading_where_replicas_are(reads, topic, everywhere), racks) for reads in traffic.reads]
    copies = factor - lengths(rows.replicas[chosen])
    bytes_in = traffic.volumes.bytes_in[chosen]
    if bool((bytes_in == UNKNOWN_SIZE).any()):
        return None
    flag = f" --replication-factor {factor}" if more else ""
    size = "of unknown size" if planned.cost.unsized_moves else human_bytes(planned.cost.bytes)
    return _advice(
        traffic,
        _flows(traffic, home),
        _flows(traffic, then),
        prices,
        kind="replica-in-rack",
        reason=f"{topic} is read in racks that have no replica of it",
        command=f"rackspan reassign plan --topic '{name}'{flag}",
        cost=f"{count_noun(planned.moves, 'replica', ',')} copied once, {size}",
        undo="rackspan reassign undo, with the journal of the run",
        topic=topic,
        copied=int(np.sum(copies * bytes_in)),
    )


def _of_group(findings: Sequence[ClientFinding], reads: GroupReads) -> list[ClientFinding]:
    return [each for each in findings if each.group == reads.group.group_id]


def _flows(traffic: MeasuredTraffic, reads: Sequence[GroupReads]) -> tuple[TrafficFlow, ...]:
    return consume_flows(traffic.snapshot, traffic.volumes, reads, traffic.progress)


def _advice(
    traffic: MeasuredTraffic,
    now: Sequence[TrafficFlow],
    then: Sequence[TrafficFlow],
    prices: PriceFile | None,
    *,
    kind: str,
    reason: str,
    command: str,
    cost: str,
    undo: str,
    topic: str | None = None,
    group: str | None = None,
    copied: int = 0,
) -> Advice:
    """`copied`: bytes that more replicas would copy across racks meanwhile, and for as long as they are there."""
    a_month = Fraction(MONTH_SECONDS) / Fraction(traffic.seconds)
    saved = _across(now) - _across(then) - copied
    return Advice(
        Concern.MONEY,
        kind,
        reason,
        command,
        cost,
        undo,
        topic,
        group,
        int(saved * a_month),
        _money(now, then, prices, copied, a_month),
    )


def _across(flows: Sequence[TrafficFlow]) -> int:
    return sum(flow.size_bytes or 0 for flow in flows if flow.link.crosses)


def _money(
    now: Sequence[TrafficFlow], then: Sequence[TrafficFlow], prices: PriceFile | None, copied: int, a_month: Fraction
) -> float | None:
    """The difference of both bills; None if a price that it needs is not known."""
    if prices is None:
        return None
    of_copies = prices.per_byte(TrafficPath.REPLICATE) if copied else Fraction(0)
    paths = {flow.link.path for flow in (*now, *then) if flow.link.crosses}
    if of_copies is None or any(prices.per_byte(path) is None for path in paths):
        return None
    return float((bill(now, prices).money - bill(then, prices).money - copied * of_copies) * a_month)
