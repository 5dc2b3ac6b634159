"""rackspan streams assign."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.text import Text

from rackspan import json_text, verbs
from rackspan.cli import options, output
from rackspan.errors import InvalidProblem, UsageError
from rackspan.json_text import NotJson
from rackspan.streams import ASSIGNORS
from rackspan.streams.options import Beyond

app = typer.Typer(
    name="streams",
    help="Tasks of stream processing applications where their partitions are (KIP-925).",
    no_args_is_help=True,
)


@app.callback()
def _streams() -> None:
    """With one command only, Typer would leave its name out."""


@app.command()
def assign(
    problem: Annotated[Path, typer.Option("--problem", metavar="FILE", help="Clients, tasks and partitions, as JSON.")],
    assignor: Annotated[str, typer.Option("--assignor", metavar="NAME", help=f"{', '.join(ASSIGNORS)}.")] = "optimize",
    beyond: Annotated[
        list[str] | None,
        typer.Option(
            "--beyond",
            metavar="NAME",
            help=f"A step beyond Kafka, once for each: {', '.join(one.value for one in Beyond)}.",
        ),
    ] = None,
    output_format: options.OutputFormat = options.Output.JSON,
) -> None:
    """Assign tasks to clients at provably least cost, as Kafka's own assignors weigh it."""
    answer = verbs.assign_tasks(_document(problem), assignor, beyond or [])
    output.warn(answer["warnings"])
    output.write(answer, output_format, _page(answer))


def _document(file: Path) -> Any:
    try:
        return json_text.parse(file.read_bytes())
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}; name a problem file") from None
    except NotJson as error:
        raise InvalidProblem(f"{file}: {error}") from None


def _page(answer: dict[str, Any]) -> RenderableType:
    clients = answer["assignment"]
    rows = ((client, len(tasks["active"]), len(tasks["standby"])) for client, tasks in clients.items())
    cost, crossing = answer["cost"], answer["cross_rack"]
    return output.page(
        output.table(("client", "active tasks", "standby tasks"), rows),
        Text(),
        Text(
            f"cost {cost['stateful']} stateful, {cost['stateless']} stateless; partitions that cross racks: "
            f"{crossing['active']} active, {crossing['standby']} standby"
        ),
        Text(_verdict(answer), style="bold"),
    )


def _verdict(answer: dict[str, Any]) -> str:
    if not answer["enabled"]:
        return f"rack awareness is off: {answer['reason']}"
    return (
        "another rebalance follows, until stateful tasks are caught up" if answer["probing_rebalance"] else "assigned"
    )
