"""A group in a world: a coordinator beside every broker, its writes a produce like any other, and members that ask it.

The coordinator is the product's own. It is told of leaderships and time as a broker's process would tell it; what it
writes goes through its broker's door with acks=all, so that the partition of `__consumer_offsets` is under the same
judges as any other, and its answers are under judges/groups.py.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.coordination import Append, CoordinatorEffect, PendingLoads
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import (
    JoinGroup,
    JoinGroupResponse,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetFetch,
    OffsetFetchResponse,
    SyncGroup,
    SyncGroupResponse,
)
from rackspan.cluster.core.ids import CLIENT, CorrelationId, NodeId
from rackspan.cluster.core.messages import LeadershipChanged, Produce, ProduceResponse, Respond
from rackspan.model.ids import BrokerId
from tests.simulation.clients.request import ClientRequest, Request, Then
from tests.simulation.clients.traffic import Traffic
from tests.simulation.environment.machine import Machine
from tests.simulation.environment.parameters import FAULTS_MS
from tests.simulation.groups.member import GROUP, READ, Member
from tests.simulation.judges.groups import GroupRules, Seat

if TYPE_CHECKING:
    from tests.simulation.world import Running

SETTINGS: Final = GroupSettings(group_min_session_timeout_ms=50, offsets_topic_num_partitions=1)
MEMBERS_FROM_MS: Final = 280
MEMBERS_UNTIL_MS: Final = FAULTS_MS + 1_500
COORDINATORS_UNTIL_MS: Final = MEMBERS_UNTIL_MS + 400
"""Then no session ends any more, so that the logs can become equal."""

APPEND_MS: Final = 600
"""Kafka's offsets.commit.timeout.ms, as short as the rest of a world."""


@dataclass(slots=True)
class Desk:
    """One broker process's coordinator. `seat` once it leads; `effects` are carried out in order, one at a time."""

    machine: Machine
    coordinator: GroupCoordinator
    seat: Seat | None = None
    offices: PendingLoads = field(default_factory=PendingLoads)
    effects: deque[CoordinatorEffect] = field(default_factory=deque)
    busy: bool = False


class Groups(Traffic):
    """One group of two to four members."""

    def __init__(self, world: "Running") -> None:
        super().__init__(world)
        self.rules = GroupRules(world.observer.evidence)
        self._desks: dict[BrokerId, Desk] = {}
        self._asked: dict[CorrelationId, tuple[Request, Then]] = {}
        self._appended: dict[CorrelationId, tuple[Desk, Append, Produce]] = {}
        self._healed_at = 0

    @property
    def acknowledged(self) -> int:  # type: ignore[override]
        return self.rules.count

    # Members.

    def start(self) -> None:
        rng = self.world.rng.clients
        for index in range(rng.randint(2, 4)):
            member = Member(
                f"m{index}",
                self.world.clock,
                rng,
                self._ask,
                lambda: self.world.next("value"),
                session_ms=rng.randint(150, 500),
                rebalance_ms=rng.randint(100, 300),
                stop_at=MEMBERS_UNTIL_MS,
            )
            self.world.clock.at(MEMBERS_FROM_MS + index, member.start)

    def _ask(self, request: Request, then: Then) -> None:
        broker = self.world.find_leader()
        if broker is not None:
            correlation_id = self.world.next("correlation_id")
            self._asked[correlation_id] = (request, then)
            self.world.network.send_once(CLIENT, broker, ClientRequest(correlation_id, request))

    # Coordinators.

    def started(self, machine: Machine) -> None:
        rng = Random(f"groups {self.world.seed} {machine.id} {machine.incarnation}")
        self._desks[machine.id] = Desk(machine, self.world.build.coordinator(SETTINGS, rng))

    def led(self, machine: Machine, change: LeadershipChanged) -> None:
        desk = self._desks[machine.id]
        if change.leads:
            desk.offices.add(0, change.leader_epoch, machine.disk.logs[self.world.partition])
            self._take_office(desk)
        else:
            desk.offices.remove(0)
            desk.seat = None
            self._carry_out(desk, desk.coordinator.on_resigned(self.world.clock.now, 0))

    def _take_office(self, desk: Desk) -> None:
        log = desk.machine.disk.logs.get(self.world.partition)
        if log is None:
            return
        for partition, epoch in desk.offices.pop_ready(lambda _: log):
            desk.seat = Seat(desk.machine.id, desk.machine.incarnation, epoch)
            now = self.world.clock.now
            self._carry_out(desk, desk.coordinator.on_elected(now, partition, epoch, log.batches))

    def ticked(self, machine: Machine) -> None:
        if self.world.clock.now < COORDINATORS_UNTIL_MS:
            desk = self._desks[machine.id]
            self._take_office(desk)
            self._carry_out(desk, desk.coordinator.on_tick(self.world.clock.now))

    def took(self, machine: Machine, ask: ClientRequest) -> None:
        desk, request = self._desks[machine.id], ask.request
        if isinstance(request, OffsetFetch):
            self._carry_out(desk, [Respond(ask.correlation_id, desk.coordinator.fetch_offsets(request))])
            return
        if isinstance(request, OffsetCommit):
            self._arrives(desk, request)
        self._carry_out(desk, desk.coordinator.on_request(self.world.clock.now, ask.correlation_id, request))

    def _arrives(self, desk: Desk, request: OffsetCommit) -> None:
        for partition, offset in request.offsets.items():
            number = READ.index(partition)
            self.rules.arrives(desk.seat, request.member_id, request.generation, number, offset.offset)

    # Effects, in their order: an append that is answered at once may bring others.

    def _carry_out(self, desk: Desk, effects: Iterable[CoordinatorEffect]) -> None:
        desk.effects.extend(effects)
        if desk.busy:
            return
        desk.busy = True
        while desk.effects:
            effect = desk.effects.popleft()
            if isinstance(effect, Append):
                self._append(desk, effect)
            else:
                self._answer(desk, effect)
        desk.busy = False

    def _append(self, desk: Desk, append: Append) -> None:
        """Records are numbered as a producer's are, for the judges of the log; their bytes stay the coordinator's."""
        broker = desk.machine.broker
        if broker is None:
            return
        first = self.world.next("record", append.batch.record_count) - append.batch.record_count
        batch = replace(append.batch, max_timestamp=first)
        correlation_id = self.world.next("correlation_id")
        request = Produce(correlation_id, self.world.partition, (batch,), -1, APPEND_MS, internal=True)
        self._appended[correlation_id] = (desk, append, request)
        self.world.carry_out(desk.machine.id, broker.on_message(self.world.clock.now, CLIENT, request))

    def replied(self, node: NodeId, reply: Respond) -> None:
        waiting = self._appended.pop(reply.correlation_id, None)
        result = reply.response
        if waiting is None or not isinstance(result, ProduceResponse):
            return
        desk, append, request = waiting
        self.world.observer.answered(desk.machine, request, result)
        now = self.world.clock.now
        self._carry_out(desk, desk.coordinator.on_appended(now, append.write, result.error, result.base_offset))

    def _answer(self, desk: Desk, answer: Respond) -> None:
        asked = self._asked.pop(answer.correlation_id, None)
        if asked is None:
            return
        request, then = asked
        self._judge(desk.seat, request, answer.response)
        self.world.to_client(desk.machine.id, lambda: then(answer.response))

    # What the judges are told: good news alone.

    def _judge(self, seat: Seat | None, request: Request, answer: object) -> None:
        match request, answer:
            case OffsetCommit(), OffsetCommitResponse(errors):
                for partition, error in errors.items():
                    if error is KafkaError.NONE:
                        self.rules.committed(request.offsets[partition].offset)
            case _ if seat is None:
                return
            case JoinGroup(), JoinGroupResponse(KafkaError.NONE):
                self.rules.joined(seat, answer.member_id, answer.generation)
            case SyncGroup(), SyncGroupResponse(KafkaError.NONE):
                self.rules.synced(seat, request.member_id, request.generation, frozenset(answer.assignment))
            case OffsetFetch(), OffsetFetchResponse(KafkaError.NONE):
                self._judge_fetch(seat, answer)

    def _judge_fetch(self, seat: Seat, answer: OffsetFetchResponse) -> None:
        for partition, fetched in answer.offsets.items():
            if fetched.error is KafkaError.NONE:
                self.rules.fetched(seat, READ.index(partition), fetched.offset)

    def healed(self) -> None:
        self._healed_at = self.world.observer.evidence.event

    def settled(self) -> None:
        """Whoever coordinates in the end is asked for all that was committed."""
        leader = self.world.observer.evidence.committed.leader
        desk = None if leader is None else self._desks[leader]
        if desk is not None and desk.seat is not None:
            self._judge(desk.seat, OffsetFetch(GROUP, READ), desk.coordinator.fetch_offsets(OffsetFetch(GROUP, READ)))
        self.rules.settled(self._healed_at, demanded=self.world.kind.trusted and self._may_write())

    def _may_write(self) -> bool:
        """Whether what is in sync in the end meets what is asked: an operator may have moved too much away."""
        evidence, parameters = self.world.observer.evidence, self.world.parameters
        isr = evidence.committed.isr
        return len(isr) >= parameters.min_insync_replicas and len(evidence.racks_of(isr)) >= parameters.min_insync_racks
