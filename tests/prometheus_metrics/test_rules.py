"""The ready-made rules over time, judged by Prometheus' promtool: what fires, when, and what must not fire where all is well."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

RULES: Final = sorted((Path(__file__).parents[2] / "examples" / "prometheus").glob("*.rules.yml"))

pytestmark = [
    pytest.mark.promtool,
    pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool: apt-get install prometheus"),
]


def promtool(*words: str) -> None:
    """Errors: AssertionError, with what promtool says."""
    ran = subprocess.run(["promtool", *words], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def firing(
    folder: Path, series: Mapping[str, str], alert: str, minutes: Mapping[int, Sequence[Mapping[str, str]]]
) -> None:
    """Check the labels with which an alert fires after so many minutes of series with a value every 15 seconds.

    Severity and texts are left out: promtool compares them too, so they are those of the rule.
    """
    (rule,) = [
        rule
        for file in RULES
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
        for rule in group["rules"]
        if rule.get("alert") == alert
    ]
    # Texts have templates, which are another test's: here the rule is without.
    bare = {key: value for key, value in rule.items() if key not in ("annotations", "labels")}
    (folder / "one.rules.yml").write_text(
        yaml.safe_dump({"groups": [{"name": "one", "rules": [bare]}]}), encoding="utf-8"
    )
    tests: dict[str, Any] = {
        "rule_files": ["one.rules.yml"],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {
                        "eval_time": f"{at}m",
                        "alertname": alert,
                        "exp_alerts": [{"exp_labels": dict(one)} for one in labels],
                    }
                    for at, labels in minutes.items()
                ],
            }
        ],
    }
    (folder / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    promtool("test", "rules", str(folder / "tests.yml"))


A: Final = {"instance": "a"}
NOT_SURVIVED: Final = 'rackspan_rack_loss_survived{instance="a",cluster_id="i",cluster="c",lost_rack="r1"}'
ANY: Final = 'rackspan_any_rack_loss_survived{instance="a",cluster_id="i",cluster="c"}'
OF_CLUSTER: Final = {"instance": "a", "cluster_id": "i", "cluster": "c"}
STORED: Final = 'rackspan_collect_last_stored_timestamp_seconds{instance="a"}'
INTERVAL: Final = 'rackspan_collect_interval_seconds{instance="a"}'
SNAPSHOTS: Final = 'rackspan_collect_snapshots_total{instance="a"}'
BATCHES: Final = 'rackspan_follow_batches_total{instance="f"}'
REFUSED: Final = 'rackspan_gateway_refused_partitions_total{instance="g",topic="o",cause="racks",partition="0",racks="r2",stage="before"}'


def test_promtool_accepts_every_file() -> None:
    promtool("check", "rules", *map(str, RULES))


@pytest.mark.parametrize(
    ("series", "alert", "minutes"),
    [
        pytest.param(
            {NOT_SURVIVED: "0x120", ANY: "0x120"},
            "RackLossNotSurvived",
            {10: [], 20: [OF_CLUSTER | {"lost_rack": "r1"}]},
            id="a rack whose loss is not survived, by its name",
        ),
        pytest.param(
            {NOT_SURVIVED: "1x120", ANY: "0x120"},
            "RackLossNotSurvived",
            {20: [OF_CLUSTER]},
            id="a cluster whose losses are not certain to be survived",
        ),
        pytest.param(
            {NOT_SURVIVED: "0x40 1x80", ANY: "0x40 1x80"},
            "RackLossNotSurvived",
            {14: [], 20: [], 28: []},
            id="the restart of a broker",
        ),
        pytest.param(
            {NOT_SURVIVED: "0x30 _x4 0x30 _x4 0x60", ANY: "0x30 _x4 0x30 _x4 0x60"},
            "RackLossNotSurvived",
            {20: [OF_CLUSTER | {"lost_rack": "r1"}]},
            id="readings that fail between",
        ),
        pytest.param(
            {NOT_SURVIVED: "0x80 _x80", ANY: "0x80 _x80"},
            "RackLossNotSurvived",
            {19: [OF_CLUSTER | {"lost_rack": "r1"}], 30: []},
            id="a watch that went blind does not repeat what was",
        ),
        pytest.param(
            {'rackspan_rack_loss_known{instance="a",cluster_id="i",cluster="c"}': "1x20 0x100"},
            "RackLossUnknown",
            {10: [], 25: [OF_CLUSTER]},
            id="a cluster that cannot be judged",
        ),
        pytest.param({}, "RackLossUnknown", {10: [], 20: [{}]}, id="nothing serves the losses"),
        pytest.param(
            {STORED: "0x119 1800x119 3600x119 5400x119", INTERVAL: "1800x480"},
            "CollectStopped",
            {20: [], 55: [], 85: []},
            id="a collector with a round each half hour",
        ),
        pytest.param(
            {STORED: "0+15x20 300x380", INTERVAL: "15x400"},
            "CollectStopped",
            {15: [], 40: [A]},
            id="a collector that hangs",
        ),
        pytest.param(
            {STORED: "0x119 1800x361", INTERVAL: "1800x480"},
            "CollectStopped",
            {110: [], 119: []},
            id="one that hangs is given three rounds",
        ),
        pytest.param({}, "CollectStopped", {10: [{}]}, id="no collector"),
        pytest.param(
            {'rackspan_collect_failing_sources{instance="a"}': "0x20 1x120"},
            "CollectFails",
            {10: [], 20: [A]},
            id="a cluster that cannot be read, whatever the interval",
        ),
        pytest.param({SNAPSHOTS: "0+1x400"}, "FollowStopped", {60: [], 90: []}, id="a scheduler runs pipeline run"),
        pytest.param({SNAPSHOTS: "0+1x400", BATCHES: "0+1x400"}, "FollowStopped", {60: []}, id="a follow at work"),
        pytest.param(
            {SNAPSHOTS: "0+1x400", BATCHES: "0+1x80 _x320"},
            "FollowStopped",
            {30: [], 90: [A]},
            id="a follow that is down",
        ),
        pytest.param(
            {SNAPSHOTS: "0+1x400", BATCHES: "0+1x80 80x320"},
            "FollowStopped",
            {30: [], 90: [A]},
            id="a follow that hangs",
        ),
        pytest.param(
            {'rackspan_follow_behind_seconds{instance="f"}': "1700x200", INTERVAL: "1800x200"},
            "FollowBehind",
            {40: []},
            id="a follow that was started between two rounds half an hour apart",
        ),
        pytest.param(
            {'rackspan_follow_behind_seconds{instance="f"}': "400x200", INTERVAL: "30x200"},
            "FollowBehind",
            {40: [{"instance": "f"}]},
            id="a follow that is behind",
        ),
        pytest.param(
            {'rackspan_follow_behind_seconds{instance="f"}': "400x200"},
            "FollowBehind",
            {40: [{"instance": "f"}]},
            id="one whose collector is not scraped",
        ),
        pytest.param(
            {REFUSED: "_x10 500x60"},
            "GatewayRefusesProduces",
            {2: [], 5: [{"instance": "g", "topic": "o", "cause": "racks"}], 12: []},
            id="refusals of a topic that had none",
        ),
        pytest.param(
            {REFUSED: "7x40 20x40"},
            "GatewayRefusesProduces",
            {8: [], 12: [{"instance": "g", "topic": "o", "cause": "racks"}], 18: []},
            id="more refusals of a topic that had some",
        ),
    ],
)
def test_an_alert_fires_where_it_should_and_nowhere_else(
    tmp_path: Path, series: dict[str, str], alert: str, minutes: dict[int, list[dict[str, str]]]
) -> None:
    firing(tmp_path, series, alert, minutes)


def test_the_texts_of_a_lost_rack_name_it_and_the_command(tmp_path: Path) -> None:
    file = next(file for file in RULES if file.name == "rack-loss.rules.yml")
    (rule, *_) = yaml.safe_load(file.read_text(encoding="utf-8"))["groups"][0]["rules"]
    description = str(rule["annotations"]["description"])
    expected = [
        {
            "exp_labels": {"severity": "critical", **OF_CLUSTER, "lost_rack": "r1"},
            "exp_annotations": {
                "summary": "Cluster c would not survive the loss of rack r1",
                "description": description,
            },
        }
    ]
    tests = {
        "rule_files": [str(file)],
        "evaluation_interval": "15s",
        "tests": [
            {
                "interval": "15s",
                "input_series": [{"series": NOT_SURVIVED, "values": "0x120"}],
                "alert_rule_test": [{"eval_time": "20m", "alertname": "RackLossNotSurvived", "exp_alerts": expected}],
            }
        ],
    }
    (tmp_path / "tests.yml").write_text(yaml.safe_dump(tests), encoding="utf-8")
    promtool("test", "rules", str(tmp_path / "tests.yml"))
    assert "`rackspan outage`" in description
    assert "`rackspan audit`" in description
