"""The gateway before real Kafka, beside the same Kafka direct: throughput, processor time, latency, start, memory.

Rounds go in turns in one run, since a machine's speed drifts; ratios are of runs of one round. The client, the broker and the
gateway share the machine's cores: the ratio is what a hop costs where no core is spare.
"""

import subprocess
import sys
import tempfile
import time
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
BROKERS: Final = 2
"""In two racks, with a replica of every partition in each: with one rack nothing would be verified."""

LATENCY_SECONDS: Final = 8
DIRECT: Final = "direct"

CONFIGS: Final[Mapping[str, str]] = {
    "pass-through": 'acknowledgements.mode = "off"\n',
    "verified": 'acknowledgements.mode = "verified"\nacknowledgements.min.insync.racks = 2\n',
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
    latencies: dict[str, list[float]] = field(default_factory=dict)
    starts: dict[str, float] = field(default_factory=dict)

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
        kafka = stack.enter_context(served(KAFKA, BROKERS))
        paths: dict[str, Server] = {DIRECT: kafka}
        starts: dict[str, float] = {}
        for name, lines in CONFIGS.items():
            begin = time.perf_counter()
            paths[name] = stack.enter_context(gateway(kafka.bootstrap, lines))
            starts[name] = time.perf_counter() - begin
        run_client(
            kafka.bootstrap, "create", BROKERS, *(f"{path}-{number}" for path in paths for number in range(rounds + 1))
        )
        series = Series(starts=starts)
        _measure(series, paths, rounds)
        memory = {path: _resident_megabytes(server.process) for path, server in paths.items() if path != DIRECT}
    for work in ("produce", "consume"):
        print(f"\n{work}, MB/s of {MEGABYTES} MB, 1 KB records, acks=all, librdkafka, two brokers; {rounds} rounds")
        for path in paths:
            speed = series.speed(path, work)
            ratio = speed.over(series.speed(DIRECT, work)).text("of direct")
            print(f"  {path:<14} {speed.text('MB/s', 0):<28} {ratio:<30} {series.processor(path, work).text('ms/MB')}")
    print(f"\nmedian time to an acknowledgement at 1,000 records/s, linger 0, ms; {rounds} rounds")
    for path in paths:
        print(f"  {path:<14} {Figures(tuple(series.latencies[path])).text('ms', 2)}")
    print("\nmemory after that, MB, and seconds from the start to the first listener")
    for path, megabytes in memory.items():
        print(f"  {path:<14} {megabytes:.0f} MB, {series.starts[path]:.2f} s")


def _resident_megabytes(process: int) -> float:
    (line,) = (one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _measure(series: Series, paths: Mapping[str, Server], rounds: int) -> None:
    for number in range(rounds + 1):
        order: Sequence[str] = sorted(paths, key=lambda path: hash((path, number)))
        for work in ("produce", "consume"):
            for path in order:
                run = _run(paths[path], work, f"{path}-{number}")
                if number:
                    series.add(path, work, run)
        for path in order if number else ():
            seconds = run_client(paths[path].bootstrap, "latency", LATENCY_SECONDS, f"{path}-{number}")
            series.latencies.setdefault(path, []).append(seconds * 1000)


def _run(server: Server, work: str, topic: str) -> Run:
    before = server.processor_seconds()
    seconds = run_client(server.bootstrap, work, MEGABYTES, topic)
    return Run(MEGABYTES / seconds, (server.processor_seconds() - before) * 1000 / MEGABYTES)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
