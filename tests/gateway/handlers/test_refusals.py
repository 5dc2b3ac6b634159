"""Refusals in the log: a few lines of each topic and cause, and a count of the others."""

import logging
from types import SimpleNamespace
from typing import cast

import pytest

from rackspan.acks.min_insync_racks import ProduceVerdict
from rackspan.acks.produce_errors import Cause, Refusal
from rackspan.gateway.handlers import refusals as refusals_module
from rackspan.gateway.handlers.refusals import MOST_LINES, Refusals
from rackspan.gateway.net.session import ClientSession


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
    assert len(caplog.records) < 120
    assert caplog.records[-1].getMessage().startswith("refused before append: topic (others), 98")


def test_partitions_beyond_the_bound_share_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals_module, "_MOST_COUNTED", 2)
    refusals, session = Refusals(), cast("ClientSession", SimpleNamespace(peer="c", broker=7))
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
