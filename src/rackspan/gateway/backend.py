"""The cluster behind a gateway: its brokers, the values of min.insync.racks, and the logins by which it is reached."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final
from uuid import uuid4

from rackspan import __version__
from rackspan.client.brokers import addresses, protocol_warnings
from rackspan.client.config import kafka_python_settings, read_properties
from rackspan.client.config.translation import protocol_of, warnings_about
from rackspan.client.identity import BROKER_IDENTITY, IdentityMode
from rackspan.client.login import login_of
from rackspan.client.release import release_warnings
from rackspan.errors import UsageError
from rackspan.gateway.clients.tls import ClientTls
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.gateways.differences import Difference, differences
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.core.value_warnings import values_warnings
from rackspan.gateway.upstream.broker_configs import UnenforcedValues
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.heartbeats import Heartbeats
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.placement.cluster_placer import ClusterPlacer
from rackspan.placement.registry import PLACER_CLASS_CONFIG, configured_placer
from rackspan.sources.rack_locator import RackLocator

_CLIENT_ID: Final = {"client_id": "rackspan-gateway"}
"""In brokers' logs and quotas, unless command.config has another."""


class Backend:
    """Made from the config without a request: `connect` sends the first one."""

    def __init__(self, config: GatewayConfig) -> None:
        """Errors: UsageError for files that cannot be used."""
        self.config = config
        self._properties = {
            file: read_properties(file)
            for file in (config.command_config, config.controllers_command_config)
            if file is not None
        }
        properties = self._properties_of(config.command_config)
        self.login = login_of(_CLIENT_ID | (kafka_python_settings(properties) if properties else {}))
        self.tls = ClientTls(config, properties)
        self.cluster = UpstreamCluster(
            config.bootstrap_servers, self.login, Random(), _locator(config), config.identity
        )
        self.policies = Policies(config.policies)
        self.unenforced = UnenforcedValues(self.cluster)
        """Read by a gateway with a guard, and by `check`."""
        self.release_warnings: tuple[str, ...] = ()
        """About a release of Kafka that is newer than those tested, once `connect` has ended."""
        self.placer = _placer(config)
        self.name = _name(config)
        """Under which the gateway registers in the config topic."""

    async def connect(self) -> None:
        """Send the first requests. Errors: ClusterUnreachable, RackspanError, OSError."""
        await self.cluster.refresh()
        connection = await self.cluster.any_connection()
        self.release_warnings = await release_warnings(connection.call)

    def _properties_of(self, file: Path | None) -> dict[str, str]:
        return {} if file is None else self._properties[file]

    def connection_warnings(self) -> Iterator[str]:
        """Sentences about settings that are ignored or promise less, and addresses that name another protocol than the connections'."""
        for named, properties in self._properties.items():
            for line in warnings_about(properties):
                yield f"{named}: {line}"
        config = self.config
        for key, servers, file in (
            ("bootstrap.servers", config.bootstrap_servers, config.command_config),
            ("controllers.bootstrap.servers", config.controllers, config.controllers_command_config),
        ):
            if servers is not None:
                yield from protocol_warnings(key, servers, protocol_of(self._properties_of(file)))
        if config.broker_identity is IdentityMode.ADDRESS:
            yield (
                f"{BROKER_IDENTITY} is address: the log of any broker that responds at a broker's address counts as that broker's; grant the gateway "
                "DESCRIBE_CONFIGS on the cluster and remove it"
            )

    def reload(self, config: GatewayConfig) -> None:
        """Take over a config that was read again, with the same files. Errors: UsageError, and nothing has changed."""
        for file, properties in self._properties.items():
            if read_properties(file) != properties:
                raise UsageError(
                    f"{file} has changed, and the gateway's own connections keep what they read; restart it"
                )
        placer = self.placer
        if config.placer_configs != self.config.placer_configs and (placer := _placer(config)) is not None:
            placer.open()
        self.tls.load(config.tls, self._properties_of(config.command_config))
        if self.placer is not None and placer is not self.placer:
            self.placer.close()
        self.placer = placer
        self.config = config
        self.policies.replace_file(config.policies)

    def config_topic(self, name: str) -> ConfigTopic:
        """The topic that `policies` follow; nothing is read yet."""
        create = self.config.create_config_topic
        return ConfigTopic(name, self.cluster, self.login, self.policies.replay, create=create)

    def heartbeats(self, topic: str) -> Heartbeats:
        """The registration in the config topic; nothing is written yet."""
        return Heartbeats(topic, self.name, self.config.mode, self.cluster, self.login)

    def differences(self, config_topic: ConfigTopic | None) -> list[Difference]:
        """Other gateways of the cluster that promise less, are older or silent, or have another lease than this one."""
        if config_topic is None:
            return []
        return differences(config_topic.gateways.gateways, self.name, __version__, self.config.mode, LEASE_SECONDS)

    def quorum(self) -> MetadataQuorum:
        """The controllers; nothing is read yet. Errors: UsageError."""
        controllers, path = self.config.controllers, self.config.controllers_command_config
        if controllers is None:
            raise UsageError("controllers.bootstrap.servers is missing; write the controllers' own addresses there")
        settings = {} if path is None else kafka_python_settings(self._properties_of(path))
        found = addresses("controllers.bootstrap.servers", controllers)
        return MetadataQuorum(found, login_of(_CLIENT_ID | settings), self.cluster.cluster_id, self.config.identity)

    def warnings(self, config_topic: ConfigTopic | None) -> list[str]:
        """Sentences about values of min.insync.racks that an operator should correct; clients are served all the same."""
        state = None if config_topic is None else config_topic.state
        return [*values_warnings(self.policies, self.cluster.all_brokers(), state), *self.unenforced.warnings()]

    def close(self) -> None:
        self.cluster.close()
        if self.placer is not None:
            self.placer.close()


_HOST_NAME_MAX: Final = 150


def _name(config: GatewayConfig) -> str:
    """The same at each start, unless the ports are chosen at the start."""
    if config.gateway_id is not None:
        return config.gateway_id
    host = re.sub(r"[^A-Za-z0-9._-]", "_", socket.gethostname())[:_HOST_NAME_MAX]
    return f"{host}:{config.first_port or uuid4().hex[:8]}"


def _placer(config: GatewayConfig) -> ClusterPlacer | None:
    """The placer of new topics and partitions, which is not created yet. None: Kafka places."""
    if config.placer is None:
        return None
    rng = Random()
    configs = {**config.placer_configs, PLACER_CLASS_CONFIG: config.placer}
    return ClusterPlacer(configs, lambda configs: configured_placer(configs, rng))


def _locator(config: GatewayConfig) -> RackLocator | None:
    if config.rack_locator is None:
        return None
    from rackspan.sources.rack_locator import parse_properties
    from rackspan.sources.rack_locators.registry import make

    return make(config.rack_locator, parse_properties(config.rack_locator_properties))
