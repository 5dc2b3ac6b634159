"""What streams audit and lab print for people, drawn from their documents."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli import output
from rackspan.streams import could_be_less

Document = Mapping[str, Any]

UNKNOWN = "?"


def audit_page(audit: Document) -> RenderableType:
    """Clients first, then what each strategy would make of them, the verdict last."""
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
        Text(_verdict(audit), style="bold"),
    )


def lab_page(document: Document) -> RenderableType:
    return output.page(*(part for problem in document["problems"] for part in _problem(problem)))


def _title(audit: Document) -> str:
    tasks = audit["tasks"]
    return (
        f"group {audit['group']}: {tasks['stateful']} tasks with state, {tasks['stateless']} without, "
        f"{audit['num_standbys']} standbys each"
    )


def _client_row(client: Document) -> tuple[object, ...]:
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


def _strategy_rows(audit: Document) -> Iterator[tuple[object, ...]]:
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


def _of(crossing: Document, audit: Document, role: str) -> str:
    return f"{_known(crossing[role])} of {audit['partitions'][role]}"


def _unknown(audit: Document) -> Iterator[RenderableType]:
    if audit["unknown"]:
        yield Text()
    yield from (Text(f"not told: {line}", no_wrap=True, overflow="ignore") for line in audit["unknown"])


def _verdict(audit: Document) -> str:
    now, best = audit["now"]["cross_rack"], audit["at_best"]
    if now["active"] is None:
        return "no price: see above"
    if not could_be_less(audit):
        return "no strategy reads less across racks"
    spare = now["active"] - best["active"]
    return f"{spare} partitions cross racks needlessly: set rack.aware.assignment.strategy=min_traffic on every client"


def _problem(problem: Document) -> Iterator[RenderableType]:
    size = f"{problem['tasks']} tasks, {problem['clients']} clients, {problem['racks']} racks"
    yield Text(f"{problem['problem']}: {size}", style="bold")
    yield output.table(
        (
            *("assignor", "strategy", "weights", "active across", "standby across", "cost"),
            *("moved", "tasks per thread", "gap", "rounds"),
        ),
        [_run_row(run) for run in problem["runs"]],
    )
    off = {run["reason"] for run in problem["runs"] if not run["enabled"] and run["strategy"] != "none"}
    yield from (Text(f"rack awareness is off: {reason}") for reason in sorted(off))
    yield Text()


def _run_row(run: Document) -> tuple[object, ...]:
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
