"""Bytes that clients read, from the metrics of gateways."""

import time
import urllib.request
from collections import Counter
from collections.abc import Sequence
from typing import Final
from urllib.error import URLError

from prometheus_client.parser import text_string_to_metric_families

from rackspan.clients.measured import ReadBytes
from rackspan.errors import SourceError, UsageError

RECORD_BYTES: Final = "rackspan_gateway_record_bytes_total"
"""The gateway's metric; gateway/metrics.py has its labels."""

_PRODUCED: Final = "produce"
_SECONDS: Final = 10.0


def measure(urls: Sequence[str], seconds: float) -> ReadBytes:
    """The bytes read in so many seconds, counted by all of these gateways. Errors: UsageError, SourceError."""
    before = [_counters(url) for url in urls]
    time.sleep(seconds)
    read: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for url, earlier in zip(urls, before, strict=True):
        for (client_id, topic, from_rack, to_rack), size_bytes in _counters(url).items():
            # A gateway that was restarted meanwhile counts from zero.
            passed = size_bytes - earlier[client_id, topic, from_rack, to_rack]
            read.setdefault((client_id, topic), Counter())[from_rack, to_rack] += passed if passed >= 0 else size_bytes
    return read


def _counters(url: str) -> "Counter[tuple[str, str, str, str]]":
    """By client id, topic, from rack and to rack."""
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"--counters {url}: expected a gateway's metrics, such as http://gateway:19091/metrics")
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - http and https only, see above
            text = response.read().decode()
        families = [*text_string_to_metric_families(text)]
    except (OSError, URLError, ValueError) as error:
        raise SourceError(f"--counters {url}: cannot be read: {error}; see listen.http of the gateway's file") from None
    if not any(f"{family.name}_total" == RECORD_BYTES for family in families):
        raise SourceError(f"--counters {url}: has no {RECORD_BYTES}; give the /metrics of a rackspan gateway")
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for family in families:
        for sample in family.samples:
            labels = sample.labels
            if sample.name == RECORD_BYTES and labels["path"] != _PRODUCED:
                key = labels["client_id"], labels["topic"], labels["from_rack"], labels["to_rack"]
                counted[key] += int(sample.value)
    return counted
