"""The audit of one snapshot: every finding, and what the loss of each rack would do."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch, snapshot_batch
from rackspan.audit.constraints import (
    Findings,
    KnownWords,
    cluster_findings,
    config_findings,
    finding_columns,
    leader_rack_findings,
    mixed_replication_factors,
    throttle_findings,
)
from rackspan.audit.constraints.cluster import declared_different, failed_log_dirs
from rackspan.audit.constraints.partitions import BY_NAME, reported
from rackspan.audit.constraints.survival import too_few_racks
from rackspan.audit.findings import REPAIR_ORDER, Finding, Severity
from rackspan.audit.goals import excluded_broker_findings, goal_findings
from rackspan.audit.loads import BrokerLoads, loads
from rackspan.audit.outage import LostRack, RackLoss, judge_losses, losses_to_judge, lost_racks
from rackspan.audit.policy import RackPolicy
from rackspan.model import MIN_INSYNC_REPLICAS, Bools, ClusterSnapshot, RackId, Topic, UnrackedPolicy
from rackspan.model.rack_names import shared_places
from rackspan.text import count_noun, noun_and_ids


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit. `losses` has one entry a rack: what its loss would do. `lost_racks` are down already. `assumed`: see `assumptions`.

    `counts`: findings by severity and constraint. The words of `findings` are made when they are read.
    """

    findings: Sequence[Finding]
    counts: Mapping[tuple[Severity, str], int]
    losses: list[RackLoss]
    racks: tuple[RackId, ...]
    partitions: int
    assumed: tuple[str, ...]
    lost_racks: tuple[LostRack, ...]

    @property
    def clean(self) -> bool:
        """Whether no constraint is broken. Warnings do not count."""
        return not any(severity is Severity.VIOLATION for severity, _ in self.counts)

    @property
    def left_open_by(self) -> tuple[str, ...]:
        """The violations with which it is not certain that the loss of a rack is survived, whatever `losses` say."""
        return _leaving_open({constraint for severity, constraint in self.counts if severity is Severity.VIOLATION})

    @property
    def survives_any_rack(self) -> bool | None:
        """Whether every loss of one rack is survived for certain; None where there is no partition to judge."""
        if not self.partitions:
            return None
        return all(loss.survived for loss in self.losses) and not self.left_open_by


LEAVES_OPEN: Final = frozenset(
    {
        "unracked-broker",
        "rack-names-alike",
        "controller-quorum-spread",
        "min-insync-racks-satisfiable",
        "min-insync-replicas-forces-racks",
        "survives-rack-loss",
        "accepts-writes-after-rack-loss",
    }
)
"""Constraints on which racks there are, and on what a loss of one leaves."""


def audit(snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None) -> Audit:
    """Check a snapshot against every constraint and goal.

    `topic_filter`: judge the topics whose whole name matches, and the brokers and controllers they depend on; the goals,
    which are about the loads of whole brokers, are left out. Errors: UsageError where the policy refuses the cluster.
    """
    listed = snapshot_batch(snapshot, policy).of_topics(topic_filter)
    batch, broker_loads = listed.judged, loads(listed)
    others = [
        *topic_findings(batch),
        *(() if snapshot.may_be_moving else throttle_findings(batch)),
        *whole_cluster_findings(batch.members, broker_loads, goals=topic_filter is None, complete=not snapshot.partial),
    ]
    findings = Findings(finding_columns(batch, KnownWords()), others)
    return Audit(
        findings=findings,
        counts=findings.counts,
        losses=_each_rack(snapshot, batch),
        racks=batch.members.rack_map.racks,
        partitions=len(batch.rows),
        assumed=tuple(_assumed(listed)),
        lost_racks=lost_racks(batch),
    )


def topic_findings(batch: PartitionBatch) -> Iterator[Finding]:
    """The findings about whole topics, but for those of `throttle_findings`. The batch holds each of its topics completely."""
    yield from mixed_replication_factors(batch)
    yield from leader_rack_findings(batch)
    yield from config_findings(batch)


def whole_cluster_findings(
    members: ClusterMembers, broker_loads: BrokerLoads, *, goals: bool = True, complete: bool = True
) -> Iterator[Finding]:
    """The findings about the cluster: its brokers, racks and controllers, and, with `goals`, the loads of whole brokers.

    `complete`: everything was read. Only then a broker without replicas is known to hold none.
    """
    empty = members.rack_map.broker_ids[broker_loads.assigned == 0].tolist() if goals and complete else ()
    yield from cluster_findings(members, frozenset(empty))
    yield from failed_log_dirs(members, broker_loads, every_topic=goals)
    yield from too_few_racks(members, broker_loads)
    if goals:
        yield from excluded_broker_findings(members, broker_loads)
        yield from goal_findings(members, broker_loads)


def assumptions(
    snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None
) -> tuple[str, ...]:
    """In words what is assumed: about racks, about configs that are not in the snapshot, and about reassignments in flight.

    `topic_filter`: about the topics whose whole name matches, and about the brokers.
    """
    return tuple(_assumed(snapshot_batch(snapshot, policy).of_topics(topic_filter)))


def racks_down(
    snapshot: ClusterSnapshot, policy: RackPolicy, topic_filter: re.Pattern[str] | None = None
) -> tuple[LostRack, ...]:
    """The racks that are down. `topic_filter`: with the partitions of the topics whose whole name matches."""
    return lost_racks(snapshot_batch(snapshot, policy).of_topics(topic_filter).judged)


def _assumed(listed: PartitionBatch) -> Iterator[str]:
    batch = listed.judged
    rackless = [int(broker.id) for broker in batch.members.brokers if broker.rack is None]
    if rackless:
        counted = {
            UnrackedPolicy.SHARED: "counted as one rack together",
            UnrackedPolicy.OWN: "counted as a rack each",
            UnrackedPolicy.IGNORE: "taken to be lost with every rack",
        }[batch.members.policy.unracked]
        yield f"{noun_and_ids('broker', rackless)} without a rack {counted}"
    yield from map(str, batch.members.racks_alike)
    yield from declared_different(batch.members)
    if places := shared_places(batch.members.failure_racks):
        together = ", ".join(f"{place} has {len(racks)}" for place, racks in places.items())
        first, racks = next(iter(places.items()))
        yield (
            f"racks are judged one by one, and what several are in is not ({together}): "
            f"rackspan outage --lose {shlex.quote(','.join(racks))} judges the loss of all racks of {first}"
        )
    if unknown := len(np.unique(batch.rows.topic[~batch.required.known])):
        yield f"unknown {MIN_INSYNC_REPLICAS} of {count_noun(unknown, 'topic')} counted as 1"
    if diskless := len(np.unique(listed.rows.topic[listed.required.diskless])):
        yield f"{count_noun(diskless, 'diskless topic')} not judged"
    if moving := int(np.count_nonzero(batch.reassigning)):
        yield f"{count_noun(moving, 'partition')} being reassigned judged now and by {'its' if moving == 1 else 'their'} target"


def outage(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    topic_filter: re.Pattern[str] | None = None,
    *,
    lose: tuple[str, ...] | None = None,
    pairs: bool = False,
) -> tuple[RackLoss, list[RackLoss]]:
    """Returns what is harmed now, and what losing each rack, each pair, or the named racks together would do.

    `topic_filter`: to the topics whose whole name matches, and to the controllers.
    """
    batch = snapshot_batch(snapshot, policy).of_topics(topic_filter).judged
    losses = losses_to_judge(batch.members.failure_racks, lose, pairs)
    now, *after = judge_losses(batch, internal(snapshot.topics), [(), *losses], targets=True)
    return now, after


@dataclass(frozen=True, slots=True)
class RackLosses:
    """What the loss of each rack would do to a cluster, as `outage` has it, and how certain that is: the values of metrics.

    `left_open_by`: as of `Audit`. `complete`: everything that is needed to judge was read. Harm that is found in a snapshot
    that is not complete is certain. That there is none is not.
    """

    losses: tuple[RackLoss, ...]
    left_open_by: tuple[str, ...]
    partitions: int
    complete: bool

    def survived(self, loss: RackLoss) -> bool | None:
        """Whether one of the losses is survived as the policy requires; None if that is not known."""
        if loss.harms_required:
            return False
        return loss.as_required if self.complete else None

    @property
    def any_survived(self) -> bool | None:
        """Whether the loss of any one rack is survived for certain, as the policy requires.

        None if that is not known, or if there is no partition to judge. A False is a violation of `audit` too.
        """
        if any(loss.harms_required for loss in self.losses):
            return False
        if not self.complete:
            return None
        if self.left_open_by or not all(loss.as_required for loss in self.losses):
            return False
        return True if self.partitions else None


def rack_losses(snapshot: ClusterSnapshot, batch: PartitionBatch) -> RackLosses:
    """The loss of each rack, without the words of an audit's findings. `batch`: the whole snapshot's (`snapshot_batch`).

    Cost: a third of an audit of a healthy cluster, and no more where many partitions break a constraint.
    """
    listed, batch = batch, batch.judged
    masks = reported(batch)
    broken = {
        name for name in LEAVES_OPEN & masks.keys() if not BY_NAME[name].warns(batch, np.flatnonzero(masks[name])).all()
    }
    whole_cluster = whole_cluster_findings(batch.members, loads(listed), goals=False)
    broken |= {finding.constraint for finding in whole_cluster if finding.severity is Severity.VIOLATION}
    return RackLosses(
        losses=tuple(_each_rack(snapshot, batch)),
        left_open_by=_leaving_open(broken),
        partitions=len(batch.rows),
        complete=not snapshot.unread,
    )


def _each_rack(snapshot: ClusterSnapshot, batch: PartitionBatch) -> list[RackLoss]:
    losses = [(rack,) for rack in batch.members.failure_racks]
    return judge_losses(batch, internal(snapshot.topics), losses, targets=True)


def _leaving_open(broken: Set[str]) -> tuple[str, ...]:
    return tuple(name for name in REPAIR_ORDER if name in broken & LEAVES_OPEN)


def internal(topics: Sequence[Topic]) -> Bools:
    """Which topics are Kafka's own, as `__consumer_offsets`. Shape (topics,)."""
    return np.array([topic.internal for topic in topics], dtype=np.bool_)
