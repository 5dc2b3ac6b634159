"""The page of rackspan pipeline check."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.text import count_noun


def check_page(document: dict[str, Any]) -> RenderableType:
    """A line for each cluster, then each problem with what to do about it."""
    clusters = [
        (cluster["cluster_id"], cluster["snapshots"], cluster["newest"], f"{cluster['age_seconds'] / 60:,.0f} min")
        for cluster in document["clusters"]
    ]
    lines: list[RenderableType] = []
    for problem in document["problems"]:
        lines.append(
            Text(f"{problem['table'] or problem['cluster'] or 'warehouse'}: {problem['problem']}", style="red")
        )
        lines.append(Text(f"  {problem['remedy']}"))
    verdict = (
        Text(count_noun(len(document["problems"]), "problem", ","), style="bold red")
        if document["problems"]
        else Text("no problems", style="bold green")
    )
    return page(table(("cluster", "snapshots", "newest", "age"), clusters), *lines, Text(), verdict)
