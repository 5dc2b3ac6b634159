"""The cluster of tests/cluster/world.py, whose brokers have their coordinators beside them."""

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeVar

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore, BrokerIdentity
from rackspan.cluster.core.coordination import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import GroupRequest
from rackspan.cluster.core.ids import CLIENT, CorrelationId, NodeId
from rackspan.cluster.core.messages import Effect, Produce, Respond, Send, SendRequest, TransactionSupport
from rackspan.cluster.core.process import BrokerProcess
from rackspan.cluster.core.transactions import TransactionCoordinator, TransactionSettings
from rackspan.cluster.core.transactions.requests import (
    EndTransaction,
    EndTransactionResponse,
    InitProducerId,
    InitProducerIdResponse,
    TransactionRequest,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from tests.cluster.world import World

GROUPS = GroupSettings(offsets_topic_num_partitions=1)
TRANSACTIONS = TransactionSettings(transaction_state_log_num_partitions=1)
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)
STATE = TopicPartition(TRANSACTIONS_TOPIC, 0)

NOWHERE = -9

T = TypeVar("T")


@dataclass
class ProcessWorld(World):
    """A response to a request between brokers arrives at once, unless their link is cut."""

    _sent: dict[CorrelationId, tuple[int, int]] = field(default_factory=dict)

    def start(self, broker: int) -> BrokerCore:
        self._incarnations += 1
        rack = self.rack_of[broker]
        identity = BrokerIdentity(BrokerId(broker), self._incarnations, None if rack is None else RackId(rack))
        process = BrokerProcess(
            BrokerCore(identity, self.settings, self.disks[broker], self.broker_rules),
            GroupCoordinator(GROUPS, Random(self._incarnations)),
            TransactionCoordinator(TRANSACTIONS),
        )
        self.nodes[broker] = process
        self._process[broker] = self._incarnations
        self._tick(broker)
        return process.broker

    def process(self, broker: int) -> BrokerProcess:
        process = self.nodes[broker]
        assert isinstance(process, BrokerProcess)
        return process

    def broker(self, broker: int) -> BrokerCore:
        return self.process(broker).broker

    def _take(self, source: NodeId, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendRequest):
                correlation_id = self._correlation_id()
                self._sent[correlation_id] = (source, effect.request_id)
                message = replace(effect.message, correlation_id=correlation_id)
                self.send(source, Send(effect.destination, message))
                self.effects.append((source, effect))
            elif isinstance(effect, Respond) and effect.correlation_id in self._sent:
                sender, request_id = self._sent.pop(effect.correlation_id)
                if sender in self.nodes and (source, sender) not in self.cut:
                    process = self.process(sender)
                    self._take(sender, process.on_response(self.now, request_id, effect.response))
            else:
                super()._take(source, [effect])

    def hold_responses(self) -> None:
        """Responses to the requests between brokers that are under way never arrive."""
        self._sent = dict.fromkeys(self._sent, (NOWHERE, 0))

    # Clients.

    def request(self, broker: int, request: GroupRequest | TransactionRequest, response: type[T]) -> T:
        """The coordinator's response."""
        correlation_id = self._correlation_id()
        self._take(broker, self.process(broker).on_request(self.now, correlation_id, request))
        return self.response(correlation_id, response)

    def response(self, correlation_id: CorrelationId, response: type[T]) -> T:
        self.run_until(lambda: correlation_id in self.results)
        found: Any = self.results[correlation_id]
        assert isinstance(found, response)
        return found

    def init(self) -> InitProducerIdResponse:
        request = InitProducerId("t", 60_000, fresh_producer_id=7)
        return self.request(self.state(STATE).leader, request, InitProducerIdResponse)

    def end(self, producer: InitProducerIdResponse, *, commit: bool = True) -> ErrorCode:
        request = EndTransaction("t", producer.producer_id, producer.producer_epoch, commit)
        return self.request(self.state(STATE).leader, request, EndTransactionResponse).error

    def write(
        self,
        partition: TopicPartition,
        producer: InitProducerIdResponse,
        support: TransactionSupport,
        sequence: int = 0,
        transactional_id: str | None = "t",
    ) -> CorrelationId:
        """Produce one transactional record."""
        correlation_id = self._correlation_id()
        batch = RecordBatch(
            *(0, 0, -1),
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        message = Produce(correlation_id, partition, (batch,), transactional_id=transactional_id, support=support)
        leader = self.state(partition).leader
        self._take(leader, self.process(leader).on_message(self.now, CLIENT, message))
        return correlation_id
