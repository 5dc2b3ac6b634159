"""The demo as a user runs it, whole: racks lost, Spark, the report; on the embedded cluster and on real Kafka."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from rackspan.errors import MissingRequirement
from rackspan.java import find_java
from rackspan.kafka_process import DEFAULT_VERSION, KafkaVersion, resolve_jars

PREDICTED = "The demo cluster does not survive losing rack r1: 3 partitions offline, 2 refusing acks=all."


def _demo(out: Path, *flags: str) -> tuple[list[str], str]:
    """The lines of the output, and the report's page."""
    words = [sys.executable, "-m", "rackspan", "demo", "--out", str(out), *flags]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.splitlines(), (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.rest
@pytest.mark.java
@pytest.mark.spark
def test_the_demo_refuses_what_one_rack_alone_would_hold_and_misses_no_acknowledged_record(tmp_path: Path) -> None:
    lines, page = _demo(tmp_path / "demo")
    assert lines[0] == PREDICTED
    lost = re.fullmatch(
        r"With two racks lost, min\.insync\.racks=2 refused ([\d,]+) records that one rack alone would have held;"
        r" lowered to 1, ([\d,]+) were acknowledged\.",
        lines[1],
    )
    assert lost is not None, lines[1]
    assert all(int(count.replace(",", "")) > 0 for count in lost.groups())
    assert lines[2].endswith("records acknowledged, none missing afterwards.")
    assert "does not survive the loss of a rack" in page
    assert "ledger" in page


@pytest.mark.java
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.soak
def test_on_real_kafka_the_demo_predicts_the_loss_and_misses_no_acknowledged_record(tmp_path: Path) -> None:
    try:
        find_java()
        resolve_jars(KafkaVersion.parse(DEFAULT_VERSION))
    except MissingRequirement as missing:
        pytest.skip(f"NOT TESTED, the demo on real Kafka: {missing}")
    lines, page = _demo(tmp_path / "demo", "--kafka")
    assert lines[0] == PREDICTED
    assert lines[1].endswith("records acknowledged, none missing afterwards.")
    assert "does not survive the loss of a rack" in page
    assert "payments" in page


@pytest.mark.slow
def test_without_java_the_demo_names_what_to_install_and_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "rackspan", "demo", "--out", str(tmp_path / "demo")]
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=bare)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("rackspan: Java 17 or newer is needed")
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
