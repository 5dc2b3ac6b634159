"""The gateway before real Kafka, beside the same Kafka direct: throughput, processor time, latency, start, memory.

Rounds go in turns in one run, since a machine's speed drifts; ratios are of runs of one round. The client, the broker and the
gateway share the machine's cores: the ratio is what a hop costs where no core is spare.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks._cluster_clients import run_client
from benchmarks._cluster_servers import KAFKA, Server, served
from benchmarks._measure import Figures, machine

MEGABYTES: Final = 200
ROUNDS: Final = 7
DIRECT: Final = "direct"

CONFIGS: Final[Mapping[str, str]] = {
    "pass-through": 'acknowledgements.mode = "off"\n',
    "verified": 'acknowledgements.mode = "verified"\nacknowledgements.min.insync.racks = 1\n',
}
"""Each gateway that is compared, by the lines of its config beyond the addresses."""


@dataclass(frozen=True, slots=True)
class Run:
    """One client's work through one path."""

    megabytes_per_second: float
    gateway_ms_per_megabyte: float


@dataclass
class Series:
    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)

    def add(self, path: str, work: str, run: Run) -> None:
        self.runs.setdefault((path, work), []).append(run)

    def speed(self, path: str, work: str) -> Figures:
        return Figures(tuple(run.megabytes_per_second for run in self.runs[path, work]))

    def processor(self, path: str, work: str) -> Figures:
        return Figures(tuple(run.gateway_ms_per_megabyte for run in self.runs[path, work]))


@contextmanager
def gateway(bootstrap: str, lines: str) -> Iterator[Server]:
    """A gateway in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "gateway.toml"
        config.write_text(f'bootstrap.servers = "{bootstrap}"\nlisten.first.port = 0\n{lines}')
        command = [sys.executable, "-m", "rackspan", "gateway", "--config", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        try:
            address = process.stdout.readline().partition("=")[2].strip()
            assert address, "the gateway did not start"
            yield Server("gateway", address, process.pid)
        finally:
            process.terminate()
            process.wait(30)


def main(rounds: int = ROUNDS) -> None:
    print(machine())
    with ExitStack() as stack:
        kafka = stack.enter_context(served(KAFKA, 1))
        paths: dict[str, Server] = {DIRECT: kafka}
        paths |= {name: stack.enter_context(gateway(kafka.bootstrap, lines)) for name, lines in CONFIGS.items()}
        run_client(
            kafka.bootstrap, "create", 1, *(f"{path}-{number}" for path in paths for number in range(rounds + 1))
        )
        series = _measured(paths, rounds)
    for work in ("produce", "consume"):
        print(f"\n{work}, MB/s of {MEGABYTES} MB, 1 KB records, acks=all, librdkafka, one broker; {rounds} rounds")
        for path in paths:
            speed = series.speed(path, work)
            ratio = speed.over(series.speed(DIRECT, work)).text("of direct")
            print(f"  {path:<14} {speed.text('MB/s', 0):<28} {ratio:<30} {series.processor(path, work).text('ms/MB')}")


def _measured(paths: Mapping[str, Server], rounds: int) -> Series:
    series = Series()
    for number in range(rounds + 1):
        order: Sequence[str] = sorted(paths, key=lambda path: hash((path, number)))
        for work in ("produce", "consume"):
            for path in order:
                run = _run(paths[path], work, f"{path}-{number}")
                if number:
                    series.add(path, work, run)
    return series


def _run(server: Server, work: str, topic: str) -> Run:
    before = server.processor_seconds()
    seconds = run_client(server.bootstrap, work, MEGABYTES, topic)
    return Run(MEGABYTES / seconds, (server.processor_seconds() - before) * 1000 / MEGABYTES)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
