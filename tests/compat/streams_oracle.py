"""Kafka Streams' own assignors as a function: problems in, responses out, one JVM for all of them."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from rackspan.kafka_process import DEFAULT_VERSION
from tests.compat import ivy
from tests.processes import running

KAFKA_VERSION: Final = DEFAULT_VERSION
_SOURCE: Final = Path(__file__).parent / "java" / "KafkaAssignors.java"

Request = Mapping[str, Any]


def request(mode: str, problem: Mapping[str, Any], movable: str = "any") -> Request:
    """One request: `mode` is active, standby, high-availability or sticky."""
    return {"mode": mode, "problem": problem, "movable": movable}


def run_requests(requests: Iterable[Request], timeout_seconds: float, heap: str = "2g") -> list[dict[str, Any]]:
    """Kafka's responses in order; a shorter list where the time ran out. The JVM has ended when this returns."""
    lines = "".join(json.dumps(each) + "\n" for each in requests)
    with running(_command(heap), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as jvm:
        try:
            out, _ = jvm.communicate(lines, timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            jvm.kill()
            out, _ = jvm.communicate()
    return [json.loads(line) for line in out.splitlines()]


def jvm_flags(heap: str = "2g") -> tuple[str, ...]:
    """The options of the JVM that runs Kafka's classes."""
    return (f"-Xmx{heap}", "-XX:+UseSerialGC")


def _command(heap: str) -> list[str]:
    jars = ivy.jars("org.apache.kafka", "kafka-streams", KAFKA_VERSION)
    return [ivy.java() or "java", *jvm_flags(heap), "-cp", f"{jars}/*", str(_SOURCE)]
