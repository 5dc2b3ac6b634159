"""Applications with transactional producers, readers, and a client that fetches the group's offsets, in one world.

An application runs one incarnation after another under its transactional id, now and then two at once: the older one is
a zombie then, which may wake up late and must not commit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

from rackspan.cluster.core.broker import ClientFetch, Isolation, ReadResponse
from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.groups.requests import OffsetFetch, OffsetFetchResponse
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.messages import Message, Produce, ProduceResponse, Respond, SendRequest
from rackspan.cluster.core.process import BrokerProcess
from rackspan.cluster.core.transactions import TransactionSettings
from rackspan.cluster.core.transactions.requests import EndTransaction, InitProducerId, InitProducerIdResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.simulation.clients.request import ClientRequest
from tests.simulation.clients.traffic import Traffic
from tests.simulation.environment.machine import Machine
from tests.simulation.environment.parameters import FAULTS_MS
from tests.simulation.judges.transactions import Incarnation, TransactionRules
from tests.simulation.transactions.fetches import WaitingFetches
from tests.simulation.transactions.process import SimulatedProcess
from tests.simulation.transactions.producer import GROUP, INPUT, TransactionalProducer
from tests.simulation.transactions.reader import Reader
from tests.simulation.transactions.script import RequestStep, Script, Steps, Wait

if TYPE_CHECKING:
    from tests.simulation.world import Running

GROUPS: Final = GroupSettings(offsets_topic_num_partitions=1)
TRANSACTIONS: Final = TransactionSettings(transaction_state_log_num_partitions=1, marker_retry_ms=40)

MARKERS_LOST: Final = 0.03
MARKERS_LATE: Final = 0.1
"""Shares of the markers that are lost, and that come twice."""

CLIENTS_FROM_MS: Final = 280
PRODUCERS_UNTIL_MS: Final = FAULTS_MS + 2_000
"""No transaction begins later."""
READERS_UNTIL_MS: Final = FAULTS_MS + 4_200


@dataclass(slots=True)
class _Waiting:
    """A request that has no response yet: a client's with its `incarnation`, if a producer's, or a broker's process's."""

    request: Any
    respond: Callable[[Any], None]
    incarnation: Incarnation | None = None
    source: NodeId = CLIENT


class Transactions(Traffic):
    """One to three applications, two readers of committed data, one of all, one of the group's offsets."""

    def __init__(self, world: "Running") -> None:
        super().__init__(world)
        self.state, self.offsets, *orders = world.partitions
        self.orders = tuple(orders)
        self.rules = TransactionRules(world.observer.evidence)
        self._fetches = WaitingFetches(world.clock, self.rules, self._read)
        self._waiting: dict[CorrelationId, _Waiting] = {}
        self._markers: dict[CorrelationId, list[Produce]] = {}
        """Each copy of a marker that has arrived."""
        self._healed_at = 0

    @property
    def acknowledged(self) -> int:  # type: ignore[override]
        return self.rules.count

    # Clients.

    def start(self) -> None:
        rng = self.world.rng.clients
        for number in range(rng.randint(1, 3)):
            transactional_id = f"app-{number}"
            timeout_ms = rng.randint(200, 900)
            self.world.clock.at(CLIENTS_FROM_MS + number, partial(self._start_producer, transactional_id, timeout_ms))
        racks = sorted({machine.rack or RackId("") for machine in self.world.machines.values()})
        for number, isolation in enumerate((*[Isolation.READ_COMMITTED] * 2, Isolation.READ_UNCOMMITTED)):
            reader = Reader(
                number,
                isolation,
                None if number == 0 else rng.choice(racks),
                self.orders,
                self.world.clock,
                rng,
                self.rules,
                READERS_UNTIL_MS,
            )
            self._run(CLIENTS_FROM_MS, reader.steps())
        self._run(CLIENTS_FROM_MS, self._fetch_offsets())

    def _run(self, at_ms: int, steps: Steps, incarnation: Incarnation | None = None) -> Script:
        script = Script(
            self.world.clock,
            self.world.rng.clients,
            steps,
            lambda step, then: self._send(step, then, incarnation),
        )
        self.world.clock.at(at_ms, script.resume)
        return script

    def _start_producer(self, transactional_id: str, timeout_ms: int) -> None:
        world, rng = self.world, self.world.rng.clients
        if world.clock.now >= PRODUCERS_UNTIL_MS:
            return
        incarnation = self.rules.incarnation(transactional_id)

        def restart_once() -> None:
            if self.rules.is_newest(incarnation):
                world.clock.after(rng.randint(1, 150), lambda: self._start_producer(transactional_id, timeout_ms))

        producer = TransactionalProducer(
            incarnation,
            world.kind.transaction_version,
            world.clock,
            rng,
            self.rules,
            self.orders,
            self.state,
            self.offsets,
            timeout_ms,
            PRODUCERS_UNTIL_MS,
            world.next,
            lambda partition, records: world.observers[partition].rules.idempotent.update(records),
            restart_once,
        )
        script = self._run(world.clock.now, producer.steps(), incarnation)
        if rng.random() < 0.5:
            # Another incarnation begins while this one is at work, or asleep.
            world.clock.after(rng.randint(150, 1_500), lambda: self._replace(script, restart_once))

    def _replace(self, script: Script, restart: Callable[[], None]) -> None:
        if self.world.clock.now >= FAULTS_MS:
            return
        if self.world.rng.clients.random() < 0.7:
            script.pause(self.world.rng.clients.randint(50, 900))
        restart()

    def _fetch_offsets(self) -> Steps:
        while self.world.clock.now < READERS_UNTIL_MS:
            yield RequestStep(self.offsets, OffsetFetch(GROUP))
            yield Wait(self.world.rng.clients.randint(20, 150))

    def _send(self, step: RequestStep, then: Callable[[object], None], incarnation: Incarnation | None) -> bool:
        broker = self.world.find_leader(step.partition) if step.broker is None else step.broker
        if broker is None:
            return False
        message: Produce | ClientRequest
        if isinstance(step.request, Produce):
            message = step.request
        else:
            message = ClientRequest(self.world.next("correlation_id"), step.request)
        self._waiting[message.correlation_id] = _Waiting(step.request, then, incarnation)
        self.world.network.send_once(CLIENT, broker, message)
        return True

    # Brokers.

    def started(self, machine: Machine) -> None:
        world, broker = self.world, machine.broker
        assert broker is not None
        rng = Random(f"groups {world.seed} {machine.id} {machine.incarnation}")
        groups, transactions = world.build.coordinator(GROUPS, rng), world.build.transactions(TRANSACTIONS)
        machine.process = world.build.process(broker, groups, transactions, self._next_record)

    def _next_record(self, count: int) -> int:
        return self.world.next("record", count) - count

    def received(self, machine: Machine, message: ClientRequest) -> None:
        """Reads get their response at once or when there is something, as from a handler; the rest is for a coordinator."""
        now, request, process = self.world.clock.now, message.request, machine.process
        assert process is not None
        if isinstance(request, OffsetFetch):
            self.responded(machine.id, Respond(message.correlation_id, process.groups.fetch_offsets(request)))
        elif isinstance(request, ClientFetch):
            self._fetches.received(machine, message.correlation_id, request)
        else:
            if isinstance(request, EndTransaction) and request.commit:
                self.rules.commit_arrives((request.producer_id, request.producer_epoch))
            self.world.carry_out(machine.id, process.on_request(now, message.correlation_id, request))

    def _read(self, machine: Machine, correlation_id: CorrelationId, response: ReadResponse) -> None:
        self.responded(machine.id, Respond(correlation_id, response))

    def readable(self, machine: Machine, partition: TopicPartition) -> None:
        self._fetches.wake(machine, partition)

    def arriving(self, message: Message) -> Message:
        """Each copy of a marker is a record of its own."""
        if not isinstance(message, Produce) or message.batches[0].marker is None:
            return message
        numbered = replace(message, batches=(replace(message.batches[0], max_timestamp=self._next_record(1)),))
        self._markers.setdefault(message.correlation_id, []).append(numbered)
        return numbered

    def send_request(self, machine: Machine, request: SendRequest) -> None:
        """Over the link between two brokers. Now and then a marker is lost, or comes a second time, much later."""
        process, source = machine.process, machine.id
        message = replace(request.message, correlation_id=self.world.next("correlation_id"))
        self._waiting[message.correlation_id] = _Waiting(
            message, lambda response: self._pass_on(machine, process, request.request_id, response), source=source
        )
        drawn = self.world.rng.network.random() if isinstance(message, Produce) and not self._healed_at else 1.0
        if drawn >= MARKERS_LOST and not self.world.kind.late_markers:
            self.world.network.send_once(source, request.destination, message)
        elif drawn >= MARKERS_LOST:
            self.world.network.send(source, request.destination, message)
        if MARKERS_LOST <= drawn < MARKERS_LOST + MARKERS_LATE and self.world.kind.late_markers:
            late_ms = self.world.rng.network.randint(20, 500)
            self.world.clock.after(late_ms, lambda: self.world.network.send(source, request.destination, message))

    def _pass_on(self, machine: Machine, process: BrokerProcess | None, request_id: int, response: object) -> None:
        """To the process that sent the request, when it is awake; one that has ended gets nothing."""
        if process is None or machine.process is not process:
            return
        now = self.world.clock.now
        if machine.frozen_until > now:
            self.world.clock.at(machine.frozen_until, lambda: self._pass_on(machine, process, request_id, response))
        else:
            self.world.carry_out(machine.id, process.on_response(now, request_id, response))

    def responded(self, node: NodeId, effect: Respond) -> None:
        """A response leaves a broker. A second one to the same request is dropped."""
        waiting = self._waiting.pop(effect.correlation_id, None)
        if waiting is None:
            return
        machine = self.world.machines[BrokerId(node)]
        if isinstance(waiting.request, Produce) and isinstance(effect.response, ProduceResponse):
            self._judge_append(machine, waiting.request, effect.response)
        respond = partial(waiting.respond, effect.response)
        if waiting.source == CLIENT:
            self._judge(machine, waiting, effect.response)
            self.world.to_client(machine.id, respond)
        else:
            self.world.network.call_later(machine.id, waiting.source, respond)

    # Judging.

    def moved(self, node: NodeId) -> None:
        if node == CONTROLLER:
            return
        machine = self.world.machines[BrokerId(node)]
        if isinstance(machine.process, SimulatedProcess):
            acknowledged, machine.process.acknowledged = machine.process.acknowledged, []
            for request, response in acknowledged:
                self._judge_append(machine, request, response)

    def _judge_append(self, machine: Machine, request: Produce, response: ProduceResponse) -> None:
        """Of several copies of a marker, that one is acknowledged which stands where the response says."""
        observer = self.world.observers[request.partition]
        entries = observer.evidence.replicas[machine.id].entries
        for copy in self._markers.get(request.correlation_id, ()):
            request = copy
            if response.error is not ErrorCode.NONE:
                return
            if (
                response.base_offset < len(entries)
                and entries[response.base_offset].record == copy.batches[0].max_timestamp
            ):
                break
        observer.responded(machine, request, response)

    def _judge(self, machine: Machine, waiting: _Waiting, response: object) -> None:
        match waiting.request, response:
            case InitProducerId(), InitProducerIdResponse(ErrorCode.NONE):
                assert waiting.incarnation is not None
                recovering = waiting.request.producer_id >= 0
                self.rules.let_in(waiting.incarnation, response.producer_epoch, recovering=recovering)
            case OffsetFetch(), OffsetFetchResponse(ErrorCode.NONE) if self._is_coordinator(machine):
                self.rules.shows_offsets(_committed(response))

    def _is_coordinator(self, machine: Machine) -> bool:
        """Whether the controller's leader of `__consumer_offsets` is this process, in its epoch."""
        committed = self.world.observers[self.offsets].evidence.committed
        leader = None if machine.broker is None else machine.broker.leaders.get(self.offsets)
        return leader is not None and (machine.id, leader.leader_epoch) == (committed.leader, committed.leader_epoch)

    def healed(self) -> None:
        self._healed_at = self.world.observer.evidence.event

    def settled(self) -> None:
        logs = {}
        for partition in (*self.orders, self.offsets):
            leader = self.world.observers[partition].evidence.committed.leader
            if leader is not None and partition in self.world.machines[leader].disk.logs:
                logs[partition] = self.world.machines[leader].disk.logs[partition].batches
        orders = {each: logs[each] for each in self.orders if each in logs}
        offsets, undecided = self._offsets_in_the_end()
        self.rules.settled(orders, offsets, undecided)
        if self.world.kind.trusted and self._may_write():
            self.rules.finished(self._healed_at, logs, undecided)

    def _offsets_in_the_end(self) -> tuple[set[int] | None, set[int]]:
        """The transactions whose offsets the group has, None where nobody coordinates it, and those it holds back."""
        leader = self.world.observers[self.offsets].evidence.committed.leader
        machine = None if leader is None else self.world.machines[leader]
        if machine is None or machine.process is None or not self._is_coordinator(machine):
            return None, set()
        inputs = tuple(TopicPartition(INPUT, written.number) for written in self.rules.transactions)
        response = machine.process.groups.fetch_offsets(OffsetFetch(GROUP, inputs, require_stable=True))
        if response.error is not ErrorCode.NONE:
            return None, set()
        return _committed(response), {partition.partition for partition, each in response.offsets.items() if each.error}

    def _may_write(self) -> bool:
        """Whether what is in sync in the end meets what is required: an operator may have moved too much away."""
        parameters = self.world.parameters
        evidences = [observer.evidence for observer in self.world.observers.values()]
        return all(
            evidence.committed.leader is not None
            and len(evidence.committed.isr) >= parameters.min_insync_replicas
            and len(evidence.racks_of(evidence.committed.isr)) >= parameters.min_insync_racks
            for evidence in evidences
        )


def _committed(response: OffsetFetchResponse) -> set[int]:
    return {fetched.offset for fetched in response.offsets.values() if fetched.offset >= 0}
