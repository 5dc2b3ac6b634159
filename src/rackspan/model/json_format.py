"""The snapshot as JSON, version 1: read strictly, written canonically, lossless both ways.

Reading refuses a document that contradicts the format, naming the topic and partition, and warns about unknown keys.
Equal snapshots are written as equal bytes.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, ClassVar, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta, Struct

from rackspan import json_text
from rackspan.documents import Count, InvalidDocument, UtcTime, convert, unknown_keys
from rackspan.errors import InvalidSnapshot
from rackspan.json_text import NotJson, collector_paused, shown
from rackspan.model.broker import Broker, Controller
from rackspan.model.ids import INT32_MAX, INT64_MAX, UNKNOWN_LEADER, BrokerId, RackId, TopicName
from rackspan.model.partitions import UNKNOWN_SIZE, Partition, columns
from rackspan.model.snapshot import VERSION, ClusterSnapshot, ReadSnapshot
from rackspan.model.topic import Topic
from rackspan.text import utc_text

AnId: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class _Broker(Struct):
    id: AnId
    rack: str | None = None
    fenced: bool = False
    host: str | None = None
    port: Annotated[int, Meta(ge=0, le=65_535)] | None = None
    cordoned: bool = False
    failed_log_dirs: list[str] | None = None
    usable_bytes: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None


class _Controller(Struct):
    id: AnId
    rack: str | None = None
    voter: bool = True
    alive: bool | None = None
    active: bool | None = None


class _Partition(Struct, gc=False):
    SHOWN: ClassVar[str] = "{name}-{partition}"

    partition: AnId
    leader: Annotated[int, Meta(ge=UNKNOWN_LEADER, le=INT32_MAX)]
    replicas: list[AnId]
    isr: list[AnId]
    adding_replicas: list[AnId] | None = None
    removing_replicas: list[AnId] | None = None
    offline_replicas: list[AnId] | None = None
    size_bytes: Annotated[int, Meta(ge=0, le=INT64_MAX)] | None = None


class _Topic(Struct):
    SHOWN: ClassVar[str] = "topic {name!r}"

    name: str
    topic_id: str | None = None
    internal: bool = False
    config: dict[str, str] | None = None
    partitions: list[_Partition] = []


class _Snapshot(Struct):
    version: int
    brokers: list[_Broker]
    topics: list[_Topic]
    cluster_id: str | None = None
    taken_at: str | None = None
    controllers: list[_Controller] | None = None
    partial: list[str] | None = None


class BrokerDocument(TypedDict):
    id: Count
    host: str | None
    port: Count | None
    rack: str | None
    fenced: bool
    cordoned: NotRequired[
        Annotated[
            bool, Meta(description="Whether all of its log directories are cordoned (KIP-1066): it gets nothing new.")
        ]
    ]
    failed_log_dirs: NotRequired[
        Annotated[
            list[str], Meta(description="Its log directories that have failed while it is up; absent if there is none.")
        ]
    ]
    usable_bytes: NotRequired[
        Annotated[
            Count, Meta(description="Bytes left on the volumes of its log directories; absent if that is not known.")
        ]
    ]


class ControllerDocument(TypedDict):
    id: Count
    rack: str | None
    voter: bool
    alive: NotRequired[
        Annotated[
            bool | None,
            Meta(
                description="Whether it follows the leader of the quorum; null, or absent in files of before, if that is not known."
            ),
        ]
    ]
    active: NotRequired[Annotated[bool | None, Meta(description="Whether it is the leader of the quorum.")]]


class PartitionDocument(TypedDict):
    partition: Count
    leader: Annotated[
        int, Meta(ge=UNKNOWN_LEADER, description="-1: none. -2: there may be one, and it was not reported.")
    ]
    replicas: list[int]
    isr: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]
    size_bytes: Count | None
    offline_replicas: NotRequired[
        Annotated[
            list[int],
            Meta(description="Replicas in a failed log directory of a broker that is up; absent if there is none."),
        ]
    ]


class TopicDocument(TypedDict):
    name: str
    topic_id: str | None
    internal: bool
    config: dict[str, str]
    partitions: list[PartitionDocument]


class SnapshotDocument(TypedDict):
    """A snapshot of a cluster, version 1: snapshot --out - and --out FILE."""

    version: Literal[1]
    cluster_id: str | None
    taken_at: UtcTime | None
    controllers: list[ControllerDocument]
    partial: list[str]
    brokers: list[BrokerDocument]
    topics: list[TopicDocument]


def read(text: str | bytes) -> ReadSnapshot:
    """Parse a snapshot. Errors: InvalidSnapshot, one line that names the key, topic or partition."""
    try:
        with collector_paused():
            return from_document(json_text.parse(text))
    except NotJson as error:
        raise InvalidSnapshot(str(error)) from None


def from_document(document: object) -> ReadSnapshot:
    """Build a snapshot from parsed JSON. Errors: InvalidSnapshot."""
    version = document.get("version", VERSION) if isinstance(document, dict) else VERSION
    if version is True or version != VERSION:
        raise InvalidSnapshot(
            f"version: is {shown(version)}, but this rackspan reads version {VERSION}; take the snapshot again"
        )
    try:
        given = convert(document, _Snapshot, "snapshot")
    except InvalidDocument as error:
        raise InvalidSnapshot(str(error)) from None
    unknown = unknown_keys(document, _Snapshot, "snapshot")
    return ReadSnapshot(_snapshot(given), tuple(f"{owner}: unknown key {key!r} ignored" for owner, key in unknown))


def _snapshot(given: _Snapshot) -> ClusterSnapshot:
    rows = [(code, row) for code, topic in enumerate(given.topics) for row in topic.partitions]
    partitions = [row for _, row in rows]
    return ClusterSnapshot(
        cluster_id=given.cluster_id,
        taken_at=_time(given.taken_at),
        controllers=tuple(
            Controller(
                BrokerId(controller.id), _rack(controller.rack), controller.voter, controller.alive, controller.active
            )
            for controller in given.controllers or ()
        ),
        partial=tuple(given.partial or ()),
        brokers=tuple(
            Broker(
                id=BrokerId(broker.id),
                rack=_rack(broker.rack),
                fenced=broker.fenced,
                host=broker.host,
                port=broker.port,
                cordoned=broker.cordoned,
                failed_log_dirs=tuple(broker.failed_log_dirs or ()),
                usable_bytes=broker.usable_bytes,
            )
            for broker in given.brokers
        ),
        topics=tuple(
            Topic(TopicName(topic.name), topic_id=topic.topic_id, internal=topic.internal, config=topic.config or {})
            for topic in given.topics
        ),
        partitions=columns(
            topic=[code for code, _ in rows],
            partition=[row.partition for row in partitions],
            leader=[row.leader for row in partitions],
            replicas=[row.replicas for row in partitions],
            isr=[row.isr for row in partitions],
            adding_replicas=[row.adding_replicas or () for row in partitions],
            removing_replicas=[row.removing_replicas or () for row in partitions],
            offline_replicas=[row.offline_replicas or () for row in partitions],
            size_bytes=[UNKNOWN_SIZE if row.size_bytes is None else row.size_bytes for row in partitions],
        ),
    )


def _broker(broker: Broker) -> BrokerDocument:
    document: BrokerDocument = {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "rack": broker.rack,
        "fenced": broker.fenced,
    }
    if broker.cordoned:
        document["cordoned"] = True
    if broker.failed_log_dirs:
        document["failed_log_dirs"] = list(broker.failed_log_dirs)
    if broker.usable_bytes is not None:
        document["usable_bytes"] = broker.usable_bytes
    return document


def _rack(name: str | None) -> RackId | None:
    return None if name is None else RackId(name)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSnapshot(
            f"taken_at: is {shown(text)}, not a time such as 2026-11-21T02:00:00Z; fix it in the file"
        ) from None


def write(snapshot: ClusterSnapshot) -> str:
    """The canonical text: keys in a fixed order, one line per partition."""
    head = {
        "version": VERSION,
        "cluster_id": snapshot.cluster_id,
        "taken_at": None if snapshot.taken_at is None else utc_text(snapshot.taken_at),
        "controllers": [
            {"id": item.id, "rack": item.rack, "voter": item.voter, "alive": item.alive, "active": item.active}
            for item in snapshot.controllers
        ],
        "partial": list(snapshot.partial),
    }
    brokers = list(map(_broker, snapshot.brokers))
    opening = ",\n ".join(f"{_text(key)}: {_text(value)}" for key, value in head.items())
    return (
        f"{{{opening},\n"
        f' "brokers": [\n  {_lines(map(_text, brokers), 2)}],\n'
        f' "topics": [{",".join(_topics(snapshot))}]}}\n'
    )


def partition_document(row: Partition) -> PartitionDocument:
    """One partition as in the JSON."""
    document: PartitionDocument = {
        "partition": row.partition,
        "leader": row.leader,
        "replicas": list(row.replicas),
        "isr": list(row.isr),
        "adding_replicas": list(row.adding_replicas),
        "removing_replicas": list(row.removing_replicas),
        "size_bytes": row.size_bytes,
    }
    if row.offline_replicas:
        document["offline_replicas"] = list(row.offline_replicas)
    return document


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
