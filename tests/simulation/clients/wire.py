"""Producers that send bytes, as a client on a socket does, some of them flawed, to a topic whose cleanup.policy changes.

Encoded and read again by kafka-python. What a broker takes and refuses is judged by what the producer sent and by the
configs in that broker's own metadata:

V1 a flawed batch is refused with the error that its flaw has, and no other batch is refused as flawed.
V2 in the end every log holds, of each record, a key and value that its producer sent, in batches whose CRC is right.
"""

from dataclasses import dataclass
from enum import Enum, auto
from random import Random
from typing import TYPE_CHECKING, Final

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from rackspan.cluster.core.admin_messages import AlterConfigs, AlterResource, ConfigOp
from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import Produce, ProduceResponse, Respond
from rackspan.cluster.core.metadata import ConfigResource
from rackspan.cluster.handlers.common import keyless_records
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.simulation.clients.producer import Producer
from tests.simulation.clients.producers import TRAFFIC_FROM_MS, Producers
from tests.simulation.clients.request import ClientRequest
from tests.simulation.environment.machine import Machine
from tests.simulation.environment.parameters import FAULTS_MS
from tests.simulation.judges.evidence import Violation

if TYPE_CHECKING:
    from tests.simulation.world import Running

POLICIES: Final = ("delete", "compact", "compact,delete", "delete, compact")
FLAWED: Final = 0.25
"""The share of requests with a flaw."""

HOUR_MS: Final = 3_600_000
"""Kafka's default of message.timestamp.after.max.ms."""

CRC_AT: Final = 17
MAGIC_AT: Final = 16


class Flaw(Enum):
    """What is wrong with a request's records."""

    CORRUPT = auto()
    OLD_FORMAT = auto()
    TWO_BATCHES = auto()
    NOTHING = auto()
    KEYLESS = auto()
    FUTURE = auto()
    ACKS = auto()


REFUSALS: Final = {
    Flaw.CORRUPT: ErrorCode.CORRUPT_MESSAGE,
    Flaw.OLD_FORMAT: ErrorCode.INVALID_RECORD,
    Flaw.TWO_BATCHES: ErrorCode.INVALID_RECORD,
    Flaw.NOTHING: ErrorCode.INVALID_RECORD,
    Flaw.KEYLESS: ErrorCode.INVALID_RECORD,
    Flaw.FUTURE: ErrorCode.INVALID_TIMESTAMP,
    Flaw.ACKS: ErrorCode.INVALID_REQUIRED_ACKS,
}
FLAWS: Final = tuple(Flaw)


@dataclass(frozen=True, slots=True)
class ProduceBytes:
    """A request for one partition as it leaves the client."""

    partition: TopicPartition
    records: bytes
    acks: int
    timeout_ms: int
    flaw: Flaw | None


class WireProducers(Producers):
    """As `Producers`, but what travels are bytes."""

    def __init__(self, world: "Running") -> None:
        super().__init__(world)
        self._rng = Random(f"wire {world.seed}")
        self._keys: dict[int, set[bytes | None]] = {}

    def start(self) -> None:
        super().start()
        for at in range(TRAFFIC_FROM_MS, FAULTS_MS, 400):
            self.world.clock.at(at + self._rng.randint(0, 300), self._change_policy)

    def _change_policy(self) -> None:
        policy = ConfigOp("cleanup.policy", 0, self._rng.choice(POLICIES))
        resource = AlterResource(ConfigResourceType.TOPIC, self.world.partition.topic, (policy,))
        self.world.send_to_controller(AlterConfigs(self.world.next("correlation_id"), (resource,)))

    # What is sent

    def _produce(self, producer: Producer, broker: BrokerId, request: Produce) -> None:
        flaw = self._rng.choice(FLAWS) if self._rng.random() < FLAWED else None
        self._waiting[request.correlation_id] = (producer, request)
        records = self._encoded(request.batches[0], flaw)
        acks = 2 if flaw is Flaw.ACKS else request.acks
        sent = ProduceBytes(request.partition, records, acks, request.timeout_ms, flaw)
        self.world.network.send(CLIENT, broker, ClientRequest(request.correlation_id, sent))

    def _encoded(self, batch: RecordBatch, flaw: Flaw | None) -> bytes:
        """The judges number records by the batch's timestamp, so that all of its records have the number of the first."""
        if flaw is Flaw.NOTHING:
            return b""
        builder = DefaultRecordBatchBuilder(
            2, 0, False, batch.producer_id, batch.producer_epoch, batch.base_sequence, 1 << 16
        )
        timestamp = batch.max_timestamp + (2 * HOUR_MS if flaw is Flaw.FUTURE else 0)
        keyless = self._rng.randrange(batch.record_count) if flaw is Flaw.KEYLESS else None
        for index in range(batch.record_count):
            number = batch.max_timestamp + index
            key = None if index == keyless else b"key of %d" % number
            self._keys.setdefault(number, set()).add(key)
            builder.append(index, timestamp, key, b"%d" % number, [])
        return _spoilt(bytes(builder.build()), flaw)

    # What arrives

    def received(self, machine: Machine, message: ClientRequest) -> None:
        """What the Produce handler does with a request: the core validates, and appends what is valid."""
        world, sent, broker = self.world, message.request, machine.broker
        assert isinstance(sent, ProduceBytes)
        assert broker is not None
        now = world.clock.now
        batch = broker.validated_batch(sent.partition, memoryview(sent.records), sent.acks, now, keyless_records)
        self._judge_verdict(machine, sent, batch)
        if isinstance(batch, ProduceResponse):
            self.responded(machine.id, Respond(message.correlation_id, batch))
            return
        request = Produce(message.correlation_id, sent.partition, (batch,), sent.acks, sent.timeout_ms)
        world.carry_out(machine.id, machine.on_message(now, CLIENT, request))

    def _judge_verdict(self, machine: Machine, sent: ProduceBytes, batch: RecordBatch | ProduceResponse) -> None:
        """V1."""
        assert machine.broker is not None
        actual = batch.error if isinstance(batch, ProduceResponse) else ErrorCode.NONE
        topic = machine.broker.image.topics.get(sent.partition.topic)
        if topic is None and sent.flaw not in (Flaw.ACKS, Flaw.NOTHING):
            expected = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif sent.flaw is None or (sent.flaw is Flaw.KEYLESS and not self._compacted(machine, sent.partition.topic)):
            expected = ErrorCode.NONE
        else:
            expected = REFUSALS[sent.flaw]
        if actual is not expected:
            flaw = "no flaw" if sent.flaw is None else f"the flaw {sent.flaw.name}"
            self._break("V1", f"broker {machine.id} says {actual.name} to a batch with {flaw}, not {expected.name}")

    def _compacted(self, machine: Machine, topic: str) -> bool:
        """By the configs in its metadata, read anew."""
        assert machine.broker is not None
        policy = machine.broker.image.config_of(ConfigResource(ConfigResourceType.TOPIC, topic)).get(
            "cleanup.policy", "delete"
        )
        return "compact" in [one.strip() for one in policy.split(",")]

    # The end

    def settled(self) -> None:
        """V2."""
        for machine in self.world.machines.values():
            log = machine.disk.logs.get(self.world.partition)
            for batch in () if log is None else log.batches:
                self._judge_batch(machine, batch)

    def _judge_batch(self, machine: Machine, batch: RecordBatch) -> None:
        read = DefaultRecordBatch(bytes(batch.data))
        if not read.validate_crc():
            self._break("V2", f"broker {machine.id} holds a batch at offset {batch.base_offset} whose CRC is wrong")
        if (read.base_offset, read.leader_epoch) != (batch.base_offset, batch.leader_epoch):
            self._break("V2", f"broker {machine.id}'s batch at offset {batch.base_offset} says {read.base_offset}")
        for index, record in enumerate(read):
            number = batch.max_timestamp + index
            if record.value != b"%d" % number or record.key not in self._keys[number]:
                self._break("V2", f"broker {machine.id} holds {record.key!r}, {record.value!r} as record {number}")

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.world.observer.evidence.event, text)


def _spoilt(records: bytes, flaw: Flaw | None) -> bytes:
    if flaw is Flaw.TWO_BATCHES:
        return records + records
    spoilt = bytearray(records)
    if flaw is Flaw.CORRUPT:
        spoilt[-1] ^= 1
    elif flaw is Flaw.OLD_FORMAT:
        spoilt[MAGIC_AT] = 1
    return bytes(spoilt)
