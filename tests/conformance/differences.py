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


DIFFERENCES: Final[dict[str, Difference]] = {
    "produce: a topic with a compression of its own is written in it": Difference(
        [0], "batches are kept as they came: their records are never written anew, so compression.type is only shown"
    ),
    "fetch: a session returns only what changed": Difference(
        [0, 70, []], "sessions are declined with id 0, which every client takes; a fetch that is idle costs little here"
    ),
}
