"""The settings of a command: the rackspan.toml in this folder, or the one that --settings names, over the user's own, and the tables of the
chosen cluster.

A value is taken from the first that has it: flag, RACKSPAN_… variable, [clusters.NAME], rackspan.toml in this folder, the
user's rackspan.toml, the cluster itself. Flags and variables are click's; this module has the rest.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from rackspan.cli.options.settings_file import TOPIC_KEYS, Section, SettingsFile, read_settings_file
from rackspan.cli.options.settings_table import BOOTSTRAP_SERVER, CLUSTER, IN_FILE, OF_POLICY
from rackspan.errors import UsageError
from rackspan.model import RackId
from rackspan.text import nearest

FILE: Final = "rackspan.toml"

VARIABLE: Final = "RACKSPAN_SETTINGS"
"""That of --settings, which is declared with the flags of every command."""

SettingValue: TypeAlias = str | int | bool | list[int | str]

_SOURCE_KEYS: Final = (CLUSTER.key, BOOTSTRAP_SERVER.key)
"""Either names the cluster: the first section that has one of them decides."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The files, the first of which counts most, and the cluster chosen from them, None for none."""

    files: tuple[SettingsFile, ...] = ()
    cluster: str | None = None
    places: tuple[Path, ...] = (Path(FILE),)
    """Where files were looked for."""

    @property
    def cluster_names(self) -> list[str]:
        return sorted({name for file in self.files for name in file.clusters})

    @property
    def sections(self) -> tuple[Section, ...]:
        """The first one that has a key decides: those of the chosen cluster, then those for every cluster."""
        return (*self.cluster_sections, *(file.general for file in self.files))

    @property
    def cluster_sections(self) -> tuple[Section, ...]:
        name = self.cluster
        return () if name is None else tuple(file.clusters[name] for file in self.files if name in file.clusters)

    @property
    def title(self) -> str | None:
        """What to call the chosen cluster: its `name`, else its key; None where none is chosen."""
        return next((section.title for section in self.cluster_sections if section.title is not None), self.cluster)

    @property
    def cluster_id(self) -> str | None:
        """The id that the chosen cluster is expected to have; None where no file names one."""
        return next((section.cluster_id for section in self.cluster_sections if section.cluster_id is not None), None)

    def titles(self) -> dict[str, str]:
        """What to call each cluster whose `cluster-id` a file names, by that id."""
        chosen = (self.for_cluster(name) for name in self.cluster_names)
        return {named.cluster_id: named.title or "" for named in chosen if named.cluster_id is not None}

    @property
    def controller_racks(self) -> Mapping[int, RackId]:
        merged: dict[int, RackId] = {}
        for section in reversed(self.sections):
            merged |= section.controllers
        return merged

    @property
    def excluded_brokers(self) -> frozenset[int]:
        """Brokers that get nothing new."""
        named = (section.excluded_brokers for section in self.sections)
        return next((brokers for brokers in named if brokers is not None), frozenset())

    @property
    def different_racks(self) -> tuple[Section, frozenset[RackId]] | None:
        """The racks that are different from each other, whatever their names, and the section that says so."""
        named = ((section, section.different_racks) for section in self.sections)
        return next(((section, racks) for section, racks in named if racks is not None), None)

    def for_cluster(self, name: str) -> "Settings":
        """The same settings with a chosen cluster. Errors: UsageError for a name that no file has."""
        if name not in self.cluster_names:
            raise UsageError(f"--cluster {name}: {self._no_such_cluster(name)}")
        return replace(self, cluster=name)

    def _no_such_cluster(self, name: str) -> str:
        names = self.cluster_names
        if not names:
            return f"no cluster is named in {' or '.join(map(str, self.places))}; add [clusters.{name}] with bootstrap-server"
        listed = ", ".join(str(file.path) for file in self.files if file.clusters)
        return f"no such cluster in {listed}{nearest(name, names)}; there are {', '.join(names)}"

    def options(self, sections: Collection[Section] | None = None) -> dict[str, Any]:
        """The value of each option that the sections have, all of them by default."""
        return {key: section.options[key] for key, section in self.origins(sections).items()}

    def origins(self, sections: Collection[Section] | None = None) -> dict[str, Section]:
        """The section that decides each option."""
        found: dict[str, Section] = {}
        for section in self.sections if sections is None else sections:
            names_a_cluster = any(key in found for key in _SOURCE_KEYS)
            for key in section.options:
                if key not in found and not (key in _SOURCE_KEYS and names_a_cluster):
                    found[key] = section
        return found

    def topic_values(self, key: str, option: str) -> dict[str, tuple[Section, Any]]:
        """A key of [topics] by topic, where no section before it sets the `option` for all topics."""
        found: dict[str, tuple[Section, Any]] = {}
        for section in self.sections:
            for topic, values in section.topics.items():
                if key in values:
                    found.setdefault(topic, (section, values[key]))
            if option in section.options:
                break
        return found

    def values(self) -> Iterator[tuple[str, SettingValue, str]]:
        """Every setting with its value and where that comes from, a variable or a section; flags are not known here."""
        origins = self.origins()
        for setting in sorted(IN_FILE, key=lambda setting: setting.key):
            key, variable = setting.key, setting.variable
            if variable in os.environ:
                yield key, os.environ[variable], variable
            elif key in origins:
                yield key, origins[key].options[key], origins[key].where
        for name in TOPIC_KEYS:
            for topic, (section, value) in self.topic_values(name, name.replace(".", "-")).items():
                yield f'topics."{topic}" {name}', value, section.where
        for section in self.sections:
            for controller, rack in section.controllers.items():
                yield f"controllers {controller}", rack, section.where
        if self.different_racks is not None:
            section, racks = self.different_racks
            yield "racks different", sorted(racks), section.where
        for section in self.sections:
            if section.excluded_brokers is not None:
                yield "brokers excluded", sorted(section.excluded_brokers), section.where
                return

    def judging(self) -> dict[str, SettingValue]:
        """The settings by which a cluster is judged. The first value of one counts."""
        others = {setting.key for setting in IN_FILE} - {setting.key for setting in OF_POLICY}
        found: dict[str, SettingValue] = {}
        for name, value, _ in self.values():
            if name not in others:
                found.setdefault(name, value)
        return found

    def topics(self) -> Iterator[tuple[Section, str]]:
        """Every [topics."NAME"], with its section."""
        return ((section, topic) for section in self.sections for topic in section.topics)


IN_FORCE: Final[ContextVar[Settings | None]] = ContextVar("IN_FORCE", default=None)
"""The settings of the command that runs, if it judges a cluster by them; None for other commands."""


def load(flag: str | None = None) -> Settings:
    """The file of --settings or its variable, else the one in this folder; then the user's. Errors: UsageError, naming file and key."""
    named = flag or os.environ.get(VARIABLE) or None
    if named is not None and not Path(named).is_file():
        given = f"--settings {named}" if flag else f"{VARIABLE} is {named}"
        raise UsageError(f"{given}: no such file; name a {FILE}")
    found = _places(Path(FILE if named is None else named))
    return Settings(tuple(read_settings_file(path) for path in found if path.is_file()), places=found)


def _places(first: Path) -> tuple[Path, ...]:
    """Where settings are looked for: one file, then the user's configuration, if the user has a home."""
    configuration = os.environ.get("XDG_CONFIG_HOME")
    if not configuration:
        # In a container the user may be a number alone.
        with suppress(RuntimeError):
            configuration = str(Path.home() / ".config")
    return (first, *([Path(configuration) / "rackspan" / FILE] if configuration else []))
