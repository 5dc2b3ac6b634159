"""Kafka's own record classes of its coordinators as two functions: fields in, bytes out, and back."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from tests.compat import ivy
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

KAFKA_VERSION: Final = KAFKA
_SOURCE: Final = Path(__file__).parent / "java" / "KafkaCoordinatorRecords.java"
_MODULES: Final = ("kafka-group-coordinator", "kafka-transaction-coordinator")

Written = tuple[str, int, dict[str, Any]]
"""A kind (`OffsetCommitValue`), its version, and its fields as Kafka's JSON names them."""


def write(records: Sequence[Written]) -> list[bytes]:
    """The bytes Kafka writes. Keys have one version in Kafka, so none is given."""
    responses = _run([{"kind": kind, "version": version, "json": fields} for kind, version, fields in records])
    return [bytes.fromhex(response["hex"]) for response in responses]


def read(records: Sequence[tuple[str, bytes]]) -> list[tuple[int, dict[str, Any]]]:
    """(leading int16, fields) as Kafka reads them; nothing may be left over."""
    responses = _run([{"kind": kind, "hex": data.hex()} for kind, data in records])
    return [(response["version"], response["json"]) for response in responses]


def _run(requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    jars = ":".join(f"{ivy.jars('org.apache.kafka', module, KAFKA_VERSION)}/*" for module in _MODULES)
    done = subprocess.run(
        [ivy.java() or "java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", jars, str(_SOURCE)],
        input="".join(json.dumps(each) + "\n" for each in requests),
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"Kafka's record classes stopped:\n{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]
