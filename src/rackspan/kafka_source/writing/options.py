"""Options of the sink, by the names that Spark's own Kafka connector has, and checked before anything is written.

`kafka.` begins a property of the Kafka client in the Java producer's words; sender.py passes them to librdkafka.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from rackspan.client.identity import BROKER_IDENTITY, IdentityMode
from rackspan.errors import UsageError
from rackspan.kafka_source.option_values import choice, count, positive
from rackspan.kafka_source.options import (
    OPTIONS,
    ClientOptions,
    client_properties,
    refuse_unknown,
    refuse_unknown_properties,
    without_effect,
)

SINK_OPTIONS: Final = (
    *("topic", "min.insync.racks", "underMinRacks", BROKER_IDENTITY),
    *("commandConfig", "progressTimeoutMs"),
)
_OF_SPARK: Final = ("checkpointLocation",)
"""Spark gives the sink of a stream the query's own options too."""

FAIL: Final = "fail"
WAIT: Final = "wait"

_READ_ONLY: Final = {
    **{name.lower(): "only reads have it" for name in OPTIONS if name not in SINK_OPTIONS},
    "includeheaders": "only reads have it; a column 'headers' is written wherever there is one",
    "path": "save() and start() take no path here; the option topic names the topic",
}

_IDEMPOTENT: Final = "the sink's producer is idempotent, with acks=all"
_PRODUCER_REFUSED: Final[Mapping[str, str]] = {
    "key.serializer": "keys are strings or bytes; convert them with DataFrame functions",
    "value.serializer": "values are strings or bytes; convert them with DataFrame functions",
    "transactional.id": "Spark has no transaction over tasks; the sink writes at least once",
    "interceptor.classes": "Java classes are not loaded",
    "partitioner.class": "Java classes are not loaded; a column 'partition' chooses partitions",
    "retries": "use progressTimeoutMs; records are sent again until then",
    "delivery.timeout.ms": "use progressTimeoutMs, after which a task without acknowledgement fails",
}


def _size(librdkafka: str, divisor: int = 1) -> Callable[[str, str], Mapping[str, str | int]]:
    return lambda name, value: {librdkafka: max(1, count(name, value) // divisor)}


def _delay(name: str, value: str) -> Mapping[str, str | int]:
    return {"linger.ms": 0 if value.strip() == "0" else count(name, value)}


def _codec(name: str, value: str) -> Mapping[str, str | int]:
    return {"compression.type": choice({name.lower(): value}, name, ("none", "gzip", "snappy", "lz4", "zstd"))}


def _only(*allowed: str) -> Callable[[str, str], Mapping[str, str | int]]:
    def check(name: str, value: str) -> Mapping[str, str | int]:
        if value.lower() not in allowed:
            raise UsageError(f"option {name}: {value!r} is not possible; {_IDEMPOTENT}")
        return {}

    return check


_PRODUCER: Final[Mapping[str, Callable[[str, str], Mapping[str, str | int]]]] = {
    "acks": _only("all", "-1"),
    "enable.idempotence": _only("true"),
    "max.in.flight.requests.per.connection": _only("1", "2", "3", "4", "5"),
    "compression.type": _codec,
    "linger.ms": _delay,
    "batch.size": _size("batch.size"),
    "max.request.size": _size("message.max.bytes"),
    "buffer.memory": _size("queue.buffering.max.kbytes", 1024),
}
"""Java's producer properties, each with its check and its equivalent in librdkafka."""


@dataclass(frozen=True, slots=True)
class SinkOptions:
    client: ClientOptions
    """Its progress timeout also bounds waiting for acknowledgements and for racks."""
    producer: Mapping[str, str | int]
    """Settings of librdkafka, without those of the connection."""
    topic: str | None = None
    """For all rows; None where each row names its topic."""
    min_insync_racks: int = 1
    wait_for_racks: bool = False
    broker_identity: IdentityMode = IdentityMode.PROVED
    without_effect: tuple[str, ...] = ()
    """Options that were given and that a write ignores."""


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    """Errors: UsageError, one line that names the option."""
    values = {key.lower(): str(value) for key, value in options.items()}
    refuse_unknown(values, (*SINK_OPTIONS, *_OF_SPARK), _READ_ONLY)
    servers, properties, warnings = client_properties(values, _PRODUCER_REFUSED, _PRODUCER)
    producer: dict[str, str | int] = {}
    for name, translate in _PRODUCER.items():
        if name in properties:
            producer |= translate(f"kafka.{name}", properties.pop(name))
    ignored = without_effect(properties)
    refuse_unknown_properties(properties)
    racks = positive(values, "min.insync.racks") or 1
    if "underminracks" in values and racks == 1:
        raise UsageError(
            "option underMinRacks: it says what to do where racks are few; set min.insync.racks to 2 or more"
        )
    if BROKER_IDENTITY in values and racks == 1:
        raise UsageError(
            f"option {BROKER_IDENTITY}: no broker's log is read without min.insync.racks; set that to 2 or more"
        )
    timeout = positive(values, "progressTimeoutMs")
    if values.get("topic", "-").strip() == "":
        raise UsageError("option topic: no topic is named")
    client = ClientOptions(servers, properties, warnings)
    if timeout:
        client = replace(client, progress_timeout_seconds=timeout / 1000)
    return SinkOptions(
        client=client,
        producer=producer,
        topic=values["topic"].strip() if "topic" in values else None,
        min_insync_racks=racks,
        wait_for_racks=choice(values, "underMinRacks", (FAIL, WAIT)) == WAIT,
        broker_identity=IdentityMode(choice(values, BROKER_IDENTITY, tuple(known.value for known in IdentityMode))),
        without_effect=ignored,
    )
