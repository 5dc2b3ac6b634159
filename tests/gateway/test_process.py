"""The gateway as a process of its own: signals, workers, health, metrics and its log."""

import asyncio
import gc
import io
import json
import logging
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from rackspan.__main__ import gateway_options
from rackspan.cluster import EmbeddedCluster
from rackspan.ends import closing
from rackspan.errors import UsageError
from rackspan.gateway import process
from rackspan.gateway.config import GatewayConfig, read_config
from tests.gateway.process import GatewayProcess, broker_ports, free_ports, gateway_process
from tests.gateway.test_app import new_topic
from tests.gateway.upstream.test_heartbeats import kept, key_of_format
from tests.kafka_fixtures import records_in
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.slow


def two_in_a_row() -> int:
    """The first of two free ports: each worker has its own for metrics."""
    while True:
        (first,) = free_ports(1)
        with suppress(OSError), socket.create_server(("127.0.0.1", first + 1)):
            return first


def fetched(address: str, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=WITHIN_SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def acknowledged_while(gateway: GatewayProcess, topic: str, number: signal.Signals) -> list[bytes]:
    """What a producer got acknowledged while the gateway got a signal in the middle, after more than a hundred records."""
    acknowledged: list[bytes] = []
    producer = Producer(
        {
            "bootstrap.servers": gateway.bootstrap_servers,
            "acks": "all",
            "retries": 0,
            "linger.ms": 1,
            "log_level": 0,
        }
    )

    def produce() -> None:
        producer.produce(
            topic,
            uuid4().hex.encode(),
            on_delivery=lambda error, message: acknowledged.append(message.value() or b"") if error is None else None,
        )
        producer.poll(0.001)

    until = time.monotonic() + WITHIN_SECONDS
    while len(acknowledged) <= 100:
        assert time.monotonic() < until, f"{len(acknowledged)} records are acknowledged"
        produce()
    gateway.process.send_signal(number)
    until = time.monotonic() + 1  # short: what is sent after the signal
    while time.monotonic() < until:
        produce()
    # What was never sent would wait for a gateway that does not come.
    producer.purge(in_flight=False)
    producer.flush(WITHIN_SECONDS)
    return acknowledged


def test_sigterm_acknowledges_what_was_received_and_ends_with_0(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster.bootstrap_servers)
    with gateway_process(tmp_path, cluster.bootstrap_servers) as gateway:
        acknowledged = acknowledged_while(gateway, topic, signal.SIGTERM)
        assert gateway.process.wait(WITHIN_SECONDS) == 0
    # Nothing that was appended remained without its acknowledgement.
    assert set(acknowledged) == set(records_in(cluster, topic))


def test_sigkill_loses_no_acknowledged_record(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster.bootstrap_servers)
    policy = f"[topics.{topic}]\nmin.insync.racks = 2\n"
    with gateway_process(tmp_path, cluster.bootstrap_servers, policy) as gateway:
        acknowledged = acknowledged_while(gateway, topic, signal.SIGKILL)
    assert set(acknowledged) <= set(records_in(cluster, topic))


def test_health_metrics_reload_and_a_log_in_json(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    topic = new_topic(cluster.bootstrap_servers)
    (port,) = free_ports(1)
    lines = f'listen.http = "127.0.0.1:{port}"\nlog.format = "json"\n'
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway:
        address = f"127.0.0.1:{port}"
        assert fetched(address, "/healthz") == (200, "running\n")
        status, page = fetched(address, "/readyz")
        # The config topic is new, and other tests have killed gateways.
        assert (status, page.splitlines()[0]) == (200, "ready")
        config = tmp_path / "gateway.toml"
        config.write_text(f"{config.read_text()}[topics.{topic}]\nmin.insync.racks = 4\n")
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: "was read again" in gateway.log.read_text(), "the file was read again")
        errors: list[object] = []
        producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "retries": 0, "log_level": 0})
        producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: errors.append(error))
        producer.flush(WITHIN_SECONDS)
        (error,) = errors
        assert "NOT_ENOUGH_REPLICAS" in str(error)
        passed = Producer({"bootstrap.servers": gateway.bootstrap_servers, "client.id": "passed", "log_level": 0})
        passed.produce(new_topic(cluster.bootstrap_servers), b"x", partition=0)
        assert passed.flush(WITHIN_SECONDS) == 0
        metrics = fetched(address, "/metrics")[1]
        counted = f'cause="racks",partition="0",racks="r1,r2,r3",stage="before",topic="{topic}"'
        assert f"rackspan_gateway_refused_partitions_total{{{counted}}} 1.0" in metrics
        assert re.search(r'^rackspan_rack_check_failures_total{broker="\d",rack="r\d"} 1.0$', metrics, re.M)
        config.write_text("bootstrap.servers = 3\n")
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: "the config is kept" in gateway.log.read_text(), "the old config is kept")
    log = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    (counted,) = (line["message"] for line in log if "bytes of records" in line["message"])
    assert re.match(r"\d+ bytes of records: produce \S+, client 'passed'", counted)
    (refused,) = (line for line in log if line["message"].startswith("refused"))
    assert (refused["topic"], refused["partition"], refused["cause"], refused["stage"]) == (topic, 0, "racks", "before")
    assert refused["racks"] == ["r1", "r2", "r3"]
    assert {line["level"] for line in log} >= {"INFO", "WARNING", "ERROR"}


def workers(gateway: GatewayProcess) -> list[int]:
    """Process ids."""
    children = Path(f"/proc/{gateway.process.pid}/task/{gateway.process.pid}/children")
    return [int(one) for one in children.read_text().split()]


def kill_worker(gateway: GatewayProcess) -> int:
    """Kill the first with SIGKILL. The process id of the second."""
    killed, other = workers(gateway)
    number = os.pidfd_open(killed)
    signal.pidfd_send_signal(number, signal.SIGKILL)
    os.close(number)
    return other


def test_workers_share_the_ports_and_one_that_dies_is_started_again(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    http = two_in_a_row()
    lines = f'listen.http = "127.0.0.1:{http}"\ngateway.id = "of-two"\n{broker_ports()}'
    topic = new_topic(cluster.bootstrap_servers)
    registered = key_of_format("of-two")
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines, workers=2) as gateway:

        def accepted(worker: int) -> float:
            metrics = fetched(f"127.0.0.1:{http + worker}", "/metrics")[1]
            (line,) = (
                one for one in metrics.splitlines() if one.startswith("rackspan_gateway_connections_accepted_total")
            )
            return float(line.rpartition(" ")[2])

        for _ in range(12):
            producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
            producer.produce(topic, b"x")
            assert producer.flush(WITHIN_SECONDS) == 0
        assert accepted(0) > 0
        assert accepted(1) > 0
        eventually(lambda: registered in kept(cluster.bootstrap_servers), "the gateway has registered")
        values = kept(cluster.bootstrap_servers)[registered]
        # The first worker registers for all.
        assert len({json.loads(value or b"")["incarnation_id"] for value in values}) == 1
        kill_worker(gateway)
        eventually(lambda: "is started again" in gateway.log.read_text(), "the worker is missed")
        eventually(lambda: len(workers(gateway)) == 2, "two workers run")
        # The new one does not handle signals yet: it receives this one when it does.
        gateway.process.send_signal(signal.SIGHUP)
        eventually(lambda: gateway.log.read_text().count("was read again") == 2, "both have read the file")
        assert gateway.log.read_text().count("is started again") == 1
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WITHIN_SECONDS) == 0
    assert kept(cluster.bootstrap_servers)[registered][-1] is None


def test_a_gateway_that_ends_while_a_worker_is_started_again_ends_with_0(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    with gateway_process(tmp_path, cluster.bootstrap_servers, broker_ports(), workers=2) as gateway:
        kill_worker(gateway)
        eventually(lambda: "is started again" in gateway.log.read_text(), "the worker is missed")
        # It is started a second after this line.
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(WITHIN_SECONDS) == 0


@pytest.mark.parametrize("count", [1, 2])
def test_a_gateway_that_waits_for_responses_ends_at_the_second_ctrl_c(
    cluster: EmbeddedCluster, tmp_path: Path, count: int
) -> None:
    """A broker holds back the response to a fetch for longer than this test takes."""
    topic, lines = new_topic(cluster.bootstrap_servers), f"shutdown.timeout.seconds = 10000\n{broker_ports()}"
    fetching = {"fetch.wait.max.ms": 300_000, "socket.timeout.ms": 300_000, "fetch.message.max.bytes": 1000}
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines, workers=count) as gateway:
        servers = {"bootstrap.servers": gateway.bootstrap_servers, "group.id": "g", "log_level": 0}
        with closing(Consumer({**servers, **fetching})) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            consumer.poll(2)
            gateway.process.send_signal(signal.SIGINT)
            eventually(lambda: all(refuses(gateway.address(broker)) for broker in (1, 2, 3)), "it accepts nothing more")
            assert gateway.process.poll() is None
            gateway.process.send_signal(signal.SIGINT)
            assert gateway.process.wait(WITHIN_SECONDS) == 0
    # Of two workers one has no client, and has ended.
    assert gateway.log.read_text().count("a second Ctrl-C: connections are cut off") == 1


def refuses(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, WITHIN_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


@pytest.mark.parametrize(
    ("line", "options"),
    [
        ("gateway --config g.toml", (Path("g.toml"), 1)),
        ("gateway --workers 3 --config g.toml", (Path("g.toml"), 3)),
        *(
            (line, None)
            for line in (
                "gateway",
                "gateway --config",
                "gateway --help",
                "gateway --workers 2",
                "gateway --config g.toml check",
                "gateway --config g.toml --workers",
                "gateway --config g.toml --workers 0",
                "gateway --config g.toml --workers two",
                "gateway --config g.toml --config h.toml",
                "gateway --config g.toml --debug yes",
                "gateway --config --workers",
                "audit --config g.toml",
            )
        ),
    ],
)
def test_a_line_that_starts_a_gateway_is_read_without_the_command_line(
    line: str, options: tuple[Path, int] | None
) -> None:
    assert gateway_options(line.split()) == options


def test_a_gateway_that_starts_imports_no_other_command(
    cluster: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typer, Rich, NumPy and the other commands take longer than all that it needs."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with gateway_process(tmp_path, cluster.bootstrap_servers) as gateway:
        imported = set(re.findall(r"^import time:.*\| +(\S+)$", gateway.log.read_text(), re.M))
    assert "rackspan.gateway.process" in imported
    assert {"typer", "rich.console", "numpy", "rackspan.cli", "rackspan.api"} & imported == set()


def test_a_gateway_that_cannot_start_reports_it_as_every_command_does(tmp_path: Path) -> None:
    config = tmp_path / "gateway.toml"
    config.write_text("bootstrap.servers = 3\n")
    lines = []
    for start in (["-m", "rackspan"], ["-c", "from rackspan.cli import run; run()"]):
        command = [sys.executable, *start, "gateway", "--config", str(config)]
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WITHIN_SECONDS)
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (1, "", 1)
        lines.append(ran.stderr)
    assert lines[0] == lines[1]
    assert "bootstrap.servers" in lines[0]


def test_two_thousand_idle_and_half_open_connections_take_bounded_memory(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """A third idle, a third with half a header, a third with a little of a Produce request of 32 MB behind a whole request."""
    produce = pack(">ihhih", 10, 18, 0, 7, -1) + pack(">ihhih", 32_000_000, 0, 9, 1, -1) + bytes(1000)
    lines = "listen.max.request.bytes = 33554432\nlisten.request.memory.bytes = 67108864\nlisten.address.max.new.connections = 2000\n"
    links: list[socket.socket] = []
    with gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway:
        before = megabytes(gateway.process.pid)
        try:
            for number in range(2000):
                links.append(socket.create_connection(gateway.address(1 + number % 3), WITHIN_SECONDS))
                links[-1].sendall((b"", b"\0\0\0\x40\0", produce)[number % 3])
            producer = Producer({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})
            producer.produce(new_topic(cluster.bootstrap_servers), b"x")
            assert producer.flush(WITHIN_SECONDS) == 0
            # The memory for half requests, and less than 50 KB for a connection and its broker's.
            assert megabytes(gateway.process.pid) - before < 64 + 2000 * 0.05
        finally:
            for link in links:
                link.close()
        assert gateway.process.poll() is None


def megabytes(pid: int) -> float:
    """Of resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Served:
    """A gateway that was opened: what is done with it, in order."""

    bootstrap_servers = "127.0.0.1:19093"

    def __init__(self, config: GatewayConfig, left: int) -> None:
        self.config = config
        self.left = left
        self.done: list[object] = []

    def reload(self, config: GatewayConfig) -> None:
        self.done.append(config.shutdown_seconds)

    async def drain(self, seconds: float) -> int:
        self.done.append(("drain", seconds))
        return self.left

    def close(self) -> None:
        self.done.append("close")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("left", [0, 2])
def test_a_signal_reloads_or_ends_in_order_and_connections_that_are_cut_off_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, left: int, number: int
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bootstrap.servers = "127.0.0.1:1"\nshutdown.timeout.seconds = 7\n')
    served = Served(read_config(file), left)
    # A worker starts with its signals blocked.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, process._SIGNALS)
    caplog.set_level(logging.INFO, process.__name__)

    async def opened(_config: GatewayConfig, *, shared: bool, registers: bool) -> Served:
        served.done.append(("opened", shared))
        return served

    async def scenario() -> None:
        serving = asyncio.create_task(process._serve(file, served.config, served.done.append, shared=True))
        for text, logged in (("shutdown.timeout.seconds = 9\n", "was read again"), ("= 3", "the config is kept: ")):
            await asyncio.sleep(0.01)
            file.write_text(f'bootstrap.servers = "127.0.0.1:1"\n{text}')
            os.kill(os.getpid(), signal.SIGHUP)
            async with asyncio.timeout(WITHIN_SECONDS):
                while not any(logged in line for line in caplog.messages):
                    await asyncio.sleep(0.001)
        os.kill(os.getpid(), number)
        await asyncio.wait_for(serving, WITHIN_SECONDS)

    monkeypatch.setattr(process, "open_gateway", opened)
    try:
        asyncio.run(scenario())
    finally:
        gc.unfreeze()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert served.done == [("opened", True), served.bootstrap_servers, 9, ("drain", 7), "close"]
    cut_off = [line for line in caplog.messages if "cut off" in line]
    assert cut_off == (["2 connections were cut off after 7 s"] if left else [])


def test_a_second_ctrl_c_ends_the_drain_and_one_during_the_start_ends_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bootstrap.servers = "127.0.0.1:1"\n')
    served, interrupts = Served(read_config(file), 0), 0

    def interrupt() -> None:
        nonlocal interrupts
        interrupts += 1
        os.kill(os.getpid(), signal.SIGINT)

    async def drains_for_ever(seconds: float) -> int:
        assert seconds
        interrupt()
        await asyncio.get_running_loop().create_future()
        return 0

    async def opens_for_ever(_config: GatewayConfig, *, shared: bool, registers: bool) -> Served:
        assert not shared
        interrupt()
        await asyncio.get_running_loop().create_future()
        return served

    async def opened(_config: GatewayConfig, *, shared: bool, registers: bool) -> Served:
        assert not shared
        return served

    def serve() -> None:
        async def scenario() -> None:
            async with asyncio.timeout(WITHIN_SECONDS):
                await process._serve(file, served.config, lambda _: interrupt(), shared=False)

        asyncio.run(scenario())

    served.drain = drains_for_ever  # type: ignore[method-assign]
    try:
        monkeypatch.setattr(process, "limit_interrupts", lambda **_: lambda: None)
        monkeypatch.setattr(process, "open_gateway", opened)
        serve()
        assert (interrupts, served.done, caplog.messages) == (
            2,
            ["close"],
            ["a second Ctrl-C: connections are cut off"],
        )
        monkeypatch.setattr(process, "open_gateway", opens_for_ever)
        serve()
        assert interrupts == 3
    finally:
        gc.unfreeze()


def test_what_the_start_left_over_is_collected_before_the_rest_is_exempt_from_collections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bootstrap.servers = "127.0.0.1:1"\n')
    served, found = Served(read_config(file), 0), list[tuple[bool, bool]]()

    async def opened(_config: GatewayConfig, *, shared: bool, registers: bool) -> Served:
        assert not shared
        left_over = Served(served.config, 0)
        left_over.done.append(left_over)
        left[0] = weakref.ref(left_over)
        return served

    def ready(_servers: str) -> None:
        found.append((left[0]() is None, gc.get_freeze_count() > frozen))
        os.kill(os.getpid(), signal.SIGTERM)

    left: list[Callable[[], Served | None]] = [lambda: served]
    frozen = gc.get_freeze_count()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, process._SIGNALS)
    monkeypatch.setattr(process, "open_gateway", opened)
    gc.disable()
    try:
        asyncio.run(process._serve(file, served.config, ready, shared=False))
    finally:
        gc.enable()
        gc.unfreeze()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert found == [(True, True)]


def test_workers_need_ports_that_are_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_log_as", lambda _: None)
    file = tmp_path / "gateway.toml"
    for ports in ("listen.first.port = 0", "listen.first.port = 19092\n[brokers.2]\nhost = '127.0.0.1'"):
        file.write_text(f'bootstrap.servers = "127.0.0.1:1"\n{ports}\n')
        with pytest.raises(
            UsageError, match="--workers shares ports among processes, and port 0 is another one for each"
        ):
            process.run_gateway(file, 2, lambda _: None)


def test_a_line_of_the_log_in_json_has_its_exception() -> None:
    try:
        raise ValueError("a fault")
    except ValueError:
        found = sys.exc_info()
    entry = logging.LogRecord("rackspan.x", logging.ERROR, "x.py", 1, "%d are %s", (2, "gone"), found)
    entry.created = 1_700_000_000.25
    line = json.loads(process.JsonLines().format(entry))
    assert line.pop("exception").splitlines()[-1] == "ValueError: a fault"
    assert line == {
        "time": "2023-11-14T22:13:20.250+00:00",
        "level": "ERROR",
        "logger": "rackspan.x",
        "message": "2 are gone",
    }


def test_a_worker_that_ended_is_started_again_after_a_second_and_not_while_the_gateway_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[object] = []
    started = process._Workers(tmp_path / "gateway.toml")
    monkeypatch.setattr(time, "sleep", lambda seconds: done.append(("sleep", seconds)))
    monkeypatch.setattr(started, "start", lambda index: done.append(("start", index)))
    started.processes = {0: cast("Any", Polled(None)), 1: cast("Any", Polled(-9))}
    started.restart_ended()
    assert done == [("sleep", 1.0), ("start", 1)]
    assert caplog.messages == ["worker 1 ended with exit code -9 and is started again"]
    started.ending = True
    started.restart_ended()
    assert len(done) == 2


class Polled:
    """A process that has ended with this code, None: it runs; what was done with it, and the line that it wrote."""

    def __init__(self, returncode: int | None, line: str = "") -> None:
        self.returncode = returncode
        self.stdout = io.StringIO(line)
        self.done: list[object] = []

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        self.done.append(number)

    def kill(self) -> None:
        self.done.append("kill")

    def wait(self, _seconds: float) -> None:
        self.done.append("wait")


def test_signals_are_passed_on_to_the_workers_that_run_and_every_one_but_a_reload_is_the_end() -> None:
    started, running, over = process._Workers(Path("gateway.toml")), Polled(None), Polled(0)
    started.processes = {0: cast("Any", running), 1: cast("Any", over)}
    ending = []
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
        started.pass_on(number, None)
        ending.append(started.ending)
    assert ending == [False, True, True]
    with pytest.raises(KeyboardInterrupt):
        started.pass_on(signal.SIGINT, None)
    started.kill()
    assert running.done == [signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, "kill", "wait"]
    assert over.done == []


def test_a_worker_starts_with_its_number_and_with_its_signals_blocked_and_none_after_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def masked() -> set[int]:
        return {*signal.pthread_sigmask(signal.SIG_BLOCK, ())} & {*process._SIGNALS}

    def popen(command: list[str], *, env: dict[str, str], stdout: int, text: bool, process_group: int) -> Polled:
        assert (stdout, text, process_group) == (subprocess.PIPE, True, 0)
        made.append((command, env["RACKSPAN_GATEWAY_WORKER"], env["PATH"], masked()))
        return child

    made, child = list[object](), Polled(None)
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setattr(subprocess, "Popen", popen)
    started = process._Workers(Path("g.toml"))
    started.start(3)
    command = [sys.executable, "-m", "rackspan", "gateway", "--config", "g.toml", "--workers", "1"]
    assert made == [(command, "3", "/bin", {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})]
    assert started.processes[3] is cast("Any", child)
    assert not masked()
    started.ending = True
    started.start(4)
    assert (len(made), list(started.processes)) == (1, [3])
    assert not masked()


def test_the_gateway_is_ready_at_the_address_of_its_first_worker_once_all_have_one() -> None:
    ready: list[str] = []
    lines = "bootstrap.servers=a:1,b:2\n", "bootstrap.servers=c:3\n"
    process._await_start([cast("Any", Polled(None, line)) for line in lines], ready.append)
    process._await_start([], ready.append)
    assert ready == ["a:1,b:2"]
    with pytest.raises(UsageError, match="a worker did not start; its reason stands above"):
        process._await_start([cast("Any", Polled(None, line)) for line in (lines[0], "")], ready.append)
    assert ready == ["a:1,b:2"]


def test_workers_are_watched_until_a_signal_and_then_waited_for_as_long_as_they_may_drain_and_five_seconds_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bootstrap.servers = "127.0.0.1:1"\nshutdown.timeout.seconds = 7\n')
    done: list[object] = []

    class Watched(process._Workers):
        def start(self, index: int) -> None:
            done.append(("start", index))
            self.processes[index] = cast("Any", Polled(None, f"bootstrap.servers=worker:{index}\n"))

        def restart_ended(self) -> None:
            done.append("restart")
            if done.count("restart") == 2:
                os.kill(os.getpid(), signal.SIGTERM)

        def kill(self) -> None:
            done.append(("kill", signal.getsignal(signal.SIGINT)))

    def limit(*, after: int) -> Callable[[], None]:
        done.append(("limit", after))
        return lambda: done.append("lift")

    def ready(servers: str) -> None:
        os.kill(os.getpid(), signal.SIGHUP)
        done.append(servers)

    before = [signal.getsignal(number) for number in process._SIGNALS]
    monkeypatch.setattr(process, "_Workers", Watched)
    monkeypatch.setattr(process, "limit_interrupts", limit)
    monkeypatch.setattr(process, "_wait", lambda children, seconds: done.append((list(children), seconds)))
    monkeypatch.setattr(time, "sleep", lambda seconds: done.append(seconds))
    process._supervise(file, read_config(file), 2, ready)
    watched = [0.2, "restart", 0.2, "restart"]
    assert done[:4] == [("limit", 2), ("start", 0), ("start", 1), "worker:0"]
    assert done[4:] == [*watched, ([0, 1], 12.0), ("kill", signal.SIG_IGN), "lift"]
    assert [signal.getsignal(number) for number in process._SIGNALS] == before


def test_workers_are_waited_for_so_long_in_all_and_one_that_does_not_end_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now, waited = [100.0], list[float]()

    class Child:
        """Ends after so many seconds."""

        def __init__(self, seconds: float) -> None:
            self._seconds = seconds

        def wait(self, seconds: float) -> None:
            waited.append(seconds)
            now[0] += min(seconds, self._seconds)
            if seconds < self._seconds:
                raise subprocess.TimeoutExpired("worker", seconds)

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: now[0]))
    children = {number: Child(seconds) for number, seconds in enumerate((0.5, 60.0, 0.0))}
    process._wait(cast("Any", children), 3.0)
    assert waited == [3.0, 2.5, 0.0]
    assert caplog.messages == ["worker 1 did not end in 3 s and is killed"]


def test_workers_are_not_waited_for_behind_the_end_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times, waited = iter([100.0, 104.0]), list[float]()
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: next(times)))
    process._wait(cast("Any", {0: SimpleNamespace(wait=waited.append)}), 3.0)
    assert waited == [0.0]
