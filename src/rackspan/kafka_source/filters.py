"""Filters that Spark hands down: conditions on topic, partition and offset become bounds of what is fetched. Pure.

A filter that is taken over holds exactly, so Spark need not test it again. All others stay with Spark.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from rackspan.kafka_source.ranges import OffsetRange
from rackspan.model.ids import INT64_MAX, TopicPartition

_EXACT: Final = ("EqualTo", "EqualNullSafe")


@dataclass(frozen=True, slots=True)
class Bounds:
    """None is no bound. Offsets: at_least <= offset < below."""

    topics: frozenset[str] | None = None
    numbers: frozenset[int] | None = None
    at_least: int = 0
    below: int = INT64_MAX

    @property
    def leaves_out_partitions(self) -> bool:
        return self.topics is not None or self.numbers is not None

    def partitions(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        return [
            partition
            for partition in partitions
            if (self.topics is None or partition.topic in self.topics)
            and (self.numbers is None or partition.partition in self.numbers)
        ]

    def narrowed(self, whole: OffsetRange) -> OffsetRange:
        """The part of a range within the bounds; empty if there is none."""
        start = max(whole.start, self.at_least)
        return replace(whole, start=start, end=max(start, min(whole.end, self.below)))

    def pushed(self, filters: Iterable[Any]) -> tuple["Bounds", list[Any]]:
        """Bounds with all filters that can be bounds, and the filters that cannot."""
        bounds, rest = self, []
        for condition in filters:
            narrower = bounds._with(condition)
            if narrower is None:
                rest.append(condition)
            else:
                bounds = narrower
        return bounds, rest

    def _with(self, condition: Any) -> "Bounds | None":
        kind, attribute = type(condition).__name__, getattr(condition, "attribute", None)
        if kind == "IsNotNull" and attribute in (("topic",), ("partition",), ("offset",)):
            return self
        value = getattr(condition, "value", None)
        if value is None:
            return None
        values = frozenset(value) if kind == "In" else frozenset((value,)) if kind in _EXACT else None
        if attribute == ("topic",) and values is not None:
            return replace(self, topics=values if self.topics is None else self.topics & values)
        if attribute == ("partition",) and values is not None:
            return replace(self, numbers=values if self.numbers is None else self.numbers & values)
        if attribute == ("offset",) and isinstance(value, int):
            return self._with_offset(kind, value)
        return None

    def _with_offset(self, kind: str, value: int) -> "Bounds | None":
        at_least, below = {
            "GreaterThan": (value + 1, INT64_MAX),
            "GreaterThanOrEqual": (value, INT64_MAX),
            "LessThan": (0, value),
            "LessThanOrEqual": (0, value + 1),
            **dict.fromkeys(_EXACT, (value, value + 1)),
        }.get(kind, (-1, -1))
        if at_least == below == -1:
            return None
        return replace(self, at_least=max(self.at_least, at_least), below=min(self.below, below))
