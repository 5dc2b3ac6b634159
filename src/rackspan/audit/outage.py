"""The loss of racks: which partitions go offline, which refuse acks=all, and which brokers take over leaderships.

A broker that counts in no rack (`--unracked ignore`) may be in any, so it is lost with each. A partition that is being
reassigned is judged in its present state, and by its target as `after_reassignment`.

A loss stops every broker of the racks at once. Leaders are then elected as Kafka does it: the first replica in assignment
order that is in sync and alive leads. Without a majority of controllers no leader is elected at all.

A rack is down if every broker that counts in it is fenced, or, if no broker counts in it, every voter of it is dead. What its loss would
do to partitions is the present. A broker that the cluster does not list has no known rack, so that it makes none of them down.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set, Sized
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch, effective_min_isr, under_minimum
from rackspan.audit.policy import Survive
from rackspan.audit.quorum import QuorumAfter, quorum_without
from rackspan.errors import UsageError
from rackspan.model import (
    NO_BROKER,
    NO_RACK,
    Bools,
    Int32s,
    Int64s,
    RackId,
    any_in_row,
    count_in_row,
    distinct_racks,
    shown,
)
from rackspan.model.ids import UNKNOWN_LEADER
from rackspan.text import count_noun, noun_and_ids

LOSSES_MAX = 2_000
"""More losses than an operator reads. Pairs of a thousand racks are refused before they run for hours."""


@dataclass(frozen=True, slots=True)
class LossByPartition:
    """The state of each partition of a batch after a loss. Masks of shape (P,).

    `offline`: no leader. Of those, `needs_unclean_election`: a replica that was not in sync is alive, and electing it
    would lose records. `under_min_isr` and `under_min_racks`: online, but acks=all is refused by that threshold.
    `leader_moves_to`: index of the broker that takes over leadership, −1 where nothing moves.
    """

    offline: Bools
    needs_unclean_election: Bools
    under_min_isr: Bools
    under_min_racks: Bools
    leader_moves_to: Int32s

    @property
    def harmed(self) -> Bools:
        return np.asarray(self.offline | self.under_min_isr | self.under_min_racks)


STATES: Final = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks")
"""The states of partitions after a loss."""

AFTER_REASSIGNMENT: Final = "after_reassignment"
"""Partitions in none of these states, which are in one once their reassignment has ended."""

LOST: Final = "lost"
"""The outcome of a loss that has happened."""

LOST_IN_PART: Final = "lost, but for its controllers"
"""The outcome of the loss of a rack that is down, but for its controllers, or for controllers of unknown rack that the majority needs."""


def already_harmed_heading(lost_racks: Sized) -> str:
    """The heading of what is harmed now: where a rack is down, that may be the reason."""
    return "Already harmed" if lost_racks else "Already harmed, with no rack lost"


@dataclass(frozen=True, slots=True)
class TopicHarm:
    """How many partitions of one topic a loss puts into each state. `survive`: the loss that the topic has to survive.

    `after_reassignment`: partitions without harm now, which would be offline or refuse acks=all once their reassignment
    has ended.
    """

    topic: str
    internal: bool
    survive: Survive
    offline: int
    needs_unclean_election: int
    under_min_isr: int
    under_min_racks: int
    after_reassignment: int = 0


@dataclass(frozen=True, slots=True)
class RackLoss:
    """The effect of losing `racks`. `leader_surge`: leaderships that each surviving broker takes over, by broker id.

    `lost`: the racks are down already, so that all of the effect on partitions is there. `quorum_required`: the policy has a topic that must survive the loss of a rack, and so the quorum must. `controllers_required`:
    it must be known, too.
    """

    racks: tuple[RackId, ...]
    topics: tuple[TopicHarm, ...]
    leader_surge: dict[int, int]
    quorum: QuorumAfter | None
    quorum_required: bool
    controllers_required: bool = False
    lost: bool = False

    @property
    def happened(self) -> bool:
        """Whether nothing more would stop: the racks are down, and no majority needs controllers that are, or may be, left in them."""
        return self.lost and (
            self.quorum is None or self.quorum.certain or not (self.controllers_left or self.quorum.doubtful)
        )

    @property
    def controllers_left(self) -> bool:
        """Whether controllers of the racks are not known to be dead."""
        return self.quorum is not None and set(self.quorum.lost) != set(self.quorum.dead)

    @property
    def quorum_lost(self) -> bool:
        return self.quorum is not None and not self.quorum.holds

    @property
    def quorum_certain(self) -> bool:
        """Whether the controllers keep a majority wherever those of unknown rack are. If no voter is listed, the policy decides."""
        return not self.controllers_required if self.quorum is None else self.quorum.certain

    @property
    def survived(self) -> bool:
        """Whether nothing is offline or refuses acks=all, and the controllers are certain to have a majority."""
        return not self.topics and self.quorum_certain

    @property
    def harms_required(self) -> bool:
        """Whether something that must survive the loss of a rack does not, for certain: a partition, or the majority of the controllers."""
        harmed = any(topic.survive is Survive.RACK for topic in self.topics)
        return harmed or (self.quorum_lost and self.quorum_required)

    @property
    def as_required(self) -> bool:
        """Whether everything that must survive the loss of a rack does: what the policy leaves out may be harmed."""
        return not self.harms_required and (self.quorum_certain or not self.quorum_required)

    def total(self, state: str) -> int:
        return sum(getattr(topic, state) for topic in self.topics)


@dataclass(frozen=True, slots=True)
class LostRack:
    """A rack that is down. `brokers` are fenced and `controllers` dead; `controllers_left` are its voters that are not known to be dead.

    `partitions` have a replica in it, which is missing, but for replicas that a reassignment is removing.
    """

    rack: RackId
    brokers: tuple[int, ...]
    controllers: tuple[int, ...]
    controllers_left: tuple[int, ...]
    partitions: int

    @property
    def reason(self) -> str:
        """`rack b is down: brokers 2,5, controller 2; 21 partitions lack a replica`."""
        down = [
            noun_and_ids(noun, ids) for noun, ids in (("broker", self.brokers), ("controller", self.controllers)) if ids
        ]
        left = f", but not {noun_and_ids('controller', self.controllers_left)}" if self.controllers_left else ""
        lack = "lacks" if self.partitions == 1 else "lack"
        return (
            f"rack {shown(self.rack)} is down: {', '.join(down)}{left}; "
            f"{count_noun(self.partitions, 'partition', ',')} {lack} a replica"
        )


def lost_racks(batch: PartitionBatch) -> tuple[LostRack, ...]:
    """The racks that are down, by name. The batch has the partitions that are counted."""
    members = batch.members
    rack_map = members.rack_map

    def lost(rack: RackId) -> LostRack:
        code = rack_map.racks.index(rack) if rack in rack_map.racks else None
        brokers = () if code is None else tuple(rack_map.broker_ids[rack_map.rack_codes == code].tolist())
        voters = sorted(voter for voter, of in members.voter_racks.items() if of == rack)
        return LostRack(
            rack=rack,
            brokers=brokers,
            controllers=tuple(voter for voter in voters if voter in members.dead_voters),
            controllers_left=tuple(voter for voter in voters if voter not in members.dead_voters),
            partitions=0 if code is None else int(np.count_nonzero(any_in_row(batch.replica_racks == code))),
        )

    return tuple(lost(rack) for rack in members.racks_down)


def losses_to_judge(racks: Iterable[RackId], named: tuple[str, ...] | None, pairs: bool) -> list[tuple[RackId, ...]]:
    """Each rack, each pair, or the one loss that is named. Errors: UsageError for a rack the cluster does not have.

    `named`: names, or several of them separated by commas. A name may have commas: the longest that is a rack counts.
    """
    known = sorted(racks)
    if named is not None:
        by_shown = {shown(rack): rack for rack in known}
        return [tuple(sorted({rack for text in named for rack in _listed_racks(text, by_shown)}))]
    losses: list[tuple[RackId, ...]] = list(combinations(known, 2)) if pairs else [(rack,) for rack in known]
    if len(losses) > LOSSES_MAX:
        raise UsageError(f"{len(losses)} losses to judge; name the ones you mean with --lose RACK,RACK")
    return losses


def _listed_racks(text: str, by_shown: Mapping[str, RackId]) -> Iterator[RackId]:
    parts, at = text.split(","), 0
    while at < len(parts):
        ends = (end for end in range(len(parts), at, -1) if ",".join(parts[at:end]) in by_shown)
        if (end := next(ends, None)) is None:
            raise UsageError(f"rack {parts[at]!r}: not in this cluster; it has {', '.join(by_shown) or 'no racks'}")
        yield by_shown[",".join(parts[at:end])]
        at = end


def losses_each_rack(members: ClusterMembers) -> list[tuple[RackId, ...]]:
    """First no rack at all, which shows what is harmed already, then each rack by itself."""
    return [(), *((rack,) for rack in members.failure_racks)]


def judge_loss(batch: PartitionBatch, lost_racks: Set[RackId]) -> LossByPartition:
    """The state of every partition of a batch after a loss. Cost: a few passes over the replica columns."""
    alive = _alive_after(batch, lost_racks)
    quorum = quorum_without(batch.members, lost_racks)
    isr_alive = alive[batch.isr_index] & batch.isr_up
    if not lost_racks:
        # With a rack it may be lost, since its own is not known.
        isr_alive |= batch.isr_hidden
    leader_known = batch.rows.leader != UNKNOWN_LEADER
    leader_alive = alive[batch.leader_index] | ~leader_known
    in_sync = count_in_row(isr_alive)
    any_in_sync = in_sync > 0
    electable = any_in_sync if quorum is None or quorum.holds else leader_alive & (leader_known | any_in_sync)
    online = (batch.rows.leader != NO_BROKER) & electable
    racks_left = _racks_left(batch, batch.isr_racks, isr_alive)
    under_isr, under_racks = under_minimum(in_sync, racks_left, batch.min_isr, batch.required.min_insync_racks)
    unclean = ~online & ~any_in_sync
    unclean[unclean] = any_in_row(alive[batch.replica_index[unclean]] & ~batch.on_failed_log_dir[unclean])
    leader_moves_to = np.full(len(batch.rows), -1, dtype=np.int32)
    moved = np.flatnonzero(online & ~leader_alive)
    leader_moves_to[moved] = first_electable(batch.replica_index[moved], batch.isr_index[moved], alive)
    return LossByPartition(
        offline=~online,
        needs_unclean_election=unclean,
        under_min_isr=online & under_isr,
        under_min_racks=online & under_racks,
        leader_moves_to=leader_moves_to,
    )


def harmed_by_target(batch: PartitionBatch, lost_racks: Set[RackId]) -> Bools:
    """The partitions being reassigned that a loss would harm once that has ended, all of their target in sync that can be. Shape (P,)."""
    stands = _standing(batch.members, lost_racks)[batch.replica_index]
    left = batch.staying & (batch.replica_index >= 0) & stands & ~batch.on_failed_log_dir
    in_sync = count_in_row(left)
    min_isr = effective_min_isr(batch.required.min_insync_replicas, batch.replication_factor)
    racks_left = _racks_left(batch, batch.replica_racks, left)
    under_isr, under_racks = under_minimum(in_sync, racks_left, min_isr, batch.required.min_insync_racks)
    return np.asarray(batch.reassigning & ((in_sync == 0) | under_isr | under_racks))


def _racks_left(batch: PartitionBatch, rack_codes: Int32s, left: Bools) -> Int64s:
    """The number of racks of the replicas that are left. Where no partition requires racks in sync none are counted. Shape (P,)."""
    if not bool((batch.required.min_insync_racks > 1).any()):
        return np.zeros(len(batch.rows), dtype=np.int64)
    return distinct_racks(np.where(left, rack_codes, np.int32(NO_RACK)))


def judge_losses(
    batch: PartitionBatch, internal: Bools, losses: Iterable[tuple[RackId, ...]], *, targets: bool = False
) -> list[RackLoss]:
    """The effect of each loss. `internal` (topics,): whether Kafka itself owns the topic.

    `targets`: judge reassignments in flight by their targets too. What has been stored of the past has its present only.
    """
    return [_summed(batch, internal, racks, targets=targets) for racks in losses]


def joined_loss(parts: Sequence[RackLoss]) -> RackLoss:
    """The effect of one loss on a whole cluster, from its effect on parts with different topics."""
    surge: Counter[int] = Counter()
    for part in parts:
        surge.update(part.leader_surge)
    return replace(parts[0], topics=tuple(topic for part in parts for topic in part.topics), leader_surge=dict(surge))


def _standing(members: ClusterMembers, lost_racks: Set[RackId]) -> Bools:
    """Which broker indices are outside the lost racks for certain; index −1 (no broker, or an unknown one) is."""
    rack_map = members.rack_map
    # The last entry is that of NO_RACK, a broker that counts in none.
    lost = np.array([*(rack in lost_racks for rack in rack_map.racks), bool(lost_racks)], dtype=np.bool_)
    return np.append(~lost[rack_map.rack_codes], True)


def _alive_after(batch: PartitionBatch, lost_racks: Set[RackId]) -> Bools:
    """Which broker indices are alive; index −1 (no broker, or an unknown one) is not."""
    return np.asarray(batch.members.usable & _standing(batch.members, lost_racks))


def first_electable(replica_index: Int32s, isr_index: Int32s, alive: Bools) -> Int32s:
    """The new leaders as Kafka elects them: the first replica in assignment order that is alive and in sync.

    Arguments: broker indices (P, width). Result: broker indices (P,), −1 for none.
    """
    chosen = np.full(len(replica_index), -1, dtype=np.int32)
    for candidate in replica_index.T[::-1]:
        in_sync = any_in_row(isr_index == candidate[:, None])
        chosen = np.where(in_sync & alive[candidate], candidate, chosen)
    return chosen


def _summed(batch: PartitionBatch, internal: Bools, racks: tuple[RackId, ...], *, targets: bool) -> RackLoss:
    by_partition = judge_loss(batch, frozenset(racks))
    after = np.zeros(len(batch.rows), dtype=np.bool_)
    if racks and targets and bool(batch.reassigning.any()):
        after = harmed_by_target(batch, frozenset(racks)) & ~by_partition.harmed
    return RackLoss(
        racks=racks,
        topics=tuple(_by_topic(batch, internal, by_partition, after)),
        leader_surge=_surge(batch, by_partition.leader_moves_to),
        quorum=quorum_without(batch.members, frozenset(racks)),
        quorum_required=batch.members.policy.requires(Survive.RACK),
        controllers_required=batch.members.policy.require_controllers,
        lost=bool(racks) and set(racks) <= set(batch.members.racks_down),
    )


def _by_topic(batch: PartitionBatch, internal: Bools, loss: LossByPartition, after: Bools) -> Iterable[TopicHarm]:
    def per_topic(mask: Bools) -> Int64s:
        return np.bincount(batch.rows.topic[mask], minlength=len(batch.topics))

    counts = [per_topic(mask) for mask in (*(getattr(loss, state) for state in STATES), after)]
    codes = np.flatnonzero(sum(counts))
    # As lists: one value of an array at a time takes longer than all of them at once.
    for code, of_internal, *of_topic in zip(
        codes.tolist(), internal[codes].tolist(), *(count[codes].tolist() for count in counts), strict=True
    ):
        topic = batch.topics[code]
        yield TopicHarm(topic, of_internal, batch.members.policy.survive_of(topic), *of_topic)


def _surge(batch: PartitionBatch, leader_moves_to: Int32s) -> dict[int, int]:
    ids = batch.members.rack_map.broker_ids
    gained = np.bincount(leader_moves_to[leader_moves_to >= 0], minlength=len(ids))
    return {int(ids[index]): int(gained[index]) for index in np.flatnonzero(gained).tolist()}
