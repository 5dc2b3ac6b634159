"""The report on one snapshot, held against the report by hand on a history of one snapshot."""

import re
from dataclasses import replace

import pytest
from hypothesis import given

from rackspan import api
from rackspan.audit import RackPolicy, audit
from rackspan.model import ClusterSnapshot
from rackspan.report import render
from rackspan.report.data import ReportData
from rackspan.report.from_snapshot import audit_report
from tests.report import story
from tests.report.html_checks import parsed
from tests.strategies import snapshots


def reported(snapshot: ClusterSnapshot, pattern: str | None = None) -> ReportData:
    topic_filter = None if pattern is None else re.compile(pattern)
    return audit_report(snapshot, RackPolicy(), audit(snapshot, RackPolicy(), topic_filter), topic_filter)


def agrees(snapshot: ClusterSnapshot) -> None:
    (cluster,), (expected,) = reported(snapshot).clusters, story.report_by_hand([snapshot]).clusters
    assert replace(cluster, findings=()) == replace(expected, history=None, findings=(), loss_history=())
    assert cluster.violations == expected.violations
    assert cluster.warnings == expected.warnings


def test_the_content_is_that_of_a_history_of_one_snapshot() -> None:
    agrees(story.shop_history(9)[-1])
    agrees(story.safe_cluster())


@pytest.mark.slow
@given(snapshots())
def test_any_snapshot_makes_a_well_formed_page(snapshot: ClusterSnapshot) -> None:
    parsed(render(reported(snapshot)))


def test_each_finding_of_the_audit_stands_under_its_remedy() -> None:
    snapshot = story.shop_history(9)[-1]
    found = audit(snapshot, RackPolicy()).findings
    (cluster,) = reported(snapshot).clusters
    assert sum(group.findings for group in cluster.findings) == len(found)
    assert {(group.constraint, group.remedy) for group in cluster.findings} == {
        (finding.constraint, finding.remedy) for finding in found
    }


def test_a_filter_leaves_the_topics_that_match() -> None:
    (cluster,) = reported(story.shop_history(9)[-1], "pay.*|clicks").clusters
    assert (cluster.topics, cluster.partitions, cluster.states.total) == (2, 10, 10)
    assert {row.topic for row in cluster.topic_map.rows} == {"payments", "clicks"}
    assert {group.topic for group in cluster.findings if group.topic is not None} <= {"payments", "clicks"}


def test_a_snapshot_without_id_and_time_has_a_page() -> None:
    nameless = replace(story.shop_history(1)[0], cluster_id=None, taken_at=None)
    root = parsed(render(reported(nameless)))
    assert root.all("p", "kicker")[0].text.startswith("cluster without an id at an unknown time: 6 brokers in 3 racks")
    assert root.all("title")[0].text.endswith("rackspan audit")
    assert "Collect again" not in root.text


def test_the_address_of_the_cluster_stands_in_the_commands_of_the_page() -> None:
    plans = [story.TopicPlan("orders", story.spread(6, 3), min_insync_replicas=1)]
    snapshot = story.snapshot(plans, brokers=story.SIX_BROKERS, voters={101: "r1", 102: "r2", 103: "r3"})
    page = api.audit_page(snapshot, RackPolicy(), api.audit(snapshot), address="kafka:9092")
    commands = [code.text for code in parsed(page).all("code") if code.text.startswith("kafka-configs.sh")]
    assert commands
    assert all("--bootstrap-server kafka:9092 " in command for command in commands)
    assert "HOST:PORT" not in page
