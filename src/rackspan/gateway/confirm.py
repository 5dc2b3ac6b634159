"""`rackspan gateway confirm`: writes into the config topic that it has every value, and removes gateways that are gone.

Nothing is written without `apply`.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rackspan.errors import ClusterUnreachable, UsageError
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.config_records import Replay
from rackspan.gateway.core.gateways.registrations import RegisteredGateway, confirmation_record, registration_record
from rackspan.gateway.core.policies import FilePolicies, Policies
from rackspan.gateway.upstream.config_leader import ConfigLeader
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.text import nearest

READ_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class ConfigTopicContent:
    """The config topic as it was read: its values, the registered gateways, and whether it was confirmed before."""

    topic: str
    values: Mapping[str, int]
    """By what each is set on."""
    gateways: Mapping[str, RegisteredGateway]
    confirmed: bool


async def confirm(config: GatewayConfig, gone: Collection[str], *, apply: bool) -> ConfigTopicContent:
    """Confirm the topic if nobody has, and remove the registrations of the gateways `gone`. Returns what was there before.

    Errors: UsageError for a gateway that is not registered and a config without a config topic, RackspanError, OSError.
    """
    if config.config_topic is None:
        raise UsageError(
            "acknowledgements.config.topic is empty: this gateway has no config topic; name the file of one that has"
        )
    backend = Backend(config)
    try:
        await backend.connect()
        policies = Policies(FilePolicies())
        async with _followed(backend, config.config_topic, policies.replay) as topic:
            content = ConfigTopicContent(
                topic.topic, policies.values, dict(topic.gateways.gateways), topic.gateways.confirmed
            )
            for name in gone:
                if name not in content.gateways:
                    raise UsageError(
                        f"--gone {name}: no such gateway is registered in {topic.topic}{nearest(name, content.gateways)}; without --gone the "
                        "registered ones are listed"
                    )
            if apply:
                for name in gone:
                    await topic.write(*registration_record(name, None))
                if not content.confirmed:
                    await topic.write(*confirmation_record())
            return content
    finally:
        backend.close()


@asynccontextmanager
async def _followed(backend: Backend, name: str, replay: Replay) -> AsyncIterator[ConfigTopic]:
    """The topic, read to its end and followed meanwhile."""
    topic = ConfigTopic(name, backend.cluster, backend.login, replay, create=False)
    try:
        try:
            async with asyncio.timeout(READ_SECONDS):
                await ConfigLeader(name, backend.cluster, backend.login).find()
                await topic.read()
        except TimeoutError as error:
            raise ClusterUnreachable(
                f"the config topic {name} could not be read in {READ_SECONDS:g} s; does its leader respond, and does the gateway's "
                "principal have READ on it?"
            ) from error
        following = asyncio.create_task(topic.follow())
        try:
            yield topic
        finally:
            following.cancel()
    finally:
        topic.close()
