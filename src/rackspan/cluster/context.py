"""What a request handler receives: the request, and the broker's state that it may read or change.

Begin with Call and BrokerContext, at the end. Nothing here imports a handler or the broker host.
"""

import asyncio
from asyncio import Future
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

from rackspan.cluster.core.admin_messages import ProducerIdBlock
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.configs import ConfigValue
from rackspan.cluster.core.groups import GroupCoordinator
from rackspan.cluster.core.groups.requests import GroupRequest
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.log import PartitionLog
from rackspan.cluster.core.messages import Message, ReplicaFetchResponse
from rackspan.cluster.core.metadata import BrokerImage, MetadataImage, TopicImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.core.transactions import TransactionCoordinator
from rackspan.cluster.core.transactions.requests import TransactionRequest
from rackspan.errors import UsageError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct

BuildRequest: TypeAlias = Callable[[CorrelationId], Message]
OnResponse: TypeAlias = Callable[[Any], None]
CoordinatorRequest: TypeAlias = GroupRequest | TransactionRequest


class PendingResponses:
    """The callbacks of requests without a response yet, for all brokers of a cluster. A correlation id is never used twice."""

    def __init__(self) -> None:
        self._last = 0
        self._callbacks: dict[CorrelationId, tuple[object, OnResponse]] = {}

    def register(self, on_response: OnResponse, owner: object = None) -> CorrelationId:
        """A new correlation id, whose response calls `on_response` once."""
        self._last += 1
        self._callbacks[self._last] = (owner, on_response)
        return self._last

    def resolve(self, correlation_id: CorrelationId, response: Any) -> None:
        """Call the callback of the request. A second response, or one for a dropped request, is ignored."""
        registered = self._callbacks.pop(correlation_id, None)
        if registered is not None:
            registered[1](response)

    def drop(self, correlation_id: CorrelationId) -> None:
        self._callbacks.pop(correlation_id, None)

    def drop_all(self, owner: object) -> None:
        """Drop the requests that were registered with `owner`."""
        for correlation_id, (registered_owner, _) in tuple(self._callbacks.items()):
            if registered_owner is owner:
                del self._callbacks[correlation_id]

    def __len__(self) -> int:
        return len(self._callbacks)


class NetworkSend(Protocol):
    """Network.send: `signed` is the source that the receiver sees."""

    def __call__(
        self, source: NodeId, destination: NodeId, message: Message, *, signed: NodeId | None = None
    ) -> None: ...


class Requests:
    """Sends the requests of one run of a broker. Responses are dropped once it has ended.

    `deliver` passes a message to the broker's core, `coordinate` a request to its coordinators, `send` a message over the network.
    """

    def __init__(
        self,
        broker: BrokerId,
        pending: PendingResponses,
        deliver: Callable[[Message], None],
        coordinate: Callable[[CorrelationId, CoordinatorRequest], None],
        send: NetworkSend,
    ) -> None:
        self._broker = broker
        self._pending = pending
        self._deliver = deliver
        self._coordinate = coordinate
        self._send = send
        self._coordinator_responses: set[asyncio.Future[Any]] = set()

    def register(self, on_response: OnResponse) -> CorrelationId:
        """A correlation id for a request of this broker."""
        return self._pending.register(on_response, owner=self)

    def drop_all(self) -> None:
        """The broker has stopped: its callbacks are never called, and requests to its coordinators are cancelled."""
        self._pending.drop_all(owner=self)
        for response in tuple(self._coordinator_responses):
            response.cancel()

    def send_to_core(self, build: BuildRequest, on_response: OnResponse) -> None:
        """To this broker's core. `on_response` is called once, perhaps before this returns, or never if the broker stops first."""
        self._deliver(build(self.register(on_response)))

    async def core_response(self, build: BuildRequest, timeout_ms: int, default: Any) -> Any:
        """The response of this broker's core, `default` on timeout."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.send_to_core(build, lambda value: _set_once(response, value))
        return await _within(response, timeout_ms, default)

    async def coordinator_response(self, request: CoordinatorRequest) -> Any:
        """The response of this broker's group or transaction coordinator. Cancelled if the broker stops first."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._coordinator_responses.add(response)
        response.add_done_callback(self._coordinator_responses.discard)
        self._coordinate(self.register(lambda value: _set_once(response, value)), request)
        return await response

    async def controller_response(self, build: BuildRequest, timeout_ms: int, default: Any) -> Any:
        """The controller's response, over this broker's link to it, `default` on timeout."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        correlation_id = self._pending.register(lambda value: _set_once(response, value))
        self._send(self._broker, CONTROLLER, build(correlation_id), signed=CLIENT)
        try:
            return await _within(response, timeout_ms, default)
        finally:
            self._pending.drop(correlation_id)


def _set_once(future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        future.set_result(value)


async def _within(future: "asyncio.Future[Any]", timeout_ms: int, default: Any) -> Any:
    try:
        return await asyncio.wait_for(future, timeout_ms / 1000)
    except TimeoutError:
        return default


AllocateBlock: TypeAlias = Callable[[], Awaitable[ProducerIdBlock | None]]


class ProducerIds:
    """The unused rest of a broker's block; `allocate_block` requests the next one from the controller. No id is given twice."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._unused = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next(self) -> int | None:
        """None where the controller does not respond in time."""
        async with self._allocating:
            producer_id = next(self._unused, None)
            if producer_id is not None:
                return producer_id
            block = await self._allocate_block()
            if block is None:
                return None
            self._unused = iter(range(block.first, block.first + block.length))
            return next(self._unused)


Wake: TypeAlias = Callable[[], None]


class DelayedFetches:
    """The waiting fetches of one broker by partition (Kafka's DelayedFetch purgatory). A fetch is woken by a change only, so waiting costs nothing."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, set[Wake]] = {}

    def add(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            self._waiting.setdefault(partition, set()).add(wake)

    def remove(self, partitions: Iterable[TopicPartition], wake: Wake) -> None:
        for partition in partitions:
            waiting = self._waiting.get(partition)
            if waiting is not None:
                waiting.discard(wake)
                if not waiting:
                    del self._waiting[partition]

    def wake(self, partition: TopicPartition) -> None:
        """Call every fetch that waits for the partition. A fetch that is done removes itself."""
        for wake in tuple(self._waiting.get(partition, ())):
            wake()

    def __len__(self) -> int:
        return len(self._waiting)


_CATCH_UP_MS_MAX: Final = 1_000
"""A broker that receives metadata late is a fault that a test has injected: an admin request through it does not wait longer."""


class MetadataUpdates:
    """The metadata updates that one running broker has applied. `image` reads its metadata, `committed_offset` the offset that the controller has committed."""

    def __init__(self, image: Callable[[], MetadataImage], committed_offset: Callable[[], int]) -> None:
        self._image = image
        self._committed_offset = committed_offset
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """The metadata has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for(self, condition: Callable[[MetadataImage], bool], timeout_ms: int) -> bool:
        """Wait until the metadata meets `condition`; False on timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while not condition(self._image()):
            seconds_left = deadline - loop.time()
            if seconds_left <= 0:
                return False
            try:
                await asyncio.wait_for(self._changed.wait(), seconds_left)
            except TimeoutError:
                return condition(self._image())
        return True

    async def wait_until_caught_up(self, timeout_ms: int) -> bool:
        """Wait until this broker has the metadata that the controller has committed by now; False on timeout."""
        offset = self._committed_offset()
        return await self.wait_for(lambda image: image.offset >= offset, min(timeout_ms, _CATCH_UP_MS_MAX))


MAX_CACHED_RESPONSES: Final = 64
"""Clients request few different sets of topics."""

CacheKey: TypeAlias = tuple[int, tuple[object, ...] | None]
"""The request's version, and its topics by name or id; None for all topics."""


class MetadataCache:
    """The encoded Metadata responses of one running broker: whole ones until the metadata changes, a topic's until it changes.

    A client's repeated request for a thousand topics then costs nothing, and the first one after a change of one topic little.
    """

    def __init__(self) -> None:
        self._responses: dict[CacheKey, bytes] = {}
        self._topics: dict[int, dict[str, tuple[TopicImage, bytes]]] = {}
        self._unfenced: frozenset[BrokerId] = frozenset()

    def __len__(self) -> int:
        return len(self._responses)

    def drop_responses(self) -> None:
        """The metadata has changed. The bytes of unchanged topics stay."""
        self._responses.clear()

    def response(self, key: CacheKey, encode: Callable[[], bytes]) -> bytes:
        """The cached response, or a new one from `encode`."""
        response = self._responses.get(key)
        if response is None:
            if len(self._responses) >= MAX_CACHED_RESPONSES:
                del self._responses[next(iter(self._responses))]
            response = self._responses[key] = encode()
        return response

    def topics(self, version: int, image: MetadataImage, encode: Callable[[TopicImage], bytes]) -> list[bytes]:
        """Every topic in order of name; only new and changed ones are encoded."""
        # A topic's bytes list its offline replicas, so they depend on the unfenced brokers.
        unfenced = frozenset(broker.id for broker in image.brokers.values() if not broker.fenced)
        if unfenced != self._unfenced:
            self._topics.clear()
            self._unfenced = unfenced
        cached, current = self._topics.get(version, {}), {}
        for name, topic in sorted(image.topics.items()):
            entry = cached.get(name)
            current[name] = entry if entry is not None and entry[0] is topic else (topic, encode(topic))
        self._topics[version] = current
        return [encoded for _, encoded in current.values()]


class Path(StrEnum):
    """Whether a producer, a follower or a consumer caused the bytes."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class Flow:
    """What one byte count is about: from a rack to a rack. `client` is a client id, None between brokers.

    A client's rack is the one it names in a fetch (client.rack). Producers name none, and count under None.

    `from_follower`: a consumer was served by a broker that did not lead the partition.
    """

    path: Path
    topic: str
    client: str | None
    from_rack: RackId | None
    to_rack: RackId | None
    from_follower: bool = False

    @property
    def crosses_racks(self) -> bool:
        """An unknown rack differs from every known one; two unknown racks count as one."""
        return self.from_rack != self.to_rack


class RecordTraffic:
    """The bytes of each flow since the cluster started. `racks` are the brokers' racks, as they registered.

    A fetch names no group. Its client id does, since every client of a group looks up the group's coordinator.
    """

    def __init__(self) -> None:
        self.racks: dict[NodeId, RackId | None] = {}
        self._bytes: Counter[Flow] = Counter()
        self._groups: defaultdict[str | None, set[str]] = defaultdict(set)
        """Groups by client id."""

    def add_produced(self, broker: BrokerId, client_id: str | None, topic: str, size_bytes: int) -> None:
        self._bytes[Flow(Path.PRODUCE, topic, client_id, None, self.racks.get(broker))] += size_bytes

    def add_fetched(
        self,
        broker: BrokerId,
        client_id: str | None,
        client_rack: str | None,
        topic: str,
        size_bytes: int,
        *,
        from_follower: bool,
    ) -> None:
        to_rack = RackId(client_rack) if client_rack else None
        self._bytes[Flow(Path.FETCH, topic, client_id, self.racks.get(broker), to_rack, from_follower)] += size_bytes

    def add_delivered(self, source: NodeId, destination: NodeId, message: Message) -> None:
        """A message between brokers: of those, only fetch responses to followers carry records."""
        if isinstance(message, ReplicaFetchResponse):
            from_rack, to_rack = self.racks.get(source), self.racks.get(destination)
            for fetched in message.partitions:
                size_bytes = sum(batch.size_bytes for batch in fetched.batches)
                if size_bytes:
                    flow = Flow(Path.REPLICATE, fetched.partition.topic, None, from_rack, to_rack)
                    self._bytes[flow] += size_bytes

    def add_group_client(self, group: str, client_id: str | None) -> None:
        self._groups[client_id].add(group)

    def flows(self) -> dict[Flow, int]:
        return dict(self._bytes)

    def fetched_by(self, group: str) -> dict[Flow, int]:
        """The bytes that clients of the group fetched. Errors: UsageError for a client id that several groups have."""
        fetched: dict[Flow, int] = {}
        for flow, size_bytes in self._bytes.items():
            groups = self._groups.get(flow.client, set()) if flow.path is Path.FETCH else set()
            if group in groups:
                if len(groups) > 1:
                    raise UsageError(
                        f"client id {flow.client!r}: clients of the groups {', '.join(sorted(groups))} have it, so that "
                        "their reads cannot be separated; give each a client.id of its own"
                    )
                fetched[flow] = size_bytes
        return fetched

    def clear(self) -> None:
        self._bytes.clear()
        self._groups.clear()


CONTROLLER_ID: Final = BrokerId(3000)
"""The controller's id in responses to clients. Kafka's own examples number controllers from 3000."""


class BrokerContext(Protocol):
    """One running broker, as its request handlers use it.

    Reading from a broker that has stopped raises CancelledError: its connections are closed, and no client waits.
    """

    # Identity, settings, time.

    @property
    def id(self) -> BrokerId: ...
    @property
    def cluster_id(self) -> str: ...
    @property
    def settings(self) -> ClusterSettings: ...
    @property
    def now(self) -> int:
        """Milliseconds since 1970."""

    # Metadata.

    @property
    def image(self) -> MetadataImage:
        """The cluster metadata as this broker has it."""

    @property
    def metadata_updates(self) -> MetadataUpdates: ...
    @property
    def metadata_cache(self) -> MetadataCache: ...
    def endpoints(self, brokers: Iterable[BrokerId]) -> list[BrokerImage]:
        """The registered ones of `brokers`, to which a response sends its client."""

    def own_config(self, value: ConfigValue) -> ConfigValue:
        """A broker config, with the value that only this broker has: its ids, its rack, its listener."""

    # Replicas.

    @property
    def core(self) -> BrokerCore:
        """The core's broker, for reads that need no message."""

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]: ...
    @property
    def delayed_fetches(self) -> DelayedFetches: ...

    # Requests and coordinators.

    @property
    def requests(self) -> Requests: ...
    @property
    def groups(self) -> GroupCoordinator: ...
    @property
    def transactions(self) -> TransactionCoordinator: ...
    @property
    def producer_ids(self) -> ProducerIds: ...

    # What is counted, and how errors are encoded.

    @property
    def traffic(self) -> RecordTraffic: ...
    def code(self, error: ErrorCode) -> int:
        """The error code for clients: errors that only this cluster has become Kafka's, unless extended.error.codes is set."""


RequestT = TypeVar("RequestT", covariant=True)


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response body that is already encoded, for responses that are cached."""

    parts: Sequence[bytes]


Response: TypeAlias = WireStruct | EncodedResponse | None
"""None: the client expects no response (acks=0)."""


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT]):
    """One request of one client to one broker. `request` is of a class of rackspan.wire.messages."""

    header: RequestHeader
    request: RequestT
    broker: BrokerContext
    client_host: str

    @property
    def version(self) -> int:
        return self.header.api_version


Handler: TypeAlias = Callable[[Call[Any]], Response | Future[Response] | Coroutine[Any, Any, Response]]
