"""Options of the source, by the names that Spark's own Kafka connector has, and checked before anything is read.

`kafka.` begins a property of the Kafka client, as in Spark; `commandConfig` names a file of such properties, as
`--command-config` does. The rack of an executor has options of its own (executor_rack.py). An option that the source does not
have is an error. Those that jobs share and that mean nothing to a read are named in one warning, so that none is without effect silently.

Source: Spark's "Structured Streaming + Kafka Integration Guide".
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeAlias

from rackspan.client.brokers import addresses, protocol_warnings
from rackspan.client.config.keys import KEYS, WITHOUT_EFFECT, KeyUse, verdict_on
from rackspan.client.config.properties_file import load_properties
from rackspan.client.config.providers import resolved
from rackspan.client.config.translation import protocol_of, warnings_about
from rackspan.errors import UsageError
from rackspan.kafka_source.executor_rack import DEFAULT_VARIABLE, RackSources
from rackspan.kafka_source.option_values import (
    boolean,
    choice,
    costs,
    count,
    duration_seconds,
    flag,
    json_object,
    positive,
    string_map,
)
from rackspan.model.ids import TopicPartition
from rackspan.text import closest

OffsetByPartition: TypeAlias = Mapping[TopicPartition, int]

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
"""In offset JSON, as in Spark."""

READ_COMMITTED: Final = "read_committed"
READ_UNCOMMITTED: Final = "read_uncommitted"

CLIENT_PREFIX: Final = "kafka."
_BOOTSTRAP: Final = "bootstrap.servers"
_PROTOCOL: Final = "security.protocol"


class TopicChoice(StrEnum):
    """How topics are chosen."""

    SUBSCRIBE = "subscribe"
    SUBSCRIBE_PATTERN = "subscribePattern"
    ASSIGN = "assign"


@dataclass(frozen=True, slots=True)
class Position:
    """Where a range starts or ends: exactly one field is set."""

    name: str | None = None
    """earliest or latest."""
    offsets: OffsetByPartition | None = None
    timestamp_ms: int | None = None
    """For all partitions."""
    timestamps_ms: OffsetByPartition | None = None


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """How the client reads. Sizes in bytes."""

    bootstrap_servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    """The properties of the connection, of security above all."""
    warnings: tuple[str, ...] = ()
    """Sentences about what is ignored in commandConfig, and servers whose address names another protocol."""
    read_committed: bool = False
    check_crcs: bool = True
    partition_fetch_bytes: int = 8 << 20
    """Larger than the Java client's 1 MiB: a task reads one partition at a time."""
    fetch_wait_ms: int = 500
    progress_timeout_seconds: float = 120.0
    """A task fails that long after its last record: brokers are down, or a range that they announced is gone."""


@dataclass(frozen=True, slots=True)
class KafkaSourceOptions:
    strategy: TopicChoice
    topics: str
    """Names with commas between, a pattern, or Spark's JSON of partitions: as `strategy` has it."""
    client: ClientOptions
    rack: RackSources
    start: Position
    end: Position
    """Batch only."""
    start_without_timestamp_is_latest: bool = False
    """Where no record is as young as the starting timestamp: start at the end instead of failing."""
    fail_on_data_loss: bool = True
    include_headers: bool = False
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_offsets_per_trigger: int | None = None
    max_bytes_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_seconds: float = 900.0
    """After this time a batch is planned with fewer offsets than the minimum."""
    commit_offsets_to_group: str | None = None
    """The group to which a stream commits the offsets that it has read, for monitors of lag."""
    push_filters: bool = False
    metrics_path: str | None = None
    rack_costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """The cost of reading in one rack from another, if the own rack has no replica."""
    without_effect: tuple[str, ...] = ()
    """Options that were given and that this read ignores."""


_STRATEGIES: Final = tuple(strategy.value for strategy in TopicChoice)
_STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
"""In the order in which Spark prefers them."""

_BATCH_ONLY: Final = (*_ENDS, "filterPushdown")
_STREAM_ONLY: Final = (
    *("maxOffsetsPerTrigger", "maxBytesPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay"),
    "commitOffsetsToGroup",
)
_RACKS: Final = (
    "rack.env",
    "rack.file",
    "rack.map",
    "rack.script",
    "rack.metadata",
    "rack.metadata.host",
    "rack.costs",
)
_OTHERS: Final = (
    *("startingOffsetsByTimestampStrategy", "failOnDataLoss", "includeHeaders", "minPartitions"),
    *("maxRecordsPerPartition", "commandConfig", "metricsPath", "progressTimeoutMs"),
)
OPTIONS: Final = (*_STRATEGIES, *_STARTS, *_OTHERS, *_BATCH_ONLY, *_STREAM_ONLY, *_RACKS)

_SPARK_ONLY: Final[Mapping[str, str]] = {
    "kafkaconsumer.polltimeoutms": "use progressTimeoutMs, after which a task without progress fails",
    "fetchoffset.numretries": "use progressTimeoutMs; offsets are requested again until then",
    "fetchoffset.retryintervalms": "use progressTimeoutMs; offsets are requested again until then",
    "groupidprefix": "this source joins no consumer group",
    "rackspan.include.headers": "use includeHeaders",
}
"""Options of Spark's connector that mean nothing here, in lower case, with what to do instead."""

_CLIENT_REFUSED: Final[Mapping[str, str]] = {
    "group.id": "this source joins no consumer group; a stream commits its offsets to one for monitors with commitOffsetsToGroup",
    "auto.offset.reset": "use startingOffsets",
    "key.deserializer": "keys are bytes; convert them with DataFrame functions",
    "value.deserializer": "values are bytes; convert them with DataFrame functions",
    "enable.auto.commit": "Spark's checkpoint holds the offsets; commitOffsetsToGroup commits them too, for monitors",
    "interceptor.classes": "Java classes are not loaded",
    "partition.assignment.strategy": "this source joins no consumer group",
}

_CLIENT_IGNORED: Final = frozenset(
    (
        *("allow.auto.create.topics", "auto.commit.interval.ms", "client.dns.lookup", "default.api.timeout.ms"),
        *(
            "exclude.internal.topics",
            "fetch.max.bytes",
            "fetch.min.bytes",
            "heartbeat.interval.ms",
            "max.poll.interval.ms",
        ),
        *("max.poll.records", "metadata.max.age.ms", "receive.buffer.bytes", "reconnect.backoff.max.ms"),
        *(
            "reconnect.backoff.ms",
            "retry.backoff.max.ms",
            "retry.backoff.ms",
            "send.buffer.bytes",
            "session.timeout.ms",
        ),
    )
)
"""Properties by which a Java consumer is tuned, and that this source has nothing for."""

_CLIENT_OWN: Final = _CLIENT_IGNORED | {
    *("client.rack", "isolation.level", "check.crcs", "max.partition.fetch.bytes", "fetch.max.wait.ms")
}
"""Properties of a Java consumer that this source reads, and those that it ignores by name."""


def parse(options: Mapping[str, str], *, streaming: bool) -> KafkaSourceOptions:
    """Errors: UsageError, one line that names the option."""
    values = {key.lower(): str(value) for key, value in options.items()}
    refuse_unknown(values, OPTIONS, _SPARK_ONLY)
    for name in _BATCH_ONLY:
        if streaming and name.lower() in values:
            raise UsageError(f"option {name}: only batch reads have it")
    strategy = _strategy(values)
    topics = values[strategy.value.lower()]
    client, ignored, rack = _client(values)
    least, most = positive(values, "minOffsetsPerTrigger"), positive(values, "maxOffsetsPerTrigger")
    if least and most and least > most:
        raise UsageError(f"option minOffsetsPerTrigger: {least} is above maxOffsetsPerTrigger, which is {most}")
    return KafkaSourceOptions(
        strategy=strategy,
        topics=_checked_topics(strategy, topics),
        client=client,
        rack=_rack(values, rack),
        start=_position(values, _STARTS, LATEST if streaming else EARLIEST, refused=None if streaming else LATEST),
        end=_position(values, _ENDS, LATEST, refused=EARLIEST),
        start_without_timestamp_is_latest=choice(values, "startingOffsetsByTimestampStrategy", ("error", LATEST))
        == LATEST,
        fail_on_data_loss=flag(values, "failOnDataLoss", default=True),
        include_headers=flag(values, "includeHeaders", default=False),
        min_partitions=positive(values, "minPartitions"),
        max_records_per_partition=positive(values, "maxRecordsPerPartition"),
        max_offsets_per_trigger=most,
        max_bytes_per_trigger=positive(values, "maxBytesPerTrigger"),
        min_offsets_per_trigger=least,
        max_trigger_delay_seconds=duration_seconds(values, "maxTriggerDelay", "15m"),
        commit_offsets_to_group=_group(values),
        push_filters=flag(values, "filterPushdown", default=False),
        metrics_path=values.get("metricspath"),
        rack_costs=costs("rack.costs", values["rack.costs"]) if "rack.costs" in values else {},
        without_effect=(
            *(name for name in _STREAM_ONLY if not streaming and name.lower() in values),
            *ignored,
        ),
    )


def _group(values: Mapping[str, str]) -> str | None:
    group = values.get("commitoffsetstogroup")
    if group is not None and not group.strip():
        raise UsageError("option commitOffsetsToGroup: the group has no name")
    return group


def without_effect_line(names: Iterable[str]) -> str:
    return f"options without effect here: {', '.join(names)}"


def refuse_unknown(values: Mapping[str, str], names: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Errors: UsageError for an option that is not one of `names`. `elsewhere` says what to do instead of some, in lower case."""
    known = {name.lower(): name for name in names}
    for key in values:
        if key in known or key.startswith(CLIENT_PREFIX):
            continue
        if key in elsewhere:
            raise UsageError(f"option {key}: {elsewhere[key]}")
        near = difflib.get_close_matches(key, known, n=1)
        raise UsageError(
            f"option {key}: rackspan-kafka has no such option"
            + (f"; did you mean {known[near[0]]}?" if near else "; the documentation lists all of them")
        )


def _strategy(values: Mapping[str, str]) -> TopicChoice:
    given = [strategy for strategy in TopicChoice if strategy.value.lower() in values]
    if len(given) != 1:
        named = f"{' and '.join(given)} are given" if given else "none is given"
        raise UsageError(f"one of the options {', '.join(_STRATEGIES)} chooses the topics; {named}")
    return given[0]


def _checked_topics(strategy: TopicChoice, value: str) -> str:
    if strategy is TopicChoice.ASSIGN:
        parse_assign(value)
    elif strategy is TopicChoice.SUBSCRIBE_PATTERN:
        try:
            re.compile(value)
        except re.error as error:
            raise UsageError(f"option subscribePattern: {value!r} is not a regular expression: {error}") from None
    elif not any(name.strip() for name in value.split(",")):
        raise UsageError("option subscribe: no topic is named")
    return value


def client_properties(
    values: Mapping[str, str], refused: Mapping[str, str], own: Iterable[str]
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The bootstrap servers, all other properties of commandConfig and kafka.*, of which the latter come first, and warnings.

    Variables of config providers are resolved. What other clients and tools have in commandConfig is left out; the source or
    sink reads `own` itself. Errors: UsageError, also for the options that are `refused`, with the reason given there.
    """
    given = {key.removeprefix(CLIENT_PREFIX): value for key, value in values.items() if key.startswith(CLIENT_PREFIX)}
    for key, why in refused.items():
        if key in given:
            raise UsageError(f"option kafka.{key}: {why}")
    in_file = load_properties(Path(values["commandconfig"])) if "commandconfig" in values else ()
    properties = resolved({found.key: found.value for found in in_file} | given)
    servers = properties.pop(_BOOTSTRAP, "")
    option = f"option {CLIENT_PREFIX}{_BOOTSTRAP}"
    if not servers:
        raise UsageError(f"{option}: name the cluster's brokers as HOST:PORT, commas between")
    from_file = {name: value for name, value in properties.items() if name not in {*given, *own} - {_PROTOCOL}}
    warnings = (
        *(f"commandConfig: {line}" for line in warnings_about(from_file)),
        *protocol_warnings(option, servers, protocol_of(properties)),
    )
    for name in from_file:
        if verdict_on(name).is_foreign:
            properties.pop(name)
    # librdkafka leaves out servers whose protocol is another than its own.
    plain = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses(option, servers))
    return ",".join(plain), properties, warnings


def without_effect(properties: dict[str, str], names: Iterable[str] = ()) -> tuple[str, ...]:
    """The options of a client that have no effect here, taken out of `properties`: those of every connection, and `names`."""
    ignored = sorted({*names, *WITHOUT_EFFECT} & properties.keys())
    for name in ignored:
        properties.pop(name)
    return tuple(f"{CLIENT_PREFIX}{name}" for name in ignored)


def refuse_unknown_properties(properties: Mapping[str, str]) -> None:
    """Errors: UsageError for a property of neither the source, or the sink, nor a connection."""
    for name in properties:
        if name in KEYS:
            continue
        verdict = verdict_on(name)
        if verdict.use is KeyUse.REFUSED and verdict.meant is None:
            raise UsageError(f"option {CLIENT_PREFIX}{name}: {verdict.reason}")
        near = verdict.meant or closest(name, KEYS)
        raise UsageError(
            f"option {CLIENT_PREFIX}{name}: rackspan-kafka has no such property of a client; "
            + (f"did you mean {CLIENT_PREFIX}{near}?" if near else "leave it out")
        )


def _client(values: Mapping[str, str]) -> tuple[ClientOptions, tuple[str, ...], str | None]:
    """And the properties that are ignored, and the rack of all executors."""
    servers, properties, warnings = client_properties(values, _CLIENT_REFUSED, _CLIENT_OWN)
    ignored = without_effect(properties, _CLIENT_IGNORED)
    rack = properties.pop("client.rack", None)
    isolation = properties.pop("isolation.level", READ_UNCOMMITTED)
    if isolation not in (READ_COMMITTED, READ_UNCOMMITTED):
        raise UsageError(
            f"option kafka.isolation.level: {isolation!r} is neither {READ_COMMITTED} nor {READ_UNCOMMITTED}"
        )
    default = ClientOptions(servers)
    timeout = positive(values, "progressTimeoutMs")
    client = ClientOptions(
        bootstrap_servers=servers,
        read_committed=isolation == READ_COMMITTED,
        check_crcs=boolean("kafka.check.crcs", properties.pop("check.crcs", "true")),
        partition_fetch_bytes=count(
            "kafka.max.partition.fetch.bytes",
            properties.pop("max.partition.fetch.bytes", str(default.partition_fetch_bytes)),
        ),
        fetch_wait_ms=count("kafka.fetch.max.wait.ms", properties.pop("fetch.max.wait.ms", str(default.fetch_wait_ms))),
        progress_timeout_seconds=timeout / 1000 if timeout else default.progress_timeout_seconds,
        properties=properties,
        warnings=warnings,
    )
    refuse_unknown_properties(client.properties)
    return client, ignored, rack


def _rack(values: Mapping[str, str], fixed: str | None) -> RackSources:
    return RackSources(
        fixed=fixed,
        environment=values.get("rack.env", DEFAULT_VARIABLE),
        file=values.get("rack.file"),
        by_host=string_map("rack.map", values["rack.map"]) if "rack.map" in values else None,
        script=values.get("rack.script"),
        metadata=choice(values, "rack.metadata", ("aws", "gcp", "azure")) if "rack.metadata" in values else None,
        metadata_host=values.get("rack.metadata.host"),
    )


def _position(values: Mapping[str, str], names: tuple[str, ...], default: str, refused: str | None) -> Position:
    by_time, by_partition_time, by_offset = names
    if by_time.lower() in values:
        return Position(timestamp_ms=count(by_time, values[by_time.lower()]))
    if by_partition_time.lower() in values:
        return Position(timestamps_ms=parse_offsets(by_partition_time, values[by_partition_time.lower()]))
    given = values.get(by_offset.lower(), default).strip()
    if given.lower() in (EARLIEST, LATEST):
        if given.lower() == refused:
            raise UsageError(f"option {by_offset}: a batch read cannot have {given!r} here; it would be empty")
        return Position(name=given.lower())
    offsets = parse_offsets(by_offset, given)
    forbidden = {LATEST: LATEST_OFFSET, EARLIEST: EARLIEST_OFFSET}.get(refused or "")
    for partition, offset in offsets.items():
        if offset == forbidden or offset < EARLIEST_OFFSET:
            raise UsageError(f"option {by_offset}: {partition} has offset {offset}, which is not possible here")
    return Position(offsets=offsets)


def parse_offsets(name: str, text: str) -> dict[TopicPartition, int]:
    """Spark's JSON, {"topic": {"0": 23, "1": -2}}; values are offsets or timestamps in ms."""
    example = '{"orders": {"0": 23, "1": -2}}'
    document = json_object(name, text, f"earliest, latest or JSON such as {example}")
    try:
        return {
            TopicPartition(topic, _partition(number)): _integer(value)
            for topic, values in document.items()
            for number, value in values.items()
        }
    except (AttributeError, ValueError):
        raise UsageError(f"option {name}: {text!r} is not of the form {example}") from None


def parse_assign(text: str) -> list[TopicPartition]:
    """Spark's JSON, {"topic": [0, 1]}."""
    example = '{"orders": [0, 1]}'
    document = json_object("assign", text, f"JSON such as {example}")
    try:
        partitions = [TopicPartition(topic, _partition(n)) for topic, numbers in document.items() for n in numbers]
    except (TypeError, ValueError):
        raise UsageError(f"option assign: {text!r} is not of the form {example}") from None
    if not partitions:
        raise UsageError("option assign: no partition is named")
    return sorted(set(partitions))


def _partition(value: object) -> int:
    number = int(str(value))
    if number < 0:
        raise ValueError
    return number


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    return int(value)
