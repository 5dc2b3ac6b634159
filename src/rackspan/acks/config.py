"""Validation of min.insync.racks: accepted, accepted with warnings, or refused.

A broker's value is validated when the broker starts and when the config changes while it runs; a topic's when it is created
or altered. A refused config is an expected outcome, so it is a value and no exception.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS, Broker, RackId


class SetAt(Enum):
    """When a broker's value is set: in its file, before it starts, or while it runs."""

    BROKER_START = auto()
    BROKER_DYNAMIC = auto()


class ConfigOutcome(Enum):
    ACCEPTED = auto()
    INVALID_CONFIG = auto()
    """InvalidConfigurationException; nothing changes."""
    REFUSES_TO_START = auto()


@dataclass(frozen=True, slots=True)
class ConfigVerdict:
    """`value` is what takes effect, None if the config is refused for the reason in `error`. `warnings` go to the log."""

    outcome: ConfigOutcome
    value: int | None
    error: str | None = None
    warnings: tuple[str, ...] = ()


def judge_topic_config(text: str, brokers: Sequence[Broker]) -> ConfigVerdict:
    """A topic's value, at CreateTopics or an alteration."""
    value = _parsed(text)
    if value is None:
        return _refused(ConfigOutcome.INVALID_CONFIG, text)
    return ConfigVerdict(
        ConfigOutcome.ACCEPTED, value, warnings=(*_unracked(value, brokers), *_too_many(value, brokers))
    )


def judge_broker_config(text: str, at: SetAt, own_rack: RackId | None, brokers: Sequence[Broker]) -> ConfigVerdict:
    """A broker's own value, or the cluster's default for it. `brokers` are the registered ones, itself included.

    Source: min.insync.racks, Validation.
    """
    value = _parsed(text)
    outcome = ConfigOutcome.REFUSES_TO_START if at is SetAt.BROKER_START else ConfigOutcome.INVALID_CONFIG
    if value is None:
        return _refused(outcome, text)
    if value > 1 and not own_rack:
        return ConfigVerdict(
            outcome,
            None,
            f"{MIN_INSYNC_RACKS} {value}: this broker has no broker.rack; set it, or leave the value at 1",
        )
    return ConfigVerdict(ConfigOutcome.ACCEPTED, value, warnings=_too_many(value, brokers))


def _parsed(text: str) -> int | None:
    """A Java int of at least 1, as Kafka's ConfigDef reads one; None for anything else."""
    trimmed = text.strip()
    if not re.fullmatch(r"\+?0*[0-9]{1,10}", trimmed, re.ASCII) or not 1 <= int(trimmed) <= INT32_MAX:
        return None
    return int(trimmed)


def _refused(outcome: ConfigOutcome, text: str) -> ConfigVerdict:
    shown = text if len(text) <= 40 else f"{text[:37]}..."
    return ConfigVerdict(
        outcome, None, f"Invalid value {shown} for configuration {MIN_INSYNC_RACKS}: a whole number of at least 1"
    )


def _unracked(value: int, brokers: Sequence[Broker]) -> tuple[str, ...]:
    rackless = sorted(broker.id for broker in brokers if broker.rack is None)
    if value == 1 or not rackless:
        return ()
    listed = ",".join(map(str, rackless))
    return (f"{MIN_INSYNC_RACKS} {value}: brokers without broker.rack count as one unnamed rack: {listed}",)


def _too_many(value: int, brokers: Sequence[Broker]) -> tuple[str, ...]:
    if value == 1:
        return ()
    # Imported here, since it needs NumPy and few clusters require more than one rack.
    from rackspan.model.racks import rack_map

    count = len(rack_map(brokers).racks)
    if value <= count:
        return ()
    racks = "1 rack" if count == 1 else f"{count} racks"
    return (f"{MIN_INSYNC_RACKS} {value}: the cluster has {racks}; acks=all is refused until it has more",)
