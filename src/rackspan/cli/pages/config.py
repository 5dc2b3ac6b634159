"""Tables of rackspan config."""

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.text import count_noun


def show_page(document: dict[str, Any]) -> RenderableType:
    files = [(one["path"], "found" if one["found"] else "not there") for one in document["files"]]
    settings = [(one["setting"], _shown(one["value"]), one["from"]) for one in document["settings"]]
    return page(
        table(("looked for", ""), files),
        *_part(("setting", "value", "from"), settings),
        *_part(
            ("cluster", "name", "bootstrap servers", "command config"),
            [
                (one["cluster"], one["name"], one["bootstrap-server"], one["command-config"])
                for one in document["clusters"]
            ],
        ),
    )


def check_page(document: dict[str, Any]) -> RenderableType:
    """A line for each cluster, then what is wrong."""
    if not document["clusters"]:
        files = ", ".join(document["files"]) or "no rackspan.toml"
        return page(Text(f"{files}: no named cluster to check; add [clusters.NAME]", style="bold yellow"))
    rows = [(one["cluster"], one["name"], one["brokers"], one["topics"], _state(one)) for one in document["clusters"]]
    problems = [(one["cluster"], one["problem"]) for cluster in document["clusters"] for one in cluster["problems"]]
    verdict = (
        Text(count_noun(len(problems), "problem", ","), style="bold red")
        if problems
        else Text("no problems", style="bold green")
    )
    return page(
        table(("cluster", "name", "brokers", "topics", ""), rows),
        *_part(("cluster", "reason"), problems),
        Text(),
        verdict,
    )


def _part(columns: tuple[str, ...], rows: list[Any]) -> Iterator[RenderableType]:
    if rows:
        yield Text()
        yield table(columns, rows)


def _state(cluster: dict[str, Any]) -> Text:
    if not cluster["read"]:
        return Text("cannot be read", style="bold red")
    return Text("not read", style="dim") if cluster["brokers"] is None else Text("read", style="green")


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
