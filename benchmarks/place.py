"""Placing a large topic: ours beside Kafka's own classes, in turns, both warm.

Ratios are of runs made one after the other, so that what else the machine does weighs on both. Kafka's classes come
from the published jars; a JVM of their own is started and ended here.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.errors import UsageError
from rackspan.model import BrokerId, RackId
from rackspan.placement import CheckedPlacer, UsableBroker, placer_named
from tests.compat.kafka_placers import KafkaPlacers, Request, request

RUNS: Final = 5
WARMUPS: Final = 3
"""After three runs a JVM of this size is as fast as it gets."""

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
    """Milliseconds of each run, Kafka's and ours in turns."""

    kafka: Sequence[float]
    ours: Sequence[float]

    @property
    def ratios(self) -> list[float]:
        return [kafka / ours for kafka, ours in zip(self.kafka, self.ours, strict=True)]


def main() -> None:
    placers = list(_importable())
    with KafkaPlacers() as kafka:
        for scenario in SCENARIOS:
            print(f"\n{scenario.name}, replication factor {scenario.replicas}")
            for placer in placers:
                print(_line(placer.name, _compared(kafka, placer, scenario)))


def _importable() -> Iterator[CheckedPlacer]:
    for name in BESIDE:
        try:
            yield placer_named(name, {}, Random(17))
        except UsageError as error:
            print(f"{name} is left out: {error}")


def _compared(kafka: KafkaPlacers, placer: CheckedPlacer, scenario: Scenario) -> Comparison:
    brokers = scenario.brokers
    request_ = request(BESIDE[placer.name], brokers, scenario.partitions, scenario.replicas, seed=17)
    _kafka_ms(kafka, {**request_, "warmups": WARMUPS, "runs": 1})
    _ours_ms(placer, scenario, brokers)
    runs = [(_kafka_ms(kafka, {**request_, "runs": 1}), _ours_ms(placer, scenario, brokers)) for _ in range(RUNS)]
    return Comparison([theirs for theirs, _ in runs], [ours for _, ours in runs])


def _kafka_ms(kafka: KafkaPlacers, request_: Request) -> float:
    (milliseconds,) = kafka.run(request_)["ms"]
    return float(milliseconds)


def _ours_ms(placer: CheckedPlacer, scenario: Scenario, brokers: Sequence[UsableBroker]) -> float:
    begin = time.perf_counter()
    placer.placer.place(0, scenario.partitions, scenario.replicas, brokers)
    return (time.perf_counter() - begin) * 1000


def _line(placer: str, compared: Comparison) -> str:
    return (
        f"  {placer:<16} Kafka's {BESIDE[placer]:<16} {_spread(compared.kafka)} ms"
        f"   rackspan {_spread(compared.ours)} ms   {_spread(compared.ratios)} times as fast"
    )


def _spread(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):>7.1f} ({min(figures):.1f} to {max(figures):.1f})"
