"""Readiness, and metrics that only gateways with a placer, controllers or clients that were turned away have."""

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.gateways.registrations import confirmation_record, optional_key
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.core.policies import Entry, Scope
from rackspan.gateway.metrics import READY_SECONDS, _readiness, families, http_endpoint, not_ready
from tests.gateway.core.gateways.test_differences import Record, written
from tests.gateway.running import RunningGateway, running
from tests.waiting import eventually


@pytest.fixture
def placing(cluster: EmbeddedCluster) -> Iterator[RunningGateway]:
    with running(
        cluster.bootstrap_servers, **{"placement.replica.placer.class.name": "striped", "readers": {"rack": "r1"}}
    ) as gateway:
        yield gateway


def values(gateway: RunningGateway) -> dict[str, float]:
    """Samples by name and labels, as Prometheus writes them."""

    async def read() -> dict[str, float]:
        return {
            f"{sample.name} {','.join(map(str, sample.labels.values()))}".strip(): sample.value
            for family in families(gateway.gateway)
            for sample in family.samples
        }

    return gateway.run(read())


def registered(gateway: Any, *records: Record) -> None:
    """The records of the config topic that are no values are these from now on."""
    gateways = gateway.guarding.config_topic.gateways
    if not gateway.heartbeats._ended:
        eventually(lambda: gateway.backend.name in gateways.gateways, "the gateway has registered")
    gateway.heartbeats._ended = True
    gateways._state.gateways.clear()
    for key, value in records:
        gateways.observe(optional_key(key), value)


def test_counters_of_what_the_gateway_did_are_served(placing: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = placing.gateway
    registered(made, written("third", 0), written("other", 0, release="0.1.0", lease_seconds=7))
    made.admin.topics.placements, made.admin.topics.placement_failures = 3, 2
    made.fetch.written, made.fetch.redirects.left_alone, made.fetch.refused = 5, 4, 9
    # None of those that are there counts: a client of another test may look for its broker at this port.
    shared = SimpleNamespace(requests={18: 8, 9999: 1}, frames=SimpleNamespace(used=20))
    clients = SimpleNamespace(sessions={1, 2}, accepted=7, refused={"limit": 6}, shared=shared)
    monkeypatch.setattr(made, "clients", clients)
    made.guarding.quorum = SimpleNamespace(image=CommittedImage(offset=77))
    made.guarding.config_topic.log_start_offset = 11
    made.guarding.config_topic._records.lost.add(b"k")
    produce = made.guarding.produce
    produce.log_reader.reads, produce.log_reader.failures = 13, 12
    produce.sampler.samples, produce.sampler.failures = 15, 14
    made.guarding.guard.late_records = 16
    made.policies.unreadable_keys = 17
    made.policies.lowered = 18
    made.heartbeats.failures = 19
    unreadable = Scope.TOPIC, "unread"
    made.policies.entries[unreadable] = Entry(1, readable=False)
    # Read when the gateway starts.
    eventually(lambda: made.backend.unenforced.count is not None, "the brokers' configs are read")
    try:
        found = values(placing)
    finally:
        made.guarding.quorum = None
        del made.policies.entries[unreadable]
        monkeypatch.undo()
    expected = {
        "rackspan_gateway_placements_total": 3,
        "rackspan_gateway_placement_failures_total": 2,
        "rackspan_gateway_fetches_with_rack_total": 5,
        "rackspan_gateway_clients_left_alone_total": 4,
        "rackspan_gateway_refused_replica_fetches_total": 9,
        "rackspan_gateway_connections": 2,
        "rackspan_gateway_connections_accepted_total": 7,
        "rackspan_gateway_connections_refused_total limit": 6,
        "rackspan_gateway_requests_total api_versions": 8,
        "rackspan_gateway_requests_total 9999": 1,
        "rackspan_gateway_request_memory_bytes": 20,
        "rackspan_gateway_metadata_log_offset": 77,
        "rackspan_gateway_config_topic_current": 1,
        "rackspan_gateway_config_topic_created": 1,
        "rackspan_gateway_registered_gateways": 2,
        "rackspan_gateway_differing_gateways other,older": 1,
        "rackspan_gateway_differing_gateways other,lease": 1,
        "rackspan_gateway_heartbeat_failures_total": 19,
        "rackspan_gateway_config_topic_log_start_offset": 11,
        "rackspan_gateway_config_topic_lost_values": 1,
        "rackspan_gateway_held_responses": 0,
        "rackspan_gateway_log_reads_total": 13,
        "rackspan_gateway_log_read_failures_total": 12,
        "rackspan_gateway_samples_total": 15,
        "rackspan_gateway_sample_failures_total": 14,
        "rackspan_gateway_late_records_total": 16,
        "rackspan_gateway_late_records_seconds": 0,
        "rackspan_gateway_unreadable_records": 18,
        "rackspan_gateway_lowered_values_total": 18,
        "rackspan_gateway_unenforced_values": 0,
        "rackspan_gateway_guarded_topics": 0,
        "rackspan_gateway_override_min_insync_racks": 0,
        # A value was lost.
        "rackspan_gateway_ready": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert 0 < found["rackspan_gateway_config_lease_seconds"] <= LEASE_SECONDS


def test_a_gateway_is_ready_while_everything_that_it_follows_is_current(placing: RunningGateway) -> None:
    made: Any = placing.gateway

    def page() -> tuple[int, str]:
        async def read() -> tuple[int, str]:
            return _readiness(made)

        return placing.run(read())

    registered(made)
    status, warned = page()
    assert (status, warned.count("\n")) == (200, 2)
    assert "its values of min.insync.racks are not confirmed" in warned
    registered(made, confirmation_record(), written("other", 0, mode="off"))
    status, warned = page()
    assert (status, warned.count("\n")) == (200, 2)
    assert warned.startswith(
        "ready\nwarning: gateway other is in mode off, which acknowledges what mode verified holds"
    )
    registered(made, confirmation_record())
    assert page() == (200, "ready\n")
    topic = made.guarding.config_topic
    topic._records.lost.add(b"k")
    lost = f"the config topic {topic.topic} lost 1 value without a tombstone; set them again\n"
    assert page() == (503, lost)
    topic._records.lost.clear()
    made.guarding.quorum = SimpleNamespace(image=CommittedImage())
    made.guarding.produce.sampler.failing = True
    assert page() == (503, "the controllers' log cannot be read\n")
    made.guarding.quorum = None
    listener = made.listeners.by_broker.pop(2)
    no_listener = "broker 2 has no listener, so that responses that name it fail; the log says why\n"
    assert page() == (503, no_listener)
    made.listeners.by_broker[2] = listener
    made.draining = True
    assert page() == (503, "ending\n")
    made.draining = False
    made.backend.unenforced._sources[2] = frozenset({2})
    (unenforced,) = made.backend.unenforced.warnings()
    assert page() == (200, f"ready\nwarning: {unenforced}\n")
    made.backend.unenforced._sources.clear()
    late = SimpleNamespace(seconds=3, __str__=lambda _: "late")
    made.guarding.guard.disagreement = lambda _: late
    assert page() == (200, f"ready\nwarning: {late}\n")
    assert values(placing)["rackspan_gateway_late_records_seconds"] == 3


def test_without_a_guard_a_gateway_is_ready_by_its_brokers_alone() -> None:
    async def reasons() -> list[str | None]:
        now = asyncio.get_running_loop().time()
        of_refresh = (None, now - READY_SECONDS - 1, now)
        made = [
            SimpleNamespace(
                draining=False,
                cluster=SimpleNamespace(refreshed_at=at),
                listeners=SimpleNamespace(missing=[]),
                guarding=None,
                warnings=lambda: ["a rack is missing"],
            )
            for at in of_refresh
        ]
        assert _readiness(made[2]) == (200, "ready\nwarning: a rack is missing\n")  # type: ignore[arg-type]
        return [not_ready(one) for one in made]  # type: ignore[arg-type]

    silent = "the cluster does not respond"
    assert asyncio.run(reasons()) == [silent, silent, None]


@pytest.mark.parametrize("listen", ["9000", ":9000", "host:", "host:x", "host:65536", ""])
def test_an_address_of_metrics_has_a_host_and_a_port(listen: str) -> None:
    with pytest.raises(UsageError, match=f"listen.http is {listen!r}, expected HOST:PORT"):
        http_endpoint(SimpleNamespace(), listen)  # type: ignore[arg-type]
