"""`rackspan gateway check`: whether a gateway with this config will work before this cluster, without starting one.

It changes nothing: the config topic is read, not created.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rackspan.client.errors import message_of
from rackspan.client.observations import DIVERGING_EPOCH_SINCE
from rackspan.errors import RackspanError, UsageError
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode, GuardSettings
from rackspan.gateway.core.apis import OFFERED
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.value_warnings import rack_warnings
from rackspan.gateway.net.channel import connected
from rackspan.gateway.net.open_files import raise_limit, too_few
from rackspan.gateway.upstream.broker_configs import broker_config
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseTopic

_NEEDED: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CONFIGS)
_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 10.0
_MOST_NAMED: Final = 5


class CheckLevel(Enum):
    """How much a result matters."""

    OK = "ok"
    WARNING = "warning"
    """The gateway works, and something is not as it should be."""
    FAILURE = "failure"
    """The gateway will not work."""


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one check."""

    check: str
    level: CheckLevel
    reason: str


async def check_cluster(config: GatewayConfig) -> list[Result]:
    """Every check, in order; later ones are left out if they need an earlier one that failed."""
    try:
        backend = Backend(config)
    except RackspanError as error:
        return [Result("config", CheckLevel.FAILURE, str(error))]
    try:
        await backend.connect()
    except (OSError, RackspanError) as error:
        return [Result("cluster", CheckLevel.FAILURE, str(error))]
    try:
        results = [
            Result(
                "cluster",
                CheckLevel.OK,
                f"{count_noun(len(backend.cluster.by_id), 'broker')} of cluster {backend.cluster.cluster_id}",
            )
        ]
        results += [Result("release", CheckLevel.WARNING, warning) for warning in backend.release_warnings]
        results += [Result("connection", CheckLevel.WARNING, warning) for warning in backend.connection_warnings()]
        results += [Result("secrets", CheckLevel.WARNING, warning) for warning in config.exposed_secrets()]
        results += [_open_files(config, backend), *_listeners(config, backend)]
        async for result in _brokers(backend):
            results.append(result)
        results += [*_racks(config, backend), *_placer(backend)]
        results += [result async for result in _broker_configs(config, backend)]
        results += [result async for result in _values(config, backend)]
        results += [result async for result in _replicas_logs(config, backend)]
        results += [result async for result in _metadata_log(config, backend)]
        return [*results, *_security(config, backend)]
    finally:
        backend.close()


def _open_files(config: GatewayConfig, backend: Backend) -> Result:
    files = raise_limit()
    reason = too_few(files, config.max_connections, len(backend.cluster.by_id))
    if reason is not None:
        return Result("open files", CheckLevel.WARNING, reason)
    return Result("open files", CheckLevel.OK, f"{files} suffice for {count_noun(config.max_connections, 'client')}")


def _listeners(config: GatewayConfig, backend: Backend) -> Iterator[Result]:
    for broker in sorted(backend.cluster.by_id):
        try:
            listener = config.listener(broker)
            with socket.socket(socket.AF_INET6 if ":" in listener.host else socket.AF_INET) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((listener.host, listener.port))
        except UsageError as error:
            yield Result(f"listener of broker {broker}", CheckLevel.FAILURE, str(error))
        except OSError as error:
            place = f"{listener.host}:{listener.port}"
            yield Result(
                f"listener of broker {broker}", CheckLevel.FAILURE, f"{place}: {error.strerror}; choose another port"
            )
        else:
            port = listener.port or "any free port"
            advertised = f"{listener.advertised_host}:{listener.advertised_port or port}"
            yield Result(
                f"listener of broker {broker}", CheckLevel.OK, f"{listener.host}:{port}, advertised as {advertised}"
            )


async def _brokers(backend: Backend) -> AsyncIterator[Result]:
    for broker_id, broker in sorted(backend.cluster.by_id.items()):
        check = f"broker {broker_id}"
        try:
            connection = await backend.cluster.connection(broker_id)
        except (OSError, RackspanError) as error:
            yield Result(check, CheckLevel.FAILURE, f"{broker.host}:{broker.port}: {type(error).__name__}: {error}")
            continue
        lacking = [key.name for key in _NEEDED if not _is_shared(key, connection.offered(key))]
        if lacking:
            yield Result(check, CheckLevel.FAILURE, f"no version of {', '.join(lacking)} that the gateway has too")
            continue
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                (
                    await connected(
                        (broker.host, broker.port), backend.tls.upstream, broker.host if backend.tls.upstream else None
                    )
                ).close()
        except OSError as error:
            yield Result(check, CheckLevel.FAILURE, f"clients' connections: {type(error).__name__}: {error}")
            continue
        yield Result(check, CheckLevel.OK, f"{broker.host}:{broker.port}, rack {broker.rack or '(none)'}")


def _is_shared(key: ApiKey, offered: tuple[int, int] | None) -> bool:
    known = OFFERED[key]
    return offered is not None and max(offered[0], known.start) <= min(offered[1], known.stop - 1)


def _racks(config: GatewayConfig, backend: Backend) -> Iterator[Result]:
    if not config.reads_racks:
        return
    brokers = backend.cluster.brokers()
    warnings = list(rack_warnings(brokers))
    racks = {broker.rack for broker in brokers if broker.rack is not None}
    yield from (Result("racks", CheckLevel.WARNING, warning) for warning in warnings)
    if warnings:
        return
    if len(racks) < 2:
        yield Result(
            "racks",
            CheckLevel.WARNING,
            f"every broker is in rack {next(iter(racks), '')!r}; min.insync.racks above 1 refuses everything",
        )
    else:
        yield Result("racks", CheckLevel.OK, f"{len(racks)} racks: {', '.join(sorted(racks))}")


def _placer(backend: Backend) -> Iterator[Result]:
    if backend.placer is None:
        return
    try:
        backend.placer.open()
    except RackspanError as error:
        yield Result("placer", CheckLevel.FAILURE, str(error))
    else:
        yield Result("placer", CheckLevel.OK, backend.placer.name)


_UNCLEAN: Final = "unclean.leader.election.enable"


async def _broker_configs(config: GatewayConfig, backend: Backend) -> AsyncIterator[Result]:
    """Settings that the guarantee rests on, and [readers]. It needs DESCRIBE_CONFIGS on the cluster."""
    unclean = await _broker_config(backend, min(backend.cluster.by_id), _UNCLEAN)
    if isinstance(unclean, Result):
        yield unclean
        return
    if unclean == "true":
        yield Result(
            _UNCLEAN, CheckLevel.WARNING, "true: an unclean election loses acknowledged records, whatever the racks"
        )
    else:
        yield Result(_UNCLEAN, CheckLevel.OK, "false")
    if not config.readers.is_on:
        return
    values = {
        broker: await _broker_config(backend, broker, REPLICA_SELECTOR) for broker in sorted(backend.cluster.by_id)
    }
    without = [str(broker) for broker, value in values.items() if value != RACK_AWARE_SELECTOR]
    if without:
        reason = f"brokers {', '.join(without)} have another than {RACK_AWARE_SELECTOR}: racks of [readers] have no effect there"
        yield Result(REPLICA_SELECTOR, CheckLevel.WARNING, f"{reason}; set it and restart them in turn")
    else:
        yield Result(REPLICA_SELECTOR, CheckLevel.OK, "rack-aware on every broker")


async def _broker_config(backend: Backend, broker: int, key: str) -> str | Result | None:
    """The value of one config of one broker; a result if it cannot be read."""
    try:
        found = await broker_config(backend.cluster, broker, key)
    except (OSError, RackspanError) as error:
        return Result("brokers' configs", CheckLevel.WARNING, f"not read: {error}")
    return None if found is None else found.value


async def _values(config: GatewayConfig, backend: Backend) -> AsyncIterator[Result]:
    """The config topic, and the values that are in force by it and by the file."""
    topic = None
    if config.mode is not AcknowledgementMode.OFF and config.config_topic is not None:
        result, is_readable = await _config_topic(config, backend, config.config_topic)
        yield result
        topic = backend.config_topic(config.config_topic) if is_readable else None
    try:
        if topic is not None:
            async with asyncio.timeout(_READ_SECONDS):
                await topic.read()
                await topic.ends.begin(LEASE_SECONDS)
            if GuardSettings(config.mode).refuses_before and not topic.ends.is_current():
                yield Result(result.check, CheckLevel.WARNING, topic.ends.warning())
    except TimeoutError:
        yield Result(result.check, CheckLevel.FAILURE, f"could not be read in {_READ_SECONDS:g} s; look at its leader")
    finally:
        if topic is not None:
            topic.close()
    await backend.unenforced.read()
    for warning in backend.warnings(topic):
        yield Result(MIN_INSYNC_RACKS, CheckLevel.WARNING, warning)
    for result in _gateways(backend, topic):
        yield result


def _gateways(backend: Backend, topic: ConfigTopic | None) -> Iterator[Result]:
    """The gateways that are registered. One that is silent shows if another one has registered for long enough after it."""
    differences = backend.differences(topic)
    for difference in differences:
        yield Result("gateways", CheckLevel.WARNING, difference.warning)
    if topic is not None and topic.gateways.gateways and not differences:
        names = sorted(topic.gateways.gateways)
        named = ", ".join(names[:_MOST_NAMED]) + (" and others" if len(names) > _MOST_NAMED else "")
        yield Result("gateways", CheckLevel.OK, f"{len(names)} registered: {named}")


async def _config_topic(config: GatewayConfig, backend: Backend, name: str) -> tuple[Result, bool]:
    """Whether the gateway can use the config topic, and whether it exists and can be read."""
    connection = await backend.cluster.any_connection()
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(name=name)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    (topic,) = (await connection.call(ApiKey.METADATA, request)).topics
    check = f"config topic {name}"
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        if config.create_config_topic:
            reason = "does not exist; the first gateway creates it, for which it needs CREATE"
            return Result(check, CheckLevel.OK, reason), False
        reason = "does not exist, and acknowledgements.config.topic.create is false"
    elif topic.error_code != ErrorCode.NONE:
        reason = f"error {topic.error_code}; grant the gateway READ, WRITE, DESCRIBE and CREATE on it"
    elif len(topic.partitions) != 1:
        reason = f"has {count_noun(len(topic.partitions), 'partition')}, and order matters; create it with one"
    elif missing := _missing_rights(topic):
        reason = f"the gateway lacks {', '.join(missing)} on it; grant them"
    else:
        return Result(check, CheckLevel.OK, f"leader {topic.partitions[0].leader_id}"), True
    return Result(check, CheckLevel.FAILURE, reason), False


def _missing_rights(topic: MetadataResponseTopic) -> list[str]:
    """None are missing if the broker does not report rights."""
    operations = topic.topic_authorized_operations
    if operations == _NOT_REPORTED:
        return []
    return [name for name, bit in _OPERATIONS.items() if not operations & 1 << bit]


async def _replicas_logs(config: GatewayConfig, backend: Backend) -> AsyncIterator[Result]:
    """Whether the gateway may read the logs of guarded topics, by which modes verified and strict count racks."""
    if not GuardSettings(config.mode).checks_after:
        return
    old = [str(broker) for broker in backend.cluster.by_id if await _lacks_diverging_epoch(backend, broker)]
    if old:
        yield Result(
            "replicas' logs",
            CheckLevel.FAILURE,
            f"brokers {', '.join(old)} offer no Fetch {DIVERGING_EPOCH_SINCE} (Kafka 2.7), by which mode {config.mode.value} counts racks",
        )
        return
    topics = sorted(topic for topic, policy in config.topics.items() if policy.min_insync_racks is not None)
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(name=topic) for topic in topics] if topics else None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    metadata = await (await backend.cluster.any_connection()).call(ApiKey.METADATA, request)
    refused = sorted(
        topic.name or ""
        for topic in metadata.topics
        if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        or (
            topic.error_code == 0
            and topic.topic_authorized_operations != _NOT_REPORTED
            and not topic.topic_authorized_operations & 1 << _OPERATIONS["READ"]
        )
    )
    if refused:
        yield Result(
            "replicas' logs",
            CheckLevel.FAILURE if topics else CheckLevel.WARNING,
            f"the gateway lacks READ on {', '.join(refused[:_MOST_NAMED])}{' and others' if len(refused) > _MOST_NAMED else ''}, "
            f"and acknowledges nothing there while {MIN_INSYNC_RACKS} is above 1; grant it to the principal of command.config",
        )
    else:
        yield Result("replicas' logs", CheckLevel.OK, "the gateway may read every topic it sees")


async def _lacks_diverging_epoch(backend: Backend, broker: int) -> bool:
    try:
        offered = (await backend.cluster.connection(broker)).offered(ApiKey.FETCH)
    except (OSError, RackspanError):
        return False
    return offered is None or offered[1] < DIVERGING_EPOCH_SINCE


async def _metadata_log(config: GatewayConfig, backend: Backend) -> AsyncIterator[Result]:
    if config.mode is not AcknowledgementMode.STRICT:
        return
    try:
        quorum = backend.quorum()
        try:
            image = await quorum.current()
        finally:
            quorum.close()
    except (OSError, RackspanError) as error:
        yield Result("metadata log", CheckLevel.FAILURE, message_of(error))
    else:
        yield Result("metadata log", CheckLevel.OK, f"read to offset {image.offset}, epoch {image.epoch}")


_OPERATIONS: Final = {"READ": 3, "WRITE": 4, "DESCRIBE": 8}
"""Kafka's AclOperation codes."""

_NOT_REPORTED: Final = -(2**31)


def _security(config: GatewayConfig, backend: Backend) -> Iterator[Result]:
    if config.tls is None and backend.tls.upstream is not None:
        yield Result(
            "TLS",
            CheckLevel.WARNING,
            "brokers require TLS and the gateway's listeners have none: clients' passwords pass in the clear; set listen.tls",
        )
    if config.tls is not None and config.tls.client_authorities is not None and not config.tls.principals:
        yield Result(
            "client certificates",
            CheckLevel.WARNING,
            "they are verified here and not shown to brokers: a client is anonymous there unless it logs in by SASL; "
            "map them in [principals]",
        )
