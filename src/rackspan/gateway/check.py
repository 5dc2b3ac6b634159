"""`rackspan gateway check`: whether a gateway with this config will work before this cluster, without starting one.

It changes nothing: the config topic is looked for, not created.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rackspan.errors import RackspanError, UsageError
from rackspan.gateway.app import Gateway, open_quorum
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.acknowledgement.rules import AcknowledgementMode
from rackspan.gateway.core.apis import OFFERED
from rackspan.gateway.core.topic_configs import BROKER
from rackspan.gateway.net.channel import connected
from rackspan.gateway.net.open_files import raise_limit, too_few
from rackspan.gateway.upstream.log_ends import DIVERGING_EPOCH_SINCE
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic

_NEEDED: Final = (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CONFIGS)
_CONNECT_SECONDS: Final = 5.0
_READ_SECONDS: Final = 10.0
_MOST_NAMED: Final = 5


class Level(Enum):
    """How much a result matters."""

    OK = "ok"
    WARNING = "warning"
    """The gateway works, and something is not as it should be."""
    FAILURE = "failure"
    """The gateway will not work."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was checked, and what was found."""

    check: str
    level: Level
    reason: str


async def check_cluster(config: GatewayConfig) -> list[Result]:
    """Every check, in order; later ones are left out where they need an earlier one that failed."""
    try:
        gateway = Gateway(config)
    except RackspanError as error:
        return [Result("config", Level.FAILURE, str(error))]
    try:
        await gateway.cluster.refresh()
    except (RackspanError, OSError) as error:
        return [Result("cluster", Level.FAILURE, str(error))]
    try:
        results = [
            Result(
                "cluster",
                Level.OK,
                f"{count_noun(len(gateway.cluster.nodes), 'broker')} of cluster {gateway.cluster.cluster_id}",
            )
        ]
        results += [_open_files(config, gateway), *_listeners(config, gateway)]
        async for result in _brokers(gateway):
            results.append(result)
        results += _racks(config, gateway)
        results += [result async for result in _broker_configs(gateway)]
        results += [result async for result in _config_topic(config, gateway)]
        results += [Result(MIN_INSYNC_RACKS, Level.WARNING, warning) for warning in gateway.warnings()]
        results += [result async for result in _replicas_logs(config, gateway)]
        results += [result async for result in _metadata_log(config, gateway)]
        return [*results, *_security(config, gateway)]
    finally:
        gateway.close()


def _open_files(config: GatewayConfig, gateway: Gateway) -> Result:
    files = raise_limit()
    reason = too_few(files, config.max_connections, len(gateway.cluster.nodes))
    if reason is not None:
        return Result("open files", Level.WARNING, reason)
    return Result("open files", Level.OK, f"{files} suffice for {count_noun(config.max_connections, 'client')}")


def _listeners(config: GatewayConfig, gateway: Gateway) -> Iterator[Result]:
    for node_id in sorted(gateway.cluster.nodes):
        try:
            listener = config.listener(node_id)
            with socket.socket(socket.AF_INET6 if ":" in listener.host else socket.AF_INET) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((listener.host, listener.port))
        except UsageError as error:
            yield Result(f"listener of broker {node_id}", Level.FAILURE, str(error))
        except OSError as error:
            place = f"{listener.host}:{listener.port}"
            yield Result(
                f"listener of broker {node_id}", Level.FAILURE, f"{place}: {error.strerror}; choose another port"
            )
        else:
            port = listener.port or "any free port"
            advertised = f"{listener.advertised_host}:{listener.advertised_port or port}"
            yield Result(
                f"listener of broker {node_id}", Level.OK, f"{listener.host}:{port}, advertised as {advertised}"
            )


async def _brokers(gateway: Gateway) -> AsyncIterator[Result]:
    for node in sorted(gateway.cluster, key=lambda one: one.node_id):
        check = f"broker {node.node_id}"
        try:
            connection = await gateway.cluster.connection(node.node_id)
        except (OSError, TimeoutError, RackspanError) as error:
            yield Result(check, Level.FAILURE, f"{node.host}:{node.port}: {type(error).__name__}: {error}")
            continue
        lacking = [key.name for key in _NEEDED if not _is_shared(key, connection.offered(key))]
        if lacking:
            yield Result(check, Level.FAILURE, f"no version of {', '.join(lacking)} that the gateway has too")
            continue
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                (
                    await connected(
                        (node.host, node.port), gateway.client_tls, node.host if gateway.client_tls else None
                    )
                ).close()
        except (OSError, TimeoutError) as error:
            yield Result(check, Level.FAILURE, f"clients' connections: {type(error).__name__}: {error}")
            continue
        yield Result(check, Level.OK, f"{node.host}:{node.port}, rack {node.rack or '(none)'}")


def _is_shared(key: ApiKey, offered: tuple[int, int] | None) -> bool:
    ours = OFFERED[key]
    return offered is not None and max(offered[0], ours.start) <= min(offered[1], ours.stop - 1)


def _racks(config: GatewayConfig, gateway: Gateway) -> Iterator[Result]:
    if config.mode is AcknowledgementMode.OFF:
        return
    brokers = gateway.cluster.brokers()
    rackless = [str(broker.id) for broker in brokers if broker.rack is None]
    racks = {broker.rack for broker in brokers if broker.rack is not None}
    if rackless:
        yield Result(
            "racks",
            Level.WARNING,
            f"brokers {', '.join(rackless)} have no rack and count as one unnamed rack; set broker.rack",
        )
    elif len(racks) < 2:
        yield Result(
            "racks",
            Level.WARNING,
            f"every broker is in rack {next(iter(racks), '')!r}; min.insync.racks above 1 refuses everything",
        )
    else:
        yield Result("racks", Level.OK, f"{len(racks)} racks: {', '.join(sorted(racks))}")


async def _broker_configs(gateway: Gateway) -> AsyncIterator[Result]:
    """A setting that the guarantee rests on. It needs DESCRIBE_CONFIGS on the cluster."""
    keys = ["unclean.leader.election.enable"]
    node = min(gateway.cluster.nodes)
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name=str(node), configuration_keys=keys)
    try:
        connection = await gateway.cluster.connection(node)
        response = await connection.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequestData(resources=[resource]))
    except (OSError, TimeoutError, RackspanError) as error:
        yield Result("brokers' configs", Level.WARNING, f"not read: {error}")
        return
    (result,) = response.results
    if result.error_code != 0:
        yield Result(
            "brokers' configs",
            Level.WARNING,
            f"not read: {result.error_message or result.error_code}; grant DESCRIBE_CONFIGS on the cluster",
        )
        return
    values = {one.name: one.value for one in result.configs}
    if values.get("unclean.leader.election.enable") == "true":
        yield Result(
            "unclean.leader.election.enable",
            Level.WARNING,
            "true: an unclean election loses acknowledged records, whatever the racks",
        )
    else:
        yield Result("unclean.leader.election.enable", Level.OK, "false")


async def _config_topic(config: GatewayConfig, gateway: Gateway) -> AsyncIterator[Result]:
    if config.mode is AcknowledgementMode.OFF or config.config_topic is None:
        return
    connection = await gateway.cluster.any_connection()
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(name=config.config_topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    (topic,) = (await connection.call(ApiKey.METADATA, request)).topics
    check = f"config topic {config.config_topic}"
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        if config.create_config_topic:
            yield Result(check, Level.OK, "does not exist; the first gateway creates it, for which it needs CREATE")
        else:
            yield Result(check, Level.FAILURE, "does not exist, and acknowledgements.config.topic.create is false")
    elif topic.error_code != 0:
        yield Result(
            check, Level.FAILURE, f"error {topic.error_code}; grant the gateway READ, WRITE, DESCRIBE and CREATE on it"
        )
    elif len(topic.partitions) != 1:
        yield Result(
            check,
            Level.FAILURE,
            f"has {count_noun(len(topic.partitions), 'partition')}, and order matters; create it with one",
        )
    else:
        missing = [name for name, bit in _OPERATIONS.items() if not topic.topic_authorized_operations & 1 << bit]
        known = topic.topic_authorized_operations != _NOT_REPORTED
        if known and missing:
            yield Result(check, Level.FAILURE, f"the gateway lacks {', '.join(missing)} on it; grant them")
        else:
            yield Result(check, Level.OK, f"leader {topic.partitions[0].leader_id}")
            async for result in _config_records(gateway, config.config_topic, check):
                yield result


async def _config_records(gateway: Gateway, name: str, check: str) -> AsyncIterator[Result]:
    """Read the values that are in force. Those of the config topic are judged with those of the file."""
    gateway.config_topic = gateway.open_config_topic(name)
    try:
        async with asyncio.timeout(_READ_SECONDS):
            await gateway.config_topic.read()
    except TimeoutError:
        yield Result(check, Level.FAILURE, f"could not be read in {_READ_SECONDS:g} s; look at its leader")


async def _replicas_logs(config: GatewayConfig, gateway: Gateway) -> AsyncIterator[Result]:
    """Whether the gateway may read the logs of guarded topics, by which mode verified counts racks."""
    if config.mode is not AcknowledgementMode.VERIFIED:
        return
    old = [str(node.node_id) for node in gateway.cluster if await _lacks_diverging_epoch(gateway, node.node_id)]
    if old:
        yield Result(
            "replicas' logs",
            Level.FAILURE,
            f"brokers {', '.join(old)} offer no Fetch {DIVERGING_EPOCH_SINCE} (Kafka 2.7), by which mode verified counts racks",
        )
        return
    topics = sorted(topic for topic, one in config.topics.items() if one.min_insync_racks is not None)
    request = MetadataRequestData(
        topics=[MetadataRequestTopic(name=topic) for topic in topics] if topics else None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    metadata = await (await gateway.cluster.any_connection()).call(ApiKey.METADATA, request)
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
            Level.FAILURE if topics else Level.WARNING,
            f"the gateway lacks READ on {', '.join(refused[:_MOST_NAMED])}{' and others' if len(refused) > _MOST_NAMED else ''}, "
            f"and acknowledges nothing there while {MIN_INSYNC_RACKS} is above 1; grant it to the principal of command.config",
        )
    else:
        yield Result("replicas' logs", Level.OK, "the gateway may read every topic it sees")


async def _lacks_diverging_epoch(gateway: Gateway, node_id: int) -> bool:
    try:
        offered = (await gateway.cluster.connection(node_id)).offered(ApiKey.FETCH)
    except (OSError, TimeoutError, RackspanError):
        return False
    return offered is None or offered[1] < DIVERGING_EPOCH_SINCE


async def _metadata_log(config: GatewayConfig, gateway: Gateway) -> AsyncIterator[Result]:
    if config.mode is not AcknowledgementMode.STRICT:
        return
    try:
        quorum = open_quorum(config, gateway.cluster.cluster_id)
        try:
            image = await quorum.current()
        finally:
            quorum.close()
    except (OSError, TimeoutError, RackspanError) as error:
        yield Result("metadata log", Level.FAILURE, str(error) or type(error).__name__)
    else:
        yield Result("metadata log", Level.OK, f"read to offset {image.offset}, epoch {image.epoch}")


_OPERATIONS: Final = {"READ": 3, "WRITE": 4, "DESCRIBE": 8}
"""Kafka's AclOperation codes."""

_NOT_REPORTED: Final = -(2**31)


def _security(config: GatewayConfig, gateway: Gateway) -> Iterator[Result]:
    if config.tls is None and gateway.client_tls is not None:
        yield Result(
            "TLS",
            Level.WARNING,
            "brokers require TLS and the gateway's listeners have none: clients' passwords pass in the clear; set listen.tls",
        )
    if config.tls is not None and config.tls.client_authorities is not None and not config.tls.principals:
        yield Result(
            "client certificates",
            Level.WARNING,
            "they are verified here and not shown to brokers: a client is anonymous there unless it logs in by SASL; "
            "map them in [principals]",
        )
