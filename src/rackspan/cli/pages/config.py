"""Tables of rackspan config."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, TypedDict

from msgspec import Meta
from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.options.settings import SettingValue
from rackspan.cli.output import page, table
from rackspan.documents import Count
from rackspan.text import count_noun


class SettingsFileFound(TypedDict):
    path: str
    found: bool


SettingShown = TypedDict("SettingShown", {"setting": str, "value": SettingValue, "from": str})

ClusterShown = TypedDict(
    "ClusterShown",
    {"cluster": str, "name": str, "bootstrap-server": str, "command-config": str | None, "from": str},
)


class ShownSettings(TypedDict):
    """The settings, and where each comes from."""

    files: list[SettingsFileFound]
    cluster: Annotated[str | None, Meta(description="The chosen cluster.")]
    settings: list[SettingShown]
    clusters: list[ClusterShown]


class ClusterProblem(TypedDict):
    cluster: str
    problem: str


class CheckedCluster(TypedDict):
    cluster: str
    name: str
    read: Annotated[bool, Meta(description="The cluster could be read, or was not to be.")]
    brokers: Count | None
    topics: Count | None
    problems: list[ClusterProblem]


class CheckedLine(TypedDict):
    line: Annotated[int, Meta(ge=1)]
    setting: str
    state: Literal["used", "ignored", "refused"]
    reason: str


class CheckedCommandConfig(TypedDict):
    """A file of client properties. Values are left out, since they hold secrets."""

    file: str
    lines: list[CheckedLine]
    problem: Annotated[str | None, Meta(description="Why no client can use the file.")]


CheckedSettings = TypedDict(
    "CheckedSettings",
    {"files": list[str], "clusters": list[CheckedCluster], "command-configs": list[CheckedCommandConfig]},
)
"""What the named clusters lack, and what becomes of the lines of their client properties."""


def show_page(document: ShownSettings) -> RenderableType:
    files = [(file["path"], "found" if file["found"] else "not there") for file in document["files"]]
    settings = [(setting["setting"], _shown(setting["value"]), setting["from"]) for setting in document["settings"]]
    return page(
        table(("looked for", ""), files),
        *_part(("setting", "value", "from"), settings),
        *_part(
            ("cluster", "name", "bootstrap servers", "command config"),
            [
                (cluster["cluster"], cluster["name"], cluster["bootstrap-server"], cluster["command-config"])
                for cluster in document["clusters"]
            ],
        ),
    )


def check_page(document: CheckedSettings) -> RenderableType:
    """A line for each cluster, then what is wrong."""
    configs = document["command-configs"]
    if not document["clusters"] and not configs:
        files = ", ".join(document["files"]) or "no rackspan.toml"
        return page(Text(f"{files}: no named cluster to check; add [clusters.NAME]", style="bold yellow"))
    rows = [
        (cluster["cluster"], cluster["name"], cluster["brokers"], cluster["topics"], _state(cluster))
        for cluster in document["clusters"]
    ]
    problems = [
        (problem["cluster"], problem["problem"]) for cluster in document["clusters"] for problem in cluster["problems"]
    ]
    listed = {reason for _, reason in problems}
    of_files = [(file["file"], file["problem"]) for file in configs if file["problem"] not in {None, *listed}]
    count = len(problems) + len(of_files)
    verdict = (
        Text(count_noun(count, "problem", ","), style="bold red") if count else Text("no problems", style="bold green")
    )
    parts = [
        *(_part(("cluster", "name", "brokers", "topics", ""), rows)),
        *(part for file in configs for part in _lines(file)),
        *_part(("cluster", "reason"), problems),
        *_part(("command config", "reason"), of_files),
    ]
    return page(*parts[1:], Text(), verdict)


def _lines(file: CheckedCommandConfig) -> Iterator[RenderableType]:
    rows = [
        (line["line"], line["setting"], Text(line["state"], style=_STYLES[line["state"]]), line["reason"])
        for line in file["lines"]
    ]
    yield from _part((file["file"], "setting", "", "reason"), rows)


_STYLES: Final = {"used": "green", "ignored": "dim", "refused": "bold red"}


def _part(columns: tuple[str, ...], rows: list[Any]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield table(columns, rows)


def _state(cluster: CheckedCluster) -> Text:
    if not cluster["read"]:
        return Text("cannot be read", style="bold red")
    return Text("not read", style="dim") if cluster["brokers"] is None else Text("read", style="green")


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
