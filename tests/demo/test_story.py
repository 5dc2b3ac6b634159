"""The demo as a user runs it, whole: real Kafka, a rack lost, Spark, the report."""

import subprocess
import sys
from pathlib import Path

import pytest

from rackspan.errors import MissingRequirement
from rackspan.java import find_java
from rackspan.kafka_process import DEFAULT_VERSION, KafkaVersion, resolve_jars


@pytest.mark.java
@pytest.mark.kafka
@pytest.mark.spark
def test_the_demo_foretells_the_loss_and_misses_no_acknowledged_record(tmp_path: Path) -> None:
    try:
        find_java()
        resolve_jars(KafkaVersion.parse(DEFAULT_VERSION))
    except MissingRequirement as missing:
        pytest.skip(f"NOT TESTED, the demo: {missing}")
    words = [sys.executable, "-m", "rackspan", "demo", "--out", str(tmp_path / "demo")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr[-3000:]
    told = ran.stdout.splitlines()
    assert told[0] == ("The demo cluster does not survive losing rack r1: 3 partitions offline, 2 refusing acks=all.")
    assert told[1].endswith("records acknowledged, none missing afterwards.")
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "NOT rack-safe" in page
    assert "payments" in page


def test_without_java_the_demo_says_what_to_install_and_leaves_nothing(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "rackspan", "demo", "--out", str(tmp_path / "demo")]
    bare = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env=bare)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("rackspan: Java 17 or newer is needed")
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
