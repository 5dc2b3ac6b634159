"""The values of min.insync.racks that gateways keep in their config topic, for commands that connect to the brokers."""

import asyncio
from dataclasses import replace
from random import Random
from typing import Final

from rackspan.client.cluster import ConnectionSettings
from rackspan.client.errors import needs
from rackspan.client.login import login_from
from rackspan.client.requests import topic_id_text
from rackspan.daemon_threads import run
from rackspan.gateway.core.policies import FilePolicies, Policies, Scope
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.model import GATEWAY_CONFIG_TOPIC, MIN_INSYNC_RACKS, ClusterSnapshot, Topic

READ_SECONDS: Final = 10.0

_VALUE_MAX: Final = 999_999_999
"""The largest that a snapshot may hold. A record that cannot be read requires more racks than there are."""


def with_gateway_values(snapshot: ClusterSnapshot, settings: ConnectionSettings) -> ClusterSnapshot:
    """The snapshot with these values as configs of its topics, unless a config is higher.

    The cluster has the config topic; if that cannot be read, the snapshot is partial. Where
    brokers have values of their own, a topic without one gets the highest: another broker may lead it later. What a gateway
    has in its own file is not known here.
    """
    try:
        policies = run(_read(settings))
    except TimeoutError:
        note = (
            f"{MIN_INSYNC_RACKS} of the gateways: unknown, {GATEWAY_CONFIG_TOPIC} could not be read in {READ_SECONDS:g} s; "
            f"if it has a leader, {needs(f'Read on Topic {GATEWAY_CONFIG_TOPIC}')}"
        )
        return replace(snapshot, partial=(*snapshot.partial, note))
    return replace(snapshot, topics=tuple(_with_value(topic, policies) for topic in snapshot.topics))


async def _read(settings: ConnectionSettings) -> Policies:
    """Errors: TimeoutError, UsageError for settings that are not supported."""
    login, policies = login_from(settings.properties), Policies(FilePolicies())
    cluster = UpstreamCluster(settings.bootstrap_servers, login, Random())
    topic = ConfigTopic(GATEWAY_CONFIG_TOPIC, cluster, login, policies.replay, create=False)
    try:
        async with asyncio.timeout(min(READ_SECONDS, settings.timeout_seconds)):
            await topic.read()
    finally:
        topic.close()
        cluster.close()
    return policies


def _with_value(topic: Topic, policies: Policies) -> Topic:
    entry_id = policies.entry_id(topic.name)
    if entry_id is not None and topic.topic_id not in (None, topic_id_text(entry_id)):
        # The value is of an earlier topic of this name.
        policies.record_created(topic.name, entry_id, None, 0.0)
    own = {int(name) for scope, name in policies.entries if scope is Scope.BROKER and name}
    value = min(_VALUE_MAX, max(policies.topic_value(topic.name, leader)[0] for leader in (None, *own)))
    if value <= topic.config_number(MIN_INSYNC_RACKS):
        return topic
    return replace(topic, config={**topic.config, MIN_INSYNC_RACKS: str(value)})
