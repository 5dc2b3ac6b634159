"""Log lines of refused partitions, a few of each topic and cause in a period: a lost rack refuses thousands of requests a second."""

import logging
from collections import Counter
from typing import Final

from rackspan.acks.produce_errors import Refusal

log = logging.getLogger(__name__)

PERIOD_SECONDS: Final = 1.0
MOST_LINES: Final = 5
"""Of one topic, cause and stage in a period."""

_MOST_TOPICS: Final = 100
_OTHERS: Final = "(others)"
"""Refusals of further topics in a period share their lines."""

Kind = tuple[str, str, str]
"""Topic, cause, and `before` or `after` the append."""


class RefusalLog:
    """Counts the refusals of a period and logs the first ones. The caller ends each period."""

    def __init__(self) -> None:
        self._counts: Counter[Kind] = Counter()

    def write(self, refusal: Refusal, stage: str, client: str) -> None:
        topic, partition = refusal.partition
        cause = refusal.cause.name.lower()
        kind = topic, cause, stage
        if kind not in self._counts and len(self._counts) >= _MOST_TOPICS:
            kind = _OTHERS, cause, stage
        self._counts[kind] += 1
        if self._counts[kind] > MOST_LINES:
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
            refusal.message,
            client,
            refusal.cause.name,
            extra={"fields": fields},
        )

    def end_period(self) -> None:
        """Log how many refusals had no line of their own, and begin again."""
        for (topic, cause, stage), count in self._counts.items():
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
        self._counts.clear()
