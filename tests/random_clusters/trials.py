"""Trials of judges on many random clusters, and the smallest cluster that still shows a fault.

`python -m tests.random_clusters --first 0 --count 1000 --judge remedies --out FOLDER` writes a snapshot for each kind of fault.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from rackspan.errors import InvalidSnapshot
from tests.random_clusters.judged import JUDGES
from tests.random_clusters.states import RandomCluster, random_cluster


class Fault(NamedTuple):
    """The words of a judge about a cluster. `name` and `seed` draw it again."""

    name: str
    seed: int
    states: tuple[str, ...]
    words: str

    def __str__(self) -> str:
        return f"{self.name}, seed {self.seed} ({', '.join(self.states) or 'no state'}): {self.words}"


def trial(name: str, seeds: Iterable[int], only: str = "") -> Iterator[Fault]:
    """The faults that one judge finds."""
    for seed in seeds:
        cluster = random_cluster(Random(seed), only=only)
        for words in JUDGES[name](cluster):
            yield Fault(name, seed, tuple(cluster.states), words)


def kind(words: str) -> str:
    """The words of a fault without names and numbers."""
    return re.sub(r"\b(t\d|__consumer_offsets|\d+|[a-e])\b", "_", re.sub(r"[\[{(].*?[\]})]", "_", words))[:160]


def smallest(fault: Fault, only: str = "") -> RandomCluster:
    """The cluster of a fault without whatever the fault does without: topics, partitions, members, configs."""
    cluster = random_cluster(Random(fault.seed), only=only)
    wanted, state = kind(fault.words), cluster.rng.getstate()

    def shows(document: dict[str, Any]) -> bool:
        tried = cluster.copy()
        tried.document, tried.rng = document, Random()
        tried.rng.setstate(state)
        try:
            return wanted in {kind(words) for words in JUDGES[fault.name](tried)}
        except (InvalidSnapshot, IndexError, ValueError, KeyError):
            return False

    document, smaller = cluster.document, True
    while smaller:
        smaller = False
        for less in _parts_left_out(document):
            if shows(less):
                document, smaller = less, True
                break
    cluster.document = document
    return cluster


def _parts_left_out(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for key in ("topics", "controllers", "brokers", "partial"):
        for at in range(len(document[key])):
            yield {**document, key: document[key][:at] + document[key][at + 1 :]}
    for at, topic in enumerate(document["topics"]):
        before, after = document["topics"][:at], document["topics"][at + 1 :]
        for config in topic["config"]:
            less = {key: value for key, value in topic["config"].items() if key != config}
            yield {**document, "topics": [*before, {**topic, "config": less}, *after]}
        for row in range(len(topic["partitions"])):
            rows = topic["partitions"][:row] + topic["partitions"][row + 1 :]
            yield {**document, "topics": [*before, {**topic, "partitions": rows}, *after]}


def write_kinds(faults: Iterable[Fault], folder: Path, only: str = "") -> Counter[str]:
    """Write the smallest cluster of each kind of fault; returns how many faults of each there were."""
    counts, first = Counter[str](), dict[str, Fault]()
    for fault in faults:
        counts[f"{fault.name}: {kind(fault.words)}"] += 1
        first.setdefault(f"{fault.name}: {kind(fault.words)}", fault)
    folder.mkdir(parents=True, exist_ok=True)
    for fault in first.values():
        least = smallest(fault, only)
        more = {
            "fault": str(fault),
            "policy": least.policy,
            "failed": sorted(least.failed),
            "stale": sorted(least.stale),
        }
        path = folder / f"{fault.name.replace(' ', '-')}-{fault.seed}-{crc32(kind(fault.words).encode()):08x}.json"
        path.write_text(json.dumps({**more, "snapshot": least.document}, indent=1))
    return counts
