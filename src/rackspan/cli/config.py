"""rackspan config show, check."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from rackspan import api
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options.given import Given, Level
from rackspan.cli.options.settings import Settings
from rackspan.cli.options.settings_table import COMMAND_CONFIG
from rackspan.cli.pages.config import (
    CheckedCluster,
    CheckedCommandConfig,
    CheckedLine,
    CheckedSettings,
    ClusterShown,
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
        "files": [{"path": str(path), "found": path.is_file()} for path in settings.places],
        "cluster": settings.cluster,
        "settings": [{"setting": name, "value": value, "from": where} for name, value, where in settings.values()],
        "clusters": [_cluster(settings.for_cluster(name), name) for name in settings.cluster_names],
    }
    output.write(document, output_format, show_page(document), output.Rows(_SETTING_COLUMNS, document["settings"]))


@app.command()
@options.with_option_groups
def check(
    chosen: _Chosen,
    offline: Annotated[bool, typer.Option("--offline", help="Check the files alone; connect to no cluster.")] = False,
    command_config: Annotated[
        Path | None,
        COMMAND_CONFIG.option("Client properties to check, for every cluster.", "Options"),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Check rackspan.toml: every named cluster is read, and topics, controllers and brokers that it lacks are listed.

    Of every file of client properties each line is listed: whether it is used, ignored or refused, and why. With --cluster,
    that one alone.
    """
    settings = chosen.settings
    names = settings.cluster_names if settings.cluster is None else [settings.cluster]
    own = [(name, settings.for_cluster(name)) for name in names]
    # A file of rackspan.toml is for the clusters that have none of their own, and one that is given for all of them.
    given = command_config if chosen.given.level("command_config") > Level.FILE else None
    configs = {name: given or _command_config(cluster) for name, cluster in own}
    checked = [_check(cluster, name, configs[name], offline) for name, cluster in own]
    problems = [problem for cluster in checked for problem in cluster["problems"]]
    read = [_command_config_lines(file) for file in dict.fromkeys([given, *configs.values()]) if file is not None]
    document: CheckedSettings = {
        "files": [str(file.path) for file in settings.files],
        "clusters": checked,
        "command-configs": read,
    }
    output.write(document, output_format, check_page(document), output.Rows(_PROBLEM_COLUMNS, problems))
    raise exit_codes.finish(
        impossible=any(not cluster["read"] for cluster in checked) or any(file["problem"] is not None for file in read),
        to_act_on=bool(problems),
    )


def _cluster(settings: Settings, name: str) -> ClusterShown:
    found = settings.options()
    return {
        "cluster": name,
        "name": settings.title or name,
        "bootstrap-server": options.cluster_address(settings),
        "command-config": found.get("command-config"),
        "from": settings.cluster_sections[0].where,
    }


def _command_config(settings: Settings) -> Path | None:
    config = settings.options().get("command-config")
    return None if config is None else Path(config)


def _command_config_lines(file: Path) -> CheckedCommandConfig:
    lines: list[CheckedLine] = []
    problem = None
    try:
        lines = [
            {"line": line.line, "setting": line.key, "state": line.use.value, "reason": line.reason}
            for line in api.command_config_lines(file)
        ]
        api.check_command_config(file)
    except RackspanError as error:
        problem = str(error)
    return {"file": str(file), "lines": lines, "problem": problem}


def _check(settings: Settings, cluster: str, config: Path | None, offline: bool) -> CheckedCluster:
    problems: list[str] = []
    timeout_seconds = settings.options().get("timeout", options.DEFAULT_TIMEOUT_MS) / 1000
    snapshot: ClusterSnapshot | None = None
    failed = False
    try:
        if config is not None:
            api.check_command_config(config)
        address = options.cluster_address(settings)
        source = api.live_cluster(address, config, timeout_seconds, sizes=False, name=settings.title)
        problems += api.protocol_warnings(api.Cluster(address, config))
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
