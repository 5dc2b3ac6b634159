"""`rackspan gateway check` before a cluster of fake brokers: what it finds, how much that matters, and what to do."""

import asyncio
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan import __version__
from rackspan.gateway import check
from rackspan.gateway.backend import Backend
from rackspan.gateway.check import CheckLevel, check_cluster
from rackspan.gateway.config import GatewayConfig, PrincipalTable, parse_config
from rackspan.gateway.core.gateways.registrations import confirmation_record
from rackspan.gateway.core.policies import Entry, Scope, record
from rackspan.kafka_bytes.record_batch import stamp, write_batch
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponseData,
    DescribeConfigsResult,
)
from rackspan.wire.messages.fetch import FetchResponsePartitionData
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.fake_broker import Handle, api_versions, configs_of, only
from tests.gateway.core.gateways.test_differences import written
from tests.gateway.core.test_metadata_log import register
from tests.gateway.running import document
from tests.gateway.upstream.test_config_topic import CONFIGS, Log, brokers, dead_port
from tests.gateway.upstream.test_quorum import Controller, snapshot_of

OK, WARNING, FAILURE = CheckLevel.OK, CheckLevel.WARNING, CheckLevel.FAILURE
UNCLEAN = "unclean.leader.election.enable"
SELECTOR = "replica.selector.class"
AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
NOT_AUTHORIZED, UNKNOWN_TOPIC = 29, 3
READ, WRITE, DESCRIBE = 1 << 3, 1 << 4, 1 << 8
NOT_REPORTED = -(2**31)
TOPIC_KEY = "acknowledgements.config.topic"

Found = dict[str, tuple[CheckLevel, str]]
"""Level and reason by the name of the check."""


def topic(name: str, *, error: int = 0, partitions: int = 1, operations: int = NOT_REPORTED) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        error_code=error,
        partitions=[
            MetadataResponsePartition(
                partition_index=index, leader_id=1, leader_epoch=5, replica_nodes=[1, 2], isr_nodes=[1, 2]
            )
            for index in range(partitions)
        ],
        topic_authorized_operations=operations,
    )


def metadata(ports: Sequence[int], racks: Sequence[str | None], topics: Sequence[MetadataResponseTopic]) -> Handle:
    """Rights on topics are reported only to a request that includes them, as by Kafka."""

    def shown(one: MetadataResponseTopic, request: Any) -> MetadataResponseTopic:
        described = copy(one)
        if not request.include_topic_authorized_operations:
            described.topic_authorized_operations = NOT_REPORTED
        return described

    async def respond(request: Any) -> MetadataResponseData:
        known = {one.name: shown(one, request) for one in topics}
        requested = known if request.topics is None else [one.name for one in request.topics]
        return MetadataResponseData(
            cluster_id="c",
            brokers=[
                MetadataResponseBroker(node_id=number, host="127.0.0.1", port=port, rack=rack)
                for number, (port, rack) in enumerate(zip(ports, racks, strict=True), 1)
            ],
            topics=[known.get(name) or topic(name or "", error=UNKNOWN_TOPIC) for name in requested],
        )

    return respond


def describe_configs(values: Mapping[str, str], error: int = 0) -> Handle:
    async def respond(request: Any) -> DescribeConfigsResponseData:
        (resource,) = request.resources
        configs = [
            DescribeConfigsResourceResult(name=name, value=value)
            for name, value in (("other", "o"), *values.items())
            if name in (*resource.configuration_keys, "other")
        ]
        result = DescribeConfigsResult(error_code=error, configs=configs)
        return DescribeConfigsResponseData(results=[result])

    return respond


def checked(
    racks: Sequence[str | None] = ("a", "b"),
    described: Sequence[MetadataResponseTopic] = (),
    configs: Iterable[Handle] = (),
    log: Log | None = None,
    last: Mapping[ApiKey, int] | None = None,
    gone: Iterable[int] = (),
    tables: Mapping[str, Any] | None = None,
) -> Found:
    """What the check finds. `described` are topics, `configs` the brokers' responses to DescribeConfigs, `gone` brokers that are down."""

    async def scenario() -> list[check.Result]:
        async with brokers(len(racks)) as fakes:
            ports = [dead_port() if number in gone else fake.port for number, fake in enumerate(fakes, 1)]
            responses = [*configs] or [describe_configs({UNCLEAN: "false", SELECTOR: AWARE})] * len(fakes)
            for fake, of_broker in zip(fakes, responses, strict=True):
                fake.handles |= {ApiKey.METADATA: metadata(ports, racks, described), ApiKey.DESCRIBE_CONFIGS: of_broker}
                fake.handles[ApiKey.API_VERSIONS] = api_versions(last or {}, ("c", fakes.index(fake) + 1))
                if log is not None:
                    fake.handles |= {ApiKey.FETCH: log.fetch, ApiKey.LIST_OFFSETS: log.list_offsets}
            config = parse_config(document(f"127.0.0.1:{fakes[0].port}", **(tables or {})))
            return await check_cluster(config)

    return {result.check: (result.level, result.reason) for result in asyncio.run(scenario())}


@pytest.mark.parametrize(
    ("found", "create", "level", "reason"),
    [
        (None, True, OK, "does not exist; the first gateway creates it, for which it needs CREATE"),
        (None, False, FAILURE, "does not exist, and acknowledgements.config.topic.create is false"),
        (
            {"error": NOT_AUTHORIZED},
            True,
            FAILURE,
            "error 29; grant the gateway READ, WRITE, DESCRIBE and CREATE on it",
        ),
        ({"partitions": 2}, True, FAILURE, "has 2 partitions, and order matters; create it with one"),
        ({"operations": READ}, True, FAILURE, "the gateway lacks WRITE, DESCRIBE on it; grant them"),
        ({"operations": READ | WRITE | DESCRIBE}, True, OK, "leader 1"),
        ({"operations": NOT_REPORTED}, True, OK, "leader 1"),
    ],
)
def test_the_config_topic_is_there_or_can_be_created(
    found: dict[str, int] | None, create: bool, level: CheckLevel, reason: str
) -> None:
    topics = [] if found is None else [topic(CONFIGS, **found)]
    results = checked(described=topics, log=Log(), tables={TOPIC_KEY: CONFIGS, f"{TOPIC_KEY}.create": create})
    assert results[f"config topic {CONFIGS}"] == (level, reason)


def test_a_config_topic_whose_leader_serves_no_fetch_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_READ_SECONDS", 0.3)
    level, reason = checked(described=[topic(CONFIGS)], tables={TOPIC_KEY: CONFIGS})[f"config topic {CONFIGS}"]
    assert (level, reason) == (FAILURE, "could not be read in 0.3 s; look at its leader")


def test_values_of_the_config_topic_are_judged() -> None:
    log = Log()
    log.batches = [write_batch([record(Scope.TOPIC, "orders", Entry(7)), confirmation_record()], 0), b""]
    level, reason = checked(described=[topic(CONFIGS)], log=log, tables={TOPIC_KEY: CONFIGS})["min.insync.racks"]
    assert level is WARNING
    assert reason.startswith("topic orders: min.insync.racks 7: the config topic configs has replicas in 2 racks")


@pytest.mark.parametrize(
    ("other", "level", "reason"),
    [
        ({}, OK, "2 registered: here, other"),
        (
            {"mode": "off"},
            WARNING,
            "gateway other is in mode off, which acknowledges what mode verified holds or refuses",
        ),
        ({"release": "0.1.0"}, WARNING, "gateway other is of release 0.1.0, older than"),
    ],
)
def test_gateways_that_are_registered_are_named(other: dict[str, str], level: CheckLevel, reason: str) -> None:
    log = Log()
    # Its own last registration is of another file.
    of_both = written("other", 0, **{"release": __version__, **other}), written("here", 0, mode="off")
    log.batches = [write_batch([confirmation_record(), *of_both], 0), b"", b""]
    found = checked(described=[topic(CONFIGS)], log=log, tables={TOPIC_KEY: CONFIGS, "gateway.id": "here"})
    assert (found["gateways"][0], found["gateways"][1][: len(reason)]) == (level, reason)
    assert "min.insync.racks" not in found


def test_a_config_topic_that_nobody_has_confirmed_is_a_warning() -> None:
    log = Log()
    log.batches = [write_batch([written("here", 0)], 0)]
    level, reason = checked(described=[topic(CONFIGS)], log=log, tables={TOPIC_KEY: CONFIGS})["min.insync.racks"]
    assert (level, "are not confirmed" in reason) == (WARNING, True)


def test_in_mode_off_racks_values_and_logs_have_no_result() -> None:
    found = checked(tables={"acknowledgements.mode": "off", TOPIC_KEY: CONFIGS})
    assert not {"racks", "replicas' logs", "metadata log", f"config topic {CONFIGS}"} & found.keys()


@pytest.mark.parametrize(
    ("racks", "level", "reason"),
    [
        (("b", "a", "a"), OK, "2 racks: a, b"),
        (tuple("gbdfhace"), OK, "8 racks: a, b, c, d, e, f, g, h"),
        (("a", "a"), WARNING, "every broker is in rack 'a'; min.insync.racks above 1 refuses everything"),
        (
            ("rack-a", "Rack-A "),
            WARNING,
            "racks 'rack-a', 'Rack-A ' count as 2, and their names differ by case, blanks or Unicode form only: if they are one, what is "
            "acknowledged may be in one rack; set broker.rack to one of them",
        ),
        (("a", None), WARNING, "broker 2 has no rack; brokers without one count as one unnamed rack; set broker.rack"),
    ],
)
def test_racks_are_as_many_as_values_can_require(racks: tuple[str | None, ...], level: CheckLevel, reason: str) -> None:
    assert checked(racks)["racks"] == (level, reason)


def test_each_broker_is_connected_to_as_clients_are() -> None:
    found = checked(("a", None), gone=[2])
    assert (found["broker 1"][0], found["broker 1"][1].split(":")[0]) == (OK, "127.0.0.1")
    assert found["broker 1"][1].endswith(", rack a")
    assert (found["broker 2"][0], "ConnectionRefusedError" in found["broker 2"][1]) == (FAILURE, True)
    assert checked((None,))["broker 1"][1].endswith(", rack (none)")


def test_an_api_that_a_broker_does_not_share_is_named() -> None:
    last = {ApiKey.PRODUCE: -1, ApiKey.FETCH: 3}
    assert checked(last=last)["broker 1"] == (FAILURE, "no version of PRODUCE, FETCH that the gateway has too")


def test_a_cluster_that_does_not_respond_ends_the_check() -> None:
    config = parse_config(document(f"127.0.0.1:{dead_port()}"))
    (result,) = asyncio.run(check_cluster(config))
    assert (result.check, result.level) == ("cluster", FAILURE)
    assert "no broker of the cluster responds" in result.reason


def test_a_config_that_cannot_be_used_ends_the_check() -> None:
    config = parse_config(document("127.0.0.1:1", **{"racks.rack.locator.class": "nobody"}))
    (result,) = asyncio.run(check_cluster(config))
    assert (result.check, result.level, "nobody" in result.reason) == ("config", FAILURE, True)


def test_the_number_of_brokers_and_the_cluster_are_named() -> None:
    assert checked()["cluster"] == (OK, "2 brokers of cluster c")


def test_a_listener_has_a_port_that_is_free() -> None:
    free = dead_port()
    found = checked(("a",), tables={"listen": {"first": {"port": free - 1}, "advertised": {"host": "g"}}})
    assert found["listener of broker 1"] == (OK, f"127.0.0.1:{free}, advertised as g:{free}")
    assert checked()["listener of broker 2"] == (OK, "127.0.0.1:any free port, advertised as 127.0.0.1:any free port")
    beyond = checked(tables={"listen": {"first": {"port": 65_535}}})["listener of broker 1"]
    assert (beyond[0], "leaves no port for broker 1" in beyond[1]) == (FAILURE, True)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        found = checked(("a",), tables={"listen": {"first": {"port": port - 1}}})
    in_use = f"127.0.0.1:{port}: Address already in use; choose another port"
    assert found["listener of broker 1"] == (FAILURE, in_use)


@pytest.mark.parametrize(
    ("values", "error", "name", "level", "reason"),
    [
        ({UNCLEAN: "false"}, 0, UNCLEAN, OK, "false"),
        ({}, 0, UNCLEAN, OK, "false"),
        ({UNCLEAN: "true"}, 0, UNCLEAN, WARNING, "true: an unclean election loses acknowledged records, whatever the racks"),
        ({}, 31, "brokers' configs", WARNING, "not read: 31; grant DESCRIBE_CONFIGS on the cluster"),
    ],
)  # fmt: skip
def test_an_unclean_election_is_warned_of(
    values: dict[str, str], error: int, name: str, level: CheckLevel, reason: str
) -> None:
    assert checked(("a",), configs=[describe_configs(values, error)])[name] == (level, reason)


def test_brokers_whose_selector_ignores_racks_are_named() -> None:
    readers: dict[str, Any] = {"readers": {"rack": "a"}}
    aware, other = describe_configs({SELECTOR: AWARE}), describe_configs({SELECTOR: "Other"})
    level, reason = checked(("a", "b", "b"), configs=[aware, other, other], tables=readers)[SELECTOR]
    assert (level, reason) == (
        WARNING,
        f"brokers 2, 3 have another than {AWARE}: racks of [readers] have no effect there; set it and restart them in turn",
    )
    assert checked(tables=readers)[SELECTOR] == (OK, "rack-aware on every broker")
    assert SELECTOR not in checked()


@pytest.mark.parametrize(
    ("found", "guarded", "level", "reason"),
    [
        ({"error": NOT_AUTHORIZED}, [], WARNING, "the gateway lacks READ on t0, and acknowledges nothing there"),
        ({"operations": WRITE}, ["t0"], FAILURE, "the gateway lacks READ on t0, and acknowledges nothing there"),
        ({"operations": READ}, ["t0"], OK, "the gateway may read every topic it sees"),
        ({"operations": NOT_REPORTED}, [], OK, "the gateway may read every topic it sees"),
        # Described by nobody: it may be created later.
        ({"error": UNKNOWN_TOPIC}, ["t0"], OK, "the gateway may read every topic it sees"),
    ],
)
def test_logs_of_guarded_topics_can_be_read(
    found: dict[str, int], guarded: list[str], level: CheckLevel, reason: str
) -> None:
    # Of guarded topics only those are looked at.
    others = [topic("other", error=NOT_AUTHORIZED)] if guarded else []
    tables = {"topics": {name: {"min.insync.racks": 2} for name in guarded} | {"other": {"fail.open": True}}}
    result = checked(described=[topic("t0", **found), *others], tables=tables)["replicas' logs"]
    assert (result[0], result[1][: len(reason)]) == (level, reason)


def test_of_many_topics_that_cannot_be_read_the_first_by_name_are_named() -> None:
    def named(count: int) -> str:
        refused = [topic(f"t{number}", error=NOT_AUTHORIZED) for number in reversed(range(count))]
        return checked(described=refused)["replicas' logs"][1]

    assert named(5).startswith("the gateway lacks READ on t0, t1, t2, t3, t4, and acknowledges")
    assert named(6).startswith("the gateway lacks READ on t0, t1, t2, t3, t4 and others, and acknowledges")


@pytest.mark.parametrize(("last", "is_old"), [(11, True), (12, False)])
def test_brokers_that_cannot_show_log_ends_are_named(last: int, is_old: bool) -> None:
    level, reason = checked(last={ApiKey.FETCH: last})["replicas' logs"]
    assert (level is FAILURE, reason.startswith("brokers 1, 2 offer no Fetch 12 (Kafka 2.7)")) == (is_old, is_old)


def test_the_controllers_log_is_read_in_mode_strict() -> None:
    records = bytearray(snapshot_of(register(1, "r1")))
    stamp(records, base_offset=0, leader_epoch=5)
    controller = Controller(FetchResponsePartitionData(high_watermark=1, records=memoryview(records)))

    controller.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(only(101))

    async def scenario(servers: str | None) -> tuple[CheckLevel, str]:
        await controller.start()
        servers = servers or f"127.0.0.1:{controller.port}"
        config = parse_config(document("127.0.0.1:1", **{"controllers.bootstrap.servers": servers}))
        (result,) = [result async for result in check._metadata_log(config, Backend(config))]
        await controller.close()
        return result.level, result.reason

    assert asyncio.run(scenario(None)) == (OK, "read to offset 1, epoch 5")
    level, reason = asyncio.run(scenario(f"127.0.0.1:{dead_port()}"))
    assert (level, "no controller of controllers.bootstrap.servers leads" in reason) == (FAILURE, True)


CERTIFICATE = Path("gateway.pem")


@pytest.mark.parametrize(
    ("upstream", "listeners", "warned"),
    [
        (None, {}, {}),
        ("tls", {}, {"TLS": "clients' passwords pass in the clear; set listen.tls"}),
        ("tls", {"tls_certificate": CERTIFICATE, "tls_key": CERTIFICATE}, {}),
        (
            None,
            {"tls_certificate": CERTIFICATE, "tls_key": CERTIFICATE, "tls_client_authorities": CERTIFICATE},
            {"client certificates": "map them in [principals]"},
        ),
        (
            None,
            {
                "tls_certificate": CERTIFICATE,
                "tls_key": CERTIFICATE,
                "tls_client_authorities": CERTIFICATE,
                "principals": {"alice": PrincipalTable(CERTIFICATE, CERTIFICATE)},
            },
            {},
        ),
    ],
)
def test_security_that_ends_at_the_gateway_is_warned_of(
    upstream: str | None, listeners: dict[str, Any], warned: dict[str, str]
) -> None:
    config = GatewayConfig(bootstrap_servers="127.0.0.1:1", **listeners)
    backend = cast("Backend", SimpleNamespace(tls=SimpleNamespace(upstream=upstream)))
    results = list(check._security(config, backend))
    assert {result.check: result.reason.rpartition(warned[result.check])[1] for result in results} == warned
    assert {result.level for result in results} <= {WARNING}
