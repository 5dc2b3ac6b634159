"""What setting min.insync.racks does: accepted, warned of, or refused, and by whom.

A broker is judged at its start and when the config changes while it runs; a topic when it is created or altered. An
answer is a value: a config that is refused is a normal outcome.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rackspan.model.broker import Broker
from rackspan.model.ids import INT32_MAX, RackId
from rackspan.model.topic import MIN_INSYNC_RACKS

INVALID_CONFIG: Final = 40
"""Kafka's code for InvalidConfigurationException."""

DEFAULT: Final = 1


class SetAt(Enum):
    """Where the value is set."""

    BROKER_START = "static"
    BROKER_DYNAMIC = "dynamic"
    TOPIC = "topic"


class ConfigOutcome(Enum):
    ACCEPTED = "accepted"
    INVALID_CONFIG = "invalid-config"
    """InvalidConfigurationException; nothing changes."""
    REFUSES_TO_START = "refuses-to-start"


@dataclass(frozen=True, slots=True)
class ConfigVerdict:
    """`value` is what takes effect, None where nothing does. `error` says why not; `warnings` go to the log."""

    outcome: ConfigOutcome
    value: int | None
    error: str | None = None
    warnings: tuple[str, ...] = ()


def judge_topic_config(text: str, brokers: Sequence[Broker]) -> ConfigVerdict:
    """A topic's value, at CreateTopics or an alteration."""
    value = _parsed(text)
    if value is None:
        return _refused(SetAt.TOPIC, text)
    return ConfigVerdict(
        ConfigOutcome.ACCEPTED, value, warnings=(*_unracked(value, brokers), *_too_many(value, brokers))
    )


def judge_broker_config(text: str, at: SetAt, own_rack: RackId | None, brokers: Sequence[Broker]) -> ConfigVerdict:
    """A broker's own value, or the cluster's default for it. `brokers` are those it knows of, itself included.

    Source: min.insync.racks, Validation.
    """
    value = _parsed(text)
    if value is None:
        return _refused(at, text)
    if value > 1 and not own_rack:
        outcome = ConfigOutcome.REFUSES_TO_START if at is SetAt.BROKER_START else ConfigOutcome.INVALID_CONFIG
        return ConfigVerdict(
            outcome,
            None,
            f"{MIN_INSYNC_RACKS} {value}: this broker has no broker.rack; set it, or leave the value at 1",
        )
    return ConfigVerdict(ConfigOutcome.ACCEPTED, value, warnings=_too_many(value, brokers))


def in_effect(topic_value: int | None, broker_value: int | None) -> int:
    """Topic over broker over default."""
    return topic_value if topic_value is not None else broker_value if broker_value is not None else DEFAULT


def _parsed(text: str) -> int | None:
    """A Java int of at least 1, as Kafka's ConfigDef reads one; None for anything else."""
    trimmed = text.strip()
    if not re.fullmatch(r"\+?0*[0-9]{1,10}", trimmed, re.ASCII) or not 1 <= int(trimmed) <= INT32_MAX:
        return None
    return int(trimmed)


def _refused(at: SetAt, text: str) -> ConfigVerdict:
    outcome = ConfigOutcome.REFUSES_TO_START if at is SetAt.BROKER_START else ConfigOutcome.INVALID_CONFIG
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
    # Here, with NumPy behind it: few clusters ask for more than one rack.
    from rackspan.model.racks import rack_map

    known = len(rack_map(brokers).racks)
    if value <= known:
        return ()
    racks = "1 rack" if known == 1 else f"{known} racks"
    return (f"{MIN_INSYNC_RACKS} {value}: the cluster has {racks}; acks=all is refused until it has more",)
