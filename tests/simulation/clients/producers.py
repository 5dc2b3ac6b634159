"""Producers writing to the partition that is watched."""

from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.ids import CLIENT, CorrelationId, NodeId
from rackspan.cluster.core.messages import Produce, ProduceResponse, Respond
from rackspan.model.ids import BrokerId
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.traffic import Traffic
from tests.simulation.environment.parameters import FAULTS_MS

if TYPE_CHECKING:
    from tests.simulation.world import Running

TRAFFIC_FROM_MS: Final = 280


class Producers(Traffic):
    """One to four; about half of them idempotent."""

    def __init__(self, world: "Running") -> None:
        super().__init__(world)
        self._producers: list[Producer] = []
        self._waiting: dict[CorrelationId, tuple[Producer, Produce]] = {}

    @property
    def acknowledged(self) -> int:  # type: ignore[override]
        return sum(producer.acknowledged for producer in self._producers)

    def start(self) -> None:
        for index in range(self.world.parameters.producers):
            producer = self._producer(index)
            self._producers.append(producer)
            self.world.clock.at(TRAFFIC_FROM_MS + index, producer.start)

    def _producer(self, index: int) -> Producer:
        world = self.world
        idempotent = index % 2 == 1 or world.parameters.producers == 1
        producer = Producer(
            world.partition,
            world.clock,
            world.rng.clients,
            world.find_leader,
            lambda broker, request: self._produce(producer, broker, request),
            lambda count: self._next_record(count, idempotent=idempotent),
            lambda: world.next("correlation_id"),
            lambda: world.next("producer"),
            idempotent,
            FAULTS_MS,
        )
        return producer

    def _produce(self, producer: Producer, broker: BrokerId, request: Produce) -> None:
        self._waiting[request.correlation_id] = (producer, request)
        self.world.network.send(CLIENT, broker, request)

    def _next_record(self, count: int, *, idempotent: bool) -> int:
        first = self.world.next("record", count) - count
        if idempotent:
            self.world.observer.rules.idempotent.update(range(first, first + count))
        return first

    def responded(self, node: NodeId, effect: Respond) -> None:
        waiting = self._waiting.pop(effect.correlation_id, None)
        response = effect.response
        if waiting is None or not isinstance(response, ProduceResponse):
            return
        producer, request = waiting
        self.world.observer.responded(self.world.machines[BrokerId(node)], request, response)
        self.world.to_client(node, lambda: producer.on_response(effect.correlation_id, response))
