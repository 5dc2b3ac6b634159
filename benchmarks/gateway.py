"""The gateway before real Kafka, beside Kroxylicious without filters and the same Kafka direct.

Throughput, processor time, start and memory; the time to an acknowledgement is in gateway_modes. Rounds go in turns in one run, since a machine's speed drifts; ratios are
of runs of one round. The client, the brokers and the proxy share the machine's cores: the ratio is what a hop costs where no
core is spare.

python -m benchmarks.gateway [ROUNDS]
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._cluster_clients import PARTITIONS, run_client
from benchmarks._cluster_servers import KAFKA, Server, served
from benchmarks._gateways import KROXYLICIOUS, KROXYLICIOUS_VERSION, Started, gateway, kroxylicious
from benchmarks._measure import Figures, machine

MEGABYTES: Final = 200
ROUNDS: Final = 7
BROKERS: Final = 2
"""In two racks, with a replica of every partition in each: with one rack nothing would be verified."""

STARTS: Final = 5
DIRECT, PASS_THROUGH, READERS, VERIFIED = "direct", "pass-through", "readers", "verified"
WORKS: Final = ("produce", "consume")

CONFIGS: Final[Mapping[str, str]] = {
    PASS_THROUGH: 'acknowledgements.mode = "off"\n',
    READERS: 'acknowledgements.mode = "off"\n[readers]\nrack = "r1"\n',
    VERIFIED: 'acknowledgements.mode = "verified"\nacknowledgements.min.insync.racks = 2\n',
}
"""Each gateway that is compared, by the lines of its config beyond the addresses."""

Proxy = Callable[[Path, str], AbstractContextManager[Started]]
PROXIES: Final[Mapping[str, Proxy]] = {
    **{path: partial(gateway, lines=lines) for path, lines in CONFIGS.items()},
    KROXYLICIOUS: partial(kroxylicious, brokers=BROKERS),
}


@dataclass(frozen=True, slots=True)
class Run:
    """One client's work through one path."""

    megabytes_per_second: float
    proxy_ms_per_megabyte: float


@dataclass
class Series:
    """The figures of all rounds, by path."""

    runs: dict[tuple[str, str], list[Run]] = field(default_factory=dict)
    starts: dict[str, list[float]] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)

    def speed(self, path: str, work: str) -> Figures:
        return Figures(tuple(run.megabytes_per_second for run in self.runs[path, work]))

    def processor(self, path: str, work: str) -> Figures:
        return Figures(tuple(run.proxy_ms_per_megabyte for run in self.runs[path, work]))

    def of_direct(self, path: str, work: str) -> Figures:
        return self.speed(path, work).over(self.speed(DIRECT, work))


def main(rounds: int = ROUNDS) -> None:
    print(machine())
    series = Series()
    with ExitStack() as stack:
        kafka = stack.enter_context(served(KAFKA, BROKERS))
        folders = {path: Path(stack.enter_context(tempfile.TemporaryDirectory())) for path in PROXIES}
        _measure_starts(series, kafka.bootstrap, folders)
        paths = {DIRECT: kafka} | {
            path: stack.enter_context(proxy(folders[path], kafka.bootstrap)).server for path, proxy in PROXIES.items()
        }
        for number in range(rounds + 1):
            _measure_round(series, paths, number)
        series.memory = {path: _resident_megabytes(paths[path].process) for path in PROXIES}
    _print(series, rounds)


def _measure_starts(series: Series, bootstrap: str, folders: Mapping[str, Path]) -> None:
    """In turns; the first of each writes and reads what the others find."""
    for number in range(STARTS + 1):
        for path, proxy in PROXIES.items():
            with proxy(folders[path], bootstrap) as started:
                if number:
                    series.starts.setdefault(path, []).append(started.seconds)


def _measure_round(series: Series, paths: Mapping[str, Server], number: int) -> None:
    """Every work through every path. Round 0 warms up."""
    order: Sequence[str] = Random(number).sample(sorted(paths), len(paths))
    with _topics(paths[DIRECT].bootstrap, {path: f"{path}-{number}" for path in order}) as topics:
        for work in WORKS:
            for path in order:
                run = _run(paths[path], work, topics[path])
                if number:
                    series.runs.setdefault((path, work), []).append(run)


@contextmanager
def _topics(bootstrap: str, names: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Deleted afterwards, from the disk as well: a round writes more than a gigabyte."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = {"file.delete.delay.ms": "1000"}
    wanted = [NewTopic(name, PARTITIONS, BROKERS, config=config) for name in names.values()]
    for created in admin.create_topics(wanted).values():
        created.result(60)
    yield names
    for deleted in admin.delete_topics(list(names.values())).values():
        deleted.result(60)


def _run(server: Server, work: str, topic: str) -> Run:
    before = server.processor_seconds()
    seconds = run_client(server.bootstrap, work, MEGABYTES, topic)
    return Run(MEGABYTES / seconds, (server.processor_seconds() - before) * 1000 / MEGABYTES)


def _resident_megabytes(process: int) -> float:
    (line,) = (one for one in Path(f"/proc/{process}/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def _print(series: Series, rounds: int) -> None:
    print(
        f"median (range) of {rounds} rounds; Kroxylicious {KROXYLICIOUS_VERSION} without filters; librdkafka; {KAFKA}"
    )
    for work in WORKS:
        print(f"\n{work}: {MEGABYTES} MB of 1 KB records, acks=all, {BROKERS} brokers; processor time of the proxy")
        for path in (DIRECT, *PROXIES):
            ratio = series.of_direct(path, work).text("of direct")
            if path == READERS:
                ratio = f"{ratio}, {series.speed(path, work).over(series.speed(PASS_THROUGH, work)).text('of pass-through')}"
            cost = "" if path == DIRECT else series.processor(path, work).text("ms/MB")
            print(f"  {path:<14} {series.speed(path, work).text('MB/s', 0):<26} {ratio:<34} {cost}".rstrip())
    print(f"\nstart to listening, {STARTS} starts; resident memory after all of the above")
    for path in PROXIES:
        print(f"  {path:<14} {Figures(tuple(series.starts[path])).text('s'):<30} {series.memory[path]:.0f} MB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
