"""rackspan config show, check."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options.given import Given
from rackspan.cli.options.settings import Settings, places
from rackspan.cli.options.settings_file import TOPIC_KEYS
from rackspan.cli.options.settings_table import IN_FILE
from rackspan.cli.pages.config import (
    CheckedCluster,
    CheckedSettings,
    ClusterShown,
    SettingShown,
    ShownSettings,
    check_page,
    show_page,
)
from rackspan.errors import RackspanError
from rackspan.model import ClusterSnapshot

app = CommandGroup(name="config", help="The settings of rackspan.toml and where each value comes from.")

_SETTING_COLUMNS: Final = ("setting", "value", "from")
_PROBLEM_COLUMNS: Final = ("cluster", "problem")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The cluster whose settings are meant."""

    cluster_name: options.ClusterName = None
    given: Given = field(default_factory=Given)

    @property
    def settings(self) -> Settings:
        return self.given.settings


@app.command()
@options.with_option_groups
def show(chosen: _Chosen, output_format: options.OutputFormat = options.Output.HUMAN) -> None:
    """Show the files that are looked for, every setting with where it comes from, and the named clusters.

    With --cluster, as they apply to that cluster. A flag of a command counts before all of them.
    """
    settings = chosen.settings
    document: ShownSettings = {
        "files": [{"path": str(path), "found": path.is_file()} for path in places()],
        "cluster": settings.cluster,
        "settings": list(_settings(settings)),
        "clusters": [_cluster(settings.for_cluster(name), name) for name in settings.cluster_names],
    }
    output.write(document, output_format, show_page(document), output.Rows(_SETTING_COLUMNS, document["settings"]))


@app.command()
@options.with_option_groups
def check(
    chosen: _Chosen,
    offline: Annotated[bool, typer.Option("--offline", help="Check the files alone; connect to no cluster.")] = False,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Check rackspan.toml: every named cluster is read, and topics, controllers and brokers that it lacks are listed.

    With --cluster, that one alone.
    """
    settings = chosen.settings
    names = settings.cluster_names if settings.cluster is None else [settings.cluster]
    checked = [_check(settings.for_cluster(name), name, offline) for name in names]
    problems = [problem for cluster in checked for problem in cluster["problems"]]
    document: CheckedSettings = {"files": [str(file.path) for file in settings.files], "clusters": checked}
    output.write(document, output_format, check_page(document), output.Rows(_PROBLEM_COLUMNS, problems))
    raise exit_codes.finish(impossible=any(not cluster["read"] for cluster in checked), to_act_on=bool(problems))


def _settings(settings: Settings) -> Iterator[SettingShown]:
    origins = settings.origins()
    for setting in sorted(IN_FILE, key=lambda setting: setting.key):
        key, variable = setting.key, setting.variable
        if variable in os.environ:
            yield {"setting": key, "value": os.environ[variable], "from": variable}
        elif key in origins:
            yield {"setting": key, "value": origins[key].options[key], "from": origins[key].where}
    for name in TOPIC_KEYS:
        for topic, (section, value) in settings.topic_values(name, name.replace(".", "-")).items():
            yield {"setting": f'topics."{topic}" {name}', "value": value, "from": section.where}
    for section in settings.sections:
        for controller, rack in section.controllers.items():
            yield {"setting": f"controllers {controller}", "value": rack, "from": section.where}
    for section in settings.sections:
        if section.excluded_brokers is not None:
            yield {"setting": "brokers excluded", "value": sorted(section.excluded_brokers), "from": section.where}
            return


def _cluster(settings: Settings, name: str) -> ClusterShown:
    found = settings.options()
    return {
        "cluster": name,
        "name": settings.title or name,
        "bootstrap-server": options.cluster_address(settings),
        "command-config": found.get("command-config"),
        "from": settings.cluster_sections[0].where,
    }


def _check(settings: Settings, cluster: str, offline: bool) -> CheckedCluster:
    problems: list[str] = []
    found = settings.options()
    config = found.get("command-config")
    snapshot: ClusterSnapshot | None = None
    failed = False
    try:
        if config is not None:
            api.check_command_config(Path(config))
        source = api.live_cluster(
            options.cluster_address(settings),
            None if config is None else Path(config),
            found.get("timeout", options.DEFAULT_TIMEOUT_MS) / 1000,
            sizes=False,
            name=settings.title,
        )
        if not offline:
            snapshot = source.read().snapshot
    except RackspanError as error:
        failed = True
        problems.append(str(error))
    if snapshot is not None:
        problems += [*snapshot.partial, *options.PolicyOptions(given=Given(settings=settings)).warnings(snapshot)]
        problems += options.ExclusionOptions(given=Given(settings=settings)).warnings(snapshot)
    return {
        "cluster": cluster,
        "name": settings.title or cluster,
        "read": not failed,
        "brokers": None if snapshot is None else len(snapshot.brokers),
        "topics": None if snapshot is None else len(snapshot.topics),
        "problems": [{"cluster": cluster, "problem": problem} for problem in problems],
    }
