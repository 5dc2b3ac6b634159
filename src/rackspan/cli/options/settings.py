"""The settings of a command: the rackspan.toml in this folder over the user's own, and the tables of the chosen cluster.

A value is taken from the first that has it: flag, RACKSPAN_… variable, [clusters.NAME], rackspan.toml in this folder, the
user's rackspan.toml, the cluster itself. Flags and variables are click's; this module has the rest.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from rackspan.cli.options.settings_file import Section, SettingsFile, read_settings_file
from rackspan.cli.options.settings_table import BOOTSTRAP_SERVER, CLUSTER
from rackspan.errors import UsageError
from rackspan.model import RackId
from rackspan.text import nearest

FILE: Final = "rackspan.toml"

_SOURCE_KEYS: Final = (CLUSTER.key, BOOTSTRAP_SERVER.key)
"""Either names the cluster: the first section that has one of them decides."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The files, the first of which counts most, and the cluster chosen from them, None for none."""

    files: tuple[SettingsFile, ...] = ()
    cluster: str | None = None

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

    def for_cluster(self, name: str) -> "Settings":
        """The same settings with a chosen cluster. Errors: UsageError for a name that no file has."""
        if name not in self.cluster_names:
            raise UsageError(f"--cluster {name}: {_no_such_cluster(name, self.cluster_names)}")
        return replace(self, cluster=name)

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

    def topics(self) -> Iterator[tuple[Section, str]]:
        """Every [topics."NAME"], with its section."""
        return ((section, topic) for section in self.sections for topic in section.topics)


def load() -> Settings:
    """The file in this folder, then the user's. Errors: UsageError, naming file and key."""
    return Settings(tuple(read_settings_file(path) for path in places() if path.is_file()))


def places() -> tuple[Path, ...]:
    """Where settings are looked for: this folder, then the user's configuration, if the user has a home."""
    configuration = os.environ.get("XDG_CONFIG_HOME")
    if not configuration:
        # In a container the user may be a number alone.
        with suppress(RuntimeError):
            configuration = str(Path.home() / ".config")
    return (Path(FILE), *([Path(configuration) / "rackspan" / FILE] if configuration else []))


def _no_such_cluster(name: str, names: Collection[str]) -> str:
    if not names:
        return f"no cluster is named in {' or '.join(map(str, places()))}; add [clusters.{name}] with bootstrap-server"
    return f"no such cluster in {FILE}{nearest(name, names)}; there are {', '.join(names)}"
