"""Which broker a connection ends at: proved by the broker, refused where another one responds, never guessed."""

import asyncio
import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from rackspan.client import brokers as client_brokers
from rackspan.client.brokers import KnownBroker, KnownBrokers
from rackspan.client.identity import IdentityMode, identity_of
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, OtherBroker, RackspanError, UnprovableBroker, UsageError
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsResponseData
from rackspan.wire.messages.metadata import MetadataResponseBroker
from tests.client.fake_broker import FakeBroker, ProvingBroker, api_versions, configs_of, only
from tests.waiting import WITHIN_SECONDS

NO_RIGHT, UNKNOWN, TIMED_OUT, UNSUPPORTED = 31, -1, 7, 35
BY_ADDRESS = (
    "or set broker.identity (argument broker_identity of a producer in Python) to address "
    "(docs/min-insync-racks.md says what is not promised then)"
)
ELSEWHERE = "look at its advertised.listeners and what is behind the address"


def known_at(brokers: dict[int, FakeBroker], identity: IdentityMode = IdentityMode.PROVED) -> KnownBrokers:
    """Cluster "c" whose metadata names these addresses."""
    known = KnownBrokers("127.0.0.1:1", Login(), Random(1), identity)
    known.cluster_id = "c"
    known.by_id = {number: KnownBroker(number, "127.0.0.1", broker.port) for number, broker in brokers.items()}
    return known


def connected(responds: FakeBroker, *, as_broker: int = 3, identity: IdentityMode = IdentityMode.PROVED) -> Any:
    """The connection to the address of a broker at which another one may respond, or its error."""

    async def scenario() -> Any:
        await responds.start()
        known = known_at({1: responds, as_broker: responds}, identity)
        try:
            return await known.connection(as_broker)
        except RackspanError as error:
            return error
        finally:
            known.close()
            await responds.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_a_broker_proves_itself_and_another_one_at_its_address_does_not(release: tuple[int, int]) -> None:
    assert not isinstance(connected(ProvingBroker(3, release=release)), Exception)
    refused = connected(ProvingBroker(2, release=release))
    assert isinstance(refused, OtherBroker)
    assert str(refused).startswith("another one responds at the address of broker 3 (")
    assert str(refused).endswith(ELSEWHERE)


@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_the_broker_whose_own_id_is_tried_as_the_wrong_one_is_another_one_too(release: tuple[int, int]) -> None:
    """Of brokers 1 and 3 it is 1, which responds at the address of 3 and has no right to describe its configs."""
    responds = ProvingBroker(1, release=release)
    if release >= (4, 4):
        responds.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: NO_RIGHT)
    assert isinstance(connected(responds), OtherBroker)


@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_the_broker_of_another_cluster_with_the_same_id_does_not(release: tuple[int, int]) -> None:
    refused = connected(ProvingBroker(3, cluster="other", release=release))
    assert isinstance(refused, OtherBroker)
    assert str(refused) == (f"a broker of cluster other responds at the address of broker 3 of cluster c; {ELSEWHERE}")


@pytest.mark.parametrize("release", [(3, 9), (4, 4)])
def test_by_its_address_every_broker_that_responds_is_the_broker(release: tuple[int, int]) -> None:
    other = ProvingBroker(2, release=release)
    assert not isinstance(connected(other, identity=IdentityMode.ADDRESS), Exception)
    assert set(other.received) == {ApiKey.API_VERSIONS}


def test_a_broker_that_accepts_every_id_has_to_describe_its_configs() -> None:
    """A controller of Kafka 4.4 does, as a broker would that compares none."""
    accepting = ProvingBroker(3)
    accepting.handles[ApiKey.API_VERSIONS] = api_versions({})
    assert not isinstance(connected(accepting), Exception)
    assert ApiKey.DESCRIBE_CONFIGS in accepting.received
    accepting = ProvingBroker(2)
    accepting.handles[ApiKey.API_VERSIONS] = api_versions({})
    assert isinstance(connected(accepting), OtherBroker)


def test_a_proxy_that_sends_each_request_to_the_broker_that_it_names_is_no_proof() -> None:
    """It responds by the configs of whichever broker is named, and by one broker's log."""
    proxy = ProvingBroker(2, release=(3, 9))
    proxy.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: 0)
    refused = connected(proxy)
    assert isinstance(refused, UnprovableBroker)
    assert str(refused).startswith(
        "broker 3 gives no proof which one it is, so that its log cannot count: connect to it without a proxy, since what is "
        f"at its address responds for 1 too, {BY_ADDRESS}"
    )


def test_the_other_id_is_one_that_there_is_though_brokers_are_forgotten() -> None:
    """A proxy has no broker 4 to send the request to, so that its refusal of 4 would count as that of broker 3."""

    async def scenario() -> None:
        proxy = ProvingBroker(2, release=(3, 9))
        proxy.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda named: 0 if named in (1, 2, 3) else 42)
        await proxy.start()
        known = known_at({})
        known._brokers.addresses = dict.fromkeys((1, 2, 3), ("127.0.0.1", proxy.port))
        with pytest.raises(UnprovableBroker):
            await known.connection(3)
        known.close()
        await proxy.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (NO_RIGHT, "grant DESCRIBE_CONFIGS on the cluster to this user"),
        (UNSUPPORTED, "make it describe its own configs (UNSUPPORTED_VERSION)"),
    ],
)
def test_who_cannot_have_a_proof_reads_what_to_grant_or_to_set(error: int, remedy: str) -> None:
    broker = ProvingBroker(3, release=(3, 9))
    broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: error)
    refused = connected(broker)
    assert isinstance(refused, UnprovableBroker)
    assert str(refused) == (
        f"broker 3 gives no proof which one it is, so that its log cannot count: {remedy}, {BY_ADDRESS}"
    )


@pytest.mark.parametrize("named", [1, 3])
@pytest.mark.parametrize("error", [UNKNOWN, TIMED_OUT])
def test_an_error_that_passes_does_not_count_as_a_broker_without_a_proof(error: int, named: int) -> None:
    """Of its own configs, and of those of another broker, which it should refuse."""
    broker = ProvingBroker(3, release=(3, 9))
    broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda of: error if of == named else only(3)(of))
    refused = connected(broker)
    assert (type(refused), str(refused).split(" (")[0]) == (
        ClusterUnreachable,
        "broker 3 does not describe configs now",
    )


async def _no_results(_: object) -> DescribeConfigsResponseData:
    return DescribeConfigsResponseData(results=[])


def of_no_cluster() -> ProvingBroker:
    broker = ProvingBroker(3, release=(3, 9))
    broker.cluster = None  # type: ignore[assignment]
    return broker


def with_old_metadata() -> ProvingBroker:
    """Metadata names the cluster from version 2."""
    broker = ProvingBroker(3, release=(3, 9))
    broker.handles[ApiKey.API_VERSIONS] = api_versions({ApiKey.API_VERSIONS: 4, ApiKey.METADATA: 1})
    return broker


def without_configs() -> ProvingBroker:
    broker = ProvingBroker(3, release=(3, 9))
    broker.handles[ApiKey.API_VERSIONS] = api_versions({ApiKey.API_VERSIONS: 4, ApiKey.DESCRIBE_CONFIGS: -1})
    return broker


def with_empty_results() -> ProvingBroker:
    broker = ProvingBroker(3, release=(3, 9))
    broker.handles[ApiKey.DESCRIBE_CONFIGS] = _no_results
    return broker


@pytest.mark.parametrize("made", [of_no_cluster, with_old_metadata, without_configs, with_empty_results])
def test_who_can_never_have_a_proof_does_not_start_and_reads_what_to_set(made: Callable[[], ProvingBroker]) -> None:
    """Nor does a broker of that kind prove itself later, in a cluster whose id is known."""
    refused = connected(made())
    assert isinstance(refused, UnprovableBroker)
    assert str(refused).endswith(BY_ADDRESS)

    async def start() -> None:
        broker = made()
        await broker.start()
        broker.reported = [MetadataResponseBroker(node_id=3, host="127.0.0.1", port=broker.port)]
        known = KnownBrokers(f"127.0.0.1:{broker.port}", Login(), Random(1), IdentityMode.PROVED)
        try:
            await known.refresh()
            await known.require_proofs()
        finally:
            known.close()
            await broker.close()

    with pytest.raises(UnprovableBroker, match=re.escape(BY_ADDRESS)):
        asyncio.run(start())


def test_without_proofs_a_cluster_needs_no_id() -> None:
    async def refreshed() -> list[int]:
        broker = with_old_metadata()
        await broker.start()
        broker.reported = [MetadataResponseBroker(node_id=3, host="127.0.0.1", port=broker.port)]
        known = KnownBrokers(f"127.0.0.1:{broker.port}", Login(), Random(1), IdentityMode.ADDRESS)
        await known.refresh()
        known.close()
        await broker.close()
        return [*known.by_id]

    assert asyncio.run(refreshed()) == [3]


@pytest.mark.parametrize("has_proved", [True, False])
def test_where_every_address_is_anothers_the_start_names_the_setting(has_proved: bool) -> None:
    """As behind a proxy that passes nothing on by its id. One broker that is proved, and the others may be there later."""

    async def start() -> None:
        brokers: dict[int, FakeBroker] = {1: ProvingBroker(1 if has_proved else 7, release=(3, 9))}
        brokers |= {number: ProvingBroker(7, release=(3, 9)) for number in (2, 3)}
        for broker in brokers.values():
            await broker.start()
        known = known_at(brokers)
        try:
            await known.require_proofs()
        finally:
            known.close()
            for broker in brokers.values():
                await broker.close()

    if has_proved:
        asyncio.run(start())
    else:
        with pytest.raises(OtherBroker, match=re.escape(f"{ELSEWHERE}, {BY_ADDRESS}")):
            asyncio.run(start())


def test_every_connection_is_proved_anew() -> None:
    """The broker ends the first one, and another broker responds at its address from then on."""

    async def scenario() -> None:
        broker = ProvingBroker(3)
        await broker.start()
        known = known_at({3: broker})
        first = await known.connection(3)
        assert await known.connection(3) is first
        assert broker.received.count(ApiKey.METADATA) == 1
        first.close()
        broker.handles[ApiKey.API_VERSIONS] = api_versions({}, ("c", 2))
        with pytest.raises(OtherBroker):
            await known.connection(3)
        async with asyncio.timeout(WITHIN_SECONDS):
            # Both: nobody uses a connection that was not proved.
            while broker.ended < 2:
                await asyncio.sleep(0.01)
        broker.handles[ApiKey.API_VERSIONS] = api_versions({}, ("c", 3))
        assert await known.connection(3) is not first
        known.close()
        await broker.close()

    asyncio.run(scenario())


def test_without_the_right_that_was_taken_away_open_connections_stay_proved_and_new_ones_are_not() -> None:
    async def scenario() -> None:
        broker = ProvingBroker(3, release=(3, 9))
        await broker.start()
        known = known_at({3: broker})
        first = await known.connection(3)
        broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: NO_RIGHT)
        assert await known.connection(3) is first
        first.close()
        with pytest.raises(UnprovableBroker):
            await known.connection(3)
        broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(only(3))
        assert not (await known.connection(3)).closed
        known.close()
        await broker.close()

    asyncio.run(scenario())


def test_a_cluster_does_not_become_another_one() -> None:
    async def scenario() -> None:
        broker = ProvingBroker(1)
        await broker.start()
        broker.reported = [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)]
        known = KnownBrokers(f"127.0.0.1:{broker.port}", Login(), Random(1), IdentityMode.PROVED)
        known.record(1, "127.0.0.1", broker.port)
        with pytest.raises(ClusterUnreachable, match="broker 1 cannot be proved before the cluster's id is known"):
            await known.connection(1)
        known.by_id.clear()
        await known.refresh()
        broker.cluster = "other"
        with pytest.raises(
            OtherBroker, match="metadata is of cluster other, and the brokers before were of c: an addr"
        ):
            await known.refresh()
        assert known.cluster_id == "c"
        known.close()
        await broker.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("identity", list(IdentityMode))
def test_who_needs_proofs_does_not_start_where_a_broker_can_give_none(identity: IdentityMode) -> None:
    """A broker that is down, or whose address another one has, hinders no start."""

    async def scenario() -> list[str]:
        proving, silent, misplaced, unprovable = (
            ProvingBroker(1),
            FakeBroker(),
            ProvingBroker(1),
            ProvingBroker(4, release=(3, 9)),
        )
        unprovable.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: NO_RIGHT)
        silent.handles.clear()
        started: list[str] = []
        every = {1: proving, 2: silent, 3: misplaced, 4: unprovable}
        for broker in every.values():
            await broker.start()
        for some in ({1, 2, 3}, {1, 2, 3, 4}):
            known = known_at({number: every[number] for number in some}, identity)
            try:
                await known.require_proofs()
                started.append("started")
            except UnprovableBroker as error:
                started.append(str(error)[:30])
            known.close()
        for broker in every.values():
            await broker.close()
        return started

    refused = "broker 4 gives no proof which o" if identity is IdentityMode.PROVED else "started"
    assert asyncio.run(scenario()) == ["started", refused[:30]]


def test_a_start_ends_as_soon_as_one_broker_can_give_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_brokers, "PROOF_SECONDS", WITHIN_SECONDS)

    async def still_opening() -> list[int]:
        silent, unprovable = FakeBroker(), without_configs()
        silent.handles.clear()
        await silent.start()
        await unprovable.start()
        known = known_at({1: silent, 3: unprovable})
        with pytest.raises(UnprovableBroker):
            await known.require_proofs()
        opening = [*known._brokers._opening]
        known.close()
        await silent.close()
        await unprovable.close()
        return opening

    assert asyncio.run(still_opening()) == [1]


def test_an_identity_is_one_of_two() -> None:
    assert identity_of("k", "address") is IdentityMode.ADDRESS
    with pytest.raises(UsageError, match=r"^broker_identity 'name': it is proved or address$"):
        identity_of("broker_identity", "name")
