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


_MOVE: Final = "elections: a move goes on until the replicas that stay are in sync too"
_UNTIL_ALL_ARE_IN_SYNC: Final[Outcome] = [[0, 0], [[[[2, 3, 1], [2], [1]]], [1, 2], 1], [[2, 3], [2, 3], 2]]

DIFFERENCES: Final[dict[str, Difference]] = {
    "produce: a topic with a compression of its own is written in it": Difference(
        [0], "batches are kept as they came: their records are never written anew, so compression.type is only shown"
    ),
    "fetch: a session returns only what changed": Difference(
        [0, 70, []], "sessions are declined with id 0, which every client takes; a fetch that is idle costs little here"
    ),
    _MOVE: Difference(
        _UNTIL_ALL_ARE_IN_SYNC,
        "as Kafka up to 4.2: a reassignment ends when every target replica is in sync; Kafka 4.3 ends it when those it adds are, unless it removes more",
    ),
}
"""Of the embedded cluster."""

_MEANT: Final = "errors: a client that means another broker or cluster has to start again"
_SPECIAL_TIME: Final = "fetch: a special time is known from its version on"
_NOT_OFFERED: Final = Difference([35] * 6, "ApiVersions 5 (KIP-1242) is not offered")

OF_OLDER_KAFKA: Final[dict[str, dict[str, Difference]]] = {
    "4.3.1": {_MEANT: _NOT_OFFERED},
    "4.1.0": {
        _MEANT: _NOT_OFFERED,
        _SPECIAL_TIME: Difference(
            # Four times, in eleven versions each, and one time in one version.
            [None if at % 11 == 10 and at < 44 else code for at, code in enumerate(recorded.read()[_SPECIAL_TIME])],
            "ListOffsets 11 is not offered",
        ),
        _MOVE: Difference(_UNTIL_ALL_ARE_IN_SYNC, "a reassignment ends when every target replica is in sync"),
        "configs: a groups config is set listed and taken away": Difference(
            [[0, [["50000", 8, 3, False, [8]]], True], [0, [["45000", 5, 3, False, [5]]], True]],
            "a group's own value is described without the default that it replaces, and a group whose last value was deleted is listed",
        ),
    },
}
"""Of older releases, from the newest one, which is recorded: by release."""

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
"""APIs that a broker of Kafka 4.4 offers to clients and the gateway does not."""
