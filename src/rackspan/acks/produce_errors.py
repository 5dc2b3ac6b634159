"""A refused produce, on the wire and in Python: its cause, error codes, the message that names the racks, exceptions for producers.

Clients treat an unknown code as fatal and lose the batch, and all of them retry 19 and 20. So codes 1001 and 1002, which
are not in Kafka's table, are sent only where `extended.error.codes=true`; elsewhere the broker sends 19 and 20 in their
place.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rackspan.acks.isr_samples import Partition
from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Thresholds
from rackspan.errors import (
    NotEnoughRacks,
    NotEnoughRacksAfterAppend,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RetriableProduceError,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, BrokerId, shown

ERROR_CODES: Final[Mapping[ProduceVerdict, ErrorCode]] = {
    ProduceVerdict.ACCEPT: ErrorCode.NONE,
    ProduceVerdict.NOT_ENOUGH_REPLICAS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ProduceVerdict.NOT_ENOUGH_RACKS: ErrorCode.NOT_ENOUGH_RACKS,
    ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND: ErrorCode.NOT_ENOUGH_RACKS_AFTER_APPEND,
}

BY_RACKS: Final = frozenset({ProduceVerdict.NOT_ENOUGH_RACKS, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND})
"""Refused by min.insync.racks. The others are Kafka's own, with Kafka's own messages."""


class Cause(Enum):
    """Why a record was refused, for metrics and logs."""

    RACKS = "too few racks in sync"
    REPLICAS = "too few replicas in sync"
    LOGS = "too few replicas' logs show the record"
    UNKNOWN = "the ISR is unknown"
    LEADER = "the leader changed"
    CONFIG = "the end of the config topic could not be read"
    ORDER = "an earlier batch of the producer was refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The outcome for one partition in place of the broker's."""

    partition: Partition
    verdict: ProduceVerdict
    cause: Cause
    message: str | None
    isr_racks: tuple[str, ...] = ()
    """The racks of the sampled ISR, by name; empty if it is unknown."""

    @property
    def error(self) -> RetriableProduceError | None:
        """The exception for a producer."""
        return produce_error(ERROR_CODES[self.verdict], self.message)


def error_message(
    verdict: ProduceVerdict,
    topic: str,
    partition: int,
    isr: Collection[BrokerId],
    racks: RackBits,
    thresholds: Thresholds,
) -> str | None:
    """`orders-3: in-sync racks a,b = 2 < min.insync.racks 3`; None where Kafka's own message is sent."""
    if verdict not in BY_RACKS:
        return None
    names = racks.names(isr)
    listed = ",".join(shown(name) for name in names) or "none"
    return (
        f"{topic}-{partition}: in-sync racks {listed} = {len(names)} < {MIN_INSYNC_RACKS} {thresholds.min_insync_racks}"
    )


def produce_error(code: int, message: str | None) -> RetriableProduceError | None:
    """The exception for a partition's error in a Produce response; None for a code that is not one of the four.

    `message` is the response's `error_message` (Produce version 8 and later). Codes 19 and 20 stand for both thresholds:
    only the message names which of the two was missed.
    """
    by_racks = message is not None and f" < {MIN_INSYNC_RACKS} " in message
    kind = _EXCEPTIONS.get((code, by_racks)) or _EXCEPTIONS.get((code, True))
    return None if kind is None else kind(message or kind.__doc__ or "")


_EXCEPTIONS: Final[Mapping[tuple[int, bool], type[RetriableProduceError]]] = {
    (ErrorCode.NOT_ENOUGH_REPLICAS, False): NotEnoughReplicas,
    (ErrorCode.NOT_ENOUGH_REPLICAS, True): NotEnoughRacks,
    (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, False): NotEnoughReplicasAfterAppend,
    (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True): NotEnoughRacksAfterAppend,
    (ErrorCode.NOT_ENOUGH_RACKS, True): NotEnoughRacks,
    (ErrorCode.NOT_ENOUGH_RACKS_AFTER_APPEND, True): NotEnoughRacksAfterAppend,
}
