"""The page of rackspan pipeline check."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.text import count_noun


def check_page(document: dict[str, Any]) -> RenderableType:
    """A line for each cluster, then each problem with what to do about it."""
    clusters = [
        (one["cluster_id"], one["snapshots"], one["newest"], f"{one['age_seconds'] / 60:,.0f} min")
        for one in document["clusters"]
    ]
    lines: list[RenderableType] = []
    for one in document["problems"]:
        lines.append(Text(f"{one['table'] or one['cluster'] or 'warehouse'}: {one['problem']}", style="red"))
        lines.append(Text(f"  {one['remedy']}"))
    verdict = (
        Text(count_noun(len(document["problems"]), "problem", ","), style="bold red")
        if document["problems"]
        else Text("no problems", style="bold green")
    )
    return page(table(("cluster", "snapshots", "newest", "age"), clusters), *lines, Text(), verdict)
