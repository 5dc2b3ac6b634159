"""Throttles that a run did not set, in words: each by name and value."""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from rackspan.plan import ConfigKey, RunLimits, RunState
from rackspan.plan.execution.throttle import Holder
from rackspan.text import count_noun, human_bytes

NAMES_SHOWN: Final = 6

VALUE_SHOWN: Final = 60
"""Characters of a list of replicas."""


def throttle_lines(values: Mapping[ConfigKey, str | None]) -> Iterator[str]:
    """`brokers 1, 2: leader.replication.throttled.rate = 2000000`, a line for each config and value."""
    holders: dict[tuple[Holder, str, str | None], list[str]] = {}
    for config, value in values.items():
        holders.setdefault((config.holder, config.key, value), []).append(config.name)
    for (holder, key, value), names in holders.items():
        is_set = (
            "is not set" if value is None else f"= {value if len(value) <= VALUE_SHOWN else value[:VALUE_SHOWN] + '…'}"
        )
        yield f"{_holders(holder, names)}: {key} {is_set}"


class ThrottleDocument(TypedDict):
    of: Holder
    name: str
    config: str
    value: str


def throttles_document(values: Mapping[ConfigKey, str]) -> list[ThrottleDocument]:
    return [{"of": entry.holder, "name": entry.name, "config": entry.key, "value": values[entry]} for entry in values]


def rate_note(state: RunState, limits: RunLimits) -> str | None:
    """What becomes of the throttle of a run that is resumed; None where nothing has to be reported. `state`: before it."""
    before, now = state.bytes_per_second, limits.rate(state)
    if limits.bytes_per_second is None:
        if state.unknown_rate and not state.rates:
            return (
                "the journal has no rate, as an earlier rackspan wrote it: the throttle that is set stays until the moves "
                "under way have ended, and what is started then is not throttled; --throttle RATE throttles it"
            )
        if not now:
            return None
        return f"throttled to {_rate(now)} as before; --throttle RATE changes it, --throttle none ends it"
    if (before or 0) == now:
        return None
    was = f"throttled to {_rate(before)}" if before else "not throttled"
    return f"{f'throttled to {_rate(now)}' if now else 'not throttled'} from now on; the run was {was} before"


def _holders(holder: Holder, names: list[str]) -> str:
    if len(names) > NAMES_SHOWN:
        return f"{count_noun(len(names), holder.value)} ({', '.join(names[:NAMES_SHOWN])} and others)"
    return f"{holder.value if len(names) == 1 else f'{holder.value}s'} {', '.join(names)}"


def _rate(bytes_per_second: int) -> str:
    return f"{human_bytes(bytes_per_second)} a second"
