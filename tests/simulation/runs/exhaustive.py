"""Small worlds, tried whole: every order in which messages can arrive, time pass and one broker be struck, to a depth.

    start(racks, build)          three brokers, one partition, all in sync, two records on their way to the leader
    explore(small, depth)        every sequence of `depth` actions from there, each judged by the same judges

Constraints: messages of one link arrive in order, links are independent of each other; at most `ticks` times
so much time passes that a member behind has lagged too long; at most one broker crashes, or freezes, and comes back.
Method: depth first; a state is known by a digest of its bytes, and one met before with as many actions left is not entered
again, so that orders which lead to the same state are tried once. What is immutable (images, messages, batches) is shared
between states and has one number for all that are equal: whichever order made them, the state is the same one.
Bound: states x actions, 16 bytes kept of each state. Not reduced by symmetry: replicas are elected in their order, so no
two brokers are alike; nor by independence of deliveries: steps are not twice the states, so little is left to save.
"""

import io
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from random import Random
from types import FunctionType, MappingProxyType
from typing import Any, Final
from uuid import UUID

from rackspan.cluster.core.admin_messages import CreateTopics, NewTopic
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore, BrokerIdentity, BrokerRules
from rackspan.cluster.core.controller import ControllerCore, ControllerRules
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.messages import Effect, LeadershipChanged, Message, Produce, ProduceResponse, Respond, Send
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.record_batch import HEADER_BYTES
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.simulation.environment.assumptions import controller_rules
from tests.simulation.environment.machine import Machine
from tests.simulation.judges.observer import Observer
from tests.simulation.kinds import KINDS
from tests.simulation.world import Build

ORDERS: Final = TopicPartition("orders", 0)
NEVER_MS: Final = 10**9
LAG_MS: Final = 100

SETTINGS: Final = ClusterSettings(
    session_timeout_ms=NEVER_MS,
    heartbeat_interval_ms=NEVER_MS,
    fetch_max_wait_ms=NEVER_MS,
    fetch_retry_ms=NEVER_MS,
    metadata_max_wait_ms=NEVER_MS,
    metadata_retry_ms=NEVER_MS,
    alter_partition_retry_ms=NEVER_MS,
    registration_retry_ms=NEVER_MS,
    replica_lag_time_max_ms=LAG_MS,
    auto_create_topics=False,
)
"""Nothing happens by itself: whatever happens was chosen."""

Action = tuple[str, NodeId, NodeId]
"""("deliver", from, to), or what befalls a node, twice named."""


@dataclass(slots=True)
class Small:
    """One state. `links` hold what is on its way; `ticks` and `faults` what may still befall."""

    controller: ControllerCore
    machines: dict[BrokerId, Machine]
    observer: Observer
    build: Build
    ticks: int
    faults: int
    now: int = 0
    links: dict[tuple[NodeId, NodeId], list[Message]] = field(default_factory=dict)
    waiting: dict[CorrelationId, Produce] = field(default_factory=dict)
    frozen: BrokerId | None = None
    fenced: bool = False

    # What may happen.

    def actions(self) -> Iterator[Action]:
        for (source, destination), messages in self.links.items():
            if messages and destination != self.frozen:
                yield ("deliver", source, destination)
        for broker, machine in self.machines.items():
            yield from self._befalling(broker, machine)

    def _befalling(self, broker: BrokerId, machine: Machine) -> Iterator[Action]:
        running = machine.broker is not None
        if running and broker != self.frozen and self.ticks:
            yield ("tick", broker, broker)
        if running and self.faults:
            yield ("crash", broker, broker)
            yield ("freeze", broker, broker)
        if not running or broker == self.frozen:
            yield ("return", broker, broker)
            if not self.fenced:
                yield ("fence", broker, broker)

    def take(self, action: Action) -> None:
        """Let it happen, and be judged. Raises Violation."""
        verb, source, node = action
        if verb == "deliver":
            self._deliver(source, node)
        else:
            _BEFALL[verb](self, BrokerId(node))

    def _deliver(self, source: NodeId, node: NodeId) -> None:
        message = self.links[source, node].pop(0)
        if not self.links[source, node]:
            del self.links[source, node]
        if node == CONTROLLER:
            self.carry_out(CONTROLLER, self.controller.on_message(self.now, source, message))
            return
        broker = self.machines[BrokerId(node)].broker
        if broker is not None:
            self.carry_out(node, broker.on_message(self.now, source, message))

    def tick(self, node: BrokerId) -> None:
        """So much time passes that every follower behind has lagged too long; this broker notices."""
        self.ticks -= 1
        self.now += LAG_MS + 1
        self.wake(node)

    def wake(self, node: BrokerId) -> None:
        broker = self.machines[node].broker
        if broker is not None:
            self.carry_out(node, broker.on_tick(self.now))

    def crash(self, node: BrokerId) -> None:
        self.faults -= 1
        machine = self.machines[node]
        machine.broker = None
        self.observer.stopped(machine)

    def freeze(self, node: BrokerId) -> None:
        self.faults -= 1
        self.frozen = node

    def fence(self, node: BrokerId) -> None:
        """Its session runs out."""
        self.fenced = True
        self.carry_out(CONTROLLER, self.controller.fence(self.now, node))

    def come_back(self, node: BrokerId) -> None:
        if node == self.frozen:
            self.frozen = None
        else:
            self.boot(self.machines[node])

    def boot(self, machine: Machine) -> None:
        machine.incarnation += 1
        identity = BrokerIdentity(machine.id, machine.incarnation, machine.rack, "localhost", 9000)
        machine.broker = BrokerCore(identity, SETTINGS, machine.disk, self.build.broker_rules())
        self.observer.started(machine)
        self.wake(machine.id)

    def carry_out(self, node: NodeId, effects: list[Effect]) -> None:
        self.observer.moved(node)
        for effect in effects:
            self._effect(node, effect)

    def _effect(self, node: NodeId, effect: Effect) -> None:
        if isinstance(effect, Send):
            self.send(node, effect.destination, effect.message)
        elif isinstance(effect, LeadershipChanged):
            self.observer.leadership(self.machines[BrokerId(node)], effect)
        elif isinstance(effect, Respond) and isinstance(effect.response, ProduceResponse):
            request = self.waiting.pop(effect.correlation_id)
            self.observer.responded(self.machines[BrokerId(node)], request, effect.response)

    def send(self, source: NodeId, destination: NodeId, message: Message) -> None:
        self.links.setdefault((source, destination), []).append(message)

    def run_quiet(self) -> None:
        """Deliver all there is, in order."""
        while self.links:
            self._deliver(*next(iter(self.links)))

    def produce(self, record: int) -> None:
        batch = RecordBatch(0, 0, -1, data=bytes(HEADER_BYTES), max_timestamp=record)
        request = self.waiting[record] = Produce(record, ORDERS, (batch,), -1, NEVER_MS)
        self.send(CLIENT, 1, request)


_BEFALL: Final = {
    "tick": Small.tick,
    "crash": Small.crash,
    "freeze": Small.freeze,
    "return": Small.come_back,
    "fence": Small.fence,
}


def start(racks: str, build: Build | None = None, *, ticks: int = 1, faults: int = 1) -> Small:
    """Broker 1 leads orders-0, all three are in sync, records 1 and 2 are on their way. `racks` as in "abb"."""
    build, kind = build or Build(), KINDS["clean"]
    controller = ControllerCore(SETTINGS, Random(1), controller_rules(kind, build.controller_rules))
    machines = {BrokerId(i): Machine(BrokerId(i), RackId(rack)) for i, rack in enumerate(racks, 1)}
    small = Small(controller, machines, Observer(kind, ORDERS, machines, controller), build, ticks, faults)
    for machine in machines.values():
        small.boot(machine)
        small.run_quiet()
    configs = {"min.insync.replicas": "1", "min.insync.racks": "2"}
    topic = NewTopic(ORDERS.topic, assignments={0: tuple(machines)}, configs=configs)
    small.send(CLIENT, CONTROLLER, CreateTopics(0, (topic,)))
    small.run_quiet()
    small.produce(1)
    small.produce(2)
    return small


# The search.


@dataclass(slots=True)
class Explored:
    """What was tried: `states` that differ, `steps` taken, `path` to the state at hand."""

    states: int = 0
    steps: int = 0
    path: list[Action] = field(default_factory=list)


def explore(small: Small, depth: int, explored: Explored | None = None) -> Explored:
    """Raises Violation at the first rule that breaks; `explored.path` then holds the actions that led there."""
    found = explored or Explored()
    depths: dict[bytes, int] = {}
    _enter(small, depth, Store(), depths, found)
    found.states = len(depths)
    return found


def _enter(small: Small, depth: int, store: "Store", depths: dict[bytes, int], found: Explored) -> None:
    kept = store.keep(small)
    digest = blake2b(kept, digest_size=16).digest()
    known = depths.get(digest, -1)
    depths[digest] = max(known, depth)
    if depth == 0 or known >= depth:
        return
    for action in list(small.actions()):
        following = store.restored(kept)
        found.path.append(action)
        found.steps += 1
        following.take(action)
        _enter(following, depth - 1, store, depths, found)
        found.path.pop()


_SHARED: Final = (type, Enum, Random, FunctionType, MappingProxyType, UUID, BrokerRules, ControllerRules)


class Store:
    """States as bytes. Values that never change are numbered and shared; equal ones have one number."""

    def __init__(self) -> None:
        self.values: list[object] = []
        self._numbers: dict[tuple[type, object], int] = {}
        self._by_identity: dict[int, int] = {}
        self._shared: dict[type, bool] = {}

    def keep(self, small: Small) -> bytes:
        small.observer.evidence.event = 0
        small.observer.evidence.appended_at.clear()
        # In which order links got their messages is no part of a state.
        small.links = dict(sorted(small.links.items()))
        buffer = io.BytesIO()
        _Pickler(buffer, self).dump(small)
        return buffer.getvalue()

    def restored(self, kept: bytes) -> Small:
        found: Small = _Unpickler(io.BytesIO(kept), self).load()
        return found

    def number(self, value: object) -> int | None:
        kind = type(value)
        shared = self._shared.get(kind)
        if shared is None:
            shared = self._shared[kind] = _is_immutable(value)
        if not shared:
            return None
        number = self._by_identity.get(id(value))
        return self._number_anew(value) if number is None else number

    def _number_anew(self, value: object) -> int:
        number = self._numbers.setdefault((type(value), _key(value)), len(self.values))
        # Kept alive, so that its identity is not given to another.
        self.values.append(value)
        self._by_identity[id(value)] = number
        return number


def _key(value: object) -> object:
    """The value itself, or where it holds a mapping or a bytearray, and so has no hash, what it says of itself."""
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


def _is_immutable(value: object) -> bool:
    return isinstance(value, _SHARED) or bool(getattr(getattr(value, "__dataclass_params__", None), "frozen", False))


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, store: Store) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self._store = store

    def persistent_id(self, obj: Any) -> int | None:
        return self._store.number(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, store: Store) -> None:
        super().__init__(buffer)
        self._store = store

    def persistent_load(self, pid: int) -> object:
        return self._store.values[pid]
