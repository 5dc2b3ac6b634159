"""One seed's world: the product's controller and brokers on a virtual network, clock and disks, judged at every step.

    World(kind, seed).run()        raises Violation at the first rule that breaks

The world owns every setting and all random generators. What Kafka does is the core's; what goes wrong is in faults/; the
rules are in judges/.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Final

from rackspan.cluster.core.admin_messages import AdminRequest, CreateTopics, NewTopic
from rackspan.cluster.core.broker import BrokerCore, BrokerIdentity, BrokerRules
from rackspan.cluster.core.controller import ControllerCore, ControllerRules
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, NodeId
from rackspan.cluster.core.messages import (
    Effect,
    LeadershipChanged,
    Respond,
    Send,
    SendRequest,
    Stopped,
    WatermarkMoved,
)
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.model.ids import BrokerId, TopicPartition
from tests.simulation.clients.producers import TRAFFIC_FROM_MS, Producers
from tests.simulation.clients.request import ClientRequest
from tests.simulation.clients.traffic import Traffic
from tests.simulation.clients.wire import WireProducers
from tests.simulation.environment.assumptions import controller_rules
from tests.simulation.environment.clock import Callback, Clock
from tests.simulation.environment.machine import Machine
from tests.simulation.environment.network import Network, NetworkMessage
from tests.simulation.environment.parameters import FAULTS_MS, HEALING_MS, LONG_HEALING_MS, draw_parameters
from tests.simulation.environment.rng import generators_for
from tests.simulation.environment.trace import Trace
from tests.simulation.faults.drawing import Fault, draw_faults
from tests.simulation.faults.injection import schedule_faults
from tests.simulation.groups.traffic import Groups
from tests.simulation.judges.observer import Observer
from tests.simulation.kinds import WorldKind
from tests.simulation.transactions.process import SimulatedProcess
from tests.simulation.transactions.traffic import Transactions

ORDERS: Final = TopicPartition("orders", 0)
OFFSETS: Final = TopicPartition("__consumer_offsets", 0)
TRANSACTIONS: Final = TopicPartition("__transaction_state", 0)

QUICK_MS: Final = (1, 2)
"""The network before traffic begins and after all healed; slowness and repeats belong to the time between."""


def partitions_of(kind: WorldKind) -> tuple[TopicPartition, ...]:
    """The partitions under the judges; faults are aimed at the first one, or at each of several in turn."""
    if kind.transactions:
        return (TRANSACTIONS, OFFSETS, ORDERS, TopicPartition(ORDERS.topic, 1))
    return (OFFSETS,) if kind.groups else (ORDERS,)


@dataclass(frozen=True, slots=True)
class Build:
    """The code under test. A planted bug replaces one of these."""

    broker_rules: type[BrokerRules] = BrokerRules
    controller_rules: type[ControllerRules] = ControllerRules
    coordinator: type[GroupCoordinator] = GroupCoordinator
    transactions: type[TransactionCoordinator] = TransactionCoordinator
    broker: type[BrokerCore] = BrokerCore
    process: type[SimulatedProcess] = SimulatedProcess


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run that broke nothing did. `crc` is the same on every machine for the same seed."""

    events: int
    acknowledged: int
    crc: int
    checked: int
    available: int
    offline: bool
    elections: int = 0
    faults: int = 0


@dataclass(slots=True)
class World:
    """`faults` None draws them from the seed; a list replays a shorter one."""

    kind: WorldKind
    seed: int
    faults: tuple[Fault, ...] | None = None
    build: Build = field(default_factory=Build)
    trace: Trace = field(default_factory=Trace)

    def run(self) -> Outcome:
        return Running(self).run()


class Running:
    """A world under way."""

    def __init__(self, world: World) -> None:
        rng = generators_for(world.seed)
        self.kind, self.seed, self.build = world.kind, world.seed, world.build
        self.partitions = partitions_of(world.kind)
        self.partition = self.partitions[0]
        self.parameters = draw_parameters(world.kind, rng.parameters)
        drawn = draw_faults(self.parameters, rng.faults)
        self.faults = drawn if world.faults is None else world.faults
        self.healing_ms = LONG_HEALING_MS if world.kind.transactions else HEALING_MS
        self.clock = Clock()
        self.rng = rng
        self.trace = world.trace
        self.settings = self.parameters.settings
        self.network = Network(
            self.clock,
            rng.network,
            self.deliver,
            QUICK_MS,
            QUICK_MS,
            0.0,
        )
        self.controller = ControllerCore(
            self.settings,
            Random(f"controller {world.seed}"),
            controller_rules(world.kind, world.build.controller_rules),
        )
        self.machines = {broker: Machine(broker, rack) for broker, rack in self.parameters.racks.items()}
        self.observers = {
            partition: Observer(world.kind, partition, self.machines, self.controller) for partition in self.partitions
        }
        self.observer = self.observers[self.partition]
        self.traffic: Traffic = _traffic_of(self)
        self._numbers = dict.fromkeys(("correlation_id", "record", "producer", "value"), 0)

    # The run

    def run(self) -> Outcome:
        self._start()
        schedule_faults(self)
        events = self.clock.run_until(FAULTS_MS)
        self._heal()
        events += self.clock.run_until(FAULTS_MS + self.healing_ms)
        for observer in self.observers.values():
            observer.settled()
        self.traffic.settled()
        return self._outcome(events)

    def _outcome(self, events: int) -> Outcome:
        observers = self.observers.values()
        for observer in observers:
            self.trace.add(self.clock.now, "end", observer.digest(), None)
        return Outcome(
            events,
            self.traffic.acknowledged,
            self.trace.crc,
            sum(observer.survival.checked for observer in observers),
            sum(observer.survival.available for observer in observers),
            any(observer.evidence.committed.leader is None for observer in observers),
            sum(observer.evidence.committed.leader_epoch for observer in observers),
            len(self.faults),
        )

    def _start(self) -> None:
        for machine in self.machines.values():
            self.start_broker(machine)
        self.clock.at(0, self._tick_controller)
        self.clock.at(200, self._create_topics)
        self.clock.at(TRAFFIC_FROM_MS, self._grow_slow)
        self.traffic.start()
        for machine in self.machines.values():
            self._flush_now_and_then(machine)

    def _create_topics(self) -> None:
        assignments: dict[str, dict[int, tuple[BrokerId, ...]]] = {}
        for partition in self.partitions:
            assignments.setdefault(partition.topic, {})[partition.partition] = self._replicas()
        topics = tuple(self._topic(name, replicas) for name, replicas in assignments.items())
        self.send_to_controller(CreateTopics(self.next("correlation_id"), topics))

    def _replicas(self) -> tuple[BrokerId, ...]:
        replicas = list(self.parameters.brokers)
        self.rng.parameters.shuffle(replicas)
        if self.kind.relocating:
            least = min(len(replicas), max(2, self.parameters.min_insync_racks))
            replicas = replicas[: self.rng.parameters.randint(least, len(replicas))]
        return tuple(replicas)

    def _topic(self, name: str, assignments: dict[int, tuple[BrokerId, ...]]) -> NewTopic:
        thresholds = {
            "min.insync.replicas": str(self.parameters.min_insync_replicas),
            "min.insync.racks": str(self.parameters.min_insync_racks),
        }
        # A coordinator reads its log from the first record on.
        compacted = {} if name == ORDERS.topic else {"cleanup.policy": "compact"}
        return NewTopic(name, assignments=assignments, configs=thresholds | compacted)

    def _grow_slow(self) -> None:
        self.network.between_ms, self.network.controller_ms = self.parameters.network_ms, self.parameters.controller_ms
        self.network.duplicates = self.parameters.duplicates

    def _heal(self) -> None:
        self.network.heal()
        for machine in self.machines.values():
            machine.frozen_until = min(machine.frozen_until, self.clock.now)
        self.traffic.healed()

    # Nodes

    def start_broker(self, machine: Machine) -> None:
        machine.incarnation += 1
        identity = BrokerIdentity(machine.id, machine.incarnation, machine.rack, "localhost", 9000 + machine.id)
        machine.broker = self.build.broker(identity, self.settings, machine.disk, self.build.broker_rules())
        for observer in self.observers.values():
            observer.started(machine)
        self.traffic.started(machine)
        if not machine.ticking:
            machine.ticking = True
            self.clock.after(self.rng.network.randint(0, self.settings.tick_interval_ms), lambda: self._tick(machine))

    def stop_broker(self, machine: Machine) -> None:
        """The process ends at once; requests that it has not handled get no response."""
        machine.stop()
        for observer in self.observers.values():
            observer.stopped(machine)

    def _tick(self, machine: Machine) -> None:
        if machine.broker is None:
            machine.ticking = False
            return
        if machine.frozen_until > self.clock.now:
            self.clock.at(machine.frozen_until, lambda: self._tick(machine))
            return
        self.carry_out(machine.id, machine.on_tick(self.clock.now))
        self.traffic.ticked(machine)
        self.clock.after(self.settings.tick_interval_ms, lambda: self._tick(machine))

    def _tick_controller(self) -> None:
        self.carry_out(CONTROLLER, self.controller.on_tick(self.clock.now))
        self.clock.after(self.settings.tick_interval_ms, self._tick_controller)

    def deliver(self, source: NodeId, destination: NodeId, message: NetworkMessage) -> None:
        """A message has arrived. A frozen machine takes it when it wakes, in order; a dead one never."""
        if destination == CONTROLLER and not isinstance(message, ClientRequest):
            self._received(source, destination, message)
            self.carry_out(CONTROLLER, self.controller.on_message(self.clock.now, source, message))
            return
        machine = self.machines[BrokerId(destination)]
        if machine.broker is None:
            return
        if machine.frozen_until > self.clock.now:
            self.clock.at(machine.frozen_until, lambda: self.deliver(source, destination, message))
            return
        self._received(source, destination, message)
        if isinstance(message, ClientRequest):
            self.traffic.received(machine, message)
            return
        self.carry_out(destination, machine.on_message(self.clock.now, source, self.traffic.arriving(message)))

    def _received(self, source: NodeId, destination: NodeId, message: NetworkMessage) -> None:
        self.trace.add(self.clock.now, source, destination, message)

    def carry_out(self, node: NodeId, effects: list[Effect]) -> None:
        """First the node's state is observed, then its responses: a response promises what is on the disks by then."""
        for observer in self.observers.values():
            observer.moved(node)
        self.traffic.moved(node)
        for effect in effects:
            if isinstance(effect, Send):
                self.network.send(node, effect.destination, effect.message)
            elif isinstance(effect, Respond):
                self.traffic.responded(node, effect)
            elif isinstance(effect, SendRequest):
                self.traffic.send_request(self.machines[BrokerId(node)], effect)
            elif isinstance(effect, LeadershipChanged):
                self._led(self.machines[BrokerId(node)], effect)
                self.traffic.readable(self.machines[BrokerId(node)], effect.partition)
            elif isinstance(effect, WatermarkMoved):
                self.traffic.readable(self.machines[BrokerId(node)], effect.partition)
            elif isinstance(effect, Stopped):
                self.stop_broker(self.machines[BrokerId(node)])

    def _led(self, machine: Machine, change: LeadershipChanged) -> None:
        if change.partition in self.observers:
            self.observers[change.partition].leadership(machine, change)
            self.traffic.led(machine, change)

    # Clients

    def send_to_controller(self, message: AdminRequest) -> None:
        self.deliver(CLIENT, CONTROLLER, message)

    def to_client(self, node: NodeId, callback: Callback) -> None:
        """A response on its way to a client. It may never arrive."""
        if not self.network.cut.get((node, CLIENT)):
            self.clock.after(self.rng.network.randint(*self.parameters.network_ms), callback)

    def judge_survival(self) -> None:
        for observer in self.observers.values():
            observer.survival.judge()

    def find_leader(self, partition: TopicPartition | None = None) -> BrokerId | None:
        """The leader in some broker's image: it may be stale, as a client's own metadata would be."""
        up = [machine for machine in self.machines.values() if machine.broker is not None]
        if not up:
            return None
        broker = self.rng.clients.choice(up).broker
        state = None if broker is None else broker.image.partition(partition or self.partition)
        return state.leader if state is not None and state.leader in self.machines else None

    def next(self, what: str, count: int = 1) -> int:
        self._numbers[what] += count
        return self._numbers[what]

    def _flush_now_and_then(self, machine: Machine) -> None:
        machine.flush()
        self.clock.after(self.parameters.flush_every_ms, lambda: self._flush_now_and_then(machine))


def _traffic_of(world: Running) -> Traffic:
    if world.kind.transactions:
        return Transactions(world)
    if world.kind.groups:
        return Groups(world)
    return WireProducers(world) if world.kind.wire else Producers(world)
