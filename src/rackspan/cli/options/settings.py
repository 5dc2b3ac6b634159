"""Defaults of options: RACKSPAN_… variables, then rackspan.toml in this folder, then the user's own rackspan.toml."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS, RackId

FILE: Final = "rackspan.toml"

OPTION_KEYS: Final = frozenset(
    {
        "bootstrap-server",
        "command-config",
        "timeout",
        "rack-locator-class",
        "rack-locator-properties",
        "unracked",
        "min-insync-racks",
        "output",
        "warehouse",
        "master",
    }
)
"""Flags that may stand in the file, without their dashes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The content of rackspan.toml. `options` are defaults for options; the rest can be set in the file only."""

    options: Mapping[str, Any] = field(default_factory=dict)
    topic_min_insync_racks: Mapping[str, int] = field(default_factory=dict)
    controller_racks: Mapping[int, RackId] = field(default_factory=dict)
    excluded_brokers: frozenset[int] | None = None


def load() -> Settings:
    """The file in this folder over the user's. Errors: UsageError, naming file and key."""
    user = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "rackspan" / FILE
    merged = Settings()
    for path in (user, Path(FILE)):
        if path.is_file():
            merged = _over(merged, _read(path))
    return merged


def _over(lower: Settings, upper: Settings) -> Settings:
    return Settings(
        options={**lower.options, **upper.options},
        topic_min_insync_racks={**lower.topic_min_insync_racks, **upper.topic_min_insync_racks},
        controller_racks={**lower.controller_racks, **upper.controller_racks},
        excluded_brokers=lower.excluded_brokers if upper.excluded_brokers is None else upper.excluded_brokers,
    )


def _read(path: Path) -> Settings:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not TOML: {error}; correct it and run again") from None
    except RecursionError:
        raise UsageError(f"{path}: brackets nested too deep; correct it and run again") from None
    topics, controllers = document.pop("topics", {}), document.pop("controllers", {})
    brokers = document.pop("brokers", {})
    for key, value in document.items():
        if key not in OPTION_KEYS:
            raise UsageError(
                f"{path}: {key!r} is not a setting; there are {', '.join(sorted(OPTION_KEYS))}, [topics], [controllers], [brokers]"
            )
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise UsageError(f"{path}: {key} is {value!r}, but a setting is a string or a whole number; correct it")
    return Settings(
        document, dict(_topics(path, topics)), dict(_controllers(path, controllers)), _excluded(path, brokers)
    )


def _topics(path: Path, tables: object) -> Iterator[tuple[str, int]]:
    for topic, table in _table(path, "topics", tables).items():
        for key, value in _dotted(_table(path, f'topics."{topic}"', table)):
            if key != MIN_INSYNC_RACKS:
                raise UsageError(f'{path}: [topics."{topic}"] knows {MIN_INSYNC_RACKS} alone, not {key}; remove it')
            if type(value) is not int or not 1 <= value <= INT32_MAX:
                raise UsageError(
                    f'{path}: [topics."{topic}"] {key} is {value!r}, but it is a whole number of 1 to {INT32_MAX}'
                )
            yield topic, value


def _controllers(path: Path, table: object) -> Iterator[tuple[int, RackId]]:
    for controller, rack in _table(path, "controllers", table).items():
        if not controller.isdigit() or not isinstance(rack, str) or not rack:
            raise UsageError(
                f'{path}: [controllers] {controller} = {rack!r}, but a line reads like 101 = "r1"; correct it'
            )
        yield int(controller), RackId(rack)


def _excluded(path: Path, table: object) -> frozenset[int] | None:
    found: frozenset[int] | None = None
    for key, value in _table(path, "brokers", table).items():
        if key != "excluded":
            raise UsageError(f"{path}: [brokers] knows excluded alone, not {key}; remove it")
        if not isinstance(value, list) or any(type(one) is not int or not 0 <= one <= INT32_MAX for one in value):
            raise UsageError(f"{path}: [brokers] excluded is {value!r}, but it is a list of broker ids such as [4, 5]")
        found = frozenset(value)
    return found


def _table(path: Path, name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: {name} is {value!r}, but it is a table; write [{name}] above its lines")
    return value


def _dotted(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """TOML reads `min.insync.racks = 2` as nested tables; Kafka's keys are dotted."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
