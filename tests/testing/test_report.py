"""The report of a failed test: the last warnings, and a status of bounded length."""

import logging
from types import SimpleNamespace
from typing import Any

from rackspan.testing.report import KEPT_LINES, LOGGER, ClusterWarnings, status_lines

BROKER = SimpleNamespace(id=1, rack="r1", address="127.0.0.1:9092", states=("down", "fenced"))


def reported(**status: Any) -> list[str]:
    found = SimpleNamespace(**{"brokers": (), "links": (), "partitions": (), "metrics": (), **status})
    return status_lines(SimpleNamespace(status=lambda: found)).splitlines()


def test_the_sections_that_have_lines_are_listed_under_their_titles() -> None:
    assert reported(brokers=(BROKER,), links=("1 to 2: cut",), partitions=("orders-0",), metrics=("racks 2",)) == [
        "broker 1  rack r1  127.0.0.1:9092  down, fenced",
        "links:",
        "  1 to 2: cut",
        "partitions that are not whole:",
        "  orders-0",
        "metrics that are not 0:",
        "  racks 2",
    ]
    assert reported() == []


def test_a_long_section_is_cut_off_and_says_so() -> None:
    assert reported(links=[str(number) for number in range(KEPT_LINES)])[-1] == f"  {KEPT_LINES - 1}"
    lines = reported(links=[str(number) for number in range(KEPT_LINES + 3)])
    assert lines[-2:] == [f"  {KEPT_LINES - 1}", "  and 3 more"]


def test_a_status_that_cannot_be_read_is_a_line() -> None:
    def closed() -> None:
        raise RuntimeError("it is closed")

    cluster = SimpleNamespace(status=closed)
    assert status_lines(cluster) == "the cluster could not be read: it is closed"


def test_the_last_warnings_of_the_block_are_kept() -> None:
    log = logging.getLogger(LOGGER)
    with ClusterWarnings() as warnings:
        log.info("no warning")
        for number in range(KEPT_LINES + 2):
            log.warning("line %d", number)
    log.warning("after it")
    assert list(warnings.lines) == [f"line {number}" for number in range(2, KEPT_LINES + 2)]
