"""Converts readings to the rows of their landing tables, and rows back to a reading. Tests: tests/pipeline/landing/test_readings.py."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import numpy as np
import pyarrow as pa

from rackspan.clients import ReplicaSelectors
from rackspan.model import NO_BROKER, UNKNOWN_SIZE, ClusterSnapshot, RackId, TopicPartition
from rackspan.model.group import (
    GroupDescription,
    GroupKind,
    MemberDescription,
    StreamsMember,
    SubtopologyTasks,
    SubtopologyTopics,
)
from rackspan.model.partitions import Int64s, flattened
from rackspan.pipeline.schemas import OF_READINGS
from rackspan.pipeline.schemas.readings import LOGS, READINGS
from rackspan.traffic import ClusterLogs, ClusterReading, CountedBytes, CountedFlow, TrafficPath
from rackspan.traffic.logs import UNKNOWN_OFFSET

_KEYS: Final = 4
"""The columns of the snapshot's keys, which come first in each landing table."""


def reading_rows(reading: ClusterReading) -> dict[str, pa.Table]:
    """The rows of a reading by table, without the snapshot's keys."""
    committed = reading.logs.committed
    rows: dict[str, list[dict[str, Any]]] = {
        "readings": [
            {
                "period_seconds": reading.period_seconds,
                "partial": list(reading.partial),
                "selectors": [(broker, str(selector)) for broker, selector in sorted(reading.selectors.items())],
            }
        ],
        "group_descriptions": [_group_row(group) for group in reading.groups],
        "group_members": [_member_row(group, member) for group in reading.groups for member in group.members],
        "committed_offsets": [
            {"group_id": group, "topic": topic, "partition": partition, "committed_offset": offset}
            for group in sorted(committed)
            for (topic, partition), offset in sorted(committed[group].items())
        ],
        "gateway_counters": [
            {
                "gateway": gateway,
                "path": str(flow.path),
                "topic": flow.topic,
                "client_id": flow.client_id,
                "source_rack": flow.source_rack,
                "destination_rack": flow.destination_rack,
                "bytes": size_bytes,
            }
            for gateway in sorted(reading.counters)
            for flow, size_bytes in sorted(reading.counters[gateway].items())
        ],
        "broker_counters": [
            {"broker_id": broker, "topic": topic, "bytes_out": size_bytes}
            for broker in sorted(reading.bytes_out)
            for topic, size_bytes in sorted(reading.bytes_out[broker].items())
        ],
    }
    tables = {name: pa.Table.from_pylist(found, _own_schema(name)) for name, found in rows.items()}
    return {**tables, LOGS.name: _log_rows(reading.logs)}


def reading_of(snapshot: ClusterSnapshot, read_at: datetime, tables: Mapping[str, pa.Table]) -> ClusterReading:
    """The reading whose rows these are, of the snapshot that it was stored with."""
    (head,) = tables[READINGS.name].to_pylist()
    committed: dict[str, dict[TopicPartition, int]] = {}
    for row in tables["committed_offsets"].to_pylist():
        of_group = committed.setdefault(row["group_id"], {})
        of_group[TopicPartition(row["topic"], row["partition"])] = row["committed_offset"]
    counters: dict[str, dict[CountedFlow, int]] = {}
    for row in tables["gateway_counters"].to_pylist():
        flow = CountedFlow(
            TrafficPath(row["path"]), row["topic"], row["client_id"], row["source_rack"], row["destination_rack"]
        )
        counters.setdefault(row["gateway"], {})[flow] = row["bytes"]
    bytes_out: dict[int, dict[str, int]] = {}
    for row in tables["broker_counters"].to_pylist():
        bytes_out.setdefault(row["broker_id"], {})[row["topic"]] = row["bytes_out"]
    start, end, replica_bytes = _log_columns(snapshot, tables[LOGS.name])
    partial = tuple(head["partial"] or ())
    logs = ClusterLogs(snapshot, read_at, end, replica_bytes, committed, partial, start)
    selectors = {broker: ReplicaSelectors(selector) for broker, selector in head["selectors"] or ()}
    groups = _groups(tables["group_descriptions"].to_pylist(), tables["group_members"].to_pylist())
    by_gateway: dict[str, CountedBytes] = {**counters}
    return ClusterReading(logs, groups, selectors, by_gateway, head["period_seconds"], partial, bytes_out)


def _own_schema(name: str) -> pa.Schema:
    return pa.schema([(column.name, column.type) for column in OF_READINGS[name].columns[_KEYS:]])


def _log_rows(logs: ClusterLogs) -> pa.Table:
    rows = logs.snapshot.partitions
    names = pa.array([str(topic.name) for topic in logs.snapshot.topics], pa.string())
    held = rows.replicas != NO_BROKER
    values, offsets = flattened(rows.replicas)
    ends = pa.array(offsets.astype(np.int32))
    sizes = logs.replica_bytes[held]
    start = np.full(len(rows), UNKNOWN_OFFSET, np.int64) if logs.start_offset is None else logs.start_offset
    return pa.table(
        [
            names.take(pa.array(rows.topic)),
            pa.array(rows.partition),
            pa.array(start, mask=start == UNKNOWN_OFFSET),
            pa.array(logs.end_offset, mask=logs.end_offset == UNKNOWN_OFFSET),
            pa.ListArray.from_arrays(ends, pa.array(values)),
            pa.ListArray.from_arrays(ends, pa.array(sizes, mask=sizes == UNKNOWN_SIZE)),
        ],
        schema=_own_schema(LOGS.name),
    )


def _log_columns(snapshot: ClusterSnapshot, rows: pa.Table) -> tuple[Int64s, Int64s, Int64s]:
    """Earliest offsets, ends and sizes in the order of the snapshot's rows."""
    partitions = snapshot.partitions
    rows = rows.combine_chunks()
    code = {str(topic.name): number for number, topic in enumerate(snapshot.topics)}
    topics = rows.column("topic").combine_chunks().dictionary_encode()
    start = np.full(len(partitions), UNKNOWN_OFFSET, np.int64)
    end = start.copy()
    replica_bytes = np.full(partitions.replicas.shape, UNKNOWN_SIZE, np.int64)
    codes = np.array([code[name] for name in topics.dictionary.to_pylist()], np.int64)[topics.indices.to_numpy()]
    known = partitions.topic.astype(np.int64) << 32 | partitions.partition
    place = np.searchsorted(known, codes << 32 | rows.column("partition").to_numpy())
    start[place] = rows.column("start_offset").fill_null(UNKNOWN_OFFSET).to_numpy()
    end[place] = rows.column("end_offset").fill_null(UNKNOWN_OFFSET).to_numpy()
    # In the order of the snapshot's rows, of which each has as many sizes as replicas.
    ordered = rows.column("replica_bytes").combine_chunks().take(pa.array(np.argsort(place, kind="stable")))
    replica_bytes[partitions.replicas != NO_BROKER] = ordered.flatten().fill_null(UNKNOWN_SIZE).to_numpy()
    return start, end, replica_bytes


def _group_row(group: GroupDescription) -> dict[str, Any]:
    return {
        "group_id": group.group_id,
        "kind": str(group.kind),
        "state": group.state,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "error_message": group.error_message,
        "topology": [
            {"subtopology": name, "sources": list(topics.sources), "changelogs": list(topics.changelogs)}
            for name, topics in sorted(group.topology.items())
        ],
    }


def _member_row(group: GroupDescription, member: MemberDescription) -> dict[str, Any]:
    streams = member.streams
    return {
        "group_id": group.group_id,
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "rack": member.rack,
        "declares_rack": member.declares_rack,
        "topics": None if member.topics is None else sorted(member.topics),
        "assignment": [{"topic": topic, "partition": partition} for topic, partition in member.partitions],
        "process_id": None if streams is None else streams.process_id,
        "active_tasks": None if streams is None else _task_rows(streams.active),
        "standby_tasks": None if streams is None else _task_rows(streams.standby),
        "warmup_tasks": None if streams is None else _task_rows(streams.warmup),
    }


def _task_rows(tasks: SubtopologyTasks) -> list[dict[str, Any]]:
    return [{"subtopology": name, "partitions": list(partitions)} for name, partitions in sorted(tasks.items())]


def _groups(groups: Iterable[Mapping[str, Any]], members: Sequence[Mapping[str, Any]]) -> tuple[GroupDescription, ...]:
    of_group: dict[str, list[MemberDescription]] = {}
    for row in members:
        of_group.setdefault(row["group_id"], []).append(_member(row))
    found = (
        GroupDescription(
            row["group_id"],
            row["state"],
            row["protocol_type"],
            row["protocol"],
            tuple(of_group.get(row["group_id"], ())),
            row["error_message"],
            GroupKind(row["kind"]),
            {
                topics["subtopology"]: SubtopologyTopics(tuple(topics["sources"]), tuple(topics["changelogs"]))
                for topics in row["topology"] or ()
            },
        )
        for row in groups
    )
    return tuple(sorted(found, key=lambda group: group.group_id))


def _member(row: Mapping[str, Any]) -> MemberDescription:
    streams = None
    if row["process_id"] is not None:
        active, standby, warmup = (_tasks(row[name]) for name in ("active_tasks", "standby_tasks", "warmup_tasks"))
        streams = StreamsMember(row["process_id"], {}, active, standby, warmup)
    return MemberDescription(
        row["member_id"],
        row["client_id"],
        host=row["host"],
        rack=None if row["rack"] is None else RackId(row["rack"]),
        declares_rack=row["declares_rack"],
        topics=None if row["topics"] is None else frozenset(row["topics"]),
        partitions=tuple(TopicPartition(each["topic"], each["partition"]) for each in row["assignment"]),
        streams=streams,
    )


def _tasks(rows: Iterable[Mapping[str, Any]]) -> SubtopologyTasks:
    return {row["subtopology"]: tuple(row["partitions"]) for row in rows or ()}
