"""Almost valid frames from clients and from brokers: no crash, no hang, no growth, and no acknowledgement that is not one.

Clients and brokers of few lines here, at both ends of real sessions of a real gateway. What the brokers acknowledged is read from the
bytes that they sent, after their mutation. ISRs are the test's own: of a topic "shrinks…" the ISR is one rack from its first
acknowledgement on, of "thin…" always, of "wide…" never, so a guarded acknowledgement is possible for "wide…" alone.
"""

import asyncio
import logging
import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Final

import pytest

from rackspan.acks.isr_samples import LogEnd, LogRead, Sample, SampledPartition
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.assembly import Assembly
from rackspan.errors import MalformedRequest
from rackspan.gateway.app import Gateway, open_gateway
from rackspan.gateway.clients import connections
from rackspan.gateway.config import parse_config
from rackspan.gateway.upstream import guard_readers
from rackspan.model import RACK_AWARE_SELECTOR, Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import peek_header, read_body, read_header, read_response
from rackspan.wire.kio_schemas import KioIndexError
from tests.cluster.test_mutated_frames import MOST_GROWTH, megabytes
from tests.gateway.frames import mutated, whole_request, whole_response, with_size
from tests.gateway.pairs import pair
from tests.gateway.running import document

FRAMES: Final = 8
"""Of one connection at most: the first that cannot be read ends it."""

MUTATED: Final = 0.5
AT_ONCE: Final = 100
HANG_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.5
"""How often the gateway looks for connections without progress, of which mutations make many."""

QUIET_SECONDS: Final = 0.5
"""How long a connection is watched where silence is allowed."""

ACKNOWLEDGED: Final = (0, 46)
BITS: Final = rack_bits([Broker(BrokerId(one), RackId(f"r{one}")) for one in (1, 2, 3)])

Acknowledgement = tuple[int, str, int]
"""Correlation id, topic and partition."""


class TestsOwnIsrs:
    """An IsrSource: the ISRs of the module docstring."""

    __test__ = False

    def __init__(self) -> None:
        self.shrunk: set[str] = set()

    async def prepare(self, broker: int) -> None:
        """Nothing is opened."""

    def close(self) -> None:
        """Nothing is open."""

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        partitions = {
            (topic, number): SampledPartition(broker, 1, tuple(map(BrokerId, self._isr(topic))))
            for topic in topics
            if topic.startswith(("wide", "thin", "shrinks"))
            for number in range(3)
        }
        return Sample(broker, requested_at, BITS, topics, partitions)

    def _isr(self, topic: str) -> tuple[int, ...]:
        is_shrunk = topic.startswith("shrinks") and topic in self.shrunk
        return (1,) if topic.startswith("thin") or is_shrunk else (1, 2, 3)


async def whole_logs(
    _connection: object, reads: Iterable[LogRead], _seconds: float
) -> tuple[dict[LogRead, LogEnd | None], dict[LogRead, int]]:
    """Every replica has every record: which topics may be acknowledged is decided by the ISR."""
    return {read: LogEnd(read.leader_epoch, 2**63 - 1) for read in reads}, {}


@dataclass
class Tally:
    """What happened, of all connections."""

    mutated: int = 0
    responses: int = 0
    acknowledged: int = 0
    closed: int = 0
    wrong: list[str] = field(default_factory=list)


class Conversation:
    """One connection: a client that sends requests, and the broker behind the gateway."""

    def __init__(self, gateway: Gateway, isrs: TestsOwnIsrs, tally: Tally, number: int, seed: int, side: str) -> None:
        self._gateway = gateway
        self._isrs = isrs
        self._tally = tally
        self._rng = Random(f"{seed}-{number}")
        self._side = side
        self._loop = asyncio.get_running_loop()
        self._number = number
        self._topics = [f"wide-{number % 20}", "thin", *(f"shrinks-{number}-{one}" for one in range(4))]
        self._expected: list[tuple[int, int, set[tuple[str, int]] | None]] = []
        """Each response that is due: API key, correlation id, and the partitions for which it may hold acknowledgements."""
        self._exact = True
        """False from the first frame whose size is wrong: what it is taken for is not followed."""
        self._acknowledged: set[Acknowledgement] = set()
        """By the bytes that the broker sent."""
        self._other = b"\0"

    async def run(self) -> None:
        client_end, client = pair()
        upstream_end, broker = pair()
        session = self._gateway.clients.session(client_end, upstream_end, 1)
        session.start()
        serving = asyncio.create_task(self._serve(broker))
        try:
            await self._talk(client)
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            # The loop forgets a socket whose operation was cancelled one turn later; its number must not be another's by then.
            await asyncio.sleep(0)
            client.close()
            broker.close()
            self._isrs.shrunk.difference_update(topic for _, topic, _ in self._acknowledged)
        until = self._loop.time() + HANG_SECONDS
        while self._loop.time() < until:
            if session.closed:
                return
            await asyncio.sleep(0.01)
        self._tally.wrong.append(f"connection {self._number}: the session goes on without its client")

    # The client.

    async def _talk(self, client: socket.socket) -> None:
        judged = 0
        with suppress(OSError):
            for number in range(1, FRAMES + 1):
                await self._send_in_parts(client, self._request(number))
                if number < FRAMES and self._rng.random() < 0.4:
                    # The next request follows before the response.
                    continue
                while judged < len(self._expected) or not self._exact:
                    try:
                        response = await self._next_response(client)
                    except TimeoutError:
                        if self._exact:
                            late = self._expected[judged]
                            self._tally.wrong.append(f"connection {self._number}: no response to {late}")
                        return
                    if response is None:
                        self._tally.closed += 1
                        return
                    self._judge(judged, response)
                    judged += 1

    async def _next_response(self, client: socket.socket) -> bytes | None:
        """None at the end of the stream. Errors: TimeoutError, soon where the broker sent a wrong size meanwhile."""
        receiving = asyncio.create_task(self._frame(client))
        until = self._loop.time() + HANG_SECONDS
        try:
            while self._loop.time() < until:
                done, _ = await asyncio.wait({receiving}, timeout=QUIET_SECONDS)  # short: looked at again
                if done:
                    return await receiving
                if not self._exact:
                    break
        finally:
            receiving.cancel()
        raise TimeoutError

    def _request(self, correlation_id: int) -> bytes:
        rng = self._rng
        request = whole_request(correlation_id, self._topics, rng)
        mutate = self._side == "requests" and rng.random() < MUTATED
        sent = mutated(request, self._other, rng) if mutate else request
        self._other = request
        self._tally.mutated += mutate
        framed, is_right = with_size(sent, rng, 0.03 if mutate else 0.0)
        if self._exact:
            self._exact = is_right
            self._expect(sent)
        return framed

    def _expect(self, request: bytes) -> None:
        key, correlation_id = (int.from_bytes(part, "big", signed=True) for part in (request[:2], request[4:8]))
        named: set[tuple[str, int]] | None = None
        if key == ApiKey.PRODUCE:
            try:
                body = read_body(request, read_header(request))
            except (MalformedRequest, KioIndexError):
                body = None
            if body is not None and body.acks == 0:
                return
            if body is not None and body.acks == -1:
                named = {(topic.name, one.index) for topic in body.topic_data for one in topic.partition_data}
        self._expected.append((key, correlation_id, named))

    async def _send_in_parts(self, client: socket.socket, data: bytes) -> None:
        while data:
            size = self._rng.choice((1, 3, 30, 300, 3000, 30_000))
            await self._loop.sock_sendall(client, data[:size])
            data = data[size:]
            await asyncio.sleep(0)

    async def _frame(self, link: socket.socket) -> bytes | None:
        """None at the end of the stream."""
        head = await self._exactly(link, 4)
        return None if head is None else await self._exactly(link, int.from_bytes(head, "big"))

    async def _exactly(self, link: socket.socket, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            more = await self._loop.sock_recv(link, size - len(data))
            if not more:
                return None
            data += more
        return data

    def _judge(self, position: int, response: bytes) -> None:
        tally = self._tally
        tally.responses += 1
        if position >= len(self._expected):
            return
        _, correlation_id, guarded = self._expected[position]
        if int.from_bytes(response[:4], "big", signed=True) != correlation_id:
            if self._exact:
                tally.wrong.append(f"connection {self._number}: response {position} is not to {correlation_id}")
            return
        if guarded is None:
            return
        for acknowledged in self._acknowledgements(response):
            if acknowledged[1:] not in guarded:
                continue
            tally.acknowledged += 1
            if acknowledged not in self._acknowledged or not acknowledged[1].startswith("wide"):
                tally.wrong.append(f"connection {self._number}: {acknowledged} was not acknowledged")

    def _acknowledgements(self, response: bytes) -> Iterable[Acknowledgement]:
        """Those of a Produce response, by the version of the request; none where it cannot be read."""
        correlation_id = int.from_bytes(response[:4], "big", signed=True)
        try:
            produced = read_response(ApiKey.PRODUCE, self._versions[correlation_id], response)
        except (MalformedRequest, KeyError):
            return ()
        return [
            (correlation_id, topic.name, one.index)
            for topic in produced.responses
            for one in topic.partition_responses
            if one.error_code in ACKNOWLEDGED
        ]

    # The broker.

    async def _serve(self, broker: socket.socket) -> None:
        self._versions: dict[int, int] = {}
        try:
            while (request := await self._frame(broker)) is not None:
                await self._respond(broker, request)
        except (OSError, MalformedRequest):
            # As a broker does with what it cannot read.
            with suppress(OSError):
                broker.shutdown(socket.SHUT_RDWR)

    async def _respond(self, broker: socket.socket, request: bytes) -> None:
        rng = self._rng
        key, version, correlation_id = peek_header(request)
        if key == ApiKey.PRODUCE:
            self._versions[correlation_id] = version
        response = whole_response(request, rng)
        if response is None:
            return
        mutate = self._side == "responses" and rng.random() < MUTATED
        sent = mutated(response, self._other, rng) if mutate else response
        self._tally.mutated += mutate
        framed, is_right = with_size(sent, rng, 0.03 if mutate else 0.0)
        self._exact = self._exact and is_right
        if key == ApiKey.PRODUCE:
            for one in self._acknowledgements(sent):
                self._acknowledged.add(one)
                self._isrs.shrunk.add(one[1])
        await self._send_in_parts(broker, framed)


async def bombarded(frames: int, seed: int, side: str) -> tuple[Tally, float]:
    """What happened, and megabytes by which the process grew in the second half of the frames."""
    rack_of = {BrokerId(number): RackId(f"r{number}") for number in range(1, 4)}
    cluster = Assembly(rack_of, ClusterSettings(replica_selector_class=RACK_AWARE_SELECTOR), Random(seed))
    await cluster.start(30)
    servers = ",".join("{}:{}".format(*host.server.address) for host in cluster.hosts.values())
    placer = {"replica": {"placer": {"class": {"name": "balanced"}}}}
    tables = {"acknowledgements": {"min": {"insync": {"racks": 2}}}, "placement": placer}
    gateway = await open_gateway(parse_config(document(servers, **tables)))
    assert gateway.guarding is not None
    isrs, tally, numbers, before = TestsOwnIsrs(), Tally(), count(), 0.0
    gateway.guarding.produce.sampler._source = isrs

    async def one_after_another() -> None:
        nonlocal before
        while tally.mutated < frames:
            if not before and tally.mutated > frames // 2:
                before = megabytes()
            await Conversation(gateway, isrs, tally, next(numbers), seed, side).run()

    try:
        # Most of a conversation's time is waiting, of some more than of others.
        await asyncio.gather(*(one_after_another() for _ in range(AT_ONCE)))
        growth = megabytes() - before
        assert gateway.clients.sessions == set()
        shared = gateway.clients.shared
        assert (shared.frames.used, shared.buffers.in_use) == (0, 0)
    finally:
        gateway.close()
        cluster.stop()
    return tally, growth


def run(frames: int, seed: int, side: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "GONE_CHECK_SECONDS", LOOK_SECONDS)
    monkeypatch.setattr(guard_readers, "read_log_ends", whole_logs)
    caplog.set_level(logging.ERROR)
    tally, growth = asyncio.run(bombarded(frames, seed, side))
    print(tally, f"grew by {growth:.1f} MB")
    assert tally.wrong == []
    assert [record.getMessage() for record in caplog.records] == []
    assert growth < MOST_GROWTH
    # Neither everything was closed nor everything refused.
    assert tally.responses > frames // 20
    assert tally.acknowledged > frames // 200


@pytest.mark.slow
@pytest.mark.parametrize("side", ["requests", "responses"])
def test_mutated_frames_leave_the_gateway_unharmed(
    side: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(2_500, 1, side, caplog, monkeypatch)


@pytest.mark.soak
@pytest.mark.parametrize("side", ["requests", "responses"])
@pytest.mark.parametrize("seed", range(3, 8))
def test_a_million_mutated_frames_leave_the_gateway_unharmed(
    seed: int, side: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(100_000, seed, side, caplog, monkeypatch)
