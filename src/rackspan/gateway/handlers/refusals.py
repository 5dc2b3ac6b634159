"""Refused partitions, counted for metrics and logged.

The log has a few lines of each topic and cause in a period: a lost rack refuses thousands of requests a second.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from rackspan.acks.min_insync_racks import ProduceVerdict
from rackspan.acks.produce_errors import Cause, Refusal
from rackspan.gateway.net.session import ClientSession

log = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 1.0
MOST_LINES: Final = 5
"""Log lines for one topic, cause and stage in a period."""

_MOST_TOPICS: Final = 100
_MOST_COUNTED: Final = 10_000
_OTHERS: Final = "(others)"
"""Further topics in a period share their lines, further partitions their counter: a client chooses how many it names, existing or not."""

_AFTER: Final = frozenset(
    {ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)
_NOT_BY_RACKS: Final = frozenset({Cause.REPLICAS, Cause.ORDER, Cause.CONFIG})


class Refusals:
    """All refusals of a process. The caller ends each period of the log."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, int, Cause, bool, str]] = Counter()
        """By topic, partition, cause, whether it was after the append, and the racks that were in sync."""
        self.rack_check_failures: Counter[int] = Counter()
        """Requests refused because of too few racks, by broker (RackCheckFailureRate)."""
        self._lines: Counter[tuple[str, str, str]] = Counter()
        """In this period, by topic, cause, and `before` or `after` the append."""

    def count(self, session: ClientSession, refusals: Iterable[Refusal]) -> None:
        """Count and log the refusals of one request."""
        by_racks = False
        for refusal in refusals:
            after = refusal.verdict in _AFTER
            topic, partition = refusal.partition
            key = topic, partition, refusal.cause, after, ",".join(refusal.isr_racks)
            if key not in self.counts and len(self.counts) >= _MOST_COUNTED:
                key = _OTHERS, -1, refusal.cause, after, ""
            self.counts[key] += 1
            by_racks = by_racks or refusal.cause not in _NOT_BY_RACKS
            self.write(refusal, "after" if after else "before", session.peer)
        if by_racks:
            self.rack_check_failures[session.broker] += 1

    def write(self, refusal: Refusal, stage: str, client: str) -> None:
        """Log one refusal, unless its topic, cause and stage had enough lines in this period."""
        topic, partition = refusal.partition
        cause = refusal.cause.name.lower()
        kind = topic, cause, stage
        if kind not in self._lines and len(self._lines) >= _MOST_TOPICS:
            kind = _OTHERS, cause, stage
        self._lines[kind] += 1
        if self._lines[kind] > MOST_LINES:
            return
        fields = {
            "topic": topic,
            "partition": partition,
            "cause": cause,
            "stage": stage,
            "racks": refusal.isr_racks,
            "client": client,
        }
        log.warning(
            "refused %s append: %s client=%s cause=%s",
            stage,
            refusal.message or f"{topic}-{partition}",  # Of too few replicas clients get the code alone, as from Kafka.
            client,
            refusal.cause.name,
            extra={"fields": fields},
        )

    def end_period(self) -> None:
        """Log how many refusals had no line of their own, and begin again."""
        for (topic, cause, stage), count in self._lines.items():
            if count > MOST_LINES:
                suppressed = count - MOST_LINES
                fields = {"topic": topic, "cause": cause, "stage": stage, "suppressed": suppressed}
                log.warning(
                    "refused %s append: topic %s, %d more without a line of their own cause=%s",
                    stage,
                    topic,
                    suppressed,
                    cause.upper(),
                    extra={"fields": fields},
                )
        self._lines.clear()
