"""The words of pages and tables that only some clusters show: verdicts, remedies of many topics, columns, styles."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackspan.advice.advice import Concern
from rackspan.cli.options import Output
from rackspan.cli.pages import audit, config, place, reassignment_plan, throttles
from rackspan.cli.reassign.progress import LINE_EVERY_SECONDS
from rackspan.cli.restart import pages as restart
from rackspan.cli.restart import watch
from rackspan.cli.traffic import advise, clients, flows
from rackspan.plan import ConfigKey
from rackspan.plan.execution.throttle import Holder
from tests.cli.conftest import Ran
from tests.cli.test_long_pages import clients_of, drawn, harmed, member, of_hardened, of_verdicts


def advised(**changed: Any) -> dict[str, Any]:
    nothing = dict.fromkeys(("topic", "group", "seconds_at_risk", "bytes_a_month", "money_a_month", "currency"))
    empty = {"cost": "", "undo": "", "assumption": ""}
    return {
        "rank": 1,
        "concern": "risk",
        "kind": "k",
        "reason": "why",
        "command": "do it",
        **nothing,
        **empty,
        **changed,
    }


def test_advice_has_a_line_for_each_thing_that_is_known_of_it() -> None:
    bare: Any = advised()
    assert drawn(advise._lines(bare)) == [" 1  risk  k", "    why", "    do it", ""]
    whole: Any = advised(cost="a copy", undo="the other way", assumption="traffic stays", seconds_at_risk=3600.0)
    assert drawn(advise._lines(whole)) == [
        " 1  risk  k",
        "    why",
        "    at risk for 3,600 s of the last 30 days",
        "    do it",
        "    cost: a copy",
        "    undo: the other way",
        "    assumes: traffic stays",
        "",
    ]


@pytest.mark.parametrize(
    ("counts", "seconds", "words"),
    [
        ((1, 2, 3), 60.0, "1 risk, 2 warnings, 3 savings"),
        ((0, 0, 1), None, "1 saving; traffic was not measured"),
        ((0, 0, 0), 60.0, "nothing to do"),
    ],
)
def test_advice_is_counted_by_what_it_is_about(counts: tuple[int, ...], seconds: float | None, words: str) -> None:
    by_concern = dict(zip((Concern.RISK, Concern.WARNING, Concern.MONEY), counts, strict=True))
    document: Any = {"summary": {"by_concern": by_concern, "seconds": seconds}}
    assert advise._verdict(document) == words


def test_pages_of_traffic_and_advice_begin_with_what_could_not_be_read() -> None:
    head = dict.fromkeys(("cluster_name", "cluster_id", "taken_at", "seconds", "hour"))
    summary = {**head, "topics": 1, "unread": ["broker 3: no response"], "by_concern": dict.fromkeys(Concern, 0)}
    document: Any = {"summary": summary, "advice": []}
    assert drawn(advise.advice_page(document))[0].endswith(" at an unknown time: 1 topic")
    assert "could not be read: broker 3: no response" in drawn(advise.advice_page(document))


def test_the_replicas_of_a_verified_partition_are_separated_by_commas() -> None:
    assert drawn(of_verdicts(1))[1].split() == ["row-0", "not", "started", "1,4", "reason"]


@pytest.mark.parametrize(
    ("words", "alone"),
    [
        ("rackspan reassign plan --topic x", True),
        ("kafka-configs.sh --alter", True),
        ("set client.rack", False),
        ("rackspans", False),
    ],
)
def test_a_command_of_advice_is_never_wrapped(words: str, alone: bool) -> None:
    assert advise._is_command(words) is alone


def test_traffic_without_known_bytes_has_no_share() -> None:
    document: Any = {"summary": {"seconds": 1.0}, "bill": None, "paths": [{"cross_rack_bytes": 0, "bytes": 0}]}
    assert flows._verdict(document) == "no bytes passed that are known"


@pytest.mark.parametrize(("count", "words"), [(1, "1 partition has"), (2_000, "2,000 partitions have")])
def test_a_plan_without_moves_names_partitions_without_a_leader(count: int, words: str) -> None:
    document = {
        "moves": 0,
        "lower_bound": 0,
        "partitions": [],
        "infeasible": [],
        "leaderless": count,
        "left_unsafe": [],
    }
    assert reassignment_plan._verdict(document).plain == f"no replica has to move, and {words} no leader"
    assert reassignment_plan._verdict({**document, "leaderless": 0}).plain == "nothing to move"
    refused = reassignment_plan._verdict({**document, "infeasible": ["x"]})
    assert (refused.plain, refused.style) == ("nothing is planned", "bold red")


def test_parts_of_the_settings_page_are_apart() -> None:
    assert drawn(config._part(("cluster", "reason"), [("eu", "why")])) == ["", "cluster  reason", "eu       why"]
    assert list(config._part(("cluster", "reason"), [])) == []


def test_nothing_blocked_is_no_table() -> None:
    assert list(restart._blocked([])) == []


HEADINGS: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: clients.clients_page(clients_of(member("a"))),
        "group  kind  client  rack  partitions  in its rack  across racks  at best  measured",
    ),
    (
        lambda: audit._topics_table([harmed("row", offline=1)]),
        "  topic  offline  unclean election only  under min ISR  under min racks",
    ),
]


@pytest.mark.parametrize(("made", "heading"), HEADINGS, ids=["clients", "audit"])
def test_a_table_has_these_columns(made: Callable[[], Any], heading: str) -> None:
    columns = [column.strip() for column in heading.strip().split("  ")]
    assert any([cell.strip() for cell in line.strip().split("  ") if cell] == columns for line in drawn(made()))


@pytest.mark.parametrize(
    ("surviving", "unknown", "words"),
    [
        ((3, 3), [], "survives"),
        ((5, 4), [9], "survives"),
        ((5, 3), [9], "survives, if controller 9 is not in it: its rack is not known"),
        ((4, 4), [8, 9], "survives, if controllers 8,9 are not in it: their racks are not known"),
    ],
)
def test_a_loss_is_survived_for_certain_if_controllers_of_unknown_rack_may_all_go_with_it(
    surviving: tuple[int, ...], unknown: list[int], words: str
) -> None:
    quorums = [{"surviving": left, "voters": 5, "unknown_rack": unknown} for left in surviving]
    document = {
        "assumed": [],
        "complete": True,
        "lost_racks": [],
        "losses": [{"controller_quorum": quorum} for quorum in quorums],
    }
    assert audit._survived("survives", document).plain == words


HARMLESS = {
    "topics": [],
    "controller_quorum": None,
    "survived": False,
    "racks": ["r1"],
    "as_required": False,
    "lost": False,
    "happened": False,
}


@pytest.mark.parametrize(
    ("changed", "words", "style"),
    [
        ({"survives_any_rack": None}, audit.NOTHING_TO_JUDGE, "bold yellow"),
        ({"survives_any_rack": None, "diskless": 2}, audit.ONLY_DISKLESS, "bold yellow"),
        ({"losses": []}, "no racks to lose: no broker has one", "bold yellow"),
        (
            {"losses": [{**HARMLESS, "survived": True}], "left_open_by": ["x", "y"]},
            "not certain to survive the loss of a rack: x, y above",
            "bold red",
        ),
        (
            {"losses": [{**HARMLESS, "topics": ["t"], "as_required": True}]},
            "does not survive the loss of r1, as the policy accepts",
            "bold yellow",
        ),
        (
            {"losses": [{**HARMLESS, "topics": ["t"]}]},
            "does not survive the loss of r1: rackspan outage shows what stops",
            "bold red",
        ),
    ],
)
def test_the_last_sentence_of_an_audit_has_the_color_of_what_it_says(
    changed: dict[str, Any], words: str, style: str
) -> None:
    judged = {"survives_any_rack": False, "diskless": 0, "losses": [], "left_open_by": []}
    verdict = audit._survival({**judged, **changed})
    assert (verdict.plain, verdict.style) == (words, style)


@pytest.mark.parametrize(
    ("changed", "words", "style"),
    [
        ({"lost": True, "happened": True, "survived": True}, "lost", "bold yellow"),
        ({"lost": True, "happened": True, "topics": ["t"]}, "lost", "bold red"),
        ({"lost": True}, "lost, but for its controllers", "bold red"),
        (
            {"lost": True, "happened": True, "survived": True, "controller_quorum": {"lost": [101], "dead": []}},
            "lost, but for its controllers",
            "bold yellow",
        ),
        (
            {"lost": True, "happened": True, "survived": True, "controller_quorum": {"lost": [101], "dead": [101]}},
            "lost",
            "bold yellow",
        ),
        ({"survived": True}, "yes", "green"),
        ({"topics": ["t"]}, "no", "bold red"),
        ({}, "not known", "bold yellow"),
    ],
)
def test_the_row_of_a_rack_that_is_down_says_lost(changed: dict[str, Any], words: str, style: str) -> None:
    survives = audit._survives({**HARMLESS, **changed})
    assert (survives.plain, survives.style) == (words, style)


def test_a_loss_of_unknown_controllers_says_so() -> None:
    assert audit._quorum(None).plain == "not known"
    assert audit._quorum({"surviving": 2, "voters": 3, "holds": True, "certain": True}).plain == "2 of 3"
    assert audit._quorum({"surviving": 2, "voters": 3, "holds": True, "certain": False}).plain == "2 of 3, or fewer"
    assert audit._quorum({"surviving": 1, "voters": 3, "holds": False, "certain": True}).plain == "1 of 3: no majority"


def finding(topic: str, remedy: str, **changed: Any) -> dict[str, Any]:
    return {
        "severity": "violation",
        "constraint": "c",
        "topic": topic,
        "partition": 0,
        "reason": "why",
        "remedy": remedy,
        **changed,
    }


@pytest.mark.parametrize(
    ("remedy", "topics", "joined"),
    [
        ("rackspan reassign plan --topic TOPIC", 9, "rackspan reassign plan"),
        ("set it in  the brokers' properties", 9, "set it in  the brokers' properties"),
        ("set TOPIC right", 9, "for each topic: set TOPIC right"),
        ("tool --topic TOPIC --go", 9, f"tool --topic '{'|'.join(f't{at}[.]x' for at in range(9))}' --go"),
        (
            "tool --topic TOPIC --go",
            audit.NAMES_IN_A_COMMAND + 1,
            "for each topic, or with a pattern of them: tool --topic TOPIC --go",
        ),
    ],
)
def test_topics_with_the_same_remedy_have_one_that_names_them_all(remedy: str, topics: int, joined: str) -> None:
    found = [finding(f"t{at}.x", remedy.replace("TOPIC", f"t{at}.x")) for at in range(topics)]
    assert audit._remedy_of_many(found[0], [one["topic"] for one in found]) == joined.replace("[.]", "\\.")


@pytest.mark.parametrize(("topics", "rows"), [(3, 3), (4, 1)])
def test_equal_findings_of_more_than_three_topics_are_one_row(topics: int, rows: int) -> None:
    found = [finding(f"t{at}", f"rackspan reassign plan --topic t{at}") for at in range(topics)]
    assert len(drawn(audit.finding_groups(found))) == rows + 2  # With the heading and the empty line.


def test_findings_of_a_proposed_assignment_are_sorted_by_gravity_constraint_and_topic() -> None:
    found = [
        finding("b", "do", severity="warning", constraint="x"),
        finding("b", "do", constraint="x"),
        finding("a", "do", constraint="x"),
        finding("c", "do", constraint="w"),
    ]
    summary = {"partitions": 4, "violations": 3, "warnings": 1}
    document: Any = {"findings": found, "summary": summary, "difference": {"brokers": [], "topics": []}}
    lines = [line.split()[:3] for line in drawn(reassignment_plan.lint_page(document)) if " why" in line]
    assert lines == [["violation", "w", "c"], ["violation", "x", "a"], ["violation", "x", "b"], ["warning", "x", "b"]]


def test_further_reasons_of_a_finding_are_counted_and_no_finding_is_no_table() -> None:
    found = [finding("t", "do", partition=at, reason=f"why {at}") for at in range(3)]
    assert [cell.strip() for cell in drawn(audit.finding_groups(found))[1].split("  ")][-2:] == [
        "why 0 (2 more in -o json)",
        "do",
    ]
    assert drawn(audit.finding_groups(found[:1]))[1].split()[-3:] == ["why", "0", "do"]
    assert list(audit.finding_groups([])) == []


def test_counts_of_an_audit_have_commas_and_no_controller_is_named_where_one_is_required() -> None:
    known: dict[str, Any] = {
        "warnings": 2_000,
        "violated_partitions": 3_000,
        "losses": [],
        "partitions": 1,
        "survives_any_rack": True,
    }
    first, _ = audit._audit_verdict({**known, "violations": 1_000})
    assert first.plain == "1,000 violations on 3,000 partitions, 2,000 warnings"
    first, _ = audit._audit_verdict({**known, "violations": 0, "complete": False})
    assert first.plain == "no violations in what could be read, 2,000 warnings"


def test_a_topic_that_no_value_hardens_says_none() -> None:
    cells = drawn(of_hardened(1))[1].split()
    assert cells[:4] == ["raise", "row-0", "1", "none"]


@pytest.mark.parametrize(
    ("applied", "line", "style"),
    [
        (True, "topic orders: 1 partition created", "bold green"),
        (False, "topic orders: 1 partition would be created; nothing is changed without --apply", "bold"),
    ],
)
def test_a_placement_is_made_or_would_be(applied: bool, line: str, style: str) -> None:
    verdict = place._verdict({"topic": "orders", "assignments": {"0": [1]}, "applied": applied}, "created")
    assert (verdict.plain, verdict.style) == (line, style)


def test_throttles_have_their_holder_name_config_and_value() -> None:
    key = ConfigKey(Holder.TOPIC, "orders", "leader.replication.throttled.replicas")
    assert throttles.throttles_document({key: "*"}) == [
        {"of": Holder.TOPIC, "name": "orders", "config": key.key, "value": "*"}
    ]


def test_a_wait_is_written_again_where_it_is_another_one_or_has_lasted() -> None:
    at = [0.0]
    report = watch._Report(Output.HUMAN, lambda: at[0])
    due = []
    for now, why in (
        (0, "3 brokers"),
        (1, "2 brokers"),
        (2, "an ISR"),
        (3, "an ISR"),
        (2 + LINE_EVERY_SECONDS, "an ISR"),
    ):
        at[0] = float(now)
        due.append(report._is_due(why))
    assert due == [True, False, True, False, True]


@pytest.mark.parametrize("more", [(), ("--exec", "true {brokers}", "--apply")])
def test_a_plan_without_a_batch_leaves_nothing_and_says_so(
    cli: Callable[..., Ran], tmp_path: Path, more: tuple[str, ...]
) -> None:
    names = ("cluster_id", "as_of", "accept")
    plan: dict[str, Any] = {**dict.fromkeys(names), "margin": 0, "block_on": [], "batches": []}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ran = cli("restart", "watch", "--bootstrap-server", "127.0.0.1:1", "--plan", tmp_path / "plan.json", *more)
    assert (ran.code, ran.err.splitlines()[-1]) == (0, "the plan has no batch: nothing to restart")
