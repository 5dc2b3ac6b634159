"""Refusals in the log: a few lines of each topic and cause, and a count of the others."""

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from rackspan.acks.min_insync_racks import ProduceVerdict
from rackspan.acks.produce_errors import Cause, Refusal
from rackspan.gateway.handlers import refusals as refusals_module
from rackspan.gateway.handlers.refusals import MOST_LINES, Refusals
from rackspan.gateway.net.session import ClientSession

SESSION = cast("ClientSession", SimpleNamespace(peer="c", broker=7))


def refusal(topic: str, cause: Cause = Cause.RACKS) -> Refusal:
    return Refusal((topic, 0), ProduceVerdict.NOT_ENOUGH_RACKS, cause, "too few", ("a",))


def test_of_each_topic_and_cause_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with caplog.at_level(logging.WARNING):
        for _ in range(1000):
            refusals.write(refusal("orders"), "before", "c")
            refusals.write(refusal("orders", Cause.LEADER), "after", "c")
        refusals.write(refusal("payments"), "before", "c")
        assert len(caplog.records) == 2 * MOST_LINES + 1
        caplog.clear()
        refusals.end_period()
        assert [record.getMessage() for record in caplog.records] == [
            f"refused before append: topic orders, {1000 - MOST_LINES} more without a line of their own cause=RACKS",
            f"refused after append: topic orders, {1000 - MOST_LINES} more without a line of their own cause=LEADER",
        ]
        caplog.clear()
        refusals.end_period()
        assert caplog.records == []
        refusals.write(refusal("orders"), "before", "c")
        assert len(caplog.records) == 1


def test_ever_new_topics_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    with caplog.at_level(logging.WARNING):
        for number in range(10_000):
            refusals.write(refusal(f"topic-{number}"), "before", "c")
        refusals.end_period()
    assert len(caplog.records) == 100 + MOST_LINES + 1
    last = caplog.records[-1]
    assert last.getMessage() == (
        "refused before append: topic (others), 9895 more without a line of their own cause=RACKS"
    )
    expected = {"topic": "(others)", "cause": "racks", "stage": "before", "suppressed": 9895}
    assert vars(last)["fields"] == expected


def test_a_line_names_the_refusal_and_has_it_as_fields(caplog: pytest.LogCaptureFixture) -> None:
    refusals = Refusals()
    for number in range(MOST_LINES):
        refusals.count(SESSION, [refusal("orders")])
        assert len(caplog.records) == number + 1
    refusals.end_period()
    assert len(caplog.records) == MOST_LINES == 5, "none is without a line"
    assert caplog.messages[0] == "refused before append: too few client=c cause=RACKS"
    fields = {"topic": "orders", "partition": 0, "cause": "racks", "stage": "before", "racks": ("a",), "client": "c"}
    assert vars(caplog.records[0])["fields"] == fields
    caplog.clear()
    after = replace(refusal("orders"), verdict=ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    refusals.count(SESSION, [after, replace(after, verdict=ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)])
    assert caplog.messages == ["refused after append: too few client=c cause=RACKS"] * 2
    assert refusals.counts == {
        ("orders", 0, Cause.RACKS, False, "a"): MOST_LINES,
        ("orders", 0, Cause.RACKS, True, "a"): 2,
    }


def test_a_refusal_without_words_for_the_client_names_its_partition(caplog: pytest.LogCaptureFixture) -> None:
    """Of too few replicas clients get Kafka's code alone."""
    of_replicas = replace(refusal("orders", Cause.REPLICAS), message=None)
    with caplog.at_level(logging.WARNING):
        Refusals().write(of_replicas, "after", "c")
    assert caplog.messages == ["refused after append: orders-0 client=c cause=REPLICAS"]


def test_ten_thousand_partitions_have_a_counter_of_their_own() -> None:
    refusals = Refusals()
    refusals.count(SESSION, [replace(refusal("orders"), partition=("orders", one)) for one in range(10_002)])
    assert len(refusals.counts) == 10_001
    assert refusals.counts["(others)", -1, Cause.RACKS, False, ""] == 2


def test_partitions_beyond_the_bound_share_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals_module, "_MOST_COUNTED", 2)
    refusals, session = Refusals(), SESSION
    for topic in ("a", "b", "c", "a", "d"):
        refusals.count(session, [refusal(topic)])
    refusals.count(session, [refusal("a", Cause.ORDER), refusal("b", Cause.REPLICAS)])
    refusals.count(session, [])
    cause = Cause.RACKS
    own = {("a", 0, cause, False, "a"): 2, ("b", 0, cause, False, "a"): 1, ("(others)", -1, cause, False, ""): 2}
    others = {("(others)", -1, of, False, ""): 1 for of in (Cause.ORDER, Cause.REPLICAS)}
    assert refusals.counts == own | others
    # Once a request, and not for what is no matter of racks.
    assert refusals.rack_check_failures == {7: 5}
    refusals.count(session, [refusal("a"), refusal("b"), refusal("a", Cause.ORDER)])
    assert refusals.rack_check_failures == {7: 6}
