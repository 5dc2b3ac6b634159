"""The registration of this gateway in the config topic, renewed in every period and removed at an orderly end.

It has a connection of its own, so that no value waits for it, and needs no more racks than acks=all does. A failure is counted and
is a warning: clients are served all the same.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Final
from uuid import uuid4

from rackspan import __version__
from rackspan.client.errors import message_of
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, RackspanError
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.gateways.registrations import (
    HEARTBEAT_SECONDS,
    SILENT_PERIODS,
    GatewayRegistration,
    registration_record,
)
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_leader import ConfigLeader, ConfigTopicMissing
from rackspan.gateway.upstream.config_writer import ConfigWriter
from rackspan.text import noun_and_ids

log = logging.getLogger(__name__)

RETRY_SECONDS: Final = 5.0
"""After a registration that failed."""

WRITE_SECONDS: Final = 10.0
"""Time limit of one registration."""


class Heartbeats:
    """Registers a gateway under `name`. In mode off a config topic that is missing is no failure: nobody reads it."""

    def __init__(
        self, topic: str, name: str, mode: AcknowledgementMode, cluster: UpstreamCluster, login: Login
    ) -> None:
        self._name = name
        self._mode = mode
        self._topic = topic
        self._writer = ConfigWriter(ConfigLeader(topic, cluster, login), cluster)
        self._incarnation_id = uuid4().hex
        self._writing = asyncio.Lock()
        self._ended = False
        self._attempted = False
        """Whether a registration may have been appended: one that failed or was cut off too."""
        self._loop = asyncio.get_running_loop()
        self._started_at = self._registered_at = self._loop.time()
        self._failure: str | None = None
        """Why the last registration failed."""
        self.failures = 0

    async def follow(self, warnings: Callable[[], Iterable[str]]) -> None:
        """Register until cancelled or ended, and log those of the gateway's warnings that are new."""
        logged = set(warnings())
        while not self._ended:
            registered = await self.register()
            found = set(warnings())
            for warning in sorted(found - logged):
                log.warning("%s", warning)
            logged = found
            await asyncio.sleep(HEARTBEAT_SECONDS if registered else RETRY_SECONDS)

    async def register(self) -> bool:
        """Write the registration once. Whether there is nothing to try again soon."""
        uptime = self._loop.time() - self._started_at
        registration = GatewayRegistration(self._incarnation_id, uptime, __version__, self._mode, LEASE_SECONDS)
        try:
            await self._write(registration)
        except ConfigTopicMissing as error:
            if self._mode is not AcknowledgementMode.OFF:
                self._failed(error)
            return self._mode is AcknowledgementMode.OFF
        except (OSError, RackspanError) as error:
            self._failed(error)
            return False
        if self._failure is not None:
            log.info("this gateway registers in the config topic %s again", self._topic)
            self._failure = None
        self._registered_at = self._loop.time()
        return True

    def _failed(self, error: Exception) -> None:
        # A response that is still due is never read.
        self._writer.close()
        self.failures += 1
        if self._failure is None:
            log.warning("this gateway could not register in the config topic %s: %s", self._topic, message_of(error))
        self._failure = message_of(error)

    async def _write(self, registration: GatewayRegistration | None) -> None:
        async with asyncio.timeout(WRITE_SECONDS), self._writing:
            if self._ended:
                return
            self._ended = registration is None
            if registration is not None or self._attempted:
                silent = await self._writer.unresponsive()
                if silent:
                    # Appended and not committed, it would end the lease of every gateway: it could be a value.
                    raise ClusterUnreachable(f"{noun_and_ids('broker', silent)} is in sync and does not respond")
                self._attempted = True
                await self._writer.write_once(*registration_record(self._name, registration))

    def warnings(self) -> Iterator[str]:
        """A sentence if the registration could not be renewed for as long as makes a gateway silent."""
        seconds = self._loop.time() - self._registered_at
        if self._failure is not None and seconds > SILENT_PERIODS * HEARTBEAT_SECONDS:
            yield (
                f"this gateway cannot register in the config topic {self._topic}, so that other gateways cannot see its mode and release, and "
                f"it cannot see which of them are silent: {self._failure}; look at the topic's leader and ISR, and grant WRITE on it"
            )

    async def end(self) -> None:
        """Remove the registration. A failure is logged: the others then name this gateway as silent."""
        try:
            await self._write(None)
        except ConfigTopicMissing:
            log.debug("there is no config topic with a registration of this gateway")
        except (OSError, RackspanError) as error:
            log.warning(
                "the registration could not be removed from the config topic %s: %s", self._topic, message_of(error)
            )

    def close(self) -> None:
        self._writer.close()
