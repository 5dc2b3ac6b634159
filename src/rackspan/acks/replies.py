"""How a verdict leaves the broker: error codes, the message that names the racks, and the exception a client raises.

Every client treats an unknown code as fatal and loses the batch, and all retry 19 and 20. So the codes of our own,
outside Kafka's table, are sent only where `extended.error.codes=true`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Thresholds
from rackspan.errors import (
    NotEnoughRacks,
    NotEnoughRacksAfterAppend,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RetriableProduceError,
)
from rackspan.model.ids import BrokerId, shown
from rackspan.model.topic import MIN_INSYNC_RACKS

NOT_ENOUGH_RACKS: Final = 1001
NOT_ENOUGH_RACKS_AFTER_APPEND: Final = 1002

ERROR_MESSAGE_SINCE: Final = 8
"""The Produce version from which an answer carries `error_message`; older ones say it by code alone."""


@dataclass(frozen=True, slots=True)
class ErrorCodes:
    """A verdict's own code, and the one that every client handles."""

    own: int
    kafka: int


ERROR_CODES: Final[Mapping[ProduceVerdict, ErrorCodes]] = {
    ProduceVerdict.ACCEPT: ErrorCodes(0, 0),
    ProduceVerdict.NOT_ENOUGH_REPLICAS: ErrorCodes(19, 19),
    ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCodes(20, 20),
    ProduceVerdict.NOT_ENOUGH_RACKS: ErrorCodes(NOT_ENOUGH_RACKS, 19),
    ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND: ErrorCodes(NOT_ENOUGH_RACKS_AFTER_APPEND, 20),
}

BY_RACKS: Final = frozenset({ProduceVerdict.NOT_ENOUGH_RACKS, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND})
"""Refused by min.insync.racks. The others are Kafka's own, and so are their messages."""


def error_code(verdict: ProduceVerdict, *, extended: bool = False) -> int:
    """The code on the wire; `extended` is the listener's `extended.error.codes`."""
    codes = ERROR_CODES[verdict]
    return codes.own if extended else codes.kafka


def error_message(
    verdict: ProduceVerdict,
    topic: str,
    partition: int,
    isr: Collection[BrokerId],
    racks: RackBits,
    asked: Thresholds,
) -> str | None:
    """`orders-3: in-sync racks a,b = 2 < min.insync.racks 3`; None where Kafka's own words stand."""
    if verdict not in BY_RACKS:
        return None
    names = racks.names(isr)
    listed = ",".join(shown(name) for name in names) or "none"
    return f"{topic}-{partition}: in-sync racks {listed} = {len(names)} < {MIN_INSYNC_RACKS} {asked.min_insync_racks}"


def exception(code: int, message: str | None) -> RetriableProduceError | None:
    """What a Python client raises for a Produce answer; None for a code that is not one of these four.

    Code 19 and 20 are told apart from Kafka's own by the message, the only place where they differ.
    """
    by_racks = message is not None and f" < {MIN_INSYNC_RACKS} " in message
    kind = _EXCEPTIONS.get((code, by_racks)) or _EXCEPTIONS.get((code, True))
    return None if kind is None else kind(message or kind.__doc__ or "")


_EXCEPTIONS: Final[Mapping[tuple[int, bool], type[RetriableProduceError]]] = {
    (19, False): NotEnoughReplicas,
    (19, True): NotEnoughRacks,
    (20, False): NotEnoughReplicasAfterAppend,
    (20, True): NotEnoughRacksAfterAppend,
    (NOT_ENOUGH_RACKS, True): NotEnoughRacks,
    (NOT_ENOUGH_RACKS_AFTER_APPEND, True): NotEnoughRacksAfterAppend,
}
