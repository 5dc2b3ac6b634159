"""The ready-made rules and the dashboard: every metric and label that they name is served, each in its kind.

What the rules do over time: test_rules.py.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import rackspan.gateway.metrics
from rackspan.acks.metrics import METRICS, WATCH_METRICS, MetricKind
from rackspan.gateway.core.record_bytes import RecordFlow
from rackspan.pipeline.collect import CollectTotals
from rackspan.pipeline.collect import metric_families as collect_families
from rackspan.pipeline.follow import FollowTotals
from rackspan.pipeline.follow import metric_families as follow_families
from rackspan.prometheus_metrics.rack_losses import rack_loss_families
from rackspan.sources.gateway_counters import RECORD_BYTES

EXAMPLES = Path(__file__).parents[2] / "examples"
RULES = sorted((EXAMPLES / "prometheus").glob("*.rules.yml"))
DASHBOARD = json.loads((EXAMPLES / "grafana" / "rackspan.json").read_text(encoding="utf-8"))

OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus adds."""

NAME = re.compile(r"\brackspan[_:][a-z0-9_:]+")


class Served(NamedTuple):
    counter: bool
    labels: frozenset[str]


def served() -> dict[str, Served]:
    """Every metric by its name as Prometheus sees it."""
    found = {
        metric.name: Served(metric.kind is MetricKind.COUNTER, frozenset({"broker", "rack", "topic", "partition"}))
        for metric in (*METRICS, *WATCH_METRICS)
    }
    of_pipeline = (
        *collect_families(CollectTotals(30.0, last_stored=1.0)),
        *follow_families(FollowTotals(behind_seconds=1.0)),
        *rack_loss_families([]),
    )
    labels = frozenset({"table", "cluster_id", "cluster", "lost_rack", "state"})
    for family in of_pipeline:
        counter = family.type == "counter"
        found[f"{family.name}_total" if counter else family.name] = Served(counter, labels)
    return found | dict(_of_gateways())


def _of_gateways() -> Iterator[tuple[str, Served]]:
    """From the source: a gateway serves some of them only as it is configured."""
    tree = ast.parse(Path(str(rackspan.gateway.metrics.__file__)).read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.args:
            name = call.args[0]
            if isinstance(name, ast.Constant) and str(name.value).startswith("rackspan_"):
                counter = call.func.id in ("_counter", "CounterMetricFamily")
                if call.func.id == "HistogramMetricFamily":
                    for suffix in ("_bucket", "_sum", "_count"):
                        yield f"{name.value!s}{suffix}", Served(True, frozenset({"le"}))
                    continue
                assert str(name.value).endswith("_total") == counter, name.value
                labels = [word.value for word in call.keywords if word.arg == "labels"]
                texts = {node.value for label in labels for node in ast.walk(label) if isinstance(node, ast.Constant)}
                of_flow = set(RecordFlow._fields) if name.value == RECORD_BYTES else set()
                yield str(name.value), Served(counter, frozenset({*map(str, texts), *of_flow}))


def expressions() -> Iterator[tuple[str, str]]:
    """By where they stand."""
    for file in RULES:
        for rule in rules(file):
            yield f"{file.name}: {rule.get('alert') or rule['record']}", str(rule["expr"])
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield f"rackspan.json: {panel['title']}", target["expr"]


def rules(file: Path) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def recorded() -> dict[str, str]:
    return {rule["record"]: rule["expr"] for file in RULES for rule in rules(file) if "record" in rule}


def labels_named(expression: str) -> set[str]:
    grouped = re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", expression)
    matched = re.findall(r'(\w+)\s*(?:=~|!~|!=|=)\s*"', expression)
    return {label.strip() for group in grouped for label in group.split(",") if label.strip()} | set(matched)


@pytest.mark.parametrize(("where", "expression"), [pytest.param(*pair, id=pair[0]) for pair in expressions()])
def test_an_expression_uses_metrics_that_are_served_each_in_its_kind(where: str, expression: str) -> None:
    known, records = served(), recorded()
    names = set(NAME.findall(expression))
    assert names, where
    assert names <= known.keys() | records.keys(), where
    # A counter alone grows for ever; a gauge has no rate.
    ranges = r"(?:rate|increase|last_over_time)\([^()]*?\[[^\]]+\]\)"
    # A counter that is new counts by its value.
    bare = NAME.findall(re.sub(rf"{ranges}|({NAME.pattern}) unless \1 offset", "", expression))
    assert not [name for name in bare if name in known and known[name].counter], where
    rated = NAME.findall("".join(re.findall(ranges, expression)))
    assert all(known[name].counter for name in rated), where
    labels = set().union(*(_labels(name, known, records) for name in names))
    assert labels_named(expression) <= labels | OF_PROMETHEUS, where
    assert expression.count("(") == expression.count(")"), where


def _labels(name: str, known: dict[str, Served], records: dict[str, str]) -> set[str]:
    if name in known:
        return set(known[name].labels)
    return set().union(*(_labels(each, known, records) for each in NAME.findall(records[name])))


def test_every_alert_says_what_happens_and_how_urgent_it_is() -> None:
    for file in RULES:
        for rule in rules(file):
            if "alert" in rule:
                assert rule["annotations"]["summary"]
                assert rule["labels"]["severity"] in ("critical", "warning")


@pytest.mark.parametrize("file", RULES, ids=lambda file: file.name)
def test_processes_that_are_down_are_an_alert(file: Path) -> None:
    """Without metrics every comparison with them is empty, which is no alert."""
    gone = [rule["alert"] for rule in rules(file) if "alert" in rule and "absent(" in rule["expr"]]
    assert len(gone) == 1


def test_every_alert_is_in_the_how_to_of_watch_or_of_the_pipeline() -> None:
    pages = "".join(
        (EXAMPLES.parent / "docs" / "how-to" / name).read_text(encoding="utf-8") for name in ("watch.md", "pipeline.md")
    )
    alerts = {rule["alert"] for file in RULES for rule in rules(file) if "alert" in rule}
    assert {alert for alert in alerts if f"`{alert}`" not in pages} == set()


def test_the_dashboard_has_panels_that_do_not_overlap_and_variables_that_exist() -> None:
    covered: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & covered
        assert place["x"] + place["w"] <= 24
        covered |= cells
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]} | {"__rate_interval", "__all"}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD))) <= variables


def test_every_metric_of_a_watch_and_of_a_gateway_but_those_named_here_is_on_the_dashboard_or_in_a_rule() -> None:
    shown = {name for _, expression in expressions() for name in NAME.findall(expression)}
    of_partitions = {name for name in served() if name.startswith("rackspan_partition_")}
    for_debugging = {
        "rackspan_watch_readings_total",
        "rackspan_watch_failures_total",
        "rackspan_gateway_connections_accepted_total",
        "rackspan_gateway_request_memory_bytes",
        "rackspan_gateway_hold_memory_bytes",
        "rackspan_gateway_dropped_responses_total",
        "rackspan_gateway_config_topic_current",
        "rackspan_gateway_config_lease_lapses_total",
        "rackspan_gateway_registered_gateways",
        "rackspan_gateway_late_records_total",
        "rackspan_gateway_log_reads_total",
        "rackspan_gateway_metadata_log_offset",
        "rackspan_gateway_samples_total",
        "rackspan_gateway_verified_responses_total",
        "rackspan_gateway_hold_seconds_bucket",
        "rackspan_gateway_placements_total",
        "rackspan_gateway_placement_failures_total",
    }
    of_speed = {name for name in served() if name.startswith("rackspan_follow_")}
    assert served().keys() - shown == (of_partitions | for_debugging | of_speed) - shown
    assert not for_debugging & shown
