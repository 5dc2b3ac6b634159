"""The gateway's metrics for Prometheus, and its health: served over HTTP at listen.http.

/healthz responds 200 while the process runs, /readyz while the cluster and the config topic are followed, /metrics in Prometheus'
text format.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family

from rackspan.acks.metrics import METADATA_METRICS, METRICS, leader_values
from rackspan.errors import UsageError
from rackspan.gateway.app import Gateway
from rackspan.gateway.clients.connections import Clients
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.core.record_bytes import RecordFlow
from rackspan.gateway.guarding import Guarding
from rackspan.gateway.handlers.refusals import Refusals
from rackspan.gateway.upstream.config_ends import ConfigEndReader
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.guarded_isr import Partitions
from rackspan.model import NO_BROKER, BrokerId
from rackspan.prometheus_metrics.families import BrokerMetrics, broker_families
from rackspan.prometheus_metrics.server import MetricsEndpoint
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey

READY_SECONDS: Final = 30.0
"""The brokers' addresses and the config topic were read within this time."""

_NAMES: Final = {int(key): key.name.lower() for key in ApiKey}
_FAILURES: Final = next(metric for metric in METRICS if metric.proposed == "RackCheckFailureRate")


def families(gateway: Gateway) -> Iterator[Family]:
    """Every metric of one process."""
    yield _gauge(
        "rackspan_gateway_ready",
        "1 while the gateway serves clients by current metadata, else 0",
        not_ready(gateway) is None,
    )
    yield from _connections(gateway.clients)
    yield _record_bytes(gateway.record_bytes.flows)
    if gateway.guarding is not None:
        yield from _acknowledgements(gateway, gateway.guarding)
    if gateway.admin is not None and gateway.backend.placer is not None:
        topics = gateway.admin.topics
        yield _counter(
            "rackspan_gateway_placements_total", "topics that got replicas from the placer", topics.placements
        )
        yield _counter(
            "rackspan_gateway_placement_failures_total", "topics that the placer refused", topics.placement_failures
        )
    yield _counter(
        "rackspan_gateway_refused_replica_fetches_total",
        "fetches that were refused because they named a replica: only brokers may",
        gateway.fetch.refused,
    )
    if gateway.config.readers.is_on:
        yield _counter(
            "rackspan_gateway_fetches_with_rack_total",
            "fetches that got their client's rack here",
            gateway.fetch.written,
        )
        yield _counter(
            "rackspan_gateway_clients_left_alone_total",
            "clients that got no rack for ten minutes, as they did not follow the replica that a leader named",
            gateway.fetch.redirects.left_alone,
        )
    if gateway.guarding is not None and gateway.guarding.config_topic is not None:
        yield from _config_topic(gateway.guarding.config_topic)
        yield from _gateways(gateway, gateway.guarding.config_topic)
    if gateway.heartbeats is not None:
        yield _counter(
            "rackspan_gateway_heartbeat_failures_total",
            "registrations of this gateway in the config topic that failed",
            gateway.heartbeats.failures,
        )
    if gateway.guarding is not None and gateway.guarding.ends is not None:
        yield from _config_lease(gateway.guarding.ends)
    yield from _policies(gateway.policies)
    unenforced = gateway.backend.unenforced.count
    if unenforced is not None:
        yield _gauge(
            "rackspan_gateway_unenforced_values",
            "values of min.insync.racks that were set at Kafka itself, where they guard nothing",
            unenforced,
        )


def _record_bytes(flows: Mapping[RecordFlow, int]) -> Family:
    family = CounterMetricFamily(
        "rackspan_gateway_record_bytes_total",
        "bytes of records between clients and brokers; a rack that is not known is empty",
        labels=RecordFlow._fields,
    )
    for flow, size_bytes in flows.items():
        family.add_metric(flow, size_bytes)
    return family


def _policies(policies: Policies) -> Iterator[Family]:
    yield _gauge(
        "rackspan_gateway_guarded_topics",
        "topics with a value of their own above 1",
        len(policies.guarded_topics()),
    )
    yield _gauge(
        "rackspan_gateway_unreadable_records",
        "topics and brokers whose record in the config topic cannot be read, and records without a readable key",
        len(policies.unreadable) + policies.unreadable_keys,
    )
    yield _counter(
        "rackspan_gateway_lowered_values_total",
        "values of min.insync.racks that a client lowered or removed here, or the gateway's file did",
        policies.lowered,
    )
    yield _gauge(
        "rackspan_gateway_override_min_insync_racks",
        "what higher values of min.insync.racks count as; 0 without an override",
        policies.override or 0,
    )


def _connections(clients: Clients) -> Iterator[Family]:
    yield _gauge("rackspan_gateway_connections", "clients connected", len(clients.sessions))
    yield _counter("rackspan_gateway_connections_accepted_total", "clients accepted", clients.accepted)
    refused = CounterMetricFamily(
        "rackspan_gateway_connections_refused_total", "clients turned away", labels=("reason",)
    )
    for reason, count in clients.refused.items():
        refused.add_metric((reason,), count)
    yield refused
    requests = CounterMetricFamily("rackspan_gateway_requests_total", "requests received", labels=("api",))
    for key, count in clients.shared.requests.items():
        requests.add_metric((_NAMES.get(key, str(key)),), count)
    yield requests
    yield _gauge(
        "rackspan_gateway_request_memory_bytes", "memory of requests that are read whole", clients.shared.frames.used
    )


def _config_topic(topic: ConfigTopic) -> Iterator[Family]:
    yield _gauge("rackspan_gateway_config_topic_current", "1 while the config topic is read to its end", topic.current)
    yield _gauge(
        "rackspan_gateway_config_topic_created",
        "1 from the creation of the config topic until rackspan gateway confirm",
        not topic.gateways.confirmed,
    )
    yield _gauge(
        "rackspan_gateway_config_topic_log_start_offset",
        "above 0 if records of the config topic were deleted",
        topic.log_start_offset,
    )
    yield _gauge(
        "rackspan_gateway_config_topic_lost_values",
        "values that the config topic lost without a tombstone, and that this process keeps",
        len(topic.lost),
    )


def _gateways(gateway: Gateway, topic: ConfigTopic) -> Iterator[Family]:
    yield _gauge(
        "rackspan_gateway_registered_gateways",
        "gateways that are registered in the config topic, this one and silent ones too",
        len(topic.gateways.gateways),
    )
    differing = GaugeMetricFamily(
        "rackspan_gateway_differing_gateways",
        "1 for each other gateway of the cluster that promises less, is older or silent, or has another lease than this one",
        labels=("gateway", "reason"),
    )
    for difference in gateway.backend.differences(topic):
        differing.add_metric((difference.gateway, difference.reason), 1)
    yield differing


def _config_lease(ends: ConfigEndReader) -> Iterator[Family]:
    yield _gauge(
        "rackspan_gateway_config_lease_seconds",
        "seconds until acks=all waits or is refused unless the config topic's end is read again; 0 while it is so",
        ends.left_seconds,
    )
    yield _counter(
        "rackspan_gateway_config_lease_lapses_total",
        "how often the end of the config topic could not be read for as long as a lease on its values lasts",
        ends.lapses,
    )


def _acknowledgements(gateway: Gateway, guarding: Guarding) -> Iterator[Family]:
    produce, guard = guarding.produce, guarding.guard
    yield from _refusals(gateway, produce.refusals)
    if guarding.isr is not None and guarding.isr.by_leader is not None:
        yield from _isr(gateway, guarding.isr.by_leader)
        stopped = GaugeMetricFamily(
            "rackspan_gateway_stopped_partitions",
            "partitions with enough racks in sync, in too few of which a broker responds to this gateway: acks=all is refused here",
            labels=("topic",),
        )
        for topic, count in guarding.isr.stopped.items():
            stopped.add_metric((topic,), count)
        yield stopped
    now = asyncio.get_running_loop().time()
    yield _gauge("rackspan_gateway_held_responses", "acknowledgements that wait for verification", guard.held)
    yield _gauge(
        "rackspan_gateway_oldest_held_response_seconds",
        "for how long the oldest of them has waited; 0 without one",
        guard.oldest_seconds(now),
    )
    yield _gauge(
        "rackspan_gateway_hold_memory_bytes",
        "memory of acknowledgements that wait for a rack or for late logs",
        guard.stalled_bytes,
    )
    yield _counter(
        "rackspan_gateway_hold_overflows_total",
        "acknowledgements that were refused at once, as acknowledgements.hold.memory.bytes leaves no memory to hold them",
        guard.overflows,
    )
    yield _counter(
        "rackspan_gateway_dropped_responses_total",
        "held acknowledgements whose client closed its connection",
        produce.dropped,
    )
    yield _counter(
        "rackspan_gateway_verified_responses_total", "acknowledgements that were held and verified", produce.verified
    )
    yield HistogramMetricFamily(
        "rackspan_gateway_hold_seconds",
        "seconds that acknowledgements were held, those that were refused in the end too",
        buckets=list(produce.holds.buckets()),
        sum_value=produce.holds.sum_seconds,
    )
    late = guard.disagreement(now)
    yield _gauge(
        "rackspan_gateway_late_records_seconds",
        "age of the oldest record that metadata shows in enough racks and replicas' logs do not; 0 below a second",
        0.0 if late is None else late.seconds,
    )
    yield _counter(
        "rackspan_gateway_late_records_total",
        "records that metadata showed in enough racks a second before replicas' logs did, or that were refused for it",
        guard.late_records,
    )
    reader, sampler = produce.log_reader, produce.sampler
    yield _counter("rackspan_gateway_log_reads_total", "requests that read log ends", reader.reads)
    yield _counter(
        "rackspan_gateway_log_read_failures_total", "requests that read log ends and failed", reader.failures
    )
    if guarding.quorum is not None:
        yield _gauge(
            "rackspan_gateway_metadata_log_offset",
            "end of the controllers' log as read last",
            guarding.quorum.image.offset,
        )
    yield _counter("rackspan_gateway_samples_total", "samples of the ISR", sampler.samples)
    yield _counter("rackspan_gateway_sample_failures_total", "samples that failed", sampler.failures)


def _isr(gateway: Gateway, by_leader: Mapping[BrokerId, Partitions]) -> Iterator[Family]:
    """The metrics of min.insync.racks that the proposal has for brokers, of partitions that require more than one rack."""
    racks = {broker.id: broker.rack for broker in gateway.cluster.all_brokers()}
    brokers = [
        BrokerMetrics(
            None if broker == NO_BROKER else broker,
            racks.get(broker),
            leader_values([values for _, _, values in by_leader.get(broker, ())]),
            by_leader.get(broker, ()),
        )
        for broker in sorted({*racks, *by_leader})
    ]
    return broker_families(METADATA_METRICS, brokers, partitions=gateway.config.metrics_partitions)


def _refusals(gateway: Gateway, refusals: Refusals) -> Iterator[Family]:
    refused = CounterMetricFamily(
        "rackspan_gateway_refused_partitions_total",
        "partitions of produce requests that were refused, before or after the append, with the racks in sync",
        labels=("topic", "partition", "cause", "stage", "racks"),
    )
    for (topic, partition, cause, after, isr_racks), count in refusals.counts.items():
        stage = "after" if after else "before"
        refused.add_metric((topic, str(partition), cause.name.lower(), stage, isr_racks), count)
    yield refused
    failures = CounterMetricFamily(_FAILURES.name, _FAILURES.help, labels=("broker", "rack"))
    racks = {int(broker.id): broker.rack or "" for broker in gateway.cluster.all_brokers()}
    for broker in sorted({*racks, *refusals.rack_check_failures}):
        failures.add_metric((str(broker), racks.get(broker, "")), refusals.rack_check_failures[broker])
    yield failures


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=float(value))


def _counter(name: str, meaning: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, meaning, value=float(value))


def not_ready(gateway: Gateway) -> str | None:
    """Why clients should not be sent here now; None if they may."""
    now = asyncio.get_running_loop().time()
    if gateway.draining:
        return "ending"
    if gateway.cluster.refreshed_at is None or now - gateway.cluster.refreshed_at > READY_SECONDS:
        return "the cluster does not respond"
    for broker in gateway.listeners.missing:
        return f"broker {broker} has no listener, so that responses that name it fail; the log says why"
    guarding = gateway.guarding
    if guarding is None:
        return None
    if guarding.quorum is not None and guarding.produce.sampler.failing:
        return "the controllers' log cannot be read"
    topic, ends = guarding.config_topic, guarding.ends
    if ends is not None and ends.lapsed_seconds > READY_SECONDS:
        return ends.warning()
    if topic is not None and ends is None and (topic.read_at is None or now - topic.read_at > READY_SECONDS):
        return f"the config topic {topic.topic} cannot be read"
    if topic is not None and topic.lost:
        return f"the config topic {topic.topic} lost {count_noun(len(topic.lost), 'value')} without a tombstone; set them again"
    return None


def http_endpoint(gateway: Gateway, listen: str, port_offset: int = 0) -> MetricsEndpoint:
    """Health and metrics at `listen`; each worker has a port of its own. Errors: UsageError."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"listen.http is {listen!r}, expected HOST:PORT")
    address = host, int(port) + port_offset if int(port) else 0
    pages = {"/healthz": lambda: (200, "running\n"), "/readyz": lambda: _readiness(gateway)}
    return MetricsEndpoint("listen.http", address, lambda: families(gateway), pages)


def _readiness(gateway: Gateway) -> tuple[int, str]:
    """Status and text of /readyz. Warnings do not end readiness: clients of other partitions are served as usual."""
    reason = not_ready(gateway)
    if reason is not None:
        return 503, f"{reason}\n"
    guarding, now = gateway.guarding, asyncio.get_running_loop().time()
    late = None if guarding is None else guarding.guard.disagreement(now)
    isr = None if guarding is None else guarding.isr
    ends = None if guarding is None else guarding.ends
    warnings = [
        *gateway.warnings(),
        *([ends.warning()] if ends is not None and not ends.is_current() else []),
        *([] if late is None else [str(late)]),
        *([] if isr is None else isr.warnings()),
    ]
    return 200, "".join(["ready\n", *(f"warning: {warning}\n" for warning in warnings)])
