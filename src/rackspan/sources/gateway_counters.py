"""Bytes that clients wrote and read, from the metrics of gateways."""

import http.client
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final
from urllib.error import URLError

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from rackspan.clients.measured import ReadBytes
from rackspan.errors import SourceError, UsageError
from rackspan.traffic import CountedBytes, CountedFlow, TrafficPath, counted_between, read_bytes

RECORD_BYTES: Final = "rackspan_gateway_record_bytes_total"
"""The gateway's metric; gateway/metrics.py has its labels."""

_PATHS: Final = {
    "produce": TrafficPath.PRODUCE,
    "consume_leader": TrafficPath.CONSUME,
    "consume_follower": TrafficPath.FOLLOWER_FETCH,
    # The partition's leader was not known.
    "consume": TrafficPath.CONSUME,
}
"""By the gateway's names."""

_SECONDS: Final = 10.0


def measure(urls: Sequence[str], seconds: float, sleep: Callable[[float], None] = time.sleep) -> ReadBytes:
    """The bytes read in so many seconds, counted by all of these gateways. Errors: UsageError, SourceError."""
    counted = counting(urls)
    sleep(seconds)
    return read_bytes(counted())


def counting(urls: Sequence[str]) -> Callable[[], CountedBytes]:
    """Reads the counters; the returned function reads them again for what passed since. Errors, of both: UsageError, SourceError."""
    before = gateway_counters(urls)
    return lambda: counted_between(before, gateway_counters(urls))


def gateway_counters(urls: Sequence[str]) -> dict[str, CountedBytes]:
    """What each gateway has counted since it started, by URL. Errors: UsageError, SourceError."""
    found: dict[str, CountedBytes] = {}
    for url in urls:
        families = read_metrics(url)
        if not is_gateway(families):
            raise SourceError(f"--counters {url}: has no {RECORD_BYTES}; give the /metrics of a rackspan gateway")
        found[url] = counted_by_gateway(families)
    return found


def read_metrics(url: str) -> list[Metric]:
    """The metrics at a URL of `--counters`. Errors: UsageError for a URL that is none, SourceError."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--counters {url}: expected a gateway's metrics, such as http://gateway:19091/metrics")
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - http and https only, see above
            text = response.read().decode()
        return [*text_string_to_metric_families(text)]
    except (OSError, URLError, http.client.HTTPException, ValueError) as error:
        raise SourceError(f"--counters {url}: cannot be read: {error}; see listen.http of the gateway's file") from None


def is_gateway(families: Sequence[Metric]) -> bool:
    """Whether these are the metrics of a gateway."""
    return any(f"{family.name}_total" == RECORD_BYTES for family in families)


def counted_by_gateway(families: Sequence[Metric]) -> CountedBytes:
    """What a gateway has counted, by its metrics."""
    counted = Counter[CountedFlow]()
    for family in families:
        for sample in family.samples:
            labels = sample.labels
            if sample.name == RECORD_BYTES:
                racks = labels["from_rack"], labels["to_rack"]
                path = _PATHS[labels["path"]]
                counted[CountedFlow(path, labels["topic"], labels["client_id"], *racks)] += int(sample.value)
    return counted
