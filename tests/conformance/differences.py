"""Where the embedded cluster, and a gateway, differ from Apache Kafka, and why they may: at most ten, each shown to differ still."""

from dataclasses import dataclass
from typing import Final

from tests.conformance import recorded
from tests.conformance.behaviour import Outcome

AT_MOST: Final = 10


@dataclass(frozen=True)
class Difference:
    """`outcome` is what is shown instead of Kafka's."""

    outcome: Outcome
    reason: str


DIFFERENCES: Final[dict[str, Difference]] = {
    "produce: a topic with a compression of its own is written in it": Difference(
        [0], "batches are kept as they came: their records are never written anew, so compression.type is only shown"
    ),
    "fetch: a session returns only what changed": Difference(
        [0, 70, []], "sessions are declined with id 0, which every client takes; a fetch that is idle costs little here"
    ),
}
"""Of the embedded cluster."""

_WRITE_TXN_MARKERS: Final = 27
_OF_BROKERS: Final = "WriteTxnMarkers is sent by brokers to each other, which do not connect through a gateway"
_LEAST_VERSIONS: Final = "errors: the least versions of what clients use are offered"

OF_THE_GATEWAY: Final[dict[str, Difference]] = {
    _LEAST_VERSIONS: Difference(
        {**recorded.read()[_LEAST_VERSIONS], str(_WRITE_TXN_MARKERS): None},
        _OF_BROKERS,
    ),
}
"""Of a gateway before Apache Kafka."""

WITHHELD: Final[dict[int, str]] = {
    _WRITE_TXN_MARKERS: _OF_BROKERS,
    **dict.fromkeys(
        range(83, 88), "the state of share groups is read and written by brokers, at the share coordinator"
    ),
}
"""APIs that a broker of Kafka 4.1 offers to clients and the gateway does not."""
