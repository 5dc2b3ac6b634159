"""Reads one rackspan.toml and checks every key in it. settings.py decides which file and which table counts."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rackspan.audit.policy import Survive
from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS, RackId, UnrackedPolicy
from rackspan.toml_keys import dotted_keys

SURVIVE: Final = "survive"
"""The loss to survive: a flag, and a key of [topics."NAME"]."""

REQUIRE_CONTROLLERS: Final = "require-controllers"

Check = Callable[[object], object]
"""Raises UsageError for a wrong value, with a message about the value alone; returns the right one."""


def _whole_number(value: object) -> int:
    if type(value) is not int or not 1 <= value <= INT32_MAX:
        raise UsageError(f"is {value!r}, expected a whole number of 1 to {INT32_MAX}")
    return value


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"is {value!r}, expected true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"is {value!r}, expected text")
    return value


def _one_of(*allowed: str) -> Check:
    def check(value: object) -> object:
        if value not in allowed:
            raise UsageError(f"is {value!r}, expected one of {', '.join(allowed)}")
        return value

    return check


CLUSTER_KEYS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        "bootstrap-server": _text,
        "command-config": _text,
        "timeout": _whole_number,
        "rack-locator-class": _text,
        "rack-locator-properties": _text,
        "unracked": _one_of(*UnrackedPolicy),
        "min-insync-racks": _whole_number,
        SURVIVE: _one_of(*Survive),
        REQUIRE_CONTROLLERS: _boolean,
    }
)
"""Flags without their dashes that may stand in [clusters.NAME], and above all tables for every cluster."""

OPTION_KEYS: Final[Mapping[str, Check]] = MappingProxyType(
    {
        **CLUSTER_KEYS,
        "cluster": _text,
        "output": _one_of("human", "json", "yaml", "csv"),
        "warehouse": _text,
        "master": _text,
    }
)
"""Flags without their dashes that may stand above all tables."""

_TABLES: Final = ("topics", "controllers", "brokers", "clusters")
_PATHS: Final = ("command-config", "warehouse")


TOPIC_KEYS: Final[Mapping[str, Check]] = MappingProxyType({MIN_INSYNC_RACKS: _whole_number, SURVIVE: _one_of(*Survive)})
"""The keys of [topics."NAME"]."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a file: what stands above all tables, or one [clusters.NAME].

    `where` names it in messages; `title` is the cluster's `name`, `cluster_id` the id it is checked for. `topics` has the keys of TOPIC_KEYS by topic.
    """

    where: str
    options: Mapping[str, Any] = field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    controllers: Mapping[int, RackId] = field(default_factory=dict)
    excluded_brokers: frozenset[int] | None = None
    title: str | None = None
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of one rackspan.toml."""

    path: Path
    general: Section
    clusters: Mapping[str, Section] = field(default_factory=dict)


def read_settings_file(path: Path) -> SettingsFile:
    """Errors: UsageError, naming file and key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not TOML: {error}; fix it in the file") from None
    except RecursionError:
        raise UsageError(f"{path}: brackets nested too deep; fix it in the file") from None
    clusters = _table(str(path), "clusters", document.pop("clusters", {}))
    general = _section(path, str(path), document, OPTION_KEYS, _TABLES)
    if {"cluster", "bootstrap-server"} <= general.options.keys():
        raise UsageError(f"{path}: cluster and bootstrap-server name two clusters; remove one of them")
    return SettingsFile(path, general, {name: _cluster(path, name, table) for name, table in clusters.items()})


def _cluster(path: Path, name: str, table: object) -> Section:
    where = f"{path}: [clusters.{name}]"
    keys = dict(_table(str(path), f"clusters.{name}", table))
    title, cluster_id = keys.pop("name", None), keys.pop("cluster-id", None)
    for key, value, what in (
        ("name", title, "the name to show"),
        ("cluster-id", cluster_id, "the id that Kafka gave it"),
    ):
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise UsageError(f"{where} {key} is {value!r}, expected {what}; write it as text")
    section = replace(
        _section(path, where, keys, CLUSTER_KEYS, _TABLES[:-1], in_cluster=True), title=title, cluster_id=cluster_id
    )
    if "bootstrap-server" not in section.options:
        raise UsageError(f'{where} has no bootstrap-server; add bootstrap-server = "HOST:PORT"')
    return section


def _section(
    path: Path,
    where: str,
    keys: dict[str, Any],
    allowed: Mapping[str, Check],
    tables: tuple[str, ...],
    *,
    in_cluster: bool = False,
) -> Section:
    topics, controllers, brokers = (keys.pop(name, {}) for name in ("topics", "controllers", "brokers"))
    for key, value in keys.items():
        if key not in allowed:
            known = [*sorted(allowed), *(("name", "cluster-id") if in_cluster else ())]
            raise UsageError(
                f"{where}: {key!r} is not a setting; there are {', '.join(known)}, {', '.join(f'[{one}]' for one in tables)}"
            )
        try:
            allowed[key](value)
        except UsageError as error:
            raise UsageError(f"{where}: {key} {error}") from None
    options = {key: _beside(path, value) if key in _PATHS else value for key, value in keys.items()}
    return Section(
        where,
        options,
        dict(_topics(where, topics)),
        dict(_controllers(where, controllers)),
        _excluded(where, brokers),
    )


def _beside(path: Path, value: str) -> str:
    """A path in the file is relative to the file's folder."""
    if "://" in value:
        return value
    return str(path.parent / Path(value).expanduser())


def _topics(where: str, tables: object) -> Iterator[tuple[str, dict[str, Any]]]:
    for topic, table in _table(where, "topics", tables).items():
        yield topic, dict(_topic(f'{where}: [topics."{topic}"]', _table(where, f'topics."{topic}"', table)))


def _topic(where: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in dotted_keys(table):
        if key not in TOPIC_KEYS:
            raise UsageError(f"{where}: {key!r} is not a setting of a topic; there is {', '.join(TOPIC_KEYS)}")
        try:
            yield key, TOPIC_KEYS[key](value)
        except UsageError as error:
            raise UsageError(f"{where} {key} {error}") from None


def _controllers(where: str, table: object) -> Iterator[tuple[int, RackId]]:
    for controller, rack in _table(where, "controllers", table).items():
        if not controller.isdigit() or not isinstance(rack, str) or not rack:
            raise UsageError(f'{where}: [controllers] {controller} = {rack!r}, expected a line such as 101 = "r1"')
        yield int(controller), RackId(rack)


def _excluded(where: str, table: object) -> frozenset[int] | None:
    found: frozenset[int] | None = None
    for key, value in _table(where, "brokers", table).items():
        if key != "excluded":
            raise UsageError(f"{where}: [brokers]: {key!r} is not a setting; there is excluded")
        if not isinstance(value, list) or any(type(one) is not int or not 0 <= one <= INT32_MAX for one in value):
            raise UsageError(f"{where}: [brokers] excluded is {value!r}, expected a list of broker ids such as [4, 5]")
        found = frozenset(value)
    return found


def _table(where: str, name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: {name} is {value!r}, expected a table; write [{name}] above its lines")
    return value
