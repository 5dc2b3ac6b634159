"""The classes in Kafka's jar: every field of what rackspan reads and writes, the records of its metadata log, and its error codes."""

import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from rackspan.gateway.core.apis import OFFERED
from rackspan.gateway.core.metadata_log import LAST_RECORD, READ_RECORDS
from rackspan.java import find_java
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_process import DEFAULT_VERSION, TESTED_VERSIONS, KafkaVersion, resolve_jars
from rackspan.wire.apis import METADATA_LEVELS, TESTED_UP_TO, VERSIONS, ApiKey
from rackspan.wire.schema import FieldShape, StructShape, request_shape, response_shape
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.java

_FOLDER: Final = Path(__file__).parent / "java"

Lines = Sequence[tuple[str, ...]]

_KAFKAS_KINDS: Final = {
    "error_code": "int16",
    "timedelta_i32": "int32",
    "timedelta_i64": "int64",
    "datetime_i64": "int64",
    "bool": "boolean",
}
"""Kafka's names of kio's types."""


@cache
def printed(program: str, version: str) -> Lines:
    """The lines that a program in java/ prints with the jars of this release."""
    java, jars = find_java(), resolve_jars(KafkaVersion.parse(version))
    command = [str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(_FOLDER / program)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=WITHIN_SECONDS, check=True)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def kafkas(first: str) -> Lines:
    """The lines that KafkaSchemas.java prints with this first word, without it."""
    return [line[1:] for line in printed("KafkaSchemas.java", KAFKA) if line[0] == first]


@cache
def kafkas_fields() -> dict[tuple[int, str, int], list[tuple[str, str, str]]]:
    """Path, type and tag of each field, by API key, side and version."""
    found: dict[tuple[int, str, int], list[tuple[str, str, str]]] = {}
    for key, side, version, path, kind, tag in kafkas("field"):
        fields = found.setdefault((int(key), side, int(version)), [])
        if kind != "tags":
            fields.append((path, kind.replace("compact_", "").replace("nullable_", ""), tag))
    return found


def our_fields(shape: StructShape, path: str = "") -> Iterator[tuple[str, str, str]]:
    tagged = ((str(tag), field) for tag, field in shape.tagged)
    for tag, field in (*(("-", field) for field in shape.fields), *tagged):
        yield path + field.name, _words(field), tag
        if isinstance(field.kind, StructShape):
            yield from our_fields(field.kind, f"{path}{field.name}.")


def _words(field: FieldShape) -> str:
    kind = "struct" if isinstance(field.kind, StructShape) else _KAFKAS_KINDS.get(field.kind, field.kind)
    return f"{'array ' if field.array else ''}{kind}{' nullable' if field.nullable else ''}"


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("key", ApiKey)
def test_every_version_that_both_have_has_kafkas_fields_in_kafkas_order(key: ApiKey, side: str) -> None:
    shape_of = request_shape if side == "request" else response_shape
    both = [version for version in VERSIONS[key] if (int(key), side, version) in kafkas_fields()]
    assert both
    for version in both:
        theirs = [field[1:] for field in kafkas_fields()[int(key), side, version]]
        assert [field[1:] for field in our_fields(shape_of(key, version))] == theirs, version


def test_every_metadata_version_of_the_release_and_no_other_is_read() -> None:
    levels = {int(level) for level, state, _ in kafkas("level") if state == "production"}
    assert max(levels) in METADATA_LEVELS
    if KAFKA == DEFAULT_VERSION:
        assert max(levels) == METADATA_LEVELS[-1]
        assert DEFAULT_VERSION.startswith(f"{TESTED_UP_TO}.")


def test_each_record_that_is_read_is_read_in_kafkas_last_version() -> None:
    theirs = {int(key): (name.replace("_", "").lower(), int(last)) for key, name, last in kafkas("record")}
    for key, (name, last_version, _) in READ_RECORDS.items():
        kafkas_name, kafkas_last = theirs[key]
        assert name.lower() == kafkas_name
        assert last_version == kafkas_last if KAFKA == DEFAULT_VERSION else last_version >= kafkas_last
    assert max(theirs) <= LAST_RECORD


def test_every_error_code_has_kafkas_name_and_is_retriable_if_kafkas_is() -> None:
    theirs = {int(code): (name, retriable == "true") for code, name, retriable in kafkas("error")}
    ours = {int(error): (error.name, error.is_retriable) for error in ErrorCode}
    assert {code: ours.get(code) for code in theirs} == theirs


ADMIN_ACTIONS: Final = {55: "DescribeQuorum", 57: "UpdateFeatures"}
"""Of Kafka's actions of the cluster, those that admin tools send: brokers check DESCRIBE and ALTER of the cluster."""

ADMIN_REQUESTS: Final = {64: "UnregisterBroker", 94: "UnregisterController"}
"""About brokers and controllers, and of admin tools: brokers check ALTER of the cluster."""


@pytest.mark.parametrize("version", TESTED_VERSIONS)
def test_the_gateway_offers_no_request_of_brokers_to_each_other(version: str) -> None:
    """Kafka's own tables: which requests need CLUSTER_ACTION, and which brokers have on no listener of clients. Fetch is refused by its replica."""
    apis = {
        int(key): (name, action == "true", listeners)
        for key, name, action, listeners in printed("KafkaApis.java", version)
    }
    offered = {key: apis[key] for key in OFFERED if key in apis}
    assert {key: name for key, (name, action, _) in offered.items() if action} == ADMIN_ACTIONS
    assert [name for name, _, listeners in offered.values() if "BROKER" not in listeners.strip("[]").split(", ")] == []
    assert sum(action for _, action, _ in apis.values()) > len(ADMIN_ACTIONS) + 10
    assert {key: apis[key][0] for key in ADMIN_REQUESTS if key in offered}.items() <= ADMIN_REQUESTS.items()
    if version == DEFAULT_VERSION:
        assert ADMIN_REQUESTS.keys() <= offered.keys()
