"""Pages of many rows: the first ones are shown, and a line counts the others. A page that fits has no such line.

Below, what parts of pages say that only a cluster in trouble shows.
"""

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from rackspan.audit.outage import AFTER_REASSIGNMENT
from rackspan.cli import output
from rackspan.cli.output import page
from rackspan.cli.pages import acks, audit, difference, in_flight, reassignment_plan, run, streams, throttles
from rackspan.cli.restart import pages as restart
from rackspan.cli.restart import watch
from rackspan.cli.traffic import clients, flows
from rackspan.model import BrokerId, TopicName
from rackspan.plan import ConfigKey, RunLimits, RunState, VerifiedPartition
from rackspan.plan.execution.throttle import Holder
from rackspan.plan.verification import VerifiedState
from rackspan.reassign import PartitionReassignment


def drawn(parts: Any, *, colors: bool = False) -> list[str]:
    """The lines of a page of 200 columns."""
    console = Console(width=200, force_terminal=colors, color_system="standard" if colors else None)
    with console.capture() as captured:
        console.print(page(*parts) if isinstance(parts, Iterable) else parts)
    return [line.rstrip() for line in captured.get().splitlines()]


def of_verdicts(count: int) -> Any:
    return run.verdict_page(
        [
            VerifiedPartition(
                PartitionReassignment(TopicName("row"), at, (BrokerId(1), BrokerId(4))),
                VerifiedState.NOT_STARTED,
                "reason",
            )
            for at in range(count)
        ]
    )


def of_reassignments(count: int) -> Any:
    harmless = {"harm": None, "left_out": False, "allowed_by": None}
    listed = [{"topic": "row", "partition": at, "moves_to": [1], "replicas": [2], **harmless} for at in range(count)]
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


def of_hardened(count: int) -> Any:
    row: Any = {
        "internal": False,
        "current": 1,
        "known": True,
        "least": None,
        "min_insync_racks": 1,
        "reason": "why",
        "losses": [],
        "remedies": [],
    }
    return acks._topics([{"topic": f"row-{at}", "outcome": "raise", **row} for at in range(count)])


def harmed(name: str, **changed: Any) -> dict[str, Any]:
    harms = {"offline": 0, "needs_unclean_election": 0, "under_min_isr": 0, "under_min_racks": 0, AFTER_REASSIGNMENT: 0}
    return {"topic": name, "internal": False, **harms, **changed}


def of_lost(count: int) -> Any:
    return audit._topics_table([harmed(f"row-{at}", offline=1) for at in range(count)])


def of_steps(count: int) -> Any:
    step = {"partitions": [0], "moves": 1, "bytes": 9, "reason": "row"}
    return reassignment_plan._steps([{"step": at, **step} for at in range(1, count + 1)], unsized=False)


def of_preview(count: int) -> Any:
    step = {"partitions": 1, "moves": 1, "reason": "row", "done": False}
    document: Any = {
        "steps": [{"step": at, **step} for at in range(1, count + 1)],
        "difference": {"brokers": [], "topics": [], "less_safe": None},
        **dict.fromkeys(("moves", "bytes", "moves_of_unknown_size"), 0),
        **dict.fromkeys(("bytes_per_second", "seconds_at_least", "cluster_id")),
        "toward": "targets",
    }
    return run.preview_page(document)


PAGES: list[tuple[Callable[[int], Any], int, str]] = [
    (of_verdicts, run.PARTITIONS_SHOWN, "and 2 more partitions: -o json lists them all"),
    (of_reassignments, in_flight.PARTITIONS_SHOWN, "and 2 more partitions: -o json lists them all"),
    (of_topics, difference.SHOWN, "and 2 more topics: -o json lists them all"),
    (of_brokers, difference.SHOWN, "and 2 more brokers: -o json lists them all"),
    (of_suffering, restart.PARTITIONS_SHOWN, "  and 2 more: -o json lists them"),
    (of_flows, flows.FLOWS_SHOWN, "and 2 more: -o json and csv list them"),
    (of_applied, acks.TOPICS_SHOWN, "and 2 more topics: -o json lists them"),
    (of_commands, acks.TOPICS_SHOWN, "  and 2 more commands: -o json lists them"),
    (of_hardened, acks.TOPICS_SHOWN, "and 2 more topics: -o json lists them"),
    (of_lost, audit.TOPICS_SHOWN, "  and 2 more topics: -o json lists them"),
    (of_preview, reassignment_plan.STEPS_SHOWN, "and 2 more steps: -o json lists them all"),
    (of_steps, reassignment_plan.STEPS_SHOWN, "and 2 more steps: -o json lists them all"),
]


@pytest.mark.parametrize(("made", "shown", "line"), PAGES, ids=lambda value: getattr(value, "__name__", ""))
def test_rows_beyond_the_first_are_counted(made: Callable[[int], Any], shown: int, line: str) -> None:
    whole = drawn(made(shown))
    assert sum("row" in each for each in whole) == shown
    assert not any("-o json" in each for each in whole)
    cut = drawn(made(shown + 2))
    assert sum("row" in each for each in cut) == shown
    assert line in cut
    # It is not one of the rows, and is drawn less bright.
    (colored,) = [each for each in drawn(made(shown + 2), colors=True) if "-o" in each]
    assert colored.strip().startswith("\x1b[2m")


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
    document |= {"any_rack_loss_survived": True, "not_survived": []}
    served, counts, *rows = drawn(acks.watch_page(document, "h:1"))
    assert served == "metrics: http://h:1/metrics"
    assert counts == "partitions under min.insync.racks: 3, at it: 2, without a leader: 1"
    assert [line.split() for line in rows if line.strip()[:1].isdigit()] == [["4", "r1", "3"]]


def test_brokers_that_can_never_be_stopped_are_counted_each_with_its_remedy() -> None:
    partitions = [{"topic": "orders", "partition": 3, "reason": "why"}]
    blocked: Any = [{"broker": 7, "partition_count": 2, "partitions": partitions, "remedy": "rackspan x"}]
    heading, _, row, end = drawn(restart._blocked(blocked))
    assert heading == "1 broker can never be stopped safely"
    assert row.split() == ["7", "2", "orders-3", "rackspan", "x"]
    assert end == ""


def test_what_the_members_of_a_group_suffer_from_stands_above_what_to_do() -> None:
    finding: Any = {"cause": "no-client-rack", "group": "shop", "reason": "why", "remedy": "set client.rack"}
    assert drawn(clients._findings([finding])) == ["no-client-rack  shop: why", "  set client.rack", ""]


@pytest.mark.parametrize(
    ("trouble", "color"),
    [
        ({}, "green"),
        ({"left_unsafe": [{}]}, "yellow"),
        ({"leaderless": 2}, "red"),
        ({"infeasible": [{"reason": "why"}]}, "red"),
    ],
)
def test_a_plan_without_moves_is_green_only_if_nothing_is_wrong(trouble: dict[str, Any], color: str) -> None:
    document = {
        "moves": 0,
        "lower_bound": 0,
        "partitions": [],
        "infeasible": [],
        "leaderless": 0,
        "left_unsafe": [],
    } | trouble
    assert reassignment_plan._verdict(document).style == f"bold {color}"


@pytest.mark.parametrize(
    ("copied", "line"),
    [
        ({}, "0 bytes"),
        ({"bytes": 1}, "1 B"),
        ({"bytes": 3 << 20}, "3.0 MiB"),
        ({"bytes": 3 << 20, "moves_of_unknown_size": 1}, "3.0 MiB and 1 move of unknown size"),
        ({"moves_of_unknown_size": 1}, "0 and 1 move of unknown size"),
        ({"moves_of_unknown_size": 2}, "an unknown number of bytes"),
    ],
)
def test_a_plan_with_moves_ends_with_its_size_as_far_as_it_is_known(copied: dict[str, int], line: str) -> None:
    document = {"moves": 2, "lower_bound": 1, "partitions": [{}, {}], "infeasible": [], "left_out": []}
    document |= {"bytes": 0, "moves_of_unknown_size": 0, "gap_reason": None, **copied}
    verdict = reassignment_plan._verdict(document)
    assert (verdict.plain, verdict.style) == (f"2 moves, {line}, 2 partitions; no plan needs fewer", "bold")
    document |= {"left_out": ["topic x"]}
    assert reassignment_plan._verdict(document).plain.endswith("; no plan needs fewer for the rest")
    document |= {"gap_reason": "because"}
    assert reassignment_plan._verdict(document).plain.endswith("; at least 1 are needed: because")


QUORUM = {"voters": 3, "dead": [], "lost": [], "surviving": 3, "holds": True, "certain": True, "unknown_rack": []}
NO_MAJORITY = "  without controllers 101,102 1 of 3 left is no majority: no leader is elected, no ISR changes, no topic can be altered"
LOST_ALREADY = "  lost already: what it does to partitions is the present"
NO_HARM = "  nothing goes offline, nothing refuses acks=all"


@pytest.mark.parametrize(
    ("changed", "lines"),
    [
        ({"survived": True}, [(NO_HARM, "green")]),
        ({"survived": True, "controller_quorum": None}, [(NO_HARM, "green")]),
        ({"survived": True, "lost": True, "happened": True}, [(LOST_ALREADY, "bold yellow")]),
        (
            {"lost": True, "controller_quorum": {**QUORUM, "lost": [101, 102], "surviving": 1, "holds": False, "certain": False}},
            [(NO_MAJORITY, "bold red")],
        ),
        (
            {"controller_quorum": {**QUORUM, "lost": [101, 102], "surviving": 1, "holds": False}},
            [(NO_MAJORITY, "bold red")],
        ),
        (
            {"controller_quorum": {**QUORUM, "unknown_rack": [101, 102], "certain": False}},
            [
                (
                    f"{NO_HARM}, unless the majority of controllers is lost with it: no rack is known of controllers 101,102",
                    "bold yellow",
                )
            ],
        ),
        (
            {"controller_quorum": None},
            [(f"{NO_HARM}, unless the majority of controllers is lost with it: {audit.NO_CONTROLLERS}", "bold yellow")],
        ),
        ({"topics": [harmed("orders", offline=1)], "leader_surge": {"2": 3, "4": 1}}, [("  leaders move: broker 2 +3, broker 4 +1", "")]),
    ],
)  # fmt: skip
def test_what_a_loss_does_is_named_with_the_controllers_that_are_lost_or_not_known(
    changed: dict[str, Any], lines: list[tuple[str, str]]
) -> None:
    loss = {
        "survived": False,
        "lost": False,
        "happened": False,
        "controller_quorum": QUORUM,
        "topics": [],
        "leader_surge": {},
        **changed,
    }
    parts = list(audit._loss_parts(loss))
    assert [(part.plain, part.style) for part in parts if isinstance(part, Text)] == lines
    assert len(parts) - len(lines) == (1 if loss["topics"] else 0)


def lab_run(strategy: str, *, enabled: bool = True, reason: str | None = None, cost: int | None = 7) -> dict[str, Any]:
    return {
        "assignor": "sticky",
        "strategy": strategy,
        "traffic_cost": 10,
        "non_overlap_cost": 1,
        "cost": cost,
        "cross_rack": {"active": None if cost is None else 2, "standby": 1},
        "moved": {"in_all": 3},
        "balance": {"tasks_per_thread": {"least": 1.0, "most": 1.5}, "subtopology_gap": 0},
        "rounds": 2,
        "converged": enabled,
        "enabled": enabled,
        "reason": reason,
    }


def test_a_problem_of_the_lab_is_a_row_for_each_setting_and_why_rack_awareness_is_off() -> None:
    runs = [
        lab_run("min_traffic"),
        lab_run("balance_subtopology", enabled=False, reason="b has no rack", cost=None),
        lab_run("min_traffic", enabled=False, reason="a has no rack"),
        lab_run("balance_subtopology", enabled=False, reason="b has no rack"),
        # It is off because it is not wanted, and on in spite of a reason.
        lab_run("none", enabled=False, reason="it is none"),
        lab_run("min_traffic", reason="it is on"),
    ]
    problem: Any = {"problem": "p", "tasks": 4, "clients": 1, "racks": 2, "runs": runs}
    heading, *_ = parts = list(streams._problem(problem))
    assert isinstance(heading, Text)
    assert (heading.plain, heading.style) == ("p: 4 tasks, 1 client, 2 racks", "bold")
    lines = drawn(parts)
    assert [line for line in lines if line.startswith("rack awareness")] == [
        "rack awareness is off: a has no rack",
        "rack awareness is off: b has no rack",
    ]
    assert [line.split() for line in lines if line.startswith("sticky")][:2] == [
        ["sticky", "min_traffic", "10/1", "2", "1", "7", "3", "1", "to", "1.5", "0", "2"],
        ["sticky", "balance_subtopology", "10/1", "?", "1", "?", "3", "1", "to", "1.5", "0", "2+"],
    ]


@pytest.mark.parametrize(
    ("event", "batch", "bars"),
    [("may-stop", 1, 0), ("may-stop", 2, 4), ("batch-done", 2, 8), ("batch-done", 3, 12), ("done", 3, 12)],
)
def test_the_bar_of_a_restart_is_as_long_as_the_batches_that_are_done(
    monkeypatch: pytest.MonkeyPatch, event: str, batch: int, bars: int
) -> None:
    """Twelve characters for three batches. Without colors what is left is not drawn."""
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "stderr_console", lambda: console)
    with watch._bar() as draw:
        document: Any = {"event": event, "batch": batch, "batches": 3, "brokers": [4], "reason": ""}
        draw(document)
    (last,) = [line for line in file.getvalue().splitlines() if f"batch {batch} of 3" in line or "done: " in line][-1:]
    assert last.count("━") == bars


def test_the_bar_of_a_restart_has_the_line_of_each_event(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True)
    monkeypatch.setattr(output, "stderr_console", lambda: console)
    event: Any = {"event": "leaders-elected", "batch": 2, "batches": 3, "brokers": [], "reason": "4 partitions"}
    with watch._bar() as draw:
        draw(event)
    assert isinstance(console.file, io.StringIO)
    assert "batch 2 of 3: preferred leaders of 4 partitions elected" in console.file.getvalue()


def test_each_batch_of_a_plan_of_restarts_is_a_row_with_its_load() -> None:
    batch = {"reason": "rack r1", "leaders_moved": 4, "most_leaders": 1.5, "at_minimum": 2, "waits_for": []}
    batches = [{**batch, "brokers": [1, 4], "most_bytes": 3.0}, {**batch, "brokers": [2], "most_bytes": None}]
    document: Any = {"batches": batches, "max_batch": None}
    heading, *rows = drawn(restart._batches(document))
    assert heading.split("  ")[0] == "batch"
    assert [row.split() for row in rows if row] == [
        ["1", "1,4", "rack", "r1", "4", "1.5", "×", "now", "3", "×", "now", "2"],
        ["2", "2", "rack", "r1", "4", "1.5", "×", "now", "not", "known", "2"],
    ]
    assert restart._most(document) == ", at most 2 brokers in a batch"
    document["max_batch"] = 3
    assert restart._most(document) == ", at most 2 brokers (--max-batch 3) in a batch"
    document["batches"] = []
    assert (drawn(restart._batches(document)), restart._most(document)) == ([], "")


def test_what_forces_further_batches_is_named_with_what_would_save_them() -> None:
    gain = {"batches": 3, "command": "rackspan reassign plan", "moves": 1200}
    forcing = {"racks": 3, "partition_count": 2, "partitions": ["orders-1", "orders-2"], "gain": gain}
    document: Any = {"forcing": forcing}
    assert drawn(restart._forcing(document)) == [
        "more batches than the 3 racks: a rack may not stop whole because of 2 partitions (orders-1, orders-2)",
        "3 batches after rackspan reassign plan, which moves 1,200 replicas",
    ]
    document["forcing"] = {**forcing, "partition_count": 3, "gain": None}
    assert drawn(restart._forcing(document)) == [
        "more batches than the 3 racks: a rack may not stop whole because of 3 partitions (orders-1, orders-2, …)"
    ]
    document["forcing"] = None
    assert drawn(restart._forcing(document)) == []


@pytest.mark.parametrize(
    ("voters", "lines"),
    [
        (None, ["controllers not judged: none is in the snapshot"]),
        ({"voters": 3, "left": 1, "majority": 2}, ["1 of 3 controllers left is no majority"]),
        ({"voters": 3, "left": 2, "majority": 2}, []),
    ],
)
def test_controllers_are_mentioned_where_they_are_not_known_or_too_few(voters: Any, lines: list[str]) -> None:
    document: Any = {"controllers": voters}
    assert drawn(restart._controllers(document)) == lines


@pytest.mark.parametrize(
    ("changed", "line", "style"),
    [
        ({}, "broker 1 may stop, as of 12:00", "bold green"),
        ({"controllers": None, "as_of": None}, "broker 1 may stop, as of an unknown time", "bold yellow"),
        ({"safe": False}, "broker 1 may not stop, as of 12:00", "bold red"),
        ({"brokers": [1, 2], "safe": False}, "brokers 1,2 may not stop together, as of 12:00", "bold red"),
    ],
)
def test_a_stop_is_green_only_if_the_controllers_were_judged_too(
    changed: dict[str, Any], line: str, style: str
) -> None:
    document: Any = {"brokers": [1], "safe": True, "as_of": "12:00", "controllers": {}, **changed}
    verdict = restart._stop_verdict(document)
    assert (verdict.plain, verdict.style) == (line, style)


def test_a_stop_lists_its_partitions_under_what_happens_to_them_the_gravest_first() -> None:
    headings = {
        "loses_leader": "No leader is left",
        "refuses_writes": "acks=all is refused",
        "below_margin": "Below the margin",
        "one_copy": "One copy is left in sync",
        "single_replica": "The only replica stops",
        "without_margin": "No margin is possible",
        "accepted": "Accepted by --accept",
        "already": "Harmed already, and not worse",
    }
    suffering = {name: [{"topic": "orders", "partition": 0, "reason": "why"}] for name in headings}
    document: Any = {"brokers": [1], "safe": False, "as_of": "12:00", "controllers": None, "partial": [], **suffering}
    lines = drawn(restart.stop_page(document))
    assert [line for line in lines if line.endswith(": 1 partition")] == [
        f"{heading}: 1 partition" for heading in headings.values()
    ]


def test_a_margin_that_a_factor_does_not_allow_is_mentioned() -> None:
    document: Any = {"margin": 1, "without_margin": 1200}
    assert drawn(restart._margin(document)) == ["margin 1: the replication factor of 1,200 partitions allows none"]
    document["without_margin"] = 0
    assert drawn(restart._margin(document)) == []


def member(client: str, **changed: Any) -> dict[str, Any]:
    counts = {"partitions": 4, "with_replica_in_rack": 3, "cross_rack": 2, "cross_rack_at_best": 1}
    racks = {"declared_rack": "r1", "located_rack": None}
    bytes_of = {"measured_bytes": None, "measured_cross_rack_bytes": None}
    return {"client_id": client, "member": client, **counts, **racks, **bytes_of, **changed}


def clients_of(*members: dict[str, Any]) -> Any:
    group = {"group": "shop", "kind": "consumer", "assignor": None, "cross_rack": 2, "members": list(members)}
    summary = {
        "cluster_name": None,
        "cluster_id": "c1",
        "groups": 1,
        "members": len(members),
        "unread": ["group g: no right"],
    }
    return {"summary": summary, "groups": [group], "findings": []}


def test_a_row_of_a_client_has_where_it_is_and_what_it_reads_from_elsewhere() -> None:
    lines = drawn(
        clients.clients_page(
            clients_of(
                member("a"),
                member("b", declared_rack=None, cross_rack=None, with_replica_in_rack=None, cross_rack_at_best=None),
                member("c", located_rack="r2", measured_bytes=200, measured_cross_rack_bytes=25),
                member("d", declared_rack=None, located_rack="r2", measured_bytes=0, measured_cross_rack_bytes=0),
                member("e", located_rack="r1", measured_bytes=9),
            )
        )
    )
    assert lines[0] == "cluster c1: 1 group with 5 members"
    assert any("group g: no right" in line for line in lines)
    assert [line.split() for line in lines if line.startswith("shop")] == [
        ["shop", "consumer", "a", "r1", "4", "3", "2", "1", "not", "verified"],
        ["shop", "consumer", "b", "none", "4", "?", "?", "?", "not", "verified"],
        ["shop", "consumer", "c", "r2", "(declares", "r1)", "4", "3", "2", "1", "12.5%", "across"],
        ["shop", "consumer", "d", "r2", "(declares", "none)", "4", "3", "2", "1", "not", "verified"],
        ["shop", "consumer", "e", "r1", "4", "3", "2", "1", "not", "verified"],
    ]


def test_members_beyond_the_first_are_counted() -> None:
    shown = clients.MEMBERS_SHOWN
    assert "and 1 more member; -o json has them all" in drawn(
        clients.clients_page(clients_of(*(member(f"m{at}") for at in range(shown + 1))))
    )
    whole = drawn(clients.clients_page(clients_of(*(member(f"m{at}") for at in range(shown)))))
    assert not any("-o json" in line for line in whole)


def test_throttles_of_others_are_a_line_for_each_value() -> None:
    rate, listed = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
    values = {
        **{ConfigKey(Holder.BROKER, str(at), rate): "20" for at in range(1, 9)},
        ConfigKey(Holder.TOPIC, "orders", listed): "0:1," * 20,
        ConfigKey(Holder.BROKER, "9", rate): None,
    }
    assert list(throttles.throttle_lines(values)) == [
        f"8 brokers (1, 2, 3, 4, 5, 6 and others): {rate} = 20",
        f"topic orders: {listed} = {'0:1,' * 15}…",
        f"broker 9: {rate} is not set",
    ]


MIB = 1 << 20


@pytest.mark.parametrize(
    ("before", "now", "note"),
    [
        (None, None, None),
        (MIB, None, "throttled to 1.0 MiB a second as before; --throttle RATE changes it, --throttle none ends it"),
        (MIB, MIB, None),
        (None, 0, None),
        (MIB, 2 * MIB, "throttled to 2.0 MiB a second from now on; the run was throttled to 1.0 MiB a second before"),
        (MIB, 0, "not throttled from now on; the run was throttled to 1.0 MiB a second before"),
        (None, MIB, "throttled to 1.0 MiB a second from now on; the run was not throttled before"),
    ],
)
def test_a_run_that_is_resumed_notes_what_becomes_of_its_throttle(
    before: int | None, now: int | None, note: str | None
) -> None:
    plan: Any = None
    state = RunState(plan, rates=() if before is None else (before,))
    assert throttles.rate_note(state, RunLimits(now)) == note


def test_a_run_whose_journal_has_no_rate_says_what_stays_throttled() -> None:
    plan: Any = None
    state = RunState(plan, unknown_rate=True)
    assert throttles.rate_note(state, RunLimits()) == (
        "the journal has no rate, as an earlier rackspan wrote it: the throttle that is set stays until the moves under way "
        "have ended, and what is started then is not throttled; --throttle RATE throttles it"
    )
    assert throttles.rate_note(replace(state, rates=(MIB,)), RunLimits()) == (
        "throttled to 1.0 MiB a second as before; --throttle RATE changes it, --throttle none ends it"
    )


def test_topics_that_stay_unsafe_are_named_with_the_remedy_of_the_only_one() -> None:
    finding = {"reason": "the loss of rack a takes it offline", "remedy": "rackspan reassign plan --topic pay"}
    assert drawn(reassignment_plan._left_unsafe([])) == []
    assert drawn(reassignment_plan._left_unsafe([{"topic": "pay", **finding}])) == [
        "stays unsafe: pay: the loss of rack a takes it offline; fix with rackspan reassign plan --topic pay"
    ]
    many = [{"topic": f"t{number}", **finding} for number in range(12)]
    assert drawn(reassignment_plan._left_unsafe(many)) == [
        "stay unsafe: t0, t1, t2, t3, t4, t5, t6, t7, t8, t9 and 2 more; rackspan audit says what repairs each"
    ]


def test_wrapped_lines_begin_as_far_in_as_their_first() -> None:
    page_file = io.StringIO()
    console = Console(file=page_file, width=20)
    console.print(page(Text("  one two three four five six"), Text("seven eight nine ten eleven")))
    assert page_file.getvalue().splitlines() == ["  one two three four", "  five six", "seven eight nine ten", "eleven"]
