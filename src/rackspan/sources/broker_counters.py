"""Bytes that brokers sent to consumers, by topic, from the Prometheus metrics of their exporters.

Known are the names of the JMX exporter, with its example rules and without rules, and of Strimzi. kminion has no such counter.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import Metric
from prometheus_client.samples import Sample

from rackspan.errors import SourceError
from rackspan.model import ClusterSnapshot
from rackspan.sources.gateway_counters import counted_by_gateway, is_gateway, read_metrics
from rackspan.traffic import BrokerBytes, CountedBytes

_STEMS: Final = (
    "kafka_server_brokertopicmetrics_bytesout",
    "kafka_server_brokertopicmetrics_bytesoutpersec",
    "kafka_server_brokertopicmetrics_bytesoutpersec_count",
)
"""In lower case, without `_total`: by the JMX exporter's example rules and Strimzi's, and by rules that keep the name of the MBean."""

_BY_LABEL: Final = "kafka_server_brokertopicmetrics_count"
"""In lower case: the JMX exporter without rules, and MSK; the label `name` has the metric."""

_WITH_BROKER: Final = re.compile(r"(\d+)=(.+)")


@dataclass(frozen=True, slots=True)
class ReadCounters:
    """What gateways have counted, by URL, and what brokers sent, by topic; `brokers` by the option as it was given, ID=URL or URL."""

    gateways: Mapping[str, CountedBytes]
    brokers: Mapping[str, Mapping[str, int]]


def read_counters(given: Sequence[str]) -> ReadCounters:
    """The counters of gateways and of brokers, each since its process started. Errors: UsageError, SourceError."""
    gateways: dict[str, CountedBytes] = {}
    brokers: dict[str, Mapping[str, int]] = {}
    for option in given:
        numbered = _WITH_BROKER.fullmatch(option)
        url = numbered[2] if numbered else option
        families = read_metrics(url)
        if numbered is None and is_gateway(families):
            gateways[url] = counted_by_gateway(families)
        else:
            brokers[option] = _bytes_out(url, families)
    return ReadCounters(gateways, brokers)


def by_broker(read: Mapping[str, Mapping[str, int]], snapshot: ClusterSnapshot) -> BrokerBytes:
    """The bytes of each broker, which the option names, or whose host the URL has. Errors: SourceError."""
    found: dict[int, Mapping[str, int]] = {}
    for option, by_topic in read.items():
        broker = _broker(option, snapshot)
        if broker in found:
            raise SourceError(f"--counters {option}: broker {broker} has counters of another URL too; give one of them")
        found[broker] = by_topic
    return found


def _broker(option: str, snapshot: ClusterSnapshot) -> int:
    ids = {int(broker.id): broker.host for broker in snapshot.brokers}
    numbered = _WITH_BROKER.fullmatch(option)
    if numbered:
        if int(numbered[1]) not in ids:
            raise SourceError(f"--counters {option}: the cluster has no broker {numbered[1]}; it has {sorted(ids)}")
        return int(numbered[1])
    host = urlsplit(option).hostname
    matching = [broker for broker, name in ids.items() if name is not None and name.lower() == host]
    if len(matching) != 1:
        raise SourceError(
            f"--counters {option}: {len(matching)} brokers have the host {host}; name the broker: --counters ID={option}"
        )
    return matching[0]


def _bytes_out(url: str, families: Sequence[Metric]) -> dict[str, int]:
    counts = [sample for family in families for sample in family.samples if _is_bytes_out(family, sample)]
    found: dict[str, int] = {}
    for sample in counts:
        # Those of all topics together have no topic. Exporters write NaN for an attribute without a value.
        if (topic := sample.labels.get("topic")) and isfinite(sample.value):
            # Rules may give the same counter two names.
            found[topic] = max(found.get(topic, 0), int(sample.value))
    if counts:
        return found
    if any(family.name.startswith("kminion_") for family in families):
        raise SourceError(
            f"--counters {url}: kminion does not count what brokers send; give the metrics of each broker's JMX exporter"
        )
    raise SourceError(
        f"--counters {url}: has neither a gateway's counters nor BytesOutPerSec of a broker, such as {_STEMS[0]}_total; give the "
        "/metrics of a rackspan gateway or of a broker's JMX exporter"
    )


def _is_bytes_out(family: Metric, sample: Sample) -> bool:
    name = sample.name.lower()
    # Without a suffix it is a count only where the exporter says so: other rules give the rate this name.
    if family.type != "counter" and not name.endswith(("_total", "_count")):
        return False
    stem = name.removesuffix("_total")
    return stem in _STEMS or (stem == _BY_LABEL and sample.labels.get("name") == "BytesOutPerSec")
