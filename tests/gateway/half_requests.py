"""What thousands of connections that send 18 bytes of a Produce request of 90 MB cost others, before Apache Kafka.

`python -m tests.gateway.half_requests SOCKETS ADDRESSES SECONDS [MOST_OF_AN_ADDRESS]`: each connection that is closed is opened again.
Two producers of 200-byte records, one through the gateway and one direct, and /healthz are timed meanwhile. Prints one JSON line.
"""

import errno
import json
import os
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from struct import pack
from typing import Final

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.kafka_process import KafkaCluster
from tests.gateway.process import broker_ports, free_ports, gateway_process
from tests.waiting import WITHIN_SECONDS

HALF: Final = pack(">ihhih", 90_000_000, 0, 9, 1, 4) + b"half"
"""18 bytes."""

_PACE_SECONDS: Final = 0.01


def attack(address: tuple[str, int], sockets: int, addresses: int) -> None:
    """Keep so many connections open until standard input ends, and print how many were opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    selector, opened = selectors.DefaultSelector(), 0
    selector.register(sys.stdin, selectors.EVENT_READ)

    def opens(number: int) -> None:
        nonlocal opened
        link = socket.socket()
        link.setblocking(False)
        link.bind((f"127.0.0.{1 + number % addresses}", 0))
        if link.connect_ex(address) not in (0, errno.EINPROGRESS):
            link.close()
            return
        opened += 1
        selector.register(link, selectors.EVENT_WRITE, number)

    for number in range(sockets):
        opens(number)
    while True:
        for key, events in selector.select():
            if key.fileobj is sys.stdin:
                print(opened, flush=True)
                return
            link = key.fileobj
            assert isinstance(link, socket.socket)
            with suppress(OSError):
                if events & selectors.EVENT_WRITE:
                    link.send(HALF)
                    selector.modify(link, selectors.EVENT_READ, key.data)
                    continue
            selector.unregister(link)
            link.close()
            opens(key.data)


class Timed:
    """A producer that writes one record after the other; the longest time between two acknowledgements."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 0, "log_level": 0})
        self._last = time.monotonic()
        self._stopped = False
        self.longest, self.acknowledged, self.failed = 0.0, 0, 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def begin(self) -> None:
        self.longest, self.acknowledged, self._last = 0.0, 0, time.monotonic()

    def _delivered(self, error: object, _message: object) -> None:
        now = time.monotonic()
        self.longest = max(self.longest, now - self._last)
        self._last = now
        self.acknowledged += error is None
        self.failed += error is not None

    def _run(self) -> None:
        while not self._stopped:
            with suppress(BufferError):
                self._producer.produce("t", bytes(200), on_delivery=self._delivered)
            self._producer.poll(_PACE_SECONDS)
            time.sleep(_PACE_SECONDS)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join(WITHIN_SECONDS)
        self.longest = max(self.longest, time.monotonic() - self._last)
        self._producer.flush(WITHIN_SECONDS)


def processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(sockets: int, addresses: int, seconds: float, most_new: int | None) -> dict[str, float]:
    """One gateway in mode `verified` before two brokers in two racks."""
    (port,) = free_ports(1)
    head = f'listen.http = "127.0.0.1:{port}"\n'
    head += f"acknowledgements.min.insync.racks = 2\nlisten.max.connections = 6000\nlisten.address.max.new.connections = {most_new or 6000}\n"
    with (
        tempfile.TemporaryDirectory() as folder,
        KafkaCluster(racks=("A", "B"), brokers=2) as kafka,
        gateway_process(Path(folder), kafka.bootstrap_servers, head + broker_ports(2)) as gateway,
    ):
        topics = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        topics.create_topics([NewTopic("t", 1, replica_assignment=[[1, 2]])])["t"].result(WITHIN_SECONDS)
        through, direct = Timed(gateway.bootstrap_servers), Timed(kafka.bootstrap_servers)
        time.sleep(3)
        host, to = gateway.address(1)
        command = [
            sys.executable,
            "-m",
            "tests.gateway.half_requests",
            "attack",
            host,
            str(to),
            str(sockets),
            str(addresses),
        ]
        spent, begun = processor_seconds(gateway.process.pid), time.monotonic()
        through.begin()
        direct.begin()
        attacker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        health: list[float] = []
        while time.monotonic() - begun < seconds:
            requested_at = time.monotonic()
            urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=WITHIN_SECONDS).read()
            health.append(time.monotonic() - requested_at)
            time.sleep(0.5)
        spent = processor_seconds(gateway.process.pid) - spent
        through.stop()
        direct.stop()
        opened, _ = attacker.communicate("", timeout=WITHIN_SECONDS)
        return {
            "sockets": sockets,
            "addresses": addresses,
            "most_new": most_new or 0,
            "opened": int(opened),
            "longest": round(through.longest, 2),
            "direct": round(direct.longest, 2),
            "acknowledged": through.acknowledged,
            "acknowledged_direct": direct.acknowledged,
            "failed": through.failed,
            "healthz": round(max(health), 2),
            "processor": round(spent, 1),
            "load": round(os.getloadavg()[0], 1),
        }


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["attack"]:
        host, port, sockets, addresses = arguments[1:]
        attack((host, int(port)), int(sockets), int(addresses))
        return
    sockets, addresses, seconds = arguments[:3]
    most_new = int(arguments[3]) if len(arguments) > 3 else None
    print(json.dumps(measure(int(sockets), int(addresses), float(seconds), most_new)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
