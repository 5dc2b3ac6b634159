"""The gateway's metrics for Prometheus, and its health: served over HTTP at listen.http.

/healthz responds 200 while the process runs, /readyz while the cluster and the config topic are followed, /metrics in Prometheus'
text format.
"""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from rackspan.acks.metrics import METRICS
from rackspan.errors import UsageError
from rackspan.gateway.app import Gateway
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey

READY_SECONDS: Final = 30.0
"""The brokers' addresses and the config topic were read within this time."""

_REQUEST_BYTES: Final = 4096
_REQUEST_SECONDS: Final = 5.0
_NAMES: Final = {int(key): key.name.lower() for key in ApiKey}
_FAILURES: Final = next(metric for metric in METRICS if metric.proposed == "RackCheckFailureRate")


def families(gateway: Gateway) -> Iterator[Family]:
    """Every metric of one process."""
    yield _gauge(
        "rackspan_gateway_ready",
        "1 while the gateway serves clients by current metadata, else 0",
        not_ready(gateway) is None,
    )
    yield _gauge("rackspan_gateway_connections", "clients connected", len(gateway.sessions))
    yield _counter("rackspan_gateway_connections_accepted_total", "clients accepted", gateway.connections_accepted)
    refused = CounterMetricFamily(
        "rackspan_gateway_connections_refused_total", "clients turned away", labels=("reason",)
    )
    for reason, count in gateway.connections_refused.items():
        refused.add_metric((reason,), count)
    yield refused
    requests = CounterMetricFamily("rackspan_gateway_requests_total", "requests received", labels=("api",))
    for key, count in gateway.requests.items():
        requests.add_metric((_NAMES.get(key, str(key)),), count)
    yield requests
    yield _gauge("rackspan_gateway_request_memory_bytes", "memory of requests that are read whole", gateway.frames.used)
    yield from _acknowledgements(gateway)
    if gateway.admin is not None and gateway.admin.placer is not None:
        yield _counter(
            "rackspan_gateway_placements_total", "topics that got replicas from the placer", gateway.admin.placements
        )
        yield _counter(
            "rackspan_gateway_placement_failures_total",
            "topics that the placer refused",
            gateway.admin.placement_failures,
        )
    if gateway.config_topic is not None:
        yield _gauge(
            "rackspan_gateway_config_topic_current",
            "1 while the config topic is read to its end",
            gateway.config_topic.current,
        )
        yield _gauge(
            "rackspan_gateway_config_topic_created",
            "1 if this process created the config topic",
            gateway.config_topic.created,
        )
        yield _gauge(
            "rackspan_gateway_config_topic_log_start_offset",
            "above 0 if records of the config topic were deleted",
            gateway.config_topic.log_start_offset,
        )
        yield _gauge(
            "rackspan_gateway_config_topic_lost_values",
            "values that the config topic lost without a tombstone, and that this process keeps",
            len(gateway.config_topic.lost),
        )
    policies = gateway.policies
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
    yield _gauge(
        "rackspan_gateway_override_min_insync_racks",
        "what higher values of min.insync.racks count as; 0 without an override",
        policies.override or 0,
    )


def _acknowledgements(gateway: Gateway) -> Iterator[Family]:
    handler, guard, sampler = gateway.produce, gateway.guard, gateway.sampler
    if handler is None or guard is None or sampler is None:
        return
    refused = CounterMetricFamily(
        "rackspan_gateway_refused_partitions_total",
        "partitions of produce requests that were refused, before or after the append, with the racks in sync",
        labels=("topic", "partition", "cause", "stage", "racks"),
    )
    for (topic, partition, cause, after, isr_racks), count in handler.refusals.items():
        stage = "after" if after else "before"
        refused.add_metric((topic, str(partition), cause.name.lower(), stage, isr_racks), count)
    yield refused
    failures = CounterMetricFamily(_FAILURES.name, _FAILURES.help, labels=("broker", "rack"))
    racks = {int(broker.id): broker.rack or "" for broker in gateway.cluster.all_brokers()}
    for broker in sorted({*racks, *handler.rack_check_failures}):
        failures.add_metric((str(broker), racks.get(broker, "")), handler.rack_check_failures[broker])
    yield failures
    yield _gauge("rackspan_gateway_held_responses", "acknowledgements that wait for verification", guard.held)
    yield _counter(
        "rackspan_gateway_verified_responses_total", "acknowledgements that were held and verified", handler.verified
    )
    yield _counter("rackspan_gateway_hold_seconds_total", "seconds that those were held", handler.hold_seconds)
    late = guard.disagreement(asyncio.get_running_loop().time())
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
    if gateway.log_reader is not None:
        yield _counter("rackspan_gateway_log_reads_total", "requests that read log ends", gateway.log_reader.reads)
        yield _counter(
            "rackspan_gateway_log_read_failures_total",
            "requests that read log ends and failed",
            gateway.log_reader.failures,
        )
    if gateway.quorum is not None:
        yield _gauge(
            "rackspan_gateway_metadata_log_offset",
            "end of the controllers' log as read last",
            gateway.quorum.image.offset,
        )
    yield _counter("rackspan_gateway_samples_total", "samples of the ISR", sampler.samples)
    yield _counter("rackspan_gateway_sample_failures_total", "samples that failed", sampler.failures)


def _gauge(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, value=float(value))


def _counter(name: str, meaning: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(name, meaning, value=float(value))


def not_ready(gateway: Gateway) -> str | None:
    """Why clients should not be sent here now; None where they may."""
    now = asyncio.get_running_loop().time()
    if gateway.draining:
        return "ending"
    if gateway.cluster.refreshed_at is None or now - gateway.cluster.refreshed_at > READY_SECONDS:
        return "the cluster does not respond"
    quorum = gateway.quorum
    if quorum is not None and gateway.sampler is not None and gateway.sampler.failing:
        return "the controllers' log cannot be read"
    topic = gateway.config_topic
    if topic is not None and (topic.read_at is None or now - topic.read_at > READY_SECONDS):
        return f"the config topic {topic.topic} cannot be read"
    if topic is not None and topic.lost:
        return f"the config topic {topic.topic} lost {count_noun(len(topic.lost), 'value')} without a tombstone; set them again"
    return None


class _Collecting(Collector):
    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def collect(self) -> Iterable[Family]:
        return families(self._gateway)


class HttpEndpoint:
    """Listens from `open` until `close`."""

    def __init__(self, gateway: Gateway, listen: str, port_offset: int = 0) -> None:
        """`port_offset`: each worker has a port of its own. Errors: UsageError."""
        self._gateway = gateway
        self._host, _, port = listen.rpartition(":")
        if not self._host or not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"listen.http is {listen!r}, expected HOST:PORT")
        self._port = int(port) + port_offset if int(port) else 0
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Collecting(gateway))
        self._server: asyncio.Server | None = None
        self.address = listen

    async def open(self) -> None:
        """Errors: UsageError."""
        try:
            self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=_REQUEST_BYTES)
        except OSError as error:
            raise UsageError(f"listen.http {self._host}:{self._port}: {error.strerror}; choose another port") from error
        self.address = "{}:{}".format(*self._server.sockets[0].getsockname()[:2])

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                line = await reader.readline()
                while (await reader.readline()).strip():
                    pass
                writer.write(self._response(line.split(b" ")[1:2]))
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    def _response(self, path: list[bytes]) -> bytes:
        if path == [b"/healthz"]:
            return _http(200, b"running\n")
        if path == [b"/readyz"]:
            reason = not_ready(self._gateway)
            return (
                _http(503, f"{reason}\n".encode()) if reason is not None else _http(200, _ready(self._gateway).encode())
            )
        if path == [b"/metrics"]:
            return _http(200, generate_latest(self._registry), "text/plain; version=0.0.4; charset=utf-8")
        return _http(404, b"/healthz, /readyz, /metrics\n")


def _ready(gateway: Gateway) -> str:
    """With what an operator should look at: clients are served all the same, other partitions of theirs as usual."""
    late = None if gateway.guard is None else gateway.guard.disagreement(asyncio.get_running_loop().time())
    warnings = [*gateway.warnings(), *([] if late is None else [str(late)])]
    return "".join(["ready\n", *(f"warning: {warning}\n" for warning in warnings)])


_REASONS: Final = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


def _http(status: int, body: bytes, kind: str = "text/plain; charset=utf-8") -> bytes:
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body
