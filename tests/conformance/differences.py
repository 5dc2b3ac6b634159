"""Where the embedded cluster differs from Apache Kafka, and why it may: at most ten, each shown to differ still."""

from dataclasses import dataclass
from typing import Final

from tests.conformance.behaviour import Outcome

AT_MOST: Final = 10


@dataclass(frozen=True)
class Difference:
    """`embedded` is what the embedded cluster shows instead of Kafka's outcome."""

    embedded: Outcome
    reason: str


DIFFERENCES: Final[dict[str, Difference]] = {}
