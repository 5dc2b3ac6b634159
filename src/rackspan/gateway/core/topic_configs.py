"""min.insync.racks in the requests of admin clients: taken out before the broker sees them, put into what it describes.

Kafka has no such config. It refuses it for topics, and accepts it for brokers like any unknown name: there it guards nothing
(`upstream/broker_configs.py`). Everything else of a request reaches the broker, on the client's own connection: whether the client may alter
a topic's configs is the cluster's decision.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from rackspan.acks.config import ConfigVerdict, SetAt, judge_broker_config, judge_topic_config
from rackspan.gateway.core.policies import Entry, Policies, Scope, ValueSource
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, Broker
from rackspan.text import count_noun
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

SET, DELETE = 0, 1

KAFKAS_OWN: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka creates them with partitions and configs of its coordinators, and brokers write them. Source: AutoTopicCreationManager.creatableTopic."""

DOCUMENTATION: Final = (
    "When a producer sets acks to all, the minimum number of distinct racks that must have in-sync replicas to acknowledge a "
    "produce request. Held by rackspan gateway: producers that reach the brokers by another way are not subject to it. "
    "1 requires nothing."
)
_INT: Final = 3
_SOURCES: Final[Mapping[ValueSource, int]] = {
    ValueSource.OVERRIDE: 4,
    ValueSource.TOPIC: 1,
    ValueSource.FILE_TOPIC: 4,
    ValueSource.BROKER: 2,
    ValueSource.CLUSTER: 3,
    ValueSource.FILE: 4,
    ValueSource.DEFAULT: 5,
}
"""Kafka's ConfigSource: what stands in the gateway's file is static."""


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One value to keep, or to remove (None), once the cluster has accepted the rest of the request."""

    scope: Scope
    name: str
    value: int | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """The response for a resource whose change is invalid."""

    code: int
    message: str


class NamedValue(Protocol):
    name: str
    value: str | None


C = TypeVar("C", bound=NamedValue)


def without(configs: Iterable[C]) -> tuple[list[C], list[C]]:
    """The configs for the broker, and those of min.insync.racks."""
    own = [config for config in configs if config.name == MIN_INSYNC_RACKS]
    return [config for config in configs if config.name != MIN_INSYNC_RACKS], own


def change_of(
    resource_type: int,
    name: str,
    operation: int,
    values: Sequence[str | None],
    brokers: Sequence[Broker],
    policies: Policies,
) -> ConfigChange | RefusedChange:
    """The change that a request makes to min.insync.racks of one resource. Source: Kafka's ConfigurationControlManager."""
    if len(values) != 1:
        return RefusedChange(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {MIN_INSYNC_RACKS}")
    (value,) = values
    scope = Scope.TOPIC if resource_type == ConfigResourceType.TOPIC else Scope.BROKER
    if operation == DELETE and (scope, name) not in policies.entries:
        return RefusedChange(ErrorCode.INVALID_CONFIG, _nothing_to_delete(scope, name, policies))
    if operation == DELETE and scope is Scope.TOPIC:
        return ConfigChange(scope, name, None)
    if operation not in (SET, DELETE):
        return RefusedChange(
            ErrorCode.INVALID_CONFIG, f"Can't append to or subtract from key {MIN_INSYNC_RACKS}: it is no list"
        )
    if operation == SET and scope is Scope.BROKER and name.isdecimal() and name != str(int(name)):
        # Kafka accepts it, and gives the value to nobody.
        return RefusedChange(ErrorCode.INVALID_REQUEST, f"broker {name}: write its id as {int(name)}")
    if value is None and operation == SET:
        return RefusedChange(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {MIN_INSYNC_RACKS}")
    verdicts = _verdicts(scope, name, None if operation == DELETE else value, brokers, policies)
    for verdict in verdicts:
        if verdict.error is not None:
            return RefusedChange(ErrorCode.INVALID_CONFIG, verdict.error or f"Invalid value {value}")
    warnings = tuple(dict.fromkeys(warning for verdict in verdicts for warning in verdict.warnings))
    return ConfigChange(scope, name, None if operation == DELETE else verdicts[0].value, warnings)


def _nothing_to_delete(scope: Scope, name: str, policies: Policies) -> str:
    place = f"{scope.value} {name or '(default)'}"
    if scope is Scope.BROKER:
        return (
            f"{place} has no {MIN_INSYNC_RACKS} at the gateway that could be deleted; one that was set at Kafka itself is deleted there, by "
            "kafka-configs.sh with the address of a broker"
        )
    value, source = policies.topic_value(name, None)
    kept = (
        ""
        if value == 1
        else f"; {value} is the value of another place, {source.value}: change it there, or set another value here"
    )
    return f"{place} has no {MIN_INSYNC_RACKS} of its own that could be deleted{kept}"


def refused_above(change: ConfigChange, known_racks: int, config_racks: int) -> ConfigChange | RefusedChange:
    """A change to a value that nothing enforces, that the cluster cannot meet, or that could be lost before the records it guards, is refused."""
    value = change.value
    if value is None or value == 1:
        return change
    if change.scope is Scope.TOPIC and change.name in KAFKAS_OWN:
        return RefusedChange(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_RACKS} {value}: brokers write {change.name} themselves and no gateway sees that, so that no value is enforced "
            "there; set min.insync.replicas",
        )
    if value > known_racks:
        return RefusedChange(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_RACKS} {value}: the cluster has {count_noun(known_racks, 'rack')}, so that no produce could be acknowledged; "
            "set a lower value, or add racks first",
        )
    if value > config_racks:
        return RefusedChange(
            ErrorCode.INVALID_CONFIG,
            f"{MIN_INSYNC_RACKS} {value}: the gateway's config topic has replicas in {count_noun(config_racks, 'rack')}, so that the value "
            "could be lost with them; reassign that topic to more racks first",
        )
    return change


def _verdicts(
    scope: Scope, name: str, value: str | None, brokers: Sequence[Broker], policies: Policies
) -> list[ConfigVerdict]:
    """The value's own verdict, then whether each broker may run by the value that applies to it afterwards; None removes it.

    A broker's own value precedes the default, as in the embedded cluster's controller.
    """
    verdicts = [] if value is None else [judge_topic_config(value, brokers)]
    if scope is Scope.TOPIC or any(verdict.error for verdict in verdicts):
        return verdicts
    entry = None if value is None else Entry(verdicts[0].value or 1)
    concerned = [broker for broker in brokers if name in ("", str(broker.id))]
    applies = {broker.id: policies.broker_value_after(int(broker.id), name, entry) for broker in concerned}
    judged = [
        judge_broker_config(str(applies[broker.id]), SetAt.BROKER_DYNAMIC, broker.rack, brokers) for broker in concerned
    ]
    return [*verdicts, *judged]


def describe(
    result: DescribeConfigsResult,
    keys: Sequence[str] | None,
    policies: Policies,
    *,
    synonyms: bool,
    documentation: bool,
) -> None:
    """Add min.insync.racks to what a broker described of a topic or broker."""
    if result.error_code != 0 or result.resource_type not in (ConfigResourceType.TOPIC, ConfigResourceType.BROKER):
        return
    if keys and MIN_INSYNC_RACKS not in keys:
        return
    if result.resource_type == ConfigResourceType.BROKER and result.resource_name == "":
        entry = policies.entries.get((Scope.BROKER, ""))
        if entry is None:
            return
    chain = _chain(result.resource_type, result.resource_name, policies)
    value, source = chain[0]
    described = DescribeConfigsResourceResult(
        name=MIN_INSYNC_RACKS,
        value=str(value),
        read_only=False,
        config_source=_SOURCES[source],
        is_sensitive=False,
        synonyms=[
            DescribeConfigsSynonym(name=MIN_INSYNC_RACKS, value=str(link), source=_SOURCES[origin])
            for link, origin in chain
        ]
        if synonyms
        else [],
        config_type=_INT,
        documentation=DOCUMENTATION if documentation else None,
    )
    result.configs = [*(config for config in result.configs if config.name != MIN_INSYNC_RACKS), described]


def _chain(resource_type: int, name: str, policies: Policies) -> list[tuple[int, ValueSource]]:
    """The values in order of precedence, the default last."""
    chain: list[tuple[int, ValueSource]] = []

    def add(value: int | None, source: ValueSource) -> None:
        if value is not None:
            chain.append((value, source))

    def stored(scope: Scope, key: str) -> int | None:
        entry = policies.entries.get((scope, key))
        return None if entry is None else entry.value

    if resource_type == ConfigResourceType.TOPIC:
        own = policies.topic_entry(name)
        add(None if own is None else own.value, ValueSource.TOPIC)
        add(policies.file_topic(name), ValueSource.FILE_TOPIC)
    elif name:
        add(stored(Scope.BROKER, name), ValueSource.BROKER)
    add(stored(Scope.BROKER, ""), ValueSource.CLUSTER)
    add(policies.file_default if policies.file_default > 1 else None, ValueSource.FILE)
    add(1, ValueSource.DEFAULT)
    override = policies.override
    if override is not None and chain[0][0] > override:
        chain.insert(0, (override, ValueSource.OVERRIDE))
    return chain
