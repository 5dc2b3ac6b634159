"""Kafka's own definitions of its configs, printed by its classes: as they are recorded for the tests without Java."""

import subprocess
from pathlib import Path
from typing import Final

import pytest

from rackspan.java import find_java
from rackspan.kafka_process import DEFAULT_VERSION, KafkaVersion, resolve_jars
from tests.cluster.core.configs.test_definitions import RECORDED
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.java

_SOURCE: Final = Path(__file__).parent / "java" / "KafkaConfigDefinitions.java"


def test_what_is_recorded_is_what_kafka_defines() -> None:
    java, jars = find_java(), resolve_jars(KafkaVersion.parse(DEFAULT_VERSION))
    command = [str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(_SOURCE)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=WITHIN_SECONDS, check=True)
    printed = set(done.stdout.splitlines())
    recorded = RECORDED.read_text(encoding="utf-8").splitlines()
    assert [line for line in recorded if line not in printed] == []
    assert len(recorded) > 100
