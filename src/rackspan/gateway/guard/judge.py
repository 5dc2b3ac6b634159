"""The rule for a producer that reads metadata itself, before a record is sent; verifier.py has what follows its acknowledgement."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.acks.min_insync_racks import RackBits, Thresholds, before_append, rack_bits
from rackspan.acks.produce_errors import ERROR_CODES, error_message, produce_error
from rackspan.errors import NotEnoughRacksAfterAppend, RetriableProduceError, UsageError
from rackspan.model import Broker, BrokerId, RackId

KEPT_SECONDS: Final = 1.0
"""How long metadata counts for the check before a record is sent."""


@dataclass(frozen=True, slots=True)
class TopicIsr:
    """The ISR of each partition of one topic, and the racks of its members, as one broker reported them."""

    racks: RackBits
    partitions: Mapping[int, tuple[BrokerId, ...]]


def topic_isr(racks: Mapping[int, str | None], partitions: Mapping[int, Iterable[int]]) -> TopicIsr:
    """From rack by broker id and ISR by partition."""
    brokers = [Broker(BrokerId(one), None if rack is None else RackId(rack)) for one, rack in racks.items()]
    return TopicIsr(rack_bits(brokers), {one: tuple(map(BrokerId, isr)) for one, isr in partitions.items()})


class RackJudge:
    """`min_insync_racks` by topic, and `others` for topics without an entry. Errors: UsageError for a value below 1."""

    def __init__(self, min_insync_racks: Mapping[str, int], others: int = 1) -> None:
        self._thresholds = {topic: Thresholds(1, value) for topic, value in min_insync_racks.items()}
        self._others = Thresholds(1, others)

    def requires(self, topic: str) -> bool:
        """Whether more than one rack is required."""
        return self.thresholds(topic).min_insync_racks > 1

    def thresholds(self, topic: str) -> Thresholds:
        return self._thresholds.get(topic, self._others)

    def before(self, topic: str, partition: int | None, isr: TopicIsr) -> RetriableProduceError | None:
        """The error of a record that must not be sent. Without a partition every partition has to lack racks."""
        chosen = isr.partitions if partition is None else [partition]
        errors = [self._error(topic, one, isr) for one in chosen]
        return errors[0] if errors and all(errors) else None

    def _error(self, topic: str, partition: int, isr: TopicIsr) -> RetriableProduceError | None:
        members = isr.partitions.get(partition)
        if members is None:
            return None
        thresholds = self.thresholds(topic)
        verdict = before_append(members, isr.racks, thresholds)
        message = error_message(verdict, topic, partition, members, isr.racks, thresholds)
        return produce_error(ERROR_CODES[verdict], message)


def unverified(topic: str, partition: int, cause: Exception) -> NotEnoughRacksAfterAppend:
    """The error of a record that was acknowledged, and that could not be verified."""
    return NotEnoughRacksAfterAppend(f"{topic}-{partition}: the record could not be verified: {cause}")


def refuse_weak_acks(config: Mapping[str, object], *keys: str) -> None:
    """Errors: UsageError where acks are set to less than all."""
    for key in keys:
        if str(config.get(key, "all")) not in ("all", "-1"):
            raise UsageError(f"{key} is {config[key]!r}, and min.insync.racks holds for acks=all alone; leave it out")
