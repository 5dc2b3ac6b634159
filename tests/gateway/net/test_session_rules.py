"""What a session does with responses that are ready, and when it ends, between two pairs of sockets without a gateway."""

import asyncio
from collections.abc import Awaitable, Callable
from struct import pack
from typing import Any
from uuid import UUID

import pytest

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.core.record_bytes import ClientLabels, RecordBytes, Topic
from rackspan.gateway.net.byte_flow import Exchange, Shared, Take
from rackspan.gateway.net.frames import FrameMemory
from rackspan.gateway.net.session import ClientSession
from rackspan.model.ids import RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.messages.api_versions import ApiVersionsRequestData
from rackspan.wire.messages.metadata import MetadataRequestData
from rackspan.wire.messages.produce import PartitionProduceData, TopicProduceData
from tests.gateway.core.addresses import renamed
from tests.gateway.net.flows import framed
from tests.gateway.pairs import pair

METADATA = pack(">iihii", 0, 0, -1, -1, 0)
"""A response of version 4 without its correlation id."""


class Added(RecordBytes):
    """Keeps what is added."""

    def __init__(self) -> None:
        super().__init__(9, 9)
        self.added: list[tuple[str, int, Topic, int, int, bool]] = []

    def add(
        self,
        client: ClientLabels,
        broker: int,
        topic: Topic,
        partition: int,
        size_bytes: int,
        *,
        produced: bool = False,
    ) -> None:
        self.added.append((client.client_id, broker, topic, partition, size_bytes, produced))


class World:
    """A session with broker 3, the sockets of its client and its broker, and what it reads whole."""

    def __init__(self) -> None:
        (near, self.client), (far, self.broker) = pair(), pair()
        self.record_bytes = Added()
        self.racks: list[tuple[str, str]] = []
        self.takes: dict[int, Take] = {}
        self.sessions: set[ClientSession] = set()
        self.cluster_id: str | None = "own"
        shared = Shared(
            *(renamed(), self.takes, 1000, FrameMemory(10_000), self.record_bytes, self.rack_of),
            cluster_id=lambda: self.cluster_id,
        )
        self.session = ClientSession(shared, self.sessions, asyncio.get_running_loop(), near, far, 3)

    def rack_of(self, host: str, client_id: str) -> RackId | None:
        self.racks.append((host, client_id))
        return RackId("r1") if client_id == "known" else None

    def received(self) -> bytes:
        """What the client has received until now."""
        try:
            return self.client.recv(10_000)
        except BlockingIOError:
            return b""

    def exchanges(self, *numbers: int) -> list[Exchange]:
        """Requests with these correlation ids that have no response yet."""
        made = [Exchange(16, 0, number, Treatment.WHOLE) for number in numbers]
        self.session.exchanges.extend(made)
        return made


def run(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def within() -> None:
        world = World()
        try:
            await scenario(world)
        finally:
            world.session.close()
            world.client.close()
            world.broker.close()

    asyncio.run(within())


def test_responses_are_sent_in_the_order_of_the_requests_and_one_that_is_expected_by_none_is_left_out() -> None:
    async def scenario(world: World) -> None:
        first, silent, third = world.exchanges(1, 2, 3)
        world.session.complete(third, [b"th", b"ird"])
        silent.done = True
        assert world.received() == b""
        world.session.complete(first, [b"first"])
        assert world.received() == framed(b"first") + framed(b"third")
        assert not world.session.exchanges
        world.session.respond(Exchange(16, 0, 4, Treatment.WHOLE), [b"fourth"])
        assert world.received() == framed(b"fourth")

    run(scenario)


def test_a_request_is_forwarded_as_one_that_expects_a_response_or_none() -> None:
    async def scenario(world: World) -> None:
        exchange = Exchange(0, 9, 1, Treatment.WHOLE)
        world.session.forward(exchange, [b"silent"], responds=False)
        assert (len(world.session.exchanges), len(world.session.awaited)) == (0, 0)
        world.session.forward(exchange, [b"request"])
        assert (list(world.session.exchanges), list(world.session.awaited)) == ([exchange], [exchange])
        assert world.broker.recv(99) == framed(b"silent") + framed(b"request")

    run(scenario)


@pytest.mark.parametrize(
    ("ended", "draining", "waiting", "over"),
    [
        (False, False, 0, False),
        (False, True, 0, True),
        (False, True, 1, False),
        (True, False, 0, True),
        (True, False, 1, False),
    ],
)
def test_a_session_is_over_when_nothing_more_can_come_and_every_response_has_left(
    ended: bool, draining: bool, waiting: int, over: bool
) -> None:
    async def scenario(world: World) -> None:
        exchanges = world.exchanges(*range(waiting))
        if ended:
            world.session.upstream_ended()
        if draining:
            world.session.drain()
        assert world.session.closed is over
        for exchange in exchanges:
            world.session.complete(exchange, [b"last"])
            assert world.session.closed
            assert world.received() == framed(b"last")

    run(scenario)


def test_a_session_whose_broker_is_gone_ends_when_the_next_response_is_one_that_it_lost() -> None:
    async def scenario(world: World) -> None:
        _, lost = world.exchanges(1, 2)
        world.session.awaited.append(lost)
        world.session.upstream_ended()
        assert not world.session.closed, "an acknowledgement is still to be sent"
        world.session.complete(world.session.exchanges[0], [b"first"])
        assert (world.session.closed, world.received()) == (True, framed(b"first"))

    run(scenario)


def test_a_session_does_not_end_before_its_client_has_accepted_everything() -> None:
    async def scenario(world: World) -> None:
        world.session.client.outgoing.append(b"rest")
        world.session.upstream_ended()
        assert not world.session.closed
        world.session.client.flush()
        world.session.client.on_drained()
        assert (world.session.closed, world.received()) == (True, b"rest")

    run(scenario)


@pytest.mark.parametrize(
    ("waiting", "half_forwarded", "over"), [(0, False, True), (1, False, False), (1, True, True), (2, True, False)]
)
def test_a_session_that_is_cut_off_waits_for_the_requests_before_the_one_that_is_half_received(
    waiting: int, half_forwarded: bool, over: bool
) -> None:
    """One that is half forwarded is the last of those without a response."""

    async def scenario(world: World) -> None:
        world.exchanges(*range(waiting))
        if half_forwarded:
            world.session._requests._left = 9
        else:
            world.session._requests.frame = world.session.shared.frames.begin(100, 0.0)
        world.session.drain()
        assert not world.session.closed
        world.session.cut_off()
        assert world.session.closed is over

    run(scenario)


def test_a_session_that_is_cut_off_between_requests_waits_for_their_responses() -> None:
    async def scenario(world: World) -> None:
        world.exchanges(1)
        world.session.cut_off()
        assert not world.session.closed

    run(scenario)


def test_a_close_ends_everything_once() -> None:
    async def scenario(world: World) -> None:
        closed: list[int] = []
        world.session.on_closed = lambda: closed.append(1)
        world.session.start()
        assert world.sessions == {world.session}
        task = world.session.run(asyncio.sleep(60))
        call = asyncio.ensure_future(world.session.call(ApiKey.METADATA, 4, None, MetadataRequestData(topics=[])))
        await asyncio.sleep(0)
        world.exchanges(1)
        shared = world.session.shared
        frame = world.session._requests.frame = shared.frames.begin(100, 0.0)
        shared.frames.fill(frame, 100)
        world.session._responses._buffer = shared.buffers.take()
        for _ in range(2):
            world.session.close()
            assert (shared.frames.used, shared.buffers.in_use) == (0, 0)
            assert (closed, world.sessions, world.session.client.closed, world.session.upstream.closed) == (
                [1],
                set(),
                True,
                True,
            )
        assert (len(world.session.exchanges), len(world.session.awaited)) == (0, 0)
        await asyncio.sleep(0)
        assert task.cancelled()
        with pytest.raises(ConnectionResetError, match="the connection is closed"):
            await call
        world.session.send_ready()

    run(scenario)


def test_requests_of_the_gateways_own_have_correlation_ids_that_count_down_and_no_place_among_the_clients() -> None:
    async def scenario(world: World) -> None:
        request = MetadataRequestData(topics=[])
        calls = [asyncio.ensure_future(world.session.call(ApiKey.METADATA, 4, "me", request)) for _ in range(2)]
        await asyncio.sleep(0)
        assert [one.correlation_id for one in world.session.awaited] == [-1_000_000, -1_000_001]
        assert not world.session.exchanges
        sent = world.broker.recv(999)
        assert sent[4:16] == pack(">hhih", 3, 4, -1_000_000, 2) + b"me"
        world.broker.sendall(b"".join(framed(pack(">i", number) + METADATA) for number in (-1_000_000, -1_000_001)))
        world.session.upstream.on_readable()
        assert [list((await call).topics) for call in calls] == [[], []]
        world.session.upstream_ended()
        with pytest.raises(ConnectionResetError, match="the broker closed its connection"):
            await world.session.call(ApiKey.METADATA, 4, None, request)

    run(scenario)


def test_a_request_of_the_gateways_own_fails_when_the_broker_is_gone() -> None:
    async def scenario(world: World) -> None:
        world.exchanges(1)
        call = asyncio.ensure_future(world.session.call(ApiKey.METADATA, 4, None, MetadataRequestData(topics=[])))
        await asyncio.sleep(0)
        world.session.upstream_ended()
        with pytest.raises(ConnectionResetError, match="the broker closed its connection"):
            await call
        later = asyncio.ensure_future(world.session.call(ApiKey.METADATA, 4, None, MetadataRequestData(topics=[])))
        await asyncio.sleep(0)
        assert later.done(), "it waits for no response"
        assert isinstance(later.exception(), ConnectionResetError)
        assert not world.session.closed

    run(scenario)


def test_behind_a_request_that_is_handled_nothing_is_read_until_its_response_is_ready() -> None:
    async def scenario(world: World) -> None:
        ready = asyncio.Event()

        async def work() -> list[Any]:
            await ready.wait()
            return [b"handled"]

        world.session.handle(Exchange(16, 0, 1, Treatment.WHOLE), work())
        await asyncio.sleep(0)
        assert (world.session._requests.blocked, len(world.session.exchanges)) == (True, 1)
        ready.set()
        await asyncio.gather(*world.session._tasks)
        assert (world.session._requests.blocked, world.received()) == (False, framed(b"handled"))

    run(scenario)


def test_what_waits_for_something_goes_on_when_that_is_there_unless_the_connection_has_ended() -> None:
    async def scenario(world: World) -> None:
        went_on: list[bool] = []
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        second: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        world.session.wait_for(first, lambda: went_on.append(world.session._requests.blocked))
        assert (world.session._requests.blocked, went_on) == (True, [])
        first.set_result(None)
        await asyncio.sleep(0)
        assert went_on == [False]
        world.session.wait_for(second, lambda: went_on.append(True))
        world.session.close()
        second.set_result(None)
        await asyncio.sleep(0)
        assert went_on == [False]

    run(scenario)


def test_what_goes_on_and_cannot_be_read_ends_its_connection() -> None:
    async def scenario(world: World) -> None:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def fail() -> None:
            raise MalformedRequest("no frame")

        world.session.wait_for(ready, fail)
        ready.set_result(None)
        await asyncio.sleep(0)
        assert world.session.closed

    run(scenario)


def test_a_client_has_the_rack_of_its_rule_until_it_names_one_itself() -> None:
    async def scenario(world: World) -> None:
        session = world.session
        for client_id in ("known", "known", "other", None, None):
            session.name_client(client_id)
        assert world.racks == [("127.0.0.1", "known"), ("127.0.0.1", "other"), ("127.0.0.1", "")]
        assert session.labels == ClientLabels()
        session.name_client("known")
        assert session.labels == ClientLabels("known", rack="r1")
        session.locate_client("")
        assert session.labels.rack == "r1"
        session.locate_client("r2")
        session.name_client("known")
        assert session.labels == ClientLabels("known", rack="r2")

    run(scenario)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "known", "is_refused"),
    [
        ("own", 3, "own", False),
        ("own", 2, "own", True),
        ("other", 3, "own", True),
        (None, -1, "own", False),
        ("other", -1, "own", False),
        (None, 2, "own", False),
        ("other", 3, None, False),
    ],
)
def test_a_client_that_means_another_broker_or_cluster_has_to_start_again(
    cluster_id: str | None, node_id: int, known: str | None, is_refused: bool
) -> None:
    """KIP-1242: in place of the broker's response. What names half of it is the broker's to refuse."""

    async def scenario(world: World) -> None:
        world.cluster_id = known
        body = ApiVersionsRequestData(
            client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        request = b"".join(write_request(ApiKey.API_VERSIONS, 5, 7, "c", body))
        exchange = Exchange(ApiKey.API_VERSIONS, 5, 7, Treatment.WHOLE)
        world.session.identify(exchange, memoryview(request))
        assert (exchange.on_response is not None) == is_refused
        if exchange.on_response is not None:
            # An older broker's response has no version 5.
            parts = exchange.on_response(b"\0\0\0\7" + b"\0\x23" + bytes(4))
            refused = read_response(ApiKey.API_VERSIONS, 5, b"".join(parts or ()))
            assert (refused.error_code, refused.api_keys) == (129, ())

    run(scenario)


def test_records_are_counted_by_topic_name_or_id_and_none_where_there_are_none() -> None:
    async def scenario(world: World) -> None:
        def data(index: int, records: bytes | None) -> PartitionProduceData:
            return PartitionProduceData(index=index, records=None if records is None else memoryview(records))

        topics = [
            TopicProduceData(name="orders", partition_data=[data(0, b"abc"), data(1, b""), data(2, None)]),
            TopicProduceData(topic_id=UUID(int=5), partition_data=[data(4, b"de")]),
        ]
        world.session.count_produced("me", topics)
        world.session.count_fetched("orders", 1, -1, 7)
        world.session.count_fetched("orders", 1, -1, 0)
        assert world.record_bytes.added == [
            ("me", 3, "orders", 0, 3, True),
            ("me", 3, UUID(int=5).bytes, 4, 2, True),
            ("me", 3, "orders", 1, 7, False),
        ]

    run(scenario)


HALF: list[tuple[bytes, bytes]] = [
    (b"", b"\0\0"),
    (b"", pack(">ihhih", 100, 16, 0, 1, -1)),
    (b"", pack(">ihhih", 100, 0, 9, 1, -1)),
    (framed(pack(">hhih", 16, 0, 1, -1)), pack(">ihh", 100, 0, 9)),
    (framed(pack(">hhih", 16, 0, 1, -1)), pack(">ihhih", 100, 0, 9, 1, -1) + bytes(89)),
]
"""Whole requests, and the beginning of one that is forwarded or read whole."""


@pytest.mark.parametrize(("before", "half"), HALF)
@pytest.mark.parametrize("is_proven", [True, False])
def test_a_client_that_sends_nothing_for_two_seconds_in_the_middle_of_a_request_is_overdue_and_not_between_two(
    before: bytes, half: bytes, is_proven: bool
) -> None:
    async def scenario(world: World) -> None:
        session, now = world.session, [world.session.time()]
        world.takes[ApiKey.PRODUCE] = lambda *_: None
        session.is_proven = is_proven
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session._loop, "time", lambda: now[0])
            session.start()

            def after(seconds: float, *parts: bytes) -> bool:
                """Whether it is overdue so long after it has sent these."""
                for part in parts:
                    world.client.send(part)
                    session._requests.readable()
                now[0] += seconds
                return session.is_overdue

            assert not after(1000.0, *filter(None, [before])), "idle between two requests"
            assert not after(2.0, half)
            assert after(0.01)
            assert not after(2.0, b"\0"), "it goes on"
            now[0] += 20.0
            session.client.pause_reading()
            world.client.send(b"\0")
            assert not session.is_overdue, "what is in the socket was sent, though nobody reads it"

    run(scenario)


def test_a_client_has_sent_a_request_once_one_is_whole() -> None:
    async def scenario(world: World) -> None:
        world.session.start()

        def after(part: bytes) -> bool:
            world.client.send(part)
            world.session._requests.readable()
            return world.session.has_sent_request

        request = framed(pack(">hhih", 16, 0, 1, -1))
        assert [after(request[:3]), after(request[3:13]), after(request[13:])] == [False, False, True]

    run(scenario)


@pytest.mark.parametrize("is_forwarded", [True, False])
def test_a_client_whose_request_is_being_decided_about_or_expects_no_response_has_sent_one(is_forwarded: bool) -> None:
    def take(session: ClientSession, exchange: Exchange, _: memoryview) -> None:
        if is_forwarded:
            session.forward(exchange, responds=False)
        else:
            session._requests.blocked = True

    async def scenario(world: World) -> None:
        world.session.is_proven = True
        world.takes[ApiKey.PRODUCE] = take
        world.session.start()
        world.client.send(framed(pack(">hhih", 0, 9, 1, -1)))
        world.session._requests.readable()
        assert (len(world.session.exchanges), world.session.has_sent_request) == (0, True)

    run(scenario)


def test_a_client_that_has_had_a_response_has_sent_a_request() -> None:
    async def scenario(world: World) -> None:
        assert not world.session.has_sent_request
        world.session.respond(Exchange(16, 0, 4, Treatment.WHOLE), [b"response"])
        assert (len(world.session.exchanges), world.session.has_sent_request) == (0, True)

    run(scenario)


def test_a_request_in_its_own_memory_is_overdue_when_that_says_so() -> None:
    async def scenario(world: World) -> None:
        assert not world.session.is_overdue
        now = world.session.time()
        for started, overdue in ((now, False), (now - 1000.0, True)):
            world.session._requests.frame = world.session.shared.frames.begin(100, started)
            assert world.session.is_overdue is overdue

    run(scenario)


@pytest.mark.parametrize(
    ("is_whole", "broker", "client", "after"),
    [
        (True, "takes nothing", "reads nothing", 2.0),
        (True, "takes nothing", "reads", 10.0),
        (True, "takes nothing", "has no response", 10.0),
        (True, "takes", "reads nothing", None),
        (True, "has it", "reads nothing", None),
        (False, "has it", "reads nothing", 2.0),
        (False, "takes nothing", "reads", 10.0),
        (False, "takes", "reads nothing", None),
    ],
)
@pytest.mark.parametrize("others_wait", [True, False])
def test_a_request_that_goes_no_further_is_stuck_while_others_wait_for_its_memory(
    is_whole: bool, broker: str, client: str, after: float | None, others_wait: bool
) -> None:
    async def scenario(world: World) -> None:
        session, now, memory = world.session, [0.0], world.session.shared.frames
        session._requests.frame = frame = memory.begin(10_001, 0.0)
        memory.fill(frame, 10_001 if is_whole else 10_000)
        memory._first = frame
        memory.hold_back(frame, 0.0)
        for channel, state in ((session.upstream, broker), (session.client, client)):
            channel.outgoing.extend([] if state.startswith("has") else [b"rest"])
        stuck = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(session._loop, "time", lambda: now[0])
            if others_wait:
                assert memory.receivable(memory.begin(10, 0.0), lambda: None, 0.0) == 0
            for second in range(20):
                now[0] = float(second)
                session.upstream.sent_bytes += broker == "takes"
                session.client.sent_bytes += client == "reads"
                stuck.append(session.is_stuck)
        assert stuck == [after is not None and others_wait and second > after for second in range(20)]

    run(scenario)
