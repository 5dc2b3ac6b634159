"""The snapshot as JSON, version 1: read strictly, written canonically, lossless both ways.

Reading refuses a document that contradicts the format, naming the topic and partition, and warns about unknown keys.
Equal snapshots are written as equal bytes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NoReturn

from rackspan import json_text
from rackspan.errors import InvalidSnapshot
from rackspan.json_text import NotJson, shown
from rackspan.model.broker import Broker, Controller
from rackspan.model.ids import INT32_MAX, INT64_MAX, NO_BROKER, BrokerId, RackId, TopicName
from rackspan.model.partitions import UNKNOWN_SIZE, Partition, columns
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.model.topic import Topic

VERSION: Final = 1

_TOP_KEYS = frozenset({"version", "cluster_id", "taken_at", "controllers", "partial", "brokers", "topics"})
_CONTROLLER_KEYS = frozenset({"id", "rack", "voter", "alive"})
_BROKER_KEYS = frozenset({"id", "host", "port", "rack", "fenced"})
_TOPIC_KEYS = frozenset({"name", "topic_id", "internal", "config", "partitions"})
_PARTITION_KEYS = frozenset(
    {"partition", "leader", "replicas", "isr", "adding_replicas", "removing_replicas", "size_bytes"}
)


@dataclass(frozen=True, slots=True)
class ReadSnapshot:
    """A snapshot and the warnings about its document."""

    snapshot: ClusterSnapshot
    warnings: tuple[str, ...]


def read(text: str | bytes) -> ReadSnapshot:
    """Parse a snapshot. Errors: InvalidSnapshot, one line that names the key, topic or partition."""
    try:
        return from_document(json_text.parse(text))
    except NotJson as error:
        raise InvalidSnapshot(str(error)) from None


def from_document(document: object) -> ReadSnapshot:
    """Build a snapshot from parsed JSON. Errors: InvalidSnapshot."""
    reader = _Reader()
    snapshot = reader.snapshot(document)
    return ReadSnapshot(snapshot, tuple(reader.warnings))


def write(snapshot: ClusterSnapshot) -> str:
    """The canonical text: keys in a fixed order, one line per partition."""
    head = {
        "version": VERSION,
        "cluster_id": snapshot.cluster_id,
        "taken_at": None if snapshot.taken_at is None else utc_text(snapshot.taken_at),
        "controllers": [
            {"id": item.id, "rack": item.rack, "voter": item.voter, "alive": item.alive}
            for item in snapshot.controllers
        ],
        "partial": list(snapshot.partial),
    }
    brokers = [
        {"id": one.id, "host": one.host, "port": one.port, "rack": one.rack, "fenced": one.fenced}
        for one in snapshot.brokers
    ]
    opening = ",\n ".join(f"{_text(key)}: {_text(value)}" for key, value in head.items())
    return (
        f"{{{opening},\n"
        f' "brokers": [\n  {_lines(map(_text, brokers), 2)}],\n'
        f' "topics": [{",".join(_topics(snapshot))}]}}\n'
    )


def partition_document(row: Partition) -> dict[str, object]:
    """One partition as in the JSON."""
    return {
        "partition": row.partition,
        "leader": row.leader,
        "replicas": list(row.replicas),
        "isr": list(row.isr),
        "adding_replicas": list(row.adding_replicas),
        "removing_replicas": list(row.removing_replicas),
        "size_bytes": row.size_bytes,
    }


def utc_text(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": "))


def _lines(items: Iterator[str], indent: int) -> str:
    return (",\n" + " " * indent).join(items)


def _topics(snapshot: ClusterSnapshot) -> Iterator[str]:
    rows = iter(snapshot.partitions)
    row = next(rows, None)
    for code, topic in enumerate(snapshot.topics):
        partitions = []
        while row is not None and row.topic == code:
            partitions.append(_text(partition_document(row)))
            row = next(rows, None)
        head = {
            "name": topic.name,
            "topic_id": topic.topic_id,
            "internal": topic.internal,
            "config": dict(topic.config),
        }
        opening = ", ".join(f"{_text(key)}: {_text(value)}" for key, value in head.items())
        listed = f"\n    {_lines(iter(partitions), 4)}" if partitions else ""
        yield f'\n  {{{opening}, "partitions": [{listed}]}}'


@dataclass(slots=True)
class _Reader:
    """Checks types on the way in, so that nothing downstream has to."""

    warnings: list[str] = field(default_factory=list)
    _warned: set[tuple[str, str]] = field(default_factory=set)

    def snapshot(self, document: object) -> ClusterSnapshot:
        top = self._object(document, "snapshot", _TOP_KEYS, required=("version", "brokers", "topics"))
        if type(top["version"]) is not int or top["version"] != VERSION:
            _refuse(
                "version",
                f"is {shown(top['version'])}, but this rackspan reads version {VERSION}; take the snapshot again",
            )
        return ClusterSnapshot(
            cluster_id=_optional_string(top, "cluster_id", "snapshot"),
            taken_at=_timestamp(top),
            controllers=tuple(self._controllers(top.get("controllers"))),
            partial=tuple(_strings(top.get("partial"), "partial")),
            brokers=tuple(self._brokers(top["brokers"])),
            **self._topics_and_partitions(top["topics"]),
        )

    def _brokers(self, value: object) -> Iterator[Broker]:
        for index, item in enumerate(_list(value, "brokers")):
            place = f"brokers[{index}]"
            broker = self._object(item, place, _BROKER_KEYS, required=("id",))
            yield Broker(
                id=BrokerId(_integer(broker["id"], f"{place}: id", 0, INT32_MAX)),
                rack=_optional_rack(broker, place),
                fenced=_boolean(broker, "fenced", place, default=False),
                host=_optional_string(broker, "host", place),
                port=_optional_integer(broker, "port", place, 0, 65535),
            )

    def _controllers(self, value: object) -> Iterator[Controller]:
        for index, item in enumerate(_list([] if value is None else value, "controllers")):
            place = f"controllers[{index}]"
            controller = self._object(item, place, _CONTROLLER_KEYS, required=("id",))
            yield Controller(
                id=BrokerId(_integer(controller["id"], f"{place}: id", 0, INT32_MAX)),
                rack=_optional_rack(controller, place),
                voter=_boolean(controller, "voter", place, default=True),
                alive=None if controller.get("alive") is None else _boolean(controller, "alive", place, default=True),
            )

    def _topics_and_partitions(self, value: object) -> dict[str, Any]:
        topics: list[Topic] = []
        rows: dict[str, list[Any]] = {key: [] for key in ("topic", *sorted(_PARTITION_KEYS))}
        for code, item in enumerate(_list(value, "topics")):
            document = self._object(item, f"topics[{code}]", _TOPIC_KEYS, required=("name",))
            name = document["name"]
            if not isinstance(name, str):
                _refuse(f"topics[{code}]: name", f"is {shown(name)}, not a string; fix it in the file")
            topics.append(
                Topic(
                    name=TopicName(name),
                    topic_id=_optional_string(document, "topic_id", f"topic {name!r}"),
                    internal=_boolean(document, "internal", f"topic {name!r}", default=False),
                    config=_config(document.get("config"), f"topic {name!r}"),
                )
            )
            for partition in _list(document.get("partitions", []), f"topic {name!r}: partitions"):
                self._append_partition(rows, code, name, partition)
        return {"topics": tuple(topics), "partitions": columns(**rows)}

    def _append_partition(self, rows: dict[str, list[Any]], code: int, topic: str, item: object) -> None:
        place = f"topic {topic!r}: a partition"
        document = self._object(item, place, _PARTITION_KEYS, required=("partition",))
        partition = _integer(document["partition"], f"{place}: partition", 0, INT32_MAX)
        place = f"{topic}-{partition}"
        for key in ("leader", "replicas", "isr"):
            if key not in document:
                _refuse(place, f"{key} is missing; add it or take the snapshot again")
        rows["topic"].append(code)
        rows["partition"].append(partition)
        rows["leader"].append(_integer(document["leader"], f"{place}: leader", NO_BROKER, INT32_MAX))
        rows["replicas"].append(_broker_ids(document["replicas"], f"{place}: replicas"))
        rows["isr"].append(_broker_ids(document["isr"], f"{place}: isr"))
        rows["adding_replicas"].append(_broker_ids(document.get("adding_replicas") or [], f"{place}: adding_replicas"))
        rows["removing_replicas"].append(
            _broker_ids(document.get("removing_replicas") or [], f"{place}: removing_replicas")
        )
        size_bytes = document.get("size_bytes")
        rows["size_bytes"].append(
            UNKNOWN_SIZE if size_bytes is None else _integer(size_bytes, f"{place}: size_bytes", 0, INT64_MAX)
        )

    def _object(self, value: object, place: str, known: frozenset[str], required: Sequence[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            _refuse(place, f"is {shown(value)}, not an object; take the snapshot again with rackspan snapshot")
        for key in required:
            if key not in value:
                _refuse(place, f"{key} is missing; add it or take the snapshot again")
        for key in value.keys() - known:
            self._warn_once(place, key)
        return value

    def _warn_once(self, place: str, key: str) -> None:
        # One warning per kind of object: a million partitions with the same unknown key give one line.
        kind = place.split("[")[0] if "[" in place else place.split(" ")[-1]
        if (kind, key) not in self._warned:
            self._warned.add((kind, key))
            self.warnings.append(f"{place}: unknown key {key!r} ignored")


def _refuse(place: str, why: str) -> NoReturn:
    raise InvalidSnapshot(f"{place}: {why}" if ":" not in place else f"{place} {why}")


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(place, f"is {shown(value)}, not a list; fix it in the file")
    return value


def _strings(value: object, place: str) -> list[str]:
    items = _list([] if value is None else value, place)
    if not all(isinstance(item, str) for item in items):
        _refuse(place, "holds something other than strings; fix it in the file")
    return items


def _integer(value: object, place: str, least: int, most: int) -> int:
    # type(), not isinstance: JSON's true is no number, though Python's True is an int.
    if type(value) is not int:
        _refuse(place, f"is {shown(value)}, not a whole number; fix it in the file")
    if not least <= value <= most:
        _refuse(place, f"is {shown(value)}, outside {least} to {most}; fix it in the file")
    return value


def _broker_ids(value: object, place: str) -> list[int]:
    items = _list(value, place)
    for item in items:
        if type(item) is not int or not 0 <= item <= INT32_MAX:
            _refuse(
                place,
                f"names {shown(item)}, but a broker id is a whole number of 0 to {INT32_MAX}; fix it in the file",
            )
    return items


def _optional_integer(document: Mapping[str, Any], key: str, place: str, least: int, most: int) -> int | None:
    value = document.get(key)
    return None if value is None else _integer(value, f"{place}: {key}", least, most)


def _optional_string(document: Mapping[str, Any], key: str, place: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        _refuse(f"{place}: {key}", f"is {shown(value)}, not a string; fix it in the file")
    return value


def _optional_rack(document: Mapping[str, Any], place: str) -> RackId | None:
    rack = _optional_string(document, "rack", place)
    return None if rack is None else RackId(rack)


def _boolean(document: Mapping[str, Any], key: str, place: str, default: bool) -> bool:
    value = document.get(key, default)
    if not isinstance(value, bool):
        _refuse(f"{place}: {key}", f"is {shown(value)}, not true or false; fix it in the file")
    return value


def _config(value: object, place: str) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        _refuse(f"{place}: config", f"is {shown(value)}, but keys and values are strings; fix it in the file")
    return value


def _timestamp(top: Mapping[str, Any]) -> datetime | None:
    text = _optional_string(top, "taken_at", "snapshot")
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        _refuse("taken_at", f"is {shown(text)}, not a time such as 2026-11-21T02:00:00Z; fix it in the file")
