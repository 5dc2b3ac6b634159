"""A consumer group in a world: a group coordinator in every broker, and the members that send requests to it.

The coordinator is the product's own. It receives leadership changes and clock ticks as it does in a broker's process. Its
records are appended by its broker with acks=all, so that the partition of `__consumer_offsets` has the same judges as any
other. Its responses are judged by judges/groups.py.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.coordination import Append, CoordinatorEffect, PendingLoads
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
from rackspan.kafka_bytes.error_codes import ErrorCode
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
class RunningCoordinator:
    """The coordinator of one broker's process. `seat` is set while it leads; `effects` run in order, one at a time."""

    machine: Machine
    coordinator: GroupCoordinator
    seat: Seat | None = None
    pending_loads: PendingLoads = field(default_factory=PendingLoads)
    effects: deque[CoordinatorEffect] = field(default_factory=deque)
    busy: bool = False


class Groups(Traffic):
    """One group of two to four members."""

    def __init__(self, world: "Running") -> None:
        super().__init__(world)
        self.rules = GroupRules(world.observer.evidence)
        self._coordinators: dict[BrokerId, RunningCoordinator] = {}
        self._waiting: dict[CorrelationId, tuple[Request, Then]] = {}
        self._appended: dict[CorrelationId, tuple[RunningCoordinator, Append, Produce]] = {}
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
                self._send,
                lambda: self.world.next("value"),
                session_ms=rng.randint(150, 500),
                rebalance_ms=rng.randint(100, 300),
                stop_at=MEMBERS_UNTIL_MS,
            )
            self.world.clock.at(MEMBERS_FROM_MS + index, member.start)

    def _send(self, request: Request, then: Then) -> None:
        broker = self.world.find_leader()
        if broker is not None:
            correlation_id = self.world.next("correlation_id")
            self._waiting[correlation_id] = (request, then)
            self.world.network.send_once(CLIENT, broker, ClientRequest(correlation_id, request))

    # Coordinators.

    def started(self, machine: Machine) -> None:
        rng = Random(f"groups {self.world.seed} {machine.id} {machine.incarnation}")
        self._coordinators[machine.id] = RunningCoordinator(machine, self.world.build.coordinator(SETTINGS, rng))

    def led(self, machine: Machine, change: LeadershipChanged) -> None:
        running = self._coordinators[machine.id]
        if change.leads:
            running.pending_loads.add(0, change.leader_epoch, machine.disk.logs[self.world.partition])
            self._load_ready(running)
        else:
            running.pending_loads.remove(0)
            running.seat = None
            self._carry_out(running, running.coordinator.on_resigned(self.world.clock.now, 0))

    def _load_ready(self, running: RunningCoordinator) -> None:
        log = running.machine.disk.logs.get(self.world.partition)
        if log is None:
            return
        for partition, epoch in running.pending_loads.pop_ready(lambda _: log):
            running.seat = Seat(running.machine.id, running.machine.incarnation, epoch)
            now = self.world.clock.now
            self._carry_out(running, running.coordinator.on_elected(now, partition, epoch, log.batches))

    def ticked(self, machine: Machine) -> None:
        if self.world.clock.now < COORDINATORS_UNTIL_MS:
            running = self._coordinators[machine.id]
            self._load_ready(running)
            self._carry_out(running, running.coordinator.on_tick(self.world.clock.now))

    def received(self, machine: Machine, message: ClientRequest) -> None:
        running, request = self._coordinators[machine.id], message.request
        if isinstance(request, OffsetFetch):
            self._carry_out(running, [Respond(message.correlation_id, running.coordinator.fetch_offsets(request))])
            return
        if isinstance(request, OffsetCommit):
            self._arrives(running, request)
        self._carry_out(running, running.coordinator.on_request(self.world.clock.now, message.correlation_id, request))

    def _arrives(self, running: RunningCoordinator, request: OffsetCommit) -> None:
        for partition, offset in request.offsets.items():
            number = READ.index(partition)
            self.rules.arrives(running.seat, request.member_id, request.generation, number, offset.offset)

    # Effects, in their order: an append that is acknowledged at once may bring others.

    def _carry_out(self, running: RunningCoordinator, effects: Iterable[CoordinatorEffect]) -> None:
        running.effects.extend(effects)
        if running.busy:
            return
        running.busy = True
        while running.effects:
            effect = running.effects.popleft()
            if isinstance(effect, Append):
                self._append(running, effect)
            else:
                self._respond(running, effect)
        running.busy = False

    def _append(self, running: RunningCoordinator, append: Append) -> None:
        """Records are numbered as a producer's are, for the judges of the log; their bytes stay the coordinator's."""
        broker = running.machine.broker
        if broker is None:
            return
        first = self.world.next("record", append.batch.record_count) - append.batch.record_count
        batch = replace(append.batch, max_timestamp=first)
        correlation_id = self.world.next("correlation_id")
        request = Produce(correlation_id, self.world.partition, (batch,), -1, APPEND_MS, internal=True)
        self._appended[correlation_id] = (running, append, request)
        self.world.carry_out(running.machine.id, broker.on_message(self.world.clock.now, CLIENT, request))

    def responded(self, node: NodeId, effect: Respond) -> None:
        waiting = self._appended.pop(effect.correlation_id, None)
        result = effect.response
        if waiting is None or not isinstance(result, ProduceResponse):
            return
        running, append, request = waiting
        self.world.observer.responded(running.machine, request, result)
        now = self.world.clock.now
        self._carry_out(running, running.coordinator.on_appended(now, append.write, result.error, result.base_offset))

    def _respond(self, running: RunningCoordinator, effect: Respond) -> None:
        waiting = self._waiting.pop(effect.correlation_id, None)
        if waiting is None:
            return
        request, then = waiting
        self._judge(running.seat, request, effect.response)
        self.world.to_client(running.machine.id, lambda: then(effect.response))

    # What the judges receive: responses without an error.

    def _judge(self, seat: Seat | None, request: Request, response: object) -> None:
        match request, response:
            case OffsetCommit(), OffsetCommitResponse(errors):
                for partition, error in errors.items():
                    if error is ErrorCode.NONE:
                        self.rules.committed(request.offsets[partition].offset)
            case _ if seat is None:
                return
            case JoinGroup(), JoinGroupResponse(ErrorCode.NONE):
                self.rules.joined(seat, response.member_id, response.generation)
            case SyncGroup(), SyncGroupResponse(ErrorCode.NONE):
                self.rules.synced(seat, request.member_id, request.generation, frozenset(response.assignment))
            case OffsetFetch(), OffsetFetchResponse(ErrorCode.NONE):
                self._judge_fetch(seat, response)

    def _judge_fetch(self, seat: Seat, response: OffsetFetchResponse) -> None:
        for partition, fetched in response.offsets.items():
            if fetched.error is ErrorCode.NONE:
                self.rules.fetched(seat, READ.index(partition), fetched.offset)

    def healed(self) -> None:
        self._healed_at = self.world.observer.evidence.event

    def settled(self) -> None:
        """Fetches every committed offset from the coordinator of the end of the run."""
        leader = self.world.observer.evidence.committed.leader
        running = None if leader is None else self._coordinators[leader]
        if running is not None and running.seat is not None:
            self._judge(
                running.seat, OffsetFetch(GROUP, READ), running.coordinator.fetch_offsets(OffsetFetch(GROUP, READ))
            )
        self.rules.settled(self._healed_at, demanded=self.world.kind.trusted and self._may_write())

    def _may_write(self) -> bool:
        """Whether the ISR of the end meets the thresholds: an operator may have moved too many replicas away."""
        evidence, parameters = self.world.observer.evidence, self.world.parameters
        isr = evidence.committed.isr
        return len(isr) >= parameters.min_insync_replicas and len(evidence.racks_of(isr)) >= parameters.min_insync_racks
