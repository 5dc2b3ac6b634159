"""Whether a set of brokers may stop: the partitions that would suffer, in lists, and the controllers that are left."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from rackspan.audit import ClusterMembers, PartitionBatch, RackPolicy, snapshot_batch
from rackspan.audit.constraints.cluster import WHERE_TO_CORRECT, count_apart
from rackspan.audit.constraints.wording import live_isr
from rackspan.audit.outage import judge_loss, losses_to_judge
from rackspan.errors import UsageError
from rackspan.model import MIN_INSYNC_REPLICAS, Bools, ClusterSnapshot, Int64s
from rackspan.restart.lists import Suffering, SufferingLists, SufferingPartition
from rackspan.restart.stopping import BlockOn, InSyncRows, StopPolicy, in_sync_rows, touched
from rackspan.text import noun_and_ids

_NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class VotersLeft:
    """The controller quorum while brokers are stopped. `stopped`: voters in the processes of these brokers."""

    voters: int
    left: int
    stopped: tuple[int, ...]

    @property
    def majority(self) -> int:
        return self.voters // 2 + 1

    @property
    def holds(self) -> bool:
        return self.left >= self.majority


@dataclass(frozen=True, slots=True)
class StopJudgement:
    """The effect of a stop on each partition that suffers, in one list each, the gravest that applies.

    `without_margin`: their replication factor allows none. `accepted`: what would block, of topics that may suffer. `already`: harmed now, and not worse without the
    brokers. `partial`: what could not be read and decides. `controllers`: None if the snapshot lists no voter. `all_down`: every
    broker is fenced, and in the process of no voter that is alive.
    """

    brokers: tuple[int, ...]
    policy: StopPolicy
    loses_leader: Suffering
    refuses_writes: Suffering
    one_copy: Suffering
    single_replica: Suffering
    below_margin: Suffering
    without_margin: Suffering
    accepted: Suffering
    already: Suffering
    controllers: VotersLeft | None
    partial: tuple[str, ...]
    all_down: bool = False

    @property
    def blocking(self) -> Suffering:
        """The partitions that forbid the stop."""
        return (
            *self.loses_leader,
            *self.refuses_writes,
            *(self.one_copy if BlockOn.ONE_COPY in self.policy.block_on else ()),
            *(self.single_replica if BlockOn.RF1 in self.policy.block_on else ()),
            *self.below_margin,
        )

    @property
    def safe(self) -> bool:
        """Whether they may stop. What could not be read may suffer, so nothing is safe then.

        Without a majority no leader is elected, so that nothing may stop that is up.
        """
        quorum_holds = self.controllers is None or self.controllers.holds or self.all_down
        return quorum_holds and not self.blocking and not self.partial


def judge_stop(
    snapshot: ClusterSnapshot, brokers: Collection[int], policy: RackPolicy, stop: StopPolicy = StopPolicy()
) -> StopJudgement:
    """Judge the stop of these brokers together. Errors: UsageError for a broker that the cluster does not list."""
    batch = snapshot_batch(snapshot, policy).judged
    stopped = marked(batch.members, brokers)
    rows = in_sync_rows(batch, stop)
    reached = rows.take(touched(rows, stopped))
    lists = SufferingLists(batch, reached, stopped)
    harmed_already = judge_loss(batch, frozenset()).harmed
    worse = np.zeros(len(batch.rows), dtype=np.bool_)
    worse[lists.partitions_suffering] = True
    fenced = {int(broker.id) for broker in snapshot.brokers if broker.fenced}
    quorum = voters_left(batch.members, brokers)
    return StopJudgement(
        brokers=tuple(sorted(brokers)),
        policy=stop,
        loses_leader=lists.loses_leader(),
        refuses_writes=lists.refuses_writes(),
        one_copy=lists.one_copy(),
        single_replica=lists.single_replica(),
        below_margin=lists.below_margin(),
        without_margin=lists.without_margin(),
        accepted=lists.accepted(),
        already=tuple(_already(batch, np.flatnonzero(harmed_already & ~worse))),
        controllers=quorum,
        partial=(
            *snapshot.unread,
            *unknown_minimums(snapshot, batch, reached),
            *unknown_racks(batch.members, reached),
            *unknown_controllers(batch.members),
        ),
        all_down=fenced.issuperset(brokers) and batch.members.dead_voters.issuperset(quorum.stopped if quorum else ()),
    )


def brokers_in_racks(snapshot: ClusterSnapshot, racks: tuple[str, ...], policy: RackPolicy) -> frozenset[int]:
    """The brokers of the named racks. Errors: UsageError for a rack that the cluster does not have, or that may have another name too."""
    members = ClusterMembers(snapshot.brokers, snapshot.controllers, policy)
    rack_map = members.rack_map
    ((*chosen,),) = losses_to_judge(rack_map.racks, racks, pairs=False)
    for group in members.racks_alike:
        if not set(chosen).isdisjoint(group.names) and not set(chosen).issuperset(group.names):
            raise UsageError(
                f"which brokers are in it is not certain: {count_apart(group)}; name the brokers, or all of these racks"
            )
    codes = [rack_map.racks.index(rack) for rack in chosen]
    return frozenset(rack_map.broker_ids[np.isin(rack_map.rack_codes, codes)].tolist())


def marked(members: ClusterMembers, brokers: Collection[int]) -> Bools:
    """Which broker indices are among `brokers`; a last False is read by index −1. Errors: UsageError for an unlisted one."""
    known = members.rack_map.broker_ids
    for broker in sorted(brokers):
        if broker not in known:
            listed = ", ".join(map(str, known.tolist()))
            raise UsageError(f"broker {broker}: not in this cluster; it has {listed}")
    return np.append(np.isin(known, list(brokers)), False)


def voters_left(members: ClusterMembers, brokers: Collection[int]) -> VotersLeft | None:
    """The voters without those of the brokers, a broker and a controller of one id being one process."""
    voters = members.voter_racks
    if not voters:
        return None
    stopped = tuple(sorted(set(brokers) & voters.keys()))
    return VotersLeft(len(voters), len(voters.keys() - set(stopped) - members.dead_voters), stopped)


def unknown_controllers(members: ClusterMembers) -> Iterator[str]:
    """A line if the policy requires controllers and the snapshot lists no voter."""
    if members.policy.require_controllers and not members.voter_racks:
        yield "controllers: none is in the snapshot, and they are required"


def unknown_minimums(snapshot: ClusterSnapshot, batch: PartitionBatch, rows: InSyncRows) -> Iterator[str]:
    """A line on topics of these rows whose min.insync.replicas is not in the snapshot: it may be anything."""
    # Of a single replica brokers require one, whatever the value.
    codes = np.unique(batch.rows.topic[rows.row[~rows.accepted & (rows.replicas > 1)]]).tolist()
    unknown = [snapshot.topics[code].name for code in codes if MIN_INSYNC_REPLICAS not in snapshot.topics[code].config]
    # A live snapshot has reported it already, with the missing right.
    if unknown and not any(note.startswith(MIN_INSYNC_REPLICAS) for note in snapshot.partial):
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        yield f"{MIN_INSYNC_REPLICAS} of {', '.join(unknown[:_NAMED])}{more}: not in the snapshot; take it with rackspan snapshot"


def unknown_racks(members: ClusterMembers, rows: InSyncRows, *, by_rack: bool = False) -> Iterator[str]:
    """A line for racks that may be fewer than they count as, where that decides: one at a time, or min.insync.racks of these rows."""
    if by_rack or bool(((rows.min_racks > 1) & ~rows.accepted).any()):
        for group in members.racks_alike:
            yield f"which racks there are: {count_apart(group)}; {WHERE_TO_CORRECT}"


def _already(batch: PartitionBatch, found: Int64s) -> Iterator[SufferingPartition]:
    now = judge_loss(batch.take(found), frozenset())
    for index, row in enumerate(found.tolist()):
        in_sync = [*live_isr(batch, row), *batch.rows.isr[row][batch.isr_hidden[row]].tolist()]
        isr = noun_and_ids("broker", in_sync) if in_sync else "no broker"
        if now.offline[index]:
            reason = f"it has no leader now; in sync: {isr}"
        elif now.under_min_isr[index]:
            reason = f"{isr} in sync now, min.insync.replicas requires {batch.min_isr[row]}"
        else:
            reason = f"{isr} in sync now, min.insync.racks requires {batch.required.min_insync_racks[row]}"
        yield SufferingPartition(batch.topic(row), int(batch.rows.partition[row]), reason)
