"""The words of a page about a gateway, on a clock of the page: its values, and the records and clients to which it applies them.

gateway override=1             a gateway that starts; the override of its file
value orders racks=2 id=1      a record of the config topic; `id` of the topic that it was set on
damaged orders                 a record that cannot be read
removed orders                 a tombstone
reported orders id=1           a broker's metadata
created orders id=2            the response to a CreateTopics
required orders                what acks=all then requires
wait 60                        seconds

gateway racks=a,a,b            the racks of its brokers, from broker 1 on, which leads orders-0 in epoch 5
metadata isr=1,2               what that broker reports when it is requested now
produce first                  a request with acks=all for orders-0; requests=9: so many
acknowledged first end=40      by the broker: the offset after its record
log 3 end=39                   where broker 3's log ends when it is read now, if it is read now
late                           the record that logs do not show though metadata has enough racks in sync
alter orders min_insync_replicas=3 error=X   a client alters a topic, or the brokers refuse it with that error
response_to shop writes=orders what a client that may write there receives for orders-0, in sync in one rack of two required
empty configs                  a client deletes a topic, then its records; __rackspan_configs is named `configs` here

gateway memory=256000000       bytes for requests that are read whole
receive shop size=9 bytes=5    a client announces a request, and so many of its bytes have been sent
files 1024 clients=500 brokers=3
described_quorum version=2     a response to DescribeQuorum with the controllers' addresses, as clients get it
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from rackspan.acks.isr_samples import LogEnd, LogEnds, Partition, Sample, SampledPartition
from rackspan.acks.min_insync_racks import RackBits, rack_bits
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, AcknowledgementMode, GuardSettings, Hold
from rackspan.gateway.core.endpoints import with_addresses
from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.gateway.handlers import refusals as refusals_module
from rackspan.gateway.handlers.refusals import PERIOD_SECONDS, Refusals
from rackspan.gateway.net.frames import Frame, FrameMemory
from rackspan.gateway.net.open_files import too_few
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import INT32_MAX, Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response
from rackspan.wire.messages.describe_quorum import (
    DescribeQuorumResponseData,
    DescribeQuorumResponseListener,
    DescribeQuorumResponseNode,
)
from rackspan.wire.messages.log_offsets import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequestData,
    DeleteRecordsResponseData,
    DeleteRecordsTopicResult,
)
from rackspan.wire.messages.topics import DeletableTopicResult, DeleteTopicsRequestData, DeleteTopicsResponseData
from tests.gateway.core.addresses import renamed
from tests.gateway.core.test_endpoints import written
from tests.gateway.handlers.test_admin_rules import KeptStore, handled, records
from tests.gateway.handlers.test_config_rules import TOPIC, accepted, incremental
from tests.gateway.handlers.test_produce_rules import Client, Made, Outcome, outcomes
from tests.gateway.handlers.test_refusals import SESSION

ORDERS: Final = ("orders", 0)
LEADER: Final = BrokerId(1)
EPOCH: Final = 5


@dataclass
class Gateway:
    """`holds`: the acknowledgements that are held, by request. `frames`: the requests that are being received, by client."""

    policies: Policies
    racks: RackBits
    memory: FrameMemory
    guard: AcknowledgementGuard
    refusals: Refusals = field(default_factory=Refusals)
    holds: dict[str, Hold] = field(default_factory=dict)
    frames: dict[str, Frame] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    """Clients whose request waits for memory, with the bytes that they have sent."""
    now: float = 0.0

    @classmethod
    def begun(cls, override: str | None = None, racks: str = "", memory: str = "0") -> "Gateway":
        policies = Policies(FilePolicies(override=None if override is None else int(override)))
        brokers = [Broker(BrokerId(number), RackId(rack)) for number, rack in enumerate(racks.split(","), 1)]
        guard = AcknowledgementGuard(GuardSettings(), required=policies.requirement)
        return cls(policies, rack_bits(brokers), FrameMemory(int(memory)), guard)

    def ended(self, holds: list[Hold]) -> Iterator[str]:
        """What the clients of held acknowledgements receive, once these are decided."""
        for name in [name for name, hold in self.holds.items() if hold in holds]:
            hold = self.holds.pop(name)
            yield f"{name}: {'refused' if hold.refusals else 'acknowledged to its client'}"
            with _logged() as lines:
                self.refusals.count(SESSION, hold.refusals.values())
            yield from lines


def value(gateway: Gateway, topic: str, *, racks: str, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    gateway.policies.replay(*record(Scope.TOPIC, topic, Entry(int(racks), _id(id))))
    yield from required(gateway, topic)


def damaged(gateway: Gateway, topic: str) -> Iterator[str]:
    key, _ = record(Scope.TOPIC, topic, Entry(2, _id("1")))
    gateway.policies.replay(key, b'{"version": 99}')
    yield from required(gateway, topic)


def removed(gateway: Gateway, topic: str) -> Iterator[str]:
    gateway.policies.replay(*record(Scope.TOPIC, topic, None))
    yield from required(gateway, topic)


def reported(gateway: Gateway, topic: str, *, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    gateway.policies.record_topic(topic, _id(id), gateway.now)
    yield from required(gateway, topic)


def created(gateway: Gateway, topic: str, *, id: str) -> Iterator[str]:  # noqa: A002 — the page's word
    gateway.policies.record_created(topic, gateway.policies.entry_id(topic), _id(id), gateway.now)
    yield from required(gateway, topic)


def required(gateway: Gateway, topic: str) -> Iterator[str]:
    policies = gateway.policies
    requirement = policies.requirement(topic, LEADER)
    racks = 1 if requirement is None else requirement.thresholds.min_insync_racks
    replicas = 1 if requirement is None else requirement.thresholds.min_insync_replicas
    if racks == INT32_MAX:
        yield f"{topic}: acks=all is refused, since its record cannot be read"
    else:
        yield f"{topic}: acks=all needs {racks} {'rack' if racks == 1 else 'racks'}" + (
            f" and {replicas} replicas" if replicas > 1 else ""
        )


def wait(gateway: Gateway, seconds: str) -> Iterator[str]:
    gateway.now += float(seconds)
    yield from gateway.ended(gateway.guard.expire(gateway.now))
    if float(seconds) >= PERIOD_SECONDS:
        with _logged() as lines:
            gateway.refusals.end_period()
        yield from lines
    for client, frame in [*gateway.frames.items()]:
        if gateway.memory.is_overdue(frame, gateway.now):
            yield f"{client}: closed after {frame.filled:,} of {frame.size:,} bytes"
            yield from _end_frame(gateway, client)


def metadata(gateway: Gateway, *, isr: str) -> Iterator[str]:
    state = SampledPartition(LEADER, EPOCH, tuple(BrokerId(int(broker)) for broker in isr.split(",")))
    sample = Sample(LEADER, gateway.now, gateway.racks, frozenset({"orders"}), {ORDERS: state}, {"orders": _id("1")})
    yield from gateway.ended(gateway.guard.observe(sample))


def produce(gateway: Gateway, name: str, *, requests: str = "1") -> Iterator[str]:
    requirement = gateway.policies.requirement("orders", LEADER)
    required = {} if requirement is None else {ORDERS: requirement}
    refusals = gateway.guard.admit(LEADER, required, gateway.now, final=True).refusals
    if refusals:
        yield f"{name}: refused" + (f", {int(requests):,} requests" if requests != "1" else "")
        with _logged() as lines:
            for _ in range(int(requests)):
                gateway.refusals.count(SESSION, refusals.values())
        yield from lines
        return
    hold = gateway.guard.forwarded(LEADER, required, gateway.now + 10.0)
    if hold is not None:
        gateway.holds[name] = hold
    yield f"{name}: forwarded"


def acknowledged(gateway: Gateway, name: str, *, end: str) -> Iterator[str]:
    gateway.guard.acknowledged(gateway.holds[name], {ORDERS: int(end)}, gateway.now)
    yield f"{name}: the acknowledgement is held"


def log(gateway: Gateway, broker: str, *, end: str) -> Iterator[str]:
    reads = gateway.guard.reads_due(BrokerId(int(broker)), gateway.now)
    if not reads:
        yield f"the log of broker {broker} is not read"
    ends = dict.fromkeys(reads, LogEnd(EPOCH, int(end)))
    yield from gateway.ended(gateway.guard.observe_log_ends(LogEnds(BrokerId(int(broker)), gateway.now, reads, ends)))


def late(gateway: Gateway) -> Iterator[str]:
    yield f"{gateway.guard.disagreement(gateway.now) or 'no record is late'}"


def response_to(_: Gateway, client: str, *, writes: str = "") -> Iterator[str]:
    async def received() -> Mapping[Partition, Outcome]:
        session = Client(writes)
        await Made(AcknowledgementMode.VERIFIED, {ORDERS: [1]}).sent(session, {"orders": [0]})
        return outcomes(session.responses[0])

    error, message = asyncio.run(received())[ORDERS]
    yield _outcome(client, error, message)


def alter(gateway: Gateway, topic: str, *, error: str = "NONE", **configs: str) -> Iterator[str]:
    body = incremental((TOPIC, topic, [(key.replace("_", "."), 0, text) for key, text in configs.items()]))
    result, store = accepted((TOPIC, topic), error=ErrorCode[error]), KeptStore()
    response, _ = handled(body, result, store=store, policies=gateway.policies)
    yield from (_outcome(one.resource_name, one.error_code, one.error_message) for one in response.responses)
    for key, text, racks in store.written:
        yield f"  once {racks} {'rack holds' if racks == 1 else 'racks hold'} the record"
        gateway.policies.replay(key, text)


def empty(gateway: Gateway, topic: str) -> Iterator[str]:
    store, policies = KeptStore(), gateway.policies
    deleted = DeleteTopicsResponseData(responses=[DeletableTopicResult(name=topic)])
    response, _ = handled(DeleteTopicsRequestData(topic_names=[topic]), deleted, store=store, policies=policies)
    yield from (_outcome(f"DeleteTopics {topic}", one.error_code, one.error_message) for one in response.responses)
    result = DeleteRecordsTopicResult(name=topic, partitions=[DeleteRecordsPartitionResult()])
    body = DeleteRecordsRequestData(topics=[records(topic, 0)])
    response, _ = handled(body, DeleteRecordsResponseData(topics=[result]), store=store, policies=policies)
    yield from (
        _outcome(f"DeleteRecords {topic}", part.error_code) for one in response.topics for part in one.partitions
    )


def receive(gateway: Gateway, client: str, *, size: str, bytes: str) -> Iterator[str]:  # noqa: A002 — the page's word
    if client not in gateway.frames:
        gateway.frames[client] = gateway.memory.begin(int(size), gateway.now)
    gateway.waiting[client] = int(bytes)
    yield from _received(gateway, client)


def _received(gateway: Gateway, client: str) -> Iterator[str]:
    frame, sent = gateway.frames[client], gateway.waiting[client]
    while left := sent - frame.filled:
        size = gateway.memory.receivable(frame, lambda: None, gateway.now)
        if not size:
            yield f"{client}: waits for memory, {frame.filled:,} bytes have arrived"
            return
        gateway.memory.fill(frame, min(size, left))
    del gateway.waiting[client]
    if frame.is_whole:
        yield f"{client}: its request is whole"
        yield from _end_frame(gateway, client)
    else:
        yield f"{client}: {frame.filled:,} of {frame.size:,} bytes, {gateway.memory.used:,} in use"


def _end_frame(gateway: Gateway, client: str) -> Iterator[str]:
    gateway.memory.end(gateway.frames.pop(client))
    for other in [*gateway.waiting]:
        yield from _received(gateway, other)


def files(_: Gateway, limit: str, *, clients: str, brokers: str) -> Iterator[str]:
    yield too_few(int(limit), int(clients), int(brokers)) or "all of them can connect"


def described_quorum(_: Gateway, *, version: str) -> Iterator[str]:
    listener = DescribeQuorumResponseListener(name="CONTROLLER", host="controller-101.internal", port=9093)
    nodes = [DescribeQuorumResponseNode(node_id=101, listeners=[listener])] if int(version) >= 2 else []
    original = written(ApiKey.DESCRIBE_QUORUM, int(version), DescribeQuorumResponseData(nodes=nodes))
    parts = with_addresses(ApiKey.DESCRIBE_QUORUM, int(version), original, renamed())
    shown = read_response(ApiKey.DESCRIBE_QUORUM, int(version), b"".join(parts))
    addresses = [f"{one.host}:{one.port}" for node in shown.nodes for one in node.listeners]
    yield f"addresses of controllers: {', '.join(addresses) or 'none'}"


def _outcome(request: str, code: int, message: str | None = None) -> str:
    return f"{request}: {'accepted' if code == ErrorCode.NONE else ErrorCode(code).name}" + (
        f", {message}" if message else ""
    )


@contextmanager
def _logged() -> Iterator[list[str]]:
    """The lines that the gateway's log gets meanwhile about refusals."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"  log: {record.getMessage()}")

    handler = Lines()
    refusals_module.log.addHandler(handler)
    try:
        yield lines
    finally:
        refusals_module.log.removeHandler(handler)


def _id(number: str) -> UUID:
    return UUID(int=int(number))


WORDS: Final[Mapping[str, Callable[..., Iterator[str]]]] = {
    "value": value,
    "damaged": damaged,
    "removed": removed,
    "reported": reported,
    "created": created,
    "required": required,
    "wait": wait,
    "metadata": metadata,
    "produce": produce,
    "acknowledged": acknowledged,
    "log": log,
    "late": late,
    "response_to": response_to,
    "alter": alter,
    "empty": empty,
    "receive": receive,
    "files": files,
    "described_quorum": described_quorum,
}
