"""A cluster in one heap of events: virtual time, seeded network, no threads. The core's brokers and controller run unchanged.

Times in ms. Events at the same time happen in the order in which they were caused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, Protocol

from rackspan.cluster.core.admin_messages import AdminRequest, AdminResponse, CreateTopics, NewTopic
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore, BrokerIdentity, BrokerRules
from rackspan.cluster.core.controller import ControllerCore, ControllerRules
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.messages import (
    Effect,
    Message,
    Produce,
    ProduceResponse,
    Respond,
    Send,
    ShutDown,
    Stopped,
    Warned,
)
from rackspan.cluster.core.metadata import PartitionState
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition

LINK_MS: Final = (1, 3)
"""The fastest and the slowest a message travels where nobody slows it."""

_TICK: Final = None
_Event = tuple[int, int, NodeId, int, NodeId, Message | None]
"""Time, order, whom it is for and which process of it, whom it is from, what; None is a tick."""


class Node(Protocol):
    """A broker or the controller. Time never runs backwards between calls."""

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Take one message; `now` in ms."""

    def on_tick(self, now: int) -> list[Effect]:
        """Look at the clock; call it about every `tick_interval_ms`."""


@dataclass
class World:
    """`racks` gives each broker's. `broker_rules` and `controller_rules` are where mistakes are planted."""

    racks: Mapping[int, str | None]
    settings: ClusterSettings = field(default_factory=ClusterSettings)
    seed: int = 0
    broker_rules: BrokerRules = field(default_factory=BrokerRules)
    controller_rules: ControllerRules = field(default_factory=ControllerRules)

    def __post_init__(self) -> None:
        self.rng = Random(self.seed)
        self.now = 0
        self.events_done = 0
        self.results: dict[CorrelationId, Any] = {}
        self.effects: list[tuple[NodeId, Effect]] = []
        """What left for nobody in the world: watermarks, leaderships, warnings."""
        self.cut: set[tuple[NodeId, NodeId]] = set()
        self.frozen: dict[NodeId, int] = {}
        """Until when."""
        self.on_effect: Callable[[NodeId, Effect], None] | None = None
        self._heap: list[_Event] = []
        self._order = 0
        self._pending_responses = 0
        self._incarnations = 0
        self.disks: dict[int, Disk] = {broker: Disk() for broker in self.racks}
        self.rack_of = dict(self.racks)
        self.controller = ControllerCore(self.settings, Random(self.seed + 1), self.controller_rules)
        self.nodes: dict[NodeId, Node] = {CONTROLLER: self.controller}
        self._process: dict[NodeId, int] = {CONTROLLER: 0}
        self._tick(CONTROLLER)
        for broker in self.racks:
            self.start(broker)

    # Faults.

    def start(self, broker: int) -> BrokerCore:
        """A new process on the old disk."""
        self._incarnations += 1
        rack = self.rack_of[broker]
        identity = BrokerIdentity(
            BrokerId(broker), self._incarnations, None if rack is None else RackId(rack), port=9000 + broker
        )
        node = BrokerCore(identity, self.settings, self.disks[broker], self.broker_rules)
        self.nodes[broker] = node
        self._process[broker] = self._incarnations
        self._tick(broker)
        return node

    def kill(self, broker: int, *, lost: int | None = None) -> None:
        """End a process in disorder. `lost` batches at the end of each log were never written to the disk."""
        node = self.broker(broker)
        del self.nodes[broker]
        disk = self.disks[broker]
        if lost is None:
            disk.clean_shutdown_epoch = node.broker_epoch
        else:
            for log in disk.logs.values():
                kept = log.batches[: max(0, len(log.batches) - lost)]
                log.truncate_to(kept[-1].last_offset + 1 if kept else log.start_offset)

    def shut_down(self, broker: int) -> None:
        self._take(broker, self.broker(broker).on_message(self.now, CLIENT, ShutDown()))

    def freeze(self, broker: int, until: int) -> None:
        """As SIGSTOP: its messages wait, and its clock jumps when it thaws."""
        self.frozen[broker] = until

    def isolate(self, broker: int) -> None:
        others = [other for other in (*self.racks, CONTROLLER) if other != broker]
        self.cut |= {(broker, other) for other in others} | {(other, broker) for other in others}

    def heal(self) -> None:
        self.cut.clear()
        self.frozen.clear()

    # Clients.

    def produce(
        self, broker: int, partition: TopicPartition, *batches: RecordBatch, acks: int = -1, timeout_ms: int = 5_000
    ) -> CorrelationId:
        """Deliver a produce at once. The response will be in `results`."""
        correlation_id = self._correlation_id()
        message = Produce(correlation_id, partition, batches or (RecordBatch(0, 0, -1),), acks, timeout_ms)
        if broker in self.nodes and broker not in self.frozen:
            self._take(broker, self.nodes[broker].on_message(self.now, CLIENT, message))
        return correlation_id

    def produced(self, partition: TopicPartition, *batches: RecordBatch, acks: int = -1) -> ProduceResponse:
        """Produce to the leader and wait."""
        correlation_id = self.produce(self.state(partition).leader, partition, *batches, acks=acks)
        self.run_until(lambda: correlation_id in self.results, 10_000)
        result = self.results[correlation_id]
        assert isinstance(result, ProduceResponse)
        return result

    def admin(self, make: Callable[[CorrelationId], AdminRequest]) -> Sequence[AdminResponse]:
        """Send a request to the controller, which responds at once."""
        correlation_id = self._correlation_id()
        self._take(CONTROLLER, self.controller.on_message(self.now, CLIENT, make(correlation_id)))
        result = self.results[correlation_id]
        assert isinstance(result, tuple)
        return result

    def create(self, topic: str, *replicas: Sequence[int], **configs: str) -> TopicPartition:
        """A topic with these replicas, a row a partition; its first partition."""
        named = {key.replace("_", "."): value for key, value in configs.items()}
        assignments = {index: tuple(map(BrokerId, row)) for index, row in enumerate(replicas)}
        new = NewTopic(topic, assignments=assignments, configs=named)
        (result,) = self.admin(lambda correlation_id: CreateTopics(correlation_id, (new,)))
        assert result.error is ErrorCode.NONE, result
        return TopicPartition(topic, 0)

    # What is.

    def broker(self, broker: int) -> BrokerCore:
        node = self.nodes[broker]
        assert isinstance(node, BrokerCore)
        return node

    @property
    def brokers(self) -> list[BrokerCore]:
        return [node for node in self.nodes.values() if isinstance(node, BrokerCore)]

    def state(self, partition: TopicPartition) -> PartitionState:
        state = self.controller.image.partition(partition)
        assert state is not None
        return state

    def isr(self, partition: TopicPartition) -> set[int]:
        return set(self.state(partition).isr)

    def warnings(self) -> list[str]:
        return [effect.message for _, effect in self.effects if isinstance(effect, Warned)]

    # Time.

    def run(self, duration_ms: int) -> None:
        end = self.now + duration_ms
        while self._heap and self._heap[0][0] <= end:
            self._step()
        self.now = end

    def run_until(self, holds: Callable[[], bool], limit_ms: int = 20_000) -> None:
        end = self.now + limit_ms
        while not holds():
            assert self._heap[0][0] <= end, f"still not so after {limit_ms} ms"
            self._step()

    def settle(self) -> None:
        """Until every registered broker is in office and every replica of a living broker in sync."""
        self.run_until(self._is_whole)

    def _is_whole(self) -> bool:
        image = self.controller.image
        alive = set(self.nodes)
        if any(broker in alive and one.fenced for broker, one in image.brokers.items()):
            return False
        if not alive <= {CONTROLLER, *image.brokers}:
            return False
        return all(
            self._is_served(TopicPartition(topic.name, index), state)
            for topic in image.topics.values()
            for index, state in enumerate(topic.partitions)
        )

    def _is_served(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Whether every running replica is in sync, and the leader has the partition's latest state."""
        if state.leader not in self.nodes or not set(state.replicas) & set(self.nodes) <= set(state.isr):
            return False
        leader = self.broker(state.leader).leaders.get(partition)
        return leader is not None and leader.isr.partition_epoch == state.partition_epoch

    def _step(self) -> None:
        time, _, destination, process, source, message = heappop(self._heap)
        self.now = time
        thaw = self.frozen.get(destination)
        if thaw is not None and thaw > time:
            self._push(thaw, destination, process, source, message)
            return
        if thaw is not None:
            del self.frozen[destination]
        node = self.nodes.get(destination)
        if node is None or (process and process != self._process[destination]):
            return
        self.events_done += 1
        if message is not None:
            self._take(destination, node.on_message(time, source, message))
        else:
            self._take(destination, node.on_tick(time))
            self._tick(destination)

    def _tick(self, node: NodeId) -> None:
        self._push(self.now + self.settings.tick_interval_ms, node, self._process[node], node, _TICK)

    def _push(self, time: int, destination: NodeId, process: int, source: NodeId, message: Message | None) -> None:
        self._order += 1
        heappush(self._heap, (time, self._order, destination, process, source, message))

    def _take(self, source: NodeId, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.send(source, effect)
            elif isinstance(effect, Respond):
                self.results[effect.correlation_id] = effect.response
            else:
                self.effects.append((source, effect))
                if isinstance(effect, Stopped):
                    del self.nodes[source]
            if self.on_effect is not None:
                self.on_effect(source, effect)

    def send(self, source: NodeId, effect: Send) -> None:
        """Links are slow, and lose what is sent while they are cut."""
        if (source, effect.destination) not in self.cut:
            delay = self.rng.randint(*LINK_MS)
            self._push(self.now + delay, effect.destination, 0, source, effect.message)

    @property
    def next_correlation_id(self) -> CorrelationId:
        """The correlation id of the next client request."""
        return self._pending_responses + 1

    def _correlation_id(self) -> CorrelationId:
        self._pending_responses += 1
        return self._pending_responses
