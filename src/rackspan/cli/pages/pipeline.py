"""The page of rackspan pipeline check."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.text import count_noun


def check_page(document: dict[str, Any]) -> RenderableType:
    """A line for each cluster, then each problem with what to do about it."""
    names = {
        cluster["cluster_id"]: cluster["cluster_id"]
        if cluster["name"] is None
        else f"{cluster['name']} ({cluster['cluster_id']})"
        for cluster in document["clusters"]
    }
    clusters = [
        (
            names[cluster["cluster_id"]],
            cluster["snapshots"],
            cluster["newest"],
            f"{cluster['age_seconds'] / 60:,.0f} min",
        )
        for cluster in document["clusters"]
    ]
    lines: list[RenderableType] = []
    for problem in document["problems"]:
        lines.append(
            Text(f"{problem['table'] or names.get(problem['cluster'], 'warehouse')}: {problem['problem']}", style="red")
        )
        lines.append(Text(f"  {problem['remedy']}"))
    verdict = (
        Text(count_noun(len(document["problems"]), "problem", ","), style="bold red")
        if document["problems"]
        else Text("no problems", style="bold green")
    )
    return page(table(("cluster", "snapshots", "newest", "age"), clusters), *lines, Text(), verdict)
