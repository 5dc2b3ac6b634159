"""Placing a large topic: ours beside Kafka's own classes, in turns, both warm.

Ratios are of runs made one after the other, so that what else the machine does weighs on both. Both sides end with one
array of broker ids; what each pays for another form is printed besides: Kafka ends with lists of boxed integers, which its
controller stores, ours can be turned into Python lists, which a request to a broker needs. Kafka's classes come from the
published jars; a JVM of their own is started and ended here. Its flags give it what it is fastest with of the four sets
that were tried: no garbage is collected during a run, unless two runs fill the young generation.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from benchmarks._measure import Figures, machine
from rackspan.errors import UsageError
from rackspan.model import BrokerId, RackId
from rackspan.placement import CheckedPlacer, UsableBroker, placer_named
from tests.compat.kafka_placers import KAFKA_VERSION, KafkaPlacers, Request, request

RUNS: Final = 9
LIST_RUNS: Final = 3
WARMUP_PARTITIONS: Final = 6_000_000
"""Placed by the JVM before the first run of each case, in runs of the case's size: it is then as fast as it gets."""

JVM_FLAGS: Final = ("-Xms6g", "-Xmx6g", "-Xmn5g", "-XX:+UseParallelGC")

BESIDE: Final[Mapping[str, str]] = {
    "rack-alternated": "rack-alternated",
    "striped": "striped",
    "balanced": "striped",
}
"""Our placers, each with the one of Kafka's it is measured against."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A topic to place. `racks` says how many brokers stand on each."""

    name: str
    racks: Sequence[int]
    partitions: int
    replicas: int = 3

    @property
    def brokers(self) -> tuple[UsableBroker, ...]:
        racks = [rack for rack, size in enumerate(self.racks) for _ in range(size)]
        return tuple(UsableBroker(BrokerId(broker), RackId(f"r{rack}"), False) for broker, rack in enumerate(racks))


SCENARIOS: Final = (
    Scenario("1,000,000 partitions, 1,000 brokers on 3 racks", (334, 333, 333), 1_000_000),
    Scenario("1,000,000 partitions, 1,000 brokers on 6 racks", (167, 167, 167, 167, 166, 166), 1_000_000),
    Scenario("1,000,000 partitions, 1,000 brokers on racks of 600, 300 and 100", (600, 300, 100), 1_000_000),
    Scenario("100,000 partitions, 300 brokers on 3 racks", (100, 100, 100), 100_000),
    Scenario("1,000 partitions, 12 brokers on 3 racks", (4, 4, 4), 1_000),
    Scenario("100,000 partitions, 12 brokers on 12 racks", (1,) * 12, 100_000),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Milliseconds of each run, Kafka's and ours in turns. `kafka`, `ours`: to an array; the others to the named form."""

    kafka: Figures
    ours: Figures
    kafka_own_lists: Figures
    ours_as_lists: Figures


def main() -> None:
    print(f"{machine()}; Kafka {KAFKA_VERSION}, java {' '.join(JVM_FLAGS)}; one thread each, JVM's collector besides")
    print(f"milliseconds, median (least to most) of {RUNS} runs in turns")
    placers = list(_importable())
    with KafkaPlacers(JVM_FLAGS) as kafka:
        for scenario in SCENARIOS:
            print(f"\n{scenario.name}, replication factor {scenario.replicas}")
            for placer in placers:
                print(_line(placer.name, _compared(kafka, placer, scenario)), flush=True)


def _importable() -> Iterator[CheckedPlacer]:
    for name in BESIDE:
        try:
            yield placer_named(name, {}, Random(17))
        except UsageError as error:
            print(f"{name} is left out: {error}")


def _compared(kafka: KafkaPlacers, placer: CheckedPlacer, scenario: Scenario) -> Comparison:
    brokers = scenario.brokers
    placement = request(BESIDE[placer.name], brokers, scenario.partitions, scenario.replicas, seed=17, runs=1)
    for array in (True, False):
        _kafka_ms(kafka, {**placement, "array": array, "warmups": max(3, WARMUP_PARTITIONS // scenario.partitions)})
    _ours_ms(placer, scenario, brokers, as_lists=True)
    arrays = [
        (_kafka_ms(kafka, {**placement, "array": True}), _ours_ms(placer, scenario, brokers)) for _ in range(RUNS)
    ]
    lists = [
        (_kafka_ms(kafka, {**placement, "array": False}), _ours_ms(placer, scenario, brokers, as_lists=True))
        for _ in range(LIST_RUNS)
    ]
    return Comparison(*(Figures(figures) for pairs in (arrays, lists) for figures in zip(*pairs, strict=True)))


def _kafka_ms(kafka: KafkaPlacers, request_: Request) -> float:
    (milliseconds,) = kafka.run(request_)["ms"]
    return float(milliseconds)


def _ours_ms(
    placer: CheckedPlacer, scenario: Scenario, brokers: Sequence[UsableBroker], *, as_lists: bool = False
) -> float:
    begin = time.perf_counter()
    placed = placer.placer.place(0, scenario.partitions, scenario.replicas, brokers)
    lists = placed.replicas.tolist() if as_lists else None
    milliseconds = (time.perf_counter() - begin) * 1000
    del lists
    return milliseconds


def _line(placer: str, compared: Comparison) -> str:
    ratio = compared.kafka.over(compared.ours).text("times as fast", 1)
    return (
        f"  {placer:<16} {compared.ours.text('ms', 1):<28} Kafka's {BESIDE[placer]:<16} {compared.kafka.text('ms', 1):<30} {ratio}\n"
        f"  {'':<16} as lists {compared.ours_as_lists.text('ms', 1):<28} Kafka's own lists {compared.kafka_own_lists.text('ms', 1)}"
    )
