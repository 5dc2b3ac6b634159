"""The human-readable output of streams assign, audit and lab, from their documents."""

from collections.abc import Iterator
from typing import Literal

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli import output
from rackspan.streams import could_read_less
from rackspan.streams.assignment import AssignmentDocument, CrossRackDocument
from rackspan.streams.lab.replay import LabDocument, LabProblem, LabRun, heading
from rackspan.streams.live.group_audit import StreamsAuditDocument, StreamsClient
from rackspan.text import count_noun

UNKNOWN = "?"


def assignment_page(assignment: AssignmentDocument) -> RenderableType:
    """The number of tasks of each client, then the costs, then the verdict."""
    clients = assignment["assignment"]
    rows = ((client, len(tasks["active"]), len(tasks["standby"])) for client, tasks in clients.items())
    cost, crossing = assignment["cost"], assignment["cross_rack"]
    return output.page(
        output.table(("client", "active tasks", "standby tasks"), rows),
        Text(),
        Text(
            f"cost {cost['stateful']} stateful, {cost['stateless']} stateless; partitions that cross racks: "
            f"{crossing['active']} active, {crossing['standby']} standby"
        ),
        Text(_assignment_verdict(assignment), style="bold"),
    )


def audit_page(audit: StreamsAuditDocument) -> RenderableType:
    """The clients, then the assignment under each strategy, then the verdict."""
    return output.page(
        Text(_title(audit), style="bold"),
        output.table(
            ("client", "rack", "threads", "active", "across racks", "standby", "across racks"),
            [_client_row(client) for client in audit["clients"]],
        ),
        Text(),
        output.table(
            ("", "active across racks", "standby across racks", "active tasks moved", ""), list(_strategy_rows(audit))
        ),
        *_unknown(audit),
        Text(),
        Text(_audit_verdict(audit), style="bold"),
    )


def lab_page(document: LabDocument) -> RenderableType:
    """One table for each problem, a row for each setting."""
    return output.page(*(part for problem in document["problems"] for part in _problem(problem)))


def _assignment_verdict(assignment: AssignmentDocument) -> str:
    if not assignment["enabled"]:
        return f"rack awareness is off: {assignment['reason']}"
    if assignment["probing_rebalance"]:
        return "another rebalance follows, until stateful tasks are caught up"
    return "assigned"


def _title(audit: StreamsAuditDocument) -> str:
    tasks = audit["tasks"]
    return (
        f"group {audit['group']}: {count_noun(tasks['stateful'], 'task')} with state, {tasks['stateless']} without, "
        f"{count_noun(audit['num_standbys'], 'standby')} each"
    )


def _client_row(client: StreamsClient) -> tuple[object, ...]:
    crossing = client["cross_rack"]
    return (
        client["client"],
        client["rack"] or "none",
        client["threads"],
        client["active"],
        _known(crossing["active"]),
        client["standby"],
        _known(crossing["standby"]),
    )


def _strategy_rows(audit: StreamsAuditDocument) -> Iterator[tuple[object, ...]]:
    now = audit["now"]["cross_rack"]
    yield ("now", _of(now, audit, "active"), _of(now, audit, "standby"), "", "")
    for name, outcome in audit["strategies"].items():
        crossing = outcome["cross_rack"]
        yield (
            name,
            _of(crossing, audit, "active"),
            _of(crossing, audit, "standby"),
            str(outcome["moved"]["active"]),
            "" if outcome["enabled"] or name == "none" else "off",
        )


def _of(crossing: CrossRackDocument, audit: StreamsAuditDocument, role: Literal["active", "standby"]) -> str:
    return f"{_known(crossing[role])} of {audit['partitions'][role]}"


def _unknown(audit: StreamsAuditDocument) -> Iterator[RenderableType]:
    if audit["unknown"]:
        yield Text()
    yield from (output.whole(f"unknown: {line}") for line in audit["unknown"])


def _audit_verdict(audit: StreamsAuditDocument) -> str:
    now, best = audit["now"]["cross_rack"], audit["at_best"]
    if now["active"] is None:
        return "no price: see above"
    if best["active"] is None or not could_read_less(audit):
        return "no strategy reads less across racks"
    needless = now["active"] - best["active"]
    return f"{count_noun(needless, 'partition')} {'crosses' if needless == 1 else 'cross'} racks needlessly: set rack.aware.assignment.strategy=min_traffic on every client"


def _problem(problem: LabProblem) -> Iterator[RenderableType]:
    yield Text(heading(problem), style="bold")
    yield output.table(
        (
            *("assignor", "strategy", "weights", "active across", "standby across", "cost"),
            *("moved", "tasks per thread", "gap", "rounds"),
        ),
        [_run_row(run) for run in problem["runs"]],
    )
    off = {
        run["reason"] for run in problem["runs"] if run["reason"] and not run["enabled"] and run["strategy"] != "none"
    }
    yield from (Text(f"rack awareness is off: {reason}") for reason in sorted(off))
    yield Text()


def _run_row(run: LabRun) -> tuple[object, ...]:
    load = run["balance"]["tasks_per_thread"]
    return (
        run["assignor"],
        run["strategy"],
        f"{run['traffic_cost']}/{run['non_overlap_cost']}",
        _known(run["cross_rack"]["active"]),
        _known(run["cross_rack"]["standby"]),
        _known(run["cost"]),
        run["moved"]["in_all"],
        f"{load['least']:g} to {load['most']:g}",
        run["balance"]["subtopology_gap"],
        f"{run['rounds']}{'' if run['converged'] else '+'}",
    )


def _known(count: int | None) -> object:
    return UNKNOWN if count is None else count
