"""A thousand topics of ten partitions listed: by librdkafka, and over a bare socket, which is the server's part of it."""

import socket
import time
from collections.abc import Callable, Iterator
from struct import pack
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._cluster_servers import EMBEDDED, Server, served
from benchmarks._measure import RUNS, Figures
from rackspan.kafka_bytes.primitives import NO_TAGS
from rackspan.wire.apis import ApiKey
from rackspan.wire.compiled import struct_writer
from rackspan.wire.messages.metadata import MetadataRequestData
from rackspan.wire.schema import request_shape

BROKERS: Final = 3
TOPICS, PARTITIONS = 1_000, 10

VERSION: Final = 13
"""The Metadata version that librdkafka uses."""
IDLE_SECONDS: Final = 5.0


def main() -> None:
    print(f"\n{TOPICS:,} topics x {PARTITIONS} partitions, {BROKERS} brokers")
    with served(EMBEDDED, BROKERS) as server:
        admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
        (created,) = _milliseconds(lambda: _create(admin), 1)
        bare_first, *bare = _bare(server)
        # A client may contact any broker, and each encodes its first response: those are not measured.
        listed_first, *listed = _milliseconds(lambda: admin.list_topics(timeout=60), 4 * RUNS)
        idle = _idle(server)
    print(f"  created in {created / 1000:.2f} s; idle, {idle:.1%} of a processor")
    print(f"  over a bare socket   first {bare_first:.0f} ms, then {Figures(tuple(bare)).text('ms')}")
    print(f"  by librdkafka        first {listed_first:.0f} ms, then {Figures(tuple(listed)).text('ms', 0)}")


def _create(admin: AdminClient) -> None:
    new = [NewTopic(f"listed-{number}", PARTITIONS, BROKERS) for number in range(TOPICS)]
    for created in admin.create_topics(new, request_timeout=60).values():
        created.result(60)


def _bare(server: Server) -> list[float]:
    """Milliseconds from the request to the last byte of the response, of a program that looks at none of them."""
    host, port = server.bootstrap.split(",")[0].split(":")
    request = _request()
    with socket.create_connection((host, int(port)), 30) as connection:
        return list(_milliseconds(lambda: _exchange(connection, request), 4 * RUNS))


def _request() -> bytes:
    parts = [pack(">hhih", ApiKey.METADATA, VERSION, 1, -1), NO_TAGS]
    struct_writer(request_shape(ApiKey.METADATA, VERSION))(parts, MetadataRequestData(topics=None))
    return pack(">i", sum(map(len, parts))) + b"".join(parts)


def _exchange(connection: socket.socket, request: bytes) -> None:
    connection.sendall(request)
    left = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    buffer = bytearray(left)
    while left:
        left -= connection.recv_into(buffer, left)


def _idle(server: Server) -> float:
    before = server.processor_seconds()
    time.sleep(IDLE_SECONDS)
    return (server.processor_seconds() - before) / IDLE_SECONDS


def _milliseconds(action: Callable[[], object], times: int) -> Iterator[float]:
    for _ in range(times):
        started = time.perf_counter()
        action()
        yield 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
