"""No Fetch request passes the gateway in which Kafka reads a replica, whatever its bytes are: Kafka's own classes read them too."""

import asyncio
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from struct import pack
from typing import Any, Final, cast

import pytest

from rackspan.errors import MalformedRequest
from rackspan.gateway.core.apis import OFFERED, Treatment
from rackspan.gateway.core.reader_racks import ReaderRacks
from rackspan.gateway.handlers.fetch import FetchHandler
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.java import find_java
from rackspan.kafka_process import KafkaVersion, resolve_jars
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import write_request
from rackspan.wire.messages.fetch import FetchPartition, FetchRequestData, FetchRequestReplicaState, FetchTopic
from tests.gateway.frames import mutated
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.java

REQUESTS: Final = 6000
SOURCE: Final = Path(__file__).parent / "java" / "KafkaFetchReplicas.java"
NEWEST: Final = {"4.1.0": 17}.get(KAFKA, OFFERED[ApiKey.FETCH][-1])
FIRST_FLEXIBLE, FIRST_WITH_TAG = 12, 15


def fetches(rng: Random) -> Iterator[bytes]:
    """Requests with and without a replica, as a field or in a tag; most have their bytes or their tags changed."""
    other = b""
    while True:
        version = rng.randint(4, NEWEST)
        replica = rng.choice((-1, -1, -2, -3, 0, 3))
        fetch = FetchRequestData(
            replica_id=replica if version < FIRST_WITH_TAG else -1,
            topics=[
                FetchTopic(
                    topic="orders", partitions=[FetchPartition(partition=at) for at in range(rng.choice((0, 1, 2)))]
                )
            ],
        )
        if version >= FIRST_WITH_TAG and rng.random() < 0.5:
            fetch.replica_state = FetchRequestReplicaState(replica_id=replica, replica_epoch=1)
        request = b"".join(write_request(ApiKey.FETCH, version, 7, "shop", fetch))
        if version >= FIRST_FLEXIBLE and fetch.replica_state is None and rng.random() < 0.6:
            request = request.removesuffix(b"\0") + tags(rng)
        if rng.random() < 0.4:
            request = pack(">hh", ApiKey.FETCH, version) + mutated(request[4:], other, rng)
        other = request[4:]
        yield request


def tags(rng: Random) -> bytes:
    count = rng.randint(1, 3)
    return varint(count, rng) + b"".join(tag(rng) for _ in range(count))


def tag(rng: Random) -> bytes:
    state = pack(">iq", rng.choice((-1, -2, -3, 3)), 1) + b"\0"
    number, value = rng.choice(
        ((0, b"\2a"), (1, state), (1, state), (2, b"any"), (2, b"\1" + varint(len(state), rng) + state))
    )
    size = len(value) if rng.random() < 0.8 else rng.randrange(40)
    return varint(number, rng) + varint(size, rng) + value


def varint(number: int, rng: Random) -> bytes:
    """One byte, or five with the same number, of which Java drops the bits beyond 32."""
    if rng.random() < 0.8:
        return bytes([number])
    return bytes([number | 0x80, 0x80, 0x80, 0x80, rng.choice((0, 0x10, 0x70))])


class Client:
    """A client's session: what became of its last request."""

    host, peer = "192.0.2.1", "192.0.2.1:5"
    outcome = ""

    def name_client(self, _: str | None) -> None:
        """Nothing is counted here."""

    locate_client = name_client

    def forward(self, _: Exchange) -> None:
        self.outcome = "forwarded"

    def respond(self, *_: object) -> None:
        self.outcome = "refused"


async def outcomes_of(requests: Iterable[bytes]) -> list[str]:
    """What the gateway does with each."""
    handler, client, outcomes = FetchHandler(ReaderRacks()), Client(), list[str]()
    for request in requests:
        exchange = Exchange(ApiKey.FETCH, int.from_bytes(request[2:4]), 7, Treatment.ENDPOINTS_LAST)
        try:
            handler.take(cast("Any", client), exchange, memoryview(request))
        except MalformedRequest:
            client.outcome = "malformed"
        outcomes.append(client.outcome)
    return outcomes


def test_what_is_forwarded_names_no_replica_to_kafka() -> None:
    rng = Random(227)
    requests = [request for request, _ in zip(fetches(rng), range(REQUESTS), strict=False)]
    java, jars = find_java(), resolve_jars(KafkaVersion.parse(KAFKA))
    command = [str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(SOURCE)]
    done = subprocess.run(
        command,
        input="\n".join(request.hex() for request in requests),
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=True,
    )
    read = done.stdout.split()
    assert len(read) == REQUESTS
    found = Counter(zip(asyncio.run(outcomes_of(requests)), read, strict=True))
    forwarded = {replica for outcome, replica in found if outcome == "forwarded"}
    assert forwarded <= {"-1", "-2", "malformed"}, found
    assert {replica for outcome, replica in found if outcome == "refused"} & {"-1", "-2"} == set(), found
    # Each kind is there: bytes that Kafka reads as a replica's and this codec does not, and those that both do.
    for kind in (
        ("forwarded", "-1"),
        ("refused", "3"),
        ("refused", "-3"),
        ("malformed", "3"),
        ("malformed", "malformed"),
    ):
        assert found[kind] > REQUESTS // 500, (kind, found)
