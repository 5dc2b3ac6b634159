"""Pages of many rows: the first ones are shown, and a line counts the others. A page that fits has no such line.

Below, what parts of pages say that only a cluster in trouble shows.
"""

import io
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from rich.console import Console

from rackspan.cli import output
from rackspan.cli.output import page
from rackspan.cli.pages import acks, difference, in_flight, reassignment_plan, run
from rackspan.cli.restart import pages as restart
from rackspan.cli.restart import watch
from rackspan.cli.traffic import clients, flows
from rackspan.model import BrokerId, TopicName
from rackspan.plan import VerifiedPartition
from rackspan.plan.verification import VerifiedState
from rackspan.reassign import PartitionReassignment


def drawn(parts: Any) -> list[str]:
    """The lines of a page of 200 columns."""
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(page(*parts) if isinstance(parts, Iterable) else parts)
    return [line.rstrip() for line in captured.get().splitlines()]


def of_verdicts(count: int) -> Any:
    return run.verdict_page(
        [
            VerifiedPartition(
                PartitionReassignment(TopicName("row"), at, (BrokerId(1),)), VerifiedState.NOT_STARTED, "reason"
            )
            for at in range(count)
        ]
    )


def of_reassignments(count: int) -> Any:
    listed = [{"topic": "row", "partition": at, "moves_to": [1], "replicas": [2]} for at in range(count)]
    document: Any = {"applied": False, "cluster_id": None, "in_flight": count, "partitions": listed}
    return in_flight.in_flight_page(document)


def of_topics(count: int) -> Any:
    change = {"before": 1, "after": 2}
    row = {"partitions": 2, "changed": 1, "moves": 1, "bytes": 9, "moves_of_unknown_size": 0, "racks": change}
    document: Any = {"brokers": [], "topics": [{"topic": f"row-{at}", **row} for at in range(count)]}
    return difference.difference_parts(document)


def of_brokers(count: int) -> Any:
    change = {"before": 1, "after": 2}
    brokers = [
        {"broker": at, "rack": "row", "replicas": change, "leaders": change, "bytes_in": 1, "bytes_out": 1}
        for at in range(count)
    ]
    document: Any = {"brokers": brokers, "topics": []}
    return difference.difference_parts(document)


def of_suffering(count: int) -> Any:
    listed: Any = [{"topic": "row", "partition": at, "reason": "why"} for at in range(count)]
    return restart._list("offline", listed)


def of_flows(count: int) -> Any:
    listed: Any = [
        {"path": "consume", "topic": f"row-{at}", "group": None, "basis": "derived", "crosses_racks": True, "bytes": 9}
        for at in range(count)
    ]
    return flows._flows(listed, 1.0)


def of_applied(count: int) -> Any:
    return acks._applied({"applied": [{"topic": f"row-{at}", "min.insync.replicas": 2} for at in range(count)]})


def of_commands(count: int) -> Any:
    return acks._commands([f"row-{at}" for at in range(count)])


PAGES: list[tuple[Callable[[int], Any], int, str]] = [
    (of_verdicts, run.PARTITIONS_SHOWN, "and 2 more partitions: -o json lists them all"),
    (of_reassignments, in_flight.PARTITIONS_SHOWN, "and 2 more partitions: -o json lists them all"),
    (of_topics, difference.SHOWN, "and 2 more topics: -o json lists them all"),
    (of_brokers, difference.SHOWN, "and 2 more brokers: -o json lists them all"),
    (of_suffering, restart.PARTITIONS_SHOWN, "  and 2 more: -o json lists them"),
    (of_flows, flows.FLOWS_SHOWN, "and 2 more: -o json and csv list them"),
    (of_applied, acks.TOPICS_SHOWN, "and 2 more topics: -o json lists them"),
    (of_commands, acks.TOPICS_SHOWN, "  and 2 more commands: -o json lists them"),
]


@pytest.mark.parametrize(("made", "shown", "line"), PAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_rows_beyond_the_first_are_counted(made: Callable[[int], Any], shown: int, line: str) -> None:
    whole = drawn(made(shown))
    assert sum("row" in each for each in whole) == shown
    assert not any("-o json" in each for each in whole)
    cut = drawn(made(shown + 2))
    assert sum("row" in each for each in cut) == shown
    assert line in cut


def test_what_audit_finds_after_a_change_is_a_line_for_each_topic_and_constraint() -> None:
    found = [
        {"topic": topic, "constraint": constraint, "reason": f"reason {at}"}
        for at, (topic, constraint) in enumerate([("b", "x"), ("a", "x"), ("b", "x"), ("b", "x"), ("a", "y")])
    ]
    assert drawn(acks._applied({"audit": found})) == [
        "after the change, a: x: reason 1",
        "after the change, a: y: reason 4",
        "after the change, b: x: reason 0 (and 2 partitions more)",
    ]


def test_flows_of_a_path_a_topic_and_a_group_are_one_row() -> None:
    row = {"path": "consume", "topic": "orders", "basis": "derived", "crosses_racks": True, "bytes": 1 << 20}
    listed: Any = [
        *({**row, "group": "shop"},) * 2,
        {**row, "group": None},
        {**row, "group": "shop", "crosses_racks": False},
        {**row, "group": "shop", "bytes": None},
    ]
    lines = drawn(flows._flows(listed, 1.0))
    assert [line.split() for line in lines if "orders" in line] == [
        ["orders", "consume", "shop", "2.0", "MiB/s", "derived"],
        ["orders", "consume", "1.0", "MiB/s", "derived"],
    ]


def test_the_page_of_a_watch_counts_partitions_and_names_the_leaders_of_those_below() -> None:
    brokers = [{"id": 4, "rack": "r1", "under_min_rack_isr": 3}, {"id": 5, "rack": "r2", "under_min_rack_isr": 0}]
    document: Any = {"under_min_rack_isr": 3, "at_min_rack_isr": 2, "leaderless": 1, "brokers": brokers}
    served, counts, *rows = drawn(acks.watch_page(document, "h:1"))
    assert served == "metrics: http://h:1/metrics"
    assert counts == "partitions under min.insync.racks: 3, at it: 2, without a leader: 1"
    assert [line.split() for line in rows if line.strip()[:1].isdigit()] == [["4", "r1", "3"]]


def test_brokers_that_can_never_be_stopped_are_counted_each_with_its_remedy() -> None:
    partitions = [{"topic": "orders", "partition": 3, "reason": "why"}]
    blocked: Any = [{"broker": 7, "partition_count": 2, "partitions": partitions, "remedy": "rackspan x"}]
    heading, _, row, *_ = drawn(restart._blocked(blocked))
    assert heading == "1 broker can never be stopped safely"
    assert row.split() == ["7", "2", "orders-3", "rackspan", "x"]


def test_what_the_members_of_a_group_suffer_from_stands_above_what_to_do() -> None:
    finding: Any = {"cause": "no-client-rack", "group": "shop", "reason": "why", "remedy": "set client.rack"}
    assert drawn(clients._findings([finding])) == ["no-client-rack  shop: why", "  set client.rack", ""]


@pytest.mark.parametrize(
    ("trouble", "color"), [({}, "green"), ({"leaderless": 2}, "red"), ({"infeasible": [{"reason": "why"}]}, "red")]
)
def test_a_plan_without_moves_is_green_only_if_nothing_is_wrong(trouble: dict[str, Any], color: str) -> None:
    document = {"moves": 0, "lower_bound": 0, "partitions": [], "infeasible": [], "leaderless": 0} | trouble
    assert reassignment_plan._verdict(document).style == f"bold {color}"


def test_the_bar_of_a_restart_has_the_line_of_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    monkeypatch.setattr(output, "stderr_console", lambda: console)
    event: Any = {"event": "leaders-elected", "batch": 2, "batches": 3, "brokers": [], "reason": "4 partitions"}
    with watch._bar() as draw:
        draw(event)
    assert isinstance(console.file, io.StringIO)
    assert "batch 2 of 3: preferred leaders of 4 partitions elected" in console.file.getvalue()
