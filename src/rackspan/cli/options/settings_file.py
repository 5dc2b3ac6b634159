"""Reads one rackspan.toml and checks every key in it. settings.py decides which file and which table counts."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar, cast

from msgspec import Meta, Struct, defstruct, field, to_builtins

from rackspan.audit.policy import LEADER_RACKS, Survive
from rackspan.cli.options.settings_table import (
    BOOTSTRAP_SERVER,
    CLUSTER,
    IN_FILE,
    OF_CLUSTERS,
    DeclaredSetting,
    Text,
    WholeNumber,
)
from rackspan.documents import convert_toml, dotted_keys
from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS, RackId

BrokerNumber: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class TopicSettings(Struct, forbid_unknown_fields=True, omit_defaults=True):
    SHOWN: ClassVar[str] = '[topics."{key}"]'

    min_insync_racks: WholeNumber | None = field(default=None, name=MIN_INSYNC_RACKS)
    survive: Survive | None = None
    leader_racks: Annotated[list[Text], Meta(min_length=1)] | None = field(default=None, name=LEADER_RACKS)


class BrokerSettings(Struct, forbid_unknown_fields=True):
    SHOWN: ClassVar[str] = "[brokers]"

    excluded: list[BrokerNumber] | None = None


class RackSettings(Struct, forbid_unknown_fields=True):
    SHOWN: ClassVar[str] = "[racks]"

    different: Annotated[list[Text], Meta(min_length=2)] | None = None


class _Tables(Struct, omit_defaults=True):
    topics: dict[str, TopicSettings] = {}
    controllers: dict[str, Text] = {}
    brokers: BrokerSettings = field(default_factory=BrokerSettings)
    racks: RackSettings = field(default_factory=RackSettings)


class _NamedCluster(_Tables, rename="kebab"):
    name: Text | None = None
    cluster_id: Text | None = None


class _GeneralSettings(_Tables):
    clusters: dict[str, dict[str, object]] = {}


Tables = TypeVar("Tables", bound=_Tables)


def _with_settings(tables: type[Tables], settings: tuple[DeclaredSetting, ...]) -> type[Tables]:
    """The class that has a key for each of the settings too, and no other."""
    keys = [(setting.parameter, setting.kind | None, None) for setting in settings]
    declared = defstruct(tables.__name__[1:], keys, bases=(tables,), rename="kebab", forbid_unknown_fields=True)
    return cast("type[Tables]", declared)


NamedCluster: Final = _with_settings(_NamedCluster, OF_CLUSTERS)
GeneralSettings: Final = _with_settings(_GeneralSettings, IN_FILE)

_SETTINGS: Final = {setting.key: setting for setting in IN_FILE}

TOPIC_KEYS: Final = TopicSettings.__struct_encode_fields__
"""The keys of [topics."NAME"]."""


@dataclass(frozen=True, slots=True)
class Section:
    """One table of a file: what stands above all tables, or one [clusters.NAME].

    `where` names it in messages; `title` is the cluster's `name`, `cluster_id` the id it is checked for. `topics` has the keys of TOPIC_KEYS by topic.
    """

    where: str
    options: Mapping[str, Any] = dataclass_field(default_factory=dict)
    topics: Mapping[str, Mapping[str, Any]] = dataclass_field(default_factory=dict)
    controllers: Mapping[int, RackId] = dataclass_field(default_factory=dict)
    excluded_brokers: frozenset[int] | None = None
    different_racks: frozenset[RackId] | None = None
    title: str | None = None
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The content of one rackspan.toml."""

    path: Path
    general: Section
    clusters: Mapping[str, Section] = dataclass_field(default_factory=dict)


def read_settings_file(path: Path) -> SettingsFile:
    """Errors: UsageError, naming file and key."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: not TOML: {error}; fix it in the file") from None
    except RecursionError:
        raise UsageError(f"{path}: brackets nested too deep; fix it in the file") from None
    given = convert_toml(_with_dotted_topics(document), GeneralSettings, str(path))
    general = _section(path, str(path), given)
    if {CLUSTER.key, BOOTSTRAP_SERVER.key} <= general.options.keys():
        raise UsageError(f"{path}: cluster and bootstrap-server name two clusters; remove one of them")
    clusters = {name: _cluster(path, f"{path}: [clusters.{name}]", table) for name, table in given.clusters.items()}
    return SettingsFile(path, general, clusters)


def _cluster(path: Path, where: str, table: dict[str, object]) -> Section:
    given = convert_toml(_with_dotted_topics(table), NamedCluster, where)
    section = _section(path, where, given)
    if BOOTSTRAP_SERVER.key not in section.options:
        raise UsageError(f'{where} has no bootstrap-server; add bootstrap-server = "HOST:PORT"')
    return replace(section, title=given.name, cluster_id=given.cluster_id)


def _with_dotted_topics(table: dict[str, Any]) -> dict[str, Any]:
    """TOML reads `min.insync.racks = 2` as nested tables."""
    topics = table.get("topics")
    if not isinstance(topics, dict):
        return table
    return {**table, "topics": {name: dict(dotted_keys(t)) if isinstance(t, dict) else t for name, t in topics.items()}}


def _section(path: Path, where: str, given: _Tables) -> Section:
    for controller in given.controllers:
        if not controller.isdigit():
            raise UsageError(
                f'{where}: [controllers] {controller} is not a controller id; write a line such as 101 = "r1"'
            )
    options = {key: value for key, value in to_builtins(given).items() if key in _SETTINGS}
    return Section(
        where,
        {key: _beside(path, value) if _SETTINGS[key].is_path else value for key, value in options.items()},
        to_builtins(given.topics),
        {int(controller): RackId(rack) for controller, rack in given.controllers.items()},
        None if given.brokers.excluded is None else frozenset(given.brokers.excluded),
        None if given.racks.different is None else frozenset(map(RackId, given.racks.different)),
    )


def _beside(path: Path, value: str) -> str:
    """A path in the file is relative to the file's folder."""
    if "://" in value:
        return value
    try:
        return str(path.parent / Path(value).expanduser())
    except RuntimeError:
        raise UsageError(f"{path}: {value!r}: the home of that user is not known; write the whole path") from None
