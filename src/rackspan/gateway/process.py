"""The gateway as a process: signals, workers that share the listeners, reload and an orderly end.

SIGTERM and SIGINT drain: nothing more is accepted, every request that was received gets its response. A second SIGINT ends that at
once. SIGHUP reads the config file again; connections live on. With several workers the first process only starts and watches the others.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rackspan.daemon_threads import run
from rackspan.errors import RackspanError, UsageError
from rackspan.gateway.app import Gateway, open_gateway
from rackspan.gateway.config import GatewayConfig, read_config
from rackspan.interrupts import limit_interrupts

if TYPE_CHECKING:
    from rackspan.prometheus_metrics.server import MetricsEndpoint

log = logging.getLogger(__name__)

T = TypeVar("T")

_RESTART_SECONDS: Final = 1.0
"""A worker that ends by itself is started again, at most so often."""

_KILL_SECONDS: Final = 5.0
"""A worker that has not ended so long after its time to drain is killed."""

_AT_ONCE_SECONDS: Final = 2.0
"""For workers to end after a second Ctrl-C, and for those that were killed."""

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_gateway(path: Path, workers: int, ready: Callable[[str], None]) -> None:
    """Run until SIGTERM or SIGINT. `ready` is called with the advertised addresses once clients may connect.

    Errors: RackspanError before that.
    """
    config = read_config(path)
    _log_as(config.log_format)
    if workers == 1:
        worker = os.environ.get("RACKSPAN_GATEWAY_WORKER")
        run(_serve(path, config, ready, shared=worker is not None, registers=worker in (None, "0")))
        return
    if any(config.listener(broker).port == 0 for broker in (*map(int, config.brokers), 0)):
        raise UsageError(
            "--workers shares ports among processes, and port 0 is another one for each; set listen.first.port"
        )
    _supervise(path, config, workers, ready)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and what a message is about as fields of its own."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": time, "level": record.levelname, "logger": record.name, "message": record.getMessage()}
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _log_as(log_format: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if log_format == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])


async def _serve(
    path: Path, config: GatewayConfig, ready: Callable[[str], None], *, shared: bool, registers: bool = True
) -> None:
    loop = asyncio.get_running_loop()
    ended, at_once, changed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    def interrupt() -> None:
        (at_once if ended.is_set() else ended).set()

    for number, handler in ((signal.SIGTERM, ended.set), (signal.SIGINT, interrupt), (signal.SIGHUP, changed.set)):
        loop.add_signal_handler(number, handler)
    lift = limit_interrupts(after=2)
    # A worker starts with these blocked.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    try:
        opening = loop.create_task(open_gateway(config, shared=shared, registers=registers))
        if await _until(opening, ended):
            await _serve_opened(await opening, path, ready, ended, at_once, changed)
    finally:
        lift()


async def _until(work: "asyncio.Task[T]", event: asyncio.Event) -> bool:
    """Whether the work ended before the event. Otherwise it is cancelled."""
    waiting = asyncio.ensure_future(event.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not work.done():
        work.cancel()
        return False
    return True


async def _serve_opened(
    gateway: Gateway,
    path: Path,
    ready: Callable[[str], None],
    ended: asyncio.Event,
    at_once: asyncio.Event,
    changed: asyncio.Event,
) -> None:
    loop = asyncio.get_running_loop()
    reloading = loop.create_task(_reload(gateway, path, changed))
    endpoint, config = None, gateway.config
    try:
        if config.http is not None:
            endpoint = _http_endpoint(gateway, config.http, int(os.environ.get("RACKSPAN_GATEWAY_WORKER", "0")))
            await endpoint.open()
            log.info("health and metrics at http://%s/", endpoint.address)
        # What was made until here stays: later collections need not walk over it.
        gc.collect()
        gc.freeze()
        ready(gateway.bootstrap_servers)
        await ended.wait()
        draining = loop.create_task(gateway.drain(gateway.config.shutdown_seconds))
        if not await _until(draining, at_once):
            log.warning("a second Ctrl-C: connections are cut off")
        elif cut := await draining:
            log.warning("%d connections were cut off after %d s", cut, gateway.config.shutdown_seconds)
    finally:
        reloading.cancel()
        if endpoint is not None:
            endpoint.close()
        gateway.close()


def _http_endpoint(gateway: Gateway, listen: str, worker: int) -> "MetricsEndpoint":
    # Imported here: the Prometheus client takes time that a gateway without metrics need not wait for.
    from rackspan.gateway.metrics import http_endpoint

    return http_endpoint(gateway, listen, worker)


async def _reload(gateway: Gateway, path: Path, changed: asyncio.Event) -> None:
    """Read the config again after each SIGHUP, one that came before the gateway was open included."""
    while True:
        await changed.wait()
        changed.clear()
        try:
            gateway.reload(read_config(path))
        except RackspanError as error:
            log.error("the config is kept: %s", error)  # The message says everything.
        else:
            log.info("%s was read again", path)


def _await_start(children: Iterable[subprocess.Popen[str]], ready: Callable[[str], None]) -> None:
    """Wait until every worker serves, and hand on the address of the first. Errors: UsageError."""
    first = [child.stdout.readline() if child.stdout else "" for child in children]
    if not all(first):
        raise UsageError("a worker did not start; its reason stands above")
    if first:
        ready(first[0].partition("=")[2].strip())


class _Workers:
    """The processes by index, until a signal to end, which each of them receives too."""

    def __init__(self, config_path: Path) -> None:
        self._command = [sys.executable, "-m", "rackspan", "gateway", "--config", str(config_path), "--workers", "1"]
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.ending = False

    def start(self, index: int) -> None:
        """Not after a signal to end. Signals wait until the worker is in `processes`, and in the worker until it handles them."""
        environment = {**os.environ, "RACKSPAN_GATEWAY_WORKER": str(index)}
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            if not self.ending:
                # In a process group of its own: the terminal's Ctrl-C reaches it once, from here.
                started = subprocess.Popen(
                    self._command, env=environment, stdout=subprocess.PIPE, text=True, process_group=0
                )
                self.processes[index] = started
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def pass_on(self, number: int, _frame: object) -> None:
        """Errors: KeyboardInterrupt at the second Ctrl-C."""
        at_once = self.ending and number == signal.SIGINT
        self.ending = self.ending or number != signal.SIGHUP
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(number)
        if at_once:
            raise KeyboardInterrupt

    def restart_ended(self) -> None:
        for index, process in tuple(self.processes.items()):
            if not self.ending and process.poll() is not None:
                log.error("worker %d ended with exit code %d and is started again", index, process.returncode)
                time.sleep(_RESTART_SECONDS)
                self.start(index)

    def kill(self) -> None:
        running = {index: process for index, process in self.processes.items() if process.poll() is None}
        for process in running.values():
            process.kill()
        _wait(running, _AT_ONCE_SECONDS, "although it was killed, and is left behind")


def _supervise(path: Path, config: GatewayConfig, count: int, ready: Callable[[str], None]) -> None:
    workers = _Workers(path)
    before = {number: signal.signal(number, workers.pass_on) for number in _SIGNALS}
    lift = limit_interrupts(after=2)
    try:
        for index in range(count):
            workers.start(index)
        try:
            _await_start(workers.processes.values(), ready)
        except UsageError:
            # One that is ended while it starts serves nobody either.
            if not workers.ending:
                raise
        while not workers.ending:
            time.sleep(0.2)
            workers.restart_ended()
        _wait(workers.processes, config.shutdown_seconds + _KILL_SECONDS)
    except KeyboardInterrupt:
        _wait(workers.processes, _AT_ONCE_SECONDS)
    finally:
        # One more Ctrl-C leaves no worker behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        workers.kill()
        lift()
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(children: dict[int, "subprocess.Popen[str]"], seconds: float, consequence: str = "and is killed") -> None:
    """Until all have ended, at most so long in all. `consequence` ends the line of one that has not."""
    until = time.monotonic() + seconds
    for index, child in children.items():
        try:
            child.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.error("worker %d did not end in %d s %s", index, seconds, consequence)
