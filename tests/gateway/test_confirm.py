"""`rackspan gateway confirm` before an embedded cluster: what it shows, writes and refuses."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.gateways.registrations import GatewayRegistration, registration_record
from rackspan.gateway.core.policies import Entry, Scope, record
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from tests.cli.conftest import Ran
from tests.cli.conftest import cli as cli
from tests.gateway.upstream.test_heartbeats import TOPIC, kept, key_of_format

pytestmark = pytest.mark.slow
Cli = Callable[..., Ran]

CONFIRMATION = b'{"optional": true, "type": "confirmation"}'


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        yield cluster


@pytest.fixture
def config(cluster: EmbeddedCluster, tmp_path: Path) -> str:
    file = tmp_path / "gateway.toml"
    file.write_text(f'bootstrap.servers = "{cluster.bootstrap_servers}"\n')
    return str(file)


def write(servers: str, *records: tuple[bytes, bytes | None]) -> None:
    """As a gateway does that creates the topic."""

    async def written() -> None:
        cluster = UpstreamCluster(servers, Login(), Random(1))
        await cluster.refresh()
        topic = ConfigTopic(TOPIC, cluster, Login(), lambda _key, _value: None)
        await topic.start()
        following = asyncio.create_task(topic.follow())
        for key, value in records:
            await topic.write(key, value)
        following.cancel()
        topic.close()
        cluster.close()

    asyncio.run(written())


def gateway(name: str) -> tuple[bytes, bytes | None]:
    return registration_record(name, GatewayRegistration("i", 0, "0.1.0", AcknowledgementMode.OFF, 3.0))


def test_values_and_gateways_are_shown_and_nothing_is_written_without_apply(
    cli: Cli, cluster: EmbeddedCluster, config: str
) -> None:
    servers = cluster.bootstrap_servers
    values = record(Scope.TOPIC, "orders", Entry(2)), record(Scope.BROKER, "", Entry(3))
    write(servers, *values, gateway("one"), gateway("two"))
    before = kept(servers)
    ran = cli("gateway", "confirm", "--config", config, "--gone", "two")
    assert ran.code == 2
    assert [" ".join(line.split()) for line in ran.out.splitlines()] == [
        "record of content",
        "value broker (default) min.insync.racks 3",
        "value topic orders min.insync.racks 2",
        "gateway one mode off, release 0.1.0",
        "gateway two mode off, release 0.1.0, would be removed",
        "config topic __rackspan_configs would be confirmed with 2 values",
    ]
    assert kept(servers) == before
    applied = cli("gateway", "confirm", "--config", config, "--gone", "two", "--apply", "-o", "json")
    assert (applied.code, applied.document["applied"], applied.document["confirmed"]) == (0, True, False)
    after = kept(servers)
    assert after.pop(CONFIRMATION) == [b'{"version": 1}']
    assert after.pop(key_of_format("two"))[-1] is None
    del before[key_of_format("two")]
    assert after == before
    again = cli("gateway", "--config", config, "confirm")
    assert (again.code, "two" in again.out, "was confirmed before" in again.out) == (0, False, True)


def test_a_config_topic_that_is_missing_and_a_gateway_that_is_not_registered_are_one_line(
    cli: Cli, cluster: EmbeddedCluster, config: str
) -> None:
    ran = cli("gateway", "confirm", "--config", config, "--apply")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "the config topic __rackspan_configs does not exist; the first gateway creates it" in ran.err
    write(cluster.bootstrap_servers, gateway("gw-1:19092"))
    ran = cli("gateway", "confirm", "--config", config, "--gone", "gw-2:19092", "--apply")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert (
        "--gone gw-2:19092: no such gateway is registered in __rackspan_configs (did you mean 'gw-1:19092'?)" in ran.err
    )
    assert [*kept(cluster.bootstrap_servers)] == [key_of_format("gw-1:19092")], "nothing is confirmed"


def test_a_config_without_a_config_topic_has_nothing_to_confirm(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('bootstrap.servers = "127.0.0.1:1"\nacknowledgements.config.topic = ""\n')
    ran = cli("gateway", "confirm", "--config", str(file))
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "this gateway has no config topic" in ran.err
