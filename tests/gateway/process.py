"""A gateway in a process of its own, by the command line."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rackspan.kafka_process.ports import HeldPorts
from tests.waiting import WITHIN_SECONDS


def free_ports(count: int) -> list[int]:
    """Ports of the loopback address that nothing uses, outside the range from which outgoing connections get theirs."""
    with HeldPorts() as held:
        return [held.take() for _ in range(count)]


def broker_ports(brokers: int = 3) -> str:
    """The lines of a config that give the listeners of brokers 1, 2 and so on a free port each."""
    tables = "".join(f"[brokers.{number}]\nport = {port}\n" for number, port in enumerate(free_ports(brokers), 1))
    return f"listen.first.port = 1\n{tables}"


class GatewayProcess:
    """`bootstrap_servers` are the advertised addresses, `log` is its standard error."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap_servers: str, log: Path) -> None:
        self.process = process
        self.bootstrap_servers = bootstrap_servers
        self.log = log

    def address(self, broker: int) -> tuple[str, int]:
        host, _, port = self.bootstrap_servers.split(",")[broker - 1].rpartition(":")
        return host, int(port)


@contextmanager
def gateway_process(
    folder: Path, bootstrap_servers: str, lines: str = "", workers: int = 1
) -> Iterator[GatewayProcess]:
    """Runs meanwhile, and is then ended by SIGTERM. `lines` follow the addresses in its config."""
    config, log = folder / "gateway.toml", folder / "gateway.log"
    first = "" if "listen.first.port" in lines else "listen.first.port = 0\n"
    config.write_text(f'bootstrap.servers = "{bootstrap_servers}"\n{first}{lines}')
    command = [sys.executable, "-m", "rackspan", "gateway", "--config", str(config), "--workers", str(workers)]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().partition("=")[2].strip()
        assert address, log.read_text()
        yield GatewayProcess(process, address, log)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
