import re

from rackspan.acks.metrics import METRICS, MetricKind


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
