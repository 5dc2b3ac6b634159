"""rackspan streams assign, audit, lab."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from rich.console import RenderableType
from rich.text import Text

from rackspan import api, json_text
from rackspan.cli import options, output
from rackspan.cli.input_files import read_file
from rackspan.cli.pages.streams import audit_page, lab_page
from rackspan.disk import replace_file, writing_output
from rackspan.errors import UsageError
from rackspan.streams import ASSIGNORS, Strategy, assignor_named, could_be_less, from_document, options_named, settings
from rackspan.streams.lab.picture import lab_picture
from rackspan.streams.problem import Beyond

SOMETHING_TO_ACT_ON = 2

_PROBLEM: Final = "problem file"

app = typer.Typer(
    name="streams",
    help="Tasks of stream processing applications where their partitions are (KIP-925).",
    no_args_is_help=True,
)


BeyondKafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--beyond",
        metavar="NAME",
        help=f"A step beyond Kafka, once for each: {', '.join(one.value for one in Beyond)}.",
    ),
]


@app.command()
def assign(
    problem: Annotated[Path, typer.Option("--problem", metavar="FILE", help="Clients, tasks and partitions, as JSON.")],
    assignor: Annotated[str, typer.Option("--assignor", metavar="NAME", help=f"{', '.join(ASSIGNORS)}.")] = "optimize",
    beyond: BeyondKafka = None,
    output_format: options.OutputFormat = options.Output.JSON,
) -> None:
    """Assign tasks to clients at provably least cost, as Kafka's own assignors weigh it."""
    # Words first: whatever is refused after them is the file's mistake and gets its name.
    assignor_named(assignor)
    options_named(*(beyond or []))
    answer = read_file(
        problem, lambda content: api.assign_tasks(json_text.parse(content), assignor, beyond or []), _PROBLEM
    )
    output.warn(answer["warnings"])
    output.write(answer, output_format, _page(answer))


@app.command()
@options.with_groups
def audit(
    group: Annotated[str, typer.Option("--group", metavar="ID", help="The group: the application.id.")],
    running: options.Running,
    racks: options.Racks,
    changelog: Annotated[
        list[str] | None,
        typer.Option(
            "--changelog",
            metavar="SUBTOPOLOGY=TOPIC",
            help="A changelog topic's sub-topology, where names and sizes do not tell; once for each topic.",
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option("--capture", metavar="FILE", help="Write the group as a problem for assign and lab."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Price a running Kafka Streams group: partitions read across racks now, at best, and by strategy.

    Exits 0 when no strategy of Kafka's would read less across racks, 2 when min_traffic would, 1 on errors.
    """
    cluster = running.cluster()
    source = racks.of(running.source())
    given = _changelogs(changelog or [])
    live = api.read_streams_group(cluster, group)
    taken = source.read()
    output.warn_of(taken)
    captured = api.capture_streams(live, taken.snapshot, given)
    document = api.audit_streams(live, captured)
    if capture is not None:
        _write(capture, json.dumps(captured.document, indent=1, ensure_ascii=False) + "\n", "--capture")
        output.note(f"{capture}: {len(captured.document['tasks'])} tasks, {len(live.processes)} clients")
    output.write(document, output_format, audit_page(document))
    if could_be_less(document):
        raise typer.Exit(SOMETHING_TO_ACT_ON)


@app.command()
def lab(
    problem: Annotated[
        list[Path],
        typer.Option("--problem", metavar="FILE", help="A problem, as audit --capture writes it; once for each."),
    ],
    assignor: Annotated[
        list[str] | None,
        typer.Option("--assignor", metavar="NAME", help=f"Once for each: {', '.join(ASSIGNORS)}."),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option("--strategy", metavar="NAME", help=f"Once for each: {', '.join(Strategy)}; all by default."),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option("--weights", metavar="TRAFFIC/OVERLAP", help="Such as 10/1, once for each; Kafka's by default."),
    ] = None,
    beyond: BeyondKafka = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE.svg", help="Draw a picture too, light or dark as the reader is."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Replay groups over strategies and weights: cost, balance, stickiness, and rounds until they come to rest."""
    chosen = settings(assignor or [], strategy or [], weights or [])
    document = api.streams_lab(_documents(problem), chosen, beyond or [])
    if out is not None:
        _write(out, lab_picture(document), "--out")
        output.note(f"{out}: drawn")
    output.write(document, output_format, lab_page(document))


def _changelogs(items: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in items:
        name, equals, topic = item.partition("=")
        if not (equals and name and topic):
            raise UsageError(f"--changelog {item}: not of the form SUBTOPOLOGY=TOPIC; correct it")
        found.setdefault(name, []).append(topic)
    return found


def _documents(files: Sequence[Path]) -> dict[str, Any]:
    """Each problem by its name, checked, so that a mistake names its file."""
    return {str(file): read_file(file, _problem, _PROBLEM) for file in files}


def _problem(content: bytes) -> Any:
    document = json_text.parse(content)
    from_document(document)
    return document


def _write(file: Path, text: str, flag: str) -> None:
    with writing_output(file, flag):
        replace_file(file, text)


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
