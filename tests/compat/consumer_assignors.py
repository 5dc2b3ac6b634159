"""Kafka's own consumer assignors as a function: groups in, responses out, one JVM for all of them."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rackspan.consumers import ConsumerGroup
from rackspan.consumers.group import MemberId
from rackspan.model.ids import TopicPartition
from tests.compat import ivy
from tests.kafka_versions import KAFKA

KAFKA_VERSION: Final = KAFKA
_SOURCE: Final = Path(__file__).parent / "java" / "KafkaConsumerAssignors.java"

Reads = Mapping[MemberId, tuple[TopicPartition, ...]]


def run_requests(assignor: str, groups: Sequence[ConsumerGroup], timeout_seconds: float) -> list[Reads]:
    """What `range` or `cooperative-sticky` gives each group that starts with nothing assigned."""
    lines = "".join(json.dumps(_request(assignor, group)) + "\n" for group in groups)
    done = subprocess.run(
        _command(),
        input=lines,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        timeout=timeout_seconds,
        check=True,
    )
    return [_reads(json.loads(line)) for line in done.stdout.splitlines()]


def _request(assignor: str, group: ConsumerGroup) -> Mapping[str, Any]:
    topics: dict[str, list[list[str]]] = {}
    for (topic, _), racks in sorted(group.racks.items()):
        topics.setdefault(topic, []).append(sorted(racks))
    members = [[member.id, member.rack, sorted(member.topics)] for member in group.members]
    return {"assignor": assignor, "members": members, "topics": topics}


def _reads(response: Mapping[str, Mapping[str, list[int]]]) -> Reads:
    return {
        MemberId(member): tuple(TopicPartition(topic, one) for topic, listed in topics.items() for one in listed)
        for member, topics in response.items()
    }


def _command() -> list[str]:
    jars = ivy.jars("org.apache.kafka", "kafka-streams", KAFKA_VERSION)
    return [ivy.java() or "java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(_SOURCE)]
