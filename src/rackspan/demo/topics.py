"""The demo's topics: good and bad placements, and the effect of a lost rack on each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

RACKS: Final = ("r1", "r2", "r3")
BROKERS: Final = 6
"""Ids 1 to 6, in the racks in turn: r1 has 1 and 4, r2 has 2 and 5, r3 has 3 and 6."""

LOST_RACK: Final = "r1"
SECOND_RACK: Final = "r2"


@dataclass(frozen=True, slots=True)
class DemoTopic:
    """A topic with explicit replicas: without them the brokers would place it well. `why` is printed."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    config: Mapping[str, str]
    why: str


TOPICS: Final = (
    DemoTopic(
        "orders",
        ((1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 5, 6), (5, 6, 1), (6, 1, 2)),
        {"min.insync.replicas": "2"},
        "three racks, one replica in each: nothing is lost",
    ),
    DemoTopic(
        "clicks",
        ((1, 4, 2), (4, 1, 5), (2, 5, 3), (3, 6, 1)),
        {"min.insync.replicas": "2"},
        "three replicas on two racks: half of them refuse acks=all without r1",
    ),
    DemoTopic(
        "payments",
        ((1, 4), (4, 1), (2, 3)),
        {"min.insync.replicas": "1"},
        "two of three partitions wholly in r1: offline without it",
    ),
    DemoTopic(
        "sessions",
        ((4,), (5,), (6,)),
        {"min.insync.replicas": "1"},
        "one replica each: a third is offline without r1",
    ),
)

LEDGER: Final = DemoTopic(
    "ledger",
    ((3, 1, 2), (6, 4, 5), (1, 2, 3)),
    {"min.insync.replicas": "1", "min.insync.racks": "2"},
    "min.insync.racks=2: nothing is acknowledged that one rack alone holds",
)
"""Created only where the cluster has min.insync.racks: no released Kafka has it."""
