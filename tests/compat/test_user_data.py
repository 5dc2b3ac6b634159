"""What Kafka Streams' published classes write, read by ours: fresh every run, beside the recorded vectors."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackspan.streams.user_data import decode_assignment, decode_subscription
from tests.compat import ivy
from tests.compat.streams_oracle import KAFKA_VERSION
from tests.streams.user_data_bytes import USER_DATA, assignment_values, recorded_values, subscription_values
from tests.waiting import WITHIN_SECONDS

_SOURCE = Path(__file__).parent / "java" / "KafkaUserData.java"

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(
        ivy.java() is None, reason="needs a JDK 17 or newer on the path, such as openjdk-17-jre-headless"
    ),
]


def written(seed: int) -> list[dict[str, Any]]:
    jars = ivy.jars("org.apache.kafka", "kafka-streams", KAFKA_VERSION)
    ran = subprocess.run(
        [ivy.java() or "java", "-cp", f"{jars}/*", str(_SOURCE), str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=WITHIN_SECONDS,
        check=True,
    )
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_user_data_of_every_version_is_decoded_as_by_kafka_streams() -> None:
    rows = written(seed=42)
    assert [row["version"] for row in rows] == list(range(1, 12))
    for row in rows:
        subscription, assignment = row["subscription"], row["assignment"]
        assert subscription_values(decode_subscription(bytes.fromhex(subscription["bytes"]))) == recorded_values(
            subscription
        )
        assert assignment_values(decode_assignment(bytes.fromhex(assignment["bytes"]))) == recorded_values(assignment)


def test_the_recorded_vectors_are_what_kafka_streams_writes() -> None:
    assert written(seed=1) == USER_DATA[:11]
