import re
from pathlib import Path

import pytest

from rackspan.acks.metrics import (
    METADATA_METRICS,
    METRICS,
    WATCH_METRICS,
    MetricKind,
    leader_values,
    partition_values,
)

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "watch.md"


def test_every_metric_of_the_proposal_is_there_once_and_in_the_help_text() -> None:
    assert sorted(metric.proposed for metric in METRICS) == [
        "AtMinRackIsr",
        "AtMinRackIsrPartitionCount",
        "IsrRackCount",
        "RackCheckFailureRate",
        "UnderMinRackIsr",
        "UnderMinRackIsrPartitionCount",
    ]
    assert all(metric.proposed in metric.help for metric in METRICS)


def test_names_follow_prometheus() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert re.fullmatch(r"rackspan_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind is MetricKind.COUNTER)


def test_each_metric_has_its_scope_and_kind() -> None:
    assert {metric.name: (metric.scope.value, metric.kind.value) for metric in (*METRICS, *WATCH_METRICS)} == {
        "rackspan_partition_under_min_rack_isr": ("partition", "gauge"),
        "rackspan_partition_at_min_rack_isr": ("partition", "gauge"),
        "rackspan_partition_isr_racks": ("partition", "gauge"),
        "rackspan_under_min_rack_isr_partitions": ("broker", "gauge"),
        "rackspan_at_min_rack_isr_partitions": ("broker", "gauge"),
        "rackspan_rack_check_failures_total": ("broker", "counter"),
        "rackspan_watch_up": ("cluster", "gauge"),
        "rackspan_watch_readings_total": ("cluster", "counter"),
        "rackspan_watch_failures_total": ("cluster", "counter"),
        "rackspan_watch_unread": ("cluster", "gauge"),
        "rackspan_watch_leaderless_partitions": ("cluster", "gauge"),
        "rackspan_watch_under_min_rack_isr_seconds_total": ("cluster", "counter"),
    }


@pytest.mark.parametrize(("isr_racks", "under", "at"), [(1, 1, 0), (2, 0, 1), (3, 0, 0)])
def test_a_partition_is_under_at_or_above_the_racks_it_requires(isr_racks: int, under: int, at: int) -> None:
    assert partition_values(isr_racks, 2) == {
        "rackspan_partition_under_min_rack_isr": under,
        "rackspan_partition_at_min_rack_isr": at,
        "rackspan_partition_isr_racks": isr_racks,
    }


def test_a_broker_counts_the_partitions_that_it_leads() -> None:
    assert leader_values([partition_values(racks, 2) for racks in (1, 1, 1, 2, 2, 3)]) == {
        "rackspan_under_min_rack_isr_partitions": 3,
        "rackspan_at_min_rack_isr_partitions": 2,
    }


def test_a_watch_serves_all_but_the_refused_requests_which_only_a_broker_can_count() -> None:
    assert set(METRICS) - set(METADATA_METRICS) == {
        metric for metric in METRICS if metric.name == "rackspan_rack_check_failures_total"
    }


def test_a_metric_of_no_proposal_has_its_meaning_alone_as_help() -> None:
    assert [metric.help for metric in WATCH_METRICS] == [metric.meaning for metric in WATCH_METRICS]
    assert METRICS[0].help == "UnderMinRackIsr: 1 while the ISR spans fewer racks than min.insync.racks, else 0"


def test_the_page_on_watching_lists_every_metric_in_the_words_of_its_help_text() -> None:
    lines = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `rackspan_") and len(cells(line)) == 4
    ]
    listed = {name.strip("`"): (proposed, value) for name, _, proposed, value in (cells(line) for line in lines)}
    assert listed == {
        metric.name: (metric.proposed, metric.help.removeprefix(f"{metric.proposed}: "))
        for metric in (*METRICS, *WATCH_METRICS)
    }


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("|")[1:-1]]
