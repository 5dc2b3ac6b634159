"""What a broker's handlers are told at once: who the broker is, what it knows, and in which words errors travel."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from rackspan.cluster.context.record_traffic import RecordTraffic
from rackspan.cluster.core.broker import Broker
from rackspan.cluster.core.configs import ConfigSource, ConfigValue
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.cluster.host.broker_requests import Questions
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.cluster.net.listener import Listener
from rackspan.model.ids import BrokerId, RackId


class Facts(Questions):
    """The part of a broker's host that knows. `_broker` is its process, while one runs."""

    def __init__(self, shared: SharedServices, broker: BrokerId, rack: RackId | None, listener: Listener) -> None:
        super().__init__(shared, broker)
        self.rack = rack
        self.listener = listener
        self._broker: Broker | None = None

    @property
    def core(self) -> Broker:
        if self._broker is None:
            raise asyncio.CancelledError(f"broker {self.id} is not running")
        return self._broker

    @property
    def now(self) -> int:
        return self._shared.clock.now()

    @property
    def image(self) -> MetadataImage:
        return self.core.image

    @property
    def settings(self) -> ClusterSettings:
        return self._shared.settings

    @property
    def cluster_id(self) -> str:
        return self._shared.cluster_id

    @property
    def traffic(self) -> RecordTraffic:
        return self._shared.traffic

    def code(self, error: KafkaError) -> int:
        """As it travels to clients of this cluster."""
        return error if self.settings.extended_error_codes else error.for_every_client

    def endpoints(self, brokers: Iterable[BrokerId]) -> list[dict[str, Any]]:
        """Where brokers are, for clients that are sent to them."""
        known = self.image.brokers
        return [
            {"node_id": one, "host": known[one].host, "port": known[one].port, "rack": known[one].rack}
            for one in sorted(brokers)
            if one in known
        ]

    def own_config(self, value: ConfigValue) -> ConfigValue:
        """A config with what only this broker can say of itself filled in."""
        host, port = self.listener.address
        own = {
            "broker.id": str(self.id),
            "node.id": str(self.id),
            "broker.rack": self.rack,
            "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        }
        said = own.get(value.key)
        if said is None:
            return value
        return replace(
            value, value=said, source=ConfigSource.STATIC, synonyms=((value.key, said, ConfigSource.STATIC),)
        )
