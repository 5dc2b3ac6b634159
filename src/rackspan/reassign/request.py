"""The request of an operator for a plan."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, Bools, Topic
from rackspan.text import nearest


@dataclass(frozen=True, slots=True)
class ReassignmentRequest:
    """A repair, and what else the plan does.

    `drain`: brokers that hold nothing afterwards. `replace`: the same, and what they held stays in their rack
    where the constraints leave the choice. `replication_factor`: the factor of every chosen topic afterwards.
    `topics`: a regular expression that must match a whole topic name; None chooses all. `balance`: also move replicas
    onto brokers that hold too few, new ones above all. `reorder_leaders`: spread preferred leaders by reordering, which
    copies nothing. `replace_missing`: brokers that hold replicas and are not listed are gone for good; without it their
    partitions are left as they are, since before Kafka 4 a broker that restarts is not listed either.
    `allow_fewer_racks`: partitions may end less safe than they are; without it they are left as they are.
    `leaders`: nothing but preferred leaders of topics with `leader.racks`, brought into these racks by reordering.
    """

    drain: frozenset[int] = frozenset()
    replace: frozenset[int] = frozenset()
    replication_factor: int | None = None
    topics: str | None = None
    balance: bool = False
    reorder_leaders: bool = True
    replace_missing: bool = False
    allow_fewer_racks: bool = False
    leaders: bool = False

    def __post_init__(self) -> None:
        factor = self.replication_factor
        if factor is not None and not 1 <= factor <= INT32_MAX:
            raise UsageError(f"replication factor {factor}: a partition has 1 replica or more; name 1 to {INT32_MAX}")
        if self.topics is not None:
            _compiled(self.topics)
        if self.leaders and replace(self, topics=None, leaders=False) != ReassignmentRequest():
            raise UsageError("--leaders: copies nothing and plans nothing else; give it with --topic at most")

    @property
    def leaving(self) -> frozenset[int]:
        """Brokers that hold nothing afterwards."""
        return self.drain | self.replace


def chosen_topics(topics: Sequence[Topic], pattern: str | None) -> Bools:
    """Which topics a request chooses, one entry for each topic code. Errors: UsageError for a pattern that matches none."""
    if pattern is None:
        return np.ones(len(topics), dtype=np.bool_)
    matcher = _compiled(pattern)
    chosen = np.array([matcher.fullmatch(topic.name) is not None for topic in topics], dtype=np.bool_)
    if not chosen.any():
        alike = nearest(pattern, [topic.name for topic in topics])
        raise UsageError(f"--topic {pattern!r}: no topic has such a name{alike or '; list them with rackspan audit'}")
    return chosen


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"--topic {pattern!r}: not a regular expression: {error}; write one such as orders-.*"
        ) from None
