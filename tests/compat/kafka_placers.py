"""Kafka's own placers as a function: requests in, responses out, one JVM for all of them."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from rackspan.placement import UsableBroker
from tests.compat import ivy

KAFKA_VERSION: Final = "4.0.0"
"""The last release with both placers: AdminUtils was deleted in 4.1."""

_SOURCE: Final = Path(__file__).parent / "java" / "KafkaPlacers.java"

Request: TypeAlias = Mapping[str, Any]


def request(placer: str, brokers: Sequence[UsableBroker], partitions: int, replicas: int, **options: Any) -> Request:
    """One request; KafkaPlacers.java says which options there are."""
    listed = [[one.id, one.rack, one.fenced] for one in brokers]
    return {"placer": placer, "brokers": listed, "partitions": partitions, "replicas": replicas, **options}


SMALL_JVM: Final = ("-Xmx2g", "-XX:+UseSerialGC")
"""Enough for the assignments of tests; timings need more, see benchmarks/place.py."""


class KafkaPlacers:
    """A JVM that stays warm between requests: `with KafkaPlacers() as kafka: kafka.run(...)`."""

    def __init__(self, jvm_flags: Sequence[str] = SMALL_JVM) -> None:
        self._jvm_flags = jvm_flags

    def __enter__(self) -> "KafkaPlacers":
        self._jvm = subprocess.Popen(
            _command(self._jvm_flags), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def run(self, requested: Request) -> dict[str, Any]:
        if self._jvm.stdin is None or self._jvm.stdout is None:
            raise RuntimeError("the JVM has no pipes")
        self._jvm.stdin.write(json.dumps(requested) + "\n")
        self._jvm.stdin.flush()
        returned: dict[str, Any] = json.loads(self._jvm.stdout.readline())
        return returned

    def __exit__(self, *_: object) -> None:
        self._jvm.kill()
        self._jvm.communicate()


def run_requests(requests: Iterable[Request], timeout_seconds: float) -> list[dict[str, Any]]:
    """Kafka's responses in order. The JVM has ended when this returns, whatever happened."""
    lines = "".join(json.dumps(each) + "\n" for each in requests)
    done = subprocess.run(
        _command(SMALL_JVM), input=lines, stdout=subprocess.PIPE, text=True, timeout=timeout_seconds, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _command(jvm_flags: Sequence[str]) -> list[str]:
    jars = ivy.jars("org.apache.kafka", "kafka-metadata", KAFKA_VERSION)
    return [ivy.java() or "java", *jvm_flags, "-cp", f"{jars}/*", str(_SOURCE)]
