"""rackspan streams assign, audit, lab."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from rackspan import api, json_text
from rackspan.cli import exit_codes, options, output
from rackspan.cli.help import CommandGroup
from rackspan.cli.options import read_file
from rackspan.cli.pages.streams import assignment_page, audit_page, lab_page
from rackspan.disk import replace_file, writing_output
from rackspan.errors import UsageError
from rackspan.streams import (
    ASSIGNORS,
    Beyond,
    Strategy,
    assignor_named,
    could_read_less,
    from_document,
    options_named,
    settings,
)
from rackspan.streams.assignment import AssignmentDocument
from rackspan.streams.lab.picture import lab_picture
from rackspan.streams.lab.replay import LabDocument
from rackspan.text import count_noun

_PROBLEM: Final = "problem file"

app = CommandGroup(
    name="streams",
    help="Rack-aware task assignment for Kafka Streams (KIP-925).",
)


BeyondKafka: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--beyond",
        metavar="NAME",
        help=f"An option beyond Kafka, once for each: {', '.join(option.value for option in Beyond)}.",
    ),
]


@app.command()
def assign(
    problem: Annotated[Path, typer.Option("--problem", metavar="FILE", help="Clients, tasks and partitions, as JSON.")],
    assignor: Annotated[str, typer.Option("--assignor", metavar="NAME", help=f"{', '.join(ASSIGNORS)}.")] = "optimize",
    beyond: BeyondKafka = None,
    output_format: options.OutputFormat = options.Output.JSON,
) -> None:
    """Assign tasks to clients at provably least cost, with the costs of Kafka's own assignors."""
    # Options are checked before the file is read: every later error is one of the file and names it.
    assignor_named(assignor)
    options_named(*(beyond or []))
    assignment = read_file(
        problem, lambda content: api.assign_tasks(json_text.parse(content), assignor, beyond or []), _PROBLEM
    )
    output.warn(assignment["warnings"])
    output.write(assignment, output_format, assignment_page(assignment), _client_rows(assignment))


@app.command()
@options.with_option_groups
def audit(
    group: Annotated[str, typer.Option("--group", metavar="ID", help="The group: the application.id.")],
    running: options.ClusterOptions,
    rack_options: options.RackLocatorOptions,
    changelog: Annotated[
        list[str] | None,
        typer.Option(
            "--changelog",
            metavar="SUBTOPOLOGY=TOPIC",
            help="The sub-topology of a changelog topic, where names and sizes leave it open; once for each topic.",
        ),
    ] = None,
    capture: Annotated[
        Path | None,
        typer.Option("--capture", metavar="FILE", help="Write the group to a problem file for assign and lab."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Audit a running Kafka Streams group: partitions read across racks now, at best, and under each strategy.

    Audits and prices only: Kafka's own assignor assigns the tasks of a running group, and nothing is changed there.
    """
    cluster = running.cluster()
    source = rack_options.of(running.source())
    given = _changelogs(changelog or [])
    live = api.read_streams_group(cluster, group)
    read = source.read()
    output.warn_of(read)
    captured = api.capture_streams(live, read.snapshot, given)
    document = api.audit_streams(live, captured)
    if capture is not None:
        _write(capture, json.dumps(captured.document, indent=1, ensure_ascii=False) + "\n", "--capture")
        output.note(
            f"{capture}: {count_noun(len(captured.document['tasks']), 'task')}, {count_noun(len(live.processes), 'client')}"
        )
    output.write(document, output_format, audit_page(document), _strategy_rows(document))
    raise exit_codes.finish(
        impossible=document["now"]["cross_rack"]["active"] is None, to_act_on=could_read_less(document)
    )


@app.command()
def lab(
    problem: Annotated[
        list[Path],
        typer.Option("--problem", metavar="FILE", help="A problem file, as audit --capture writes it; once for each."),
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
        typer.Option("--out", metavar="FILE.svg", help="Draw a picture too, for light and dark pages."),
    ] = None,
    output_format: options.OutputFormat = options.Output.HUMAN,
) -> None:
    """Replay groups under strategies and weights: cost, balance, moved tasks, and rounds until they settle."""
    chosen = settings(assignor or [], strategy or [], weights or [])
    document = api.streams_lab(_documents(problem), chosen, beyond or [])
    output.warn(f"{replayed['problem']}: {line}" for replayed in document["problems"] for line in replayed["warnings"])
    if out is not None:
        _write(out, lab_picture(document), "--out")
        output.note(f"{out}: drawn")
    output.write(document, output_format, lab_page(document), _run_rows(document))


def _changelogs(items: Sequence[str]) -> dict[str, list[str]]:
    by_subtopology: dict[str, list[str]] = {}
    for item in items:
        name, equals, topic = item.partition("=")
        if not (equals and name and topic):
            raise UsageError(f"--changelog {item}: expected SUBTOPOLOGY=TOPIC")
        by_subtopology.setdefault(name, []).append(topic)
    return by_subtopology


def _documents(files: Sequence[Path]) -> dict[str, Any]:
    """The problems by file name, each checked when it is read, so that errors name the file."""
    return {str(file): read_file(file, _problem, _PROBLEM) for file in files}


def _problem(content: bytes) -> Any:
    document = json_text.parse(content)
    from_document(document)
    return document


def _write(file: Path, text: str, flag: str) -> None:
    with writing_output(file, flag):
        replace_file(file, text)


def _client_rows(assignment: AssignmentDocument) -> output.Rows:
    rows = ({"client": client, **tasks} for client, tasks in assignment["assignment"].items())
    return output.Rows(("client", "active", "standby"), rows)


def _strategy_rows(document: Mapping[str, Any]) -> output.Rows:
    """A row for the running assignment, `now`, and one for each strategy."""
    outcomes = {"now": document["now"], **document["strategies"]}
    rows = (
        {
            "strategy": name,
            "active_across_racks": outcome["cross_rack"]["active"],
            "standby_across_racks": outcome["cross_rack"]["standby"],
            "active_moved": outcome.get("moved", {}).get("active"),
        }
        for name, outcome in outcomes.items()
    )
    return output.Rows(("strategy", "active_across_racks", "standby_across_racks", "active_moved"), rows)


_RUN_COLUMNS: Final = (
    *("problem", "assignor", "strategy", "traffic_cost", "non_overlap_cost", "enabled", "cross_rack", "cost"),
    *("moved", "balance", "rounds", "converged"),
)


def _run_rows(document: LabDocument) -> output.Rows:
    rows = ({"problem": problem["problem"], **run} for problem in document["problems"] for run in problem["runs"])
    return output.Rows(_RUN_COLUMNS, rows)
