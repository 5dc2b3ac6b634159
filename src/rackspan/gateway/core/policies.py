"""Requirements of topics: min.insync.racks from the config topic, the gateway's file or the default.

The config topic is compacted, on the cluster itself, and every gateway replays it: a record for each topic or broker that has a
value. A topic's record carries the topic's id, so that a topic created anew under the name starts without a value.
"""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from uuid import UUID

from rackspan.acks.min_insync_racks import Thresholds
from rackspan.acks.verification import Requirement
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS
from rackspan.model.topic import TOPIC_NAME_MAX

log = logging.getLogger(__name__)

_VERSION: Final = 1


class Scope(Enum):
    """Whose config a value is."""

    TOPIC = "topic"
    BROKER = "broker"
    """The empty name is the default of the whole cluster."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value in the config topic. `readable` False: of a record that could not be read, which requires more racks than there are."""

    value: int
    topic_id: UUID | None = None
    readable: bool = True


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """A topic's entry in the gateway's file. `min_insync_racks` None: not set here."""

    min_insync_racks: int | None = None
    fail_open: bool = False


@dataclass(frozen=True, slots=True)
class FilePolicies:
    """Values in the gateway's own file. `override`: values above it count as it, wherever they are set."""

    min_insync_racks: int = 1
    topics: Mapping[str, TopicPolicy] = field(default_factory=dict)
    fail_open: bool = False
    override: int | None = None

    def own(self, topic: str) -> int | None:
        """A topic's own value."""
        written = self.topics.get(topic)
        return None if written is None else written.min_insync_racks


class ValueSource(Enum):
    """Where the value of a topic or broker comes from, in order of precedence."""

    OVERRIDE = "override"
    TOPIC = "topic"
    FILE_TOPIC = "file-topic"
    BROKER = "broker"
    CLUSTER = "cluster"
    FILE = "file"
    DEFAULT = "default"


def record(scope: Scope, name: str, entry: Entry | None) -> tuple[bytes, bytes | None]:
    """Key and value of the record that sets a value, or removes it."""
    key = json.dumps({"type": scope.value, "name": name}, sort_keys=True).encode()
    if entry is None:
        return key, None
    value: dict[str, Any] = {"version": _VERSION, MIN_INSYNC_RACKS: entry.value}
    if entry.topic_id is not None:
        value["topic_id"] = str(entry.topic_id)
    return key, json.dumps(value, sort_keys=True).encode()


def parse_record(key: bytes | None, value: bytes | None) -> tuple[Scope, str, Entry | None] | None:
    """The inverse of `record`; None for a key that cannot be read, and an entry that is not readable for such a value."""
    try:
        parsed = json.loads(key or b"")
        scope, name = Scope(parsed["type"]), parsed["name"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not isinstance(name, str):
        return None
    return scope, name, None if value is None else _parse_value(value)


def _parse_value(value: bytes) -> Entry:
    try:
        content = json.loads(value)
        racks, topic_id = content[MIN_INSYNC_RACKS], content.get("topic_id")
        if content["version"] == _VERSION and type(racks) is int and 1 <= racks <= INT32_MAX:
            return Entry(racks, None if topic_id is None else UUID(topic_id))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return Entry(INT32_MAX, readable=False)


_MOST_CACHED: Final = 100_000
"""Requirements. A client chooses how many topics it names, existing or not."""

GONE_SECONDS: Final = 60.0
"""A topic is gone when only another id was reported for so long: a broker whose metadata is behind reports an earlier one."""


class Policies:
    """The requirements of all topics. Lookups are cached until something changes."""

    def __init__(self, config: FilePolicies) -> None:
        self._config = config
        self.entries: dict[tuple[Scope, str], Entry] = {}
        self.topic_ids: dict[str, UUID] = {}
        """The ids that the cluster reported last."""
        self.min_insync_replicas: dict[str, int] = {}
        """The values that the cluster reported last, of topics that require more than one rack."""
        self._other_id_since: dict[str, float] = {}
        """When an id other than the entry's was reported first, since the entry's own was reported last."""
        self._other_id_at: dict[str, float] = {}
        """When an id other than the entry's was reported last, until only the entry's own was reported for GONE_SECONDS."""
        self._gone: dict[str, UUID] = {}
        """The entry's id, of topics that were created anew."""
        self._superseded: dict[str, set[UUID]] = {}
        """Ids before those that CreateTopics reported."""
        self.names: dict[UUID, str] = {}
        """The name of each topic id that was reported."""
        self._cache: dict[tuple[str, int], Requirement | None] = {}
        self.unreadable_keys = 0
        """Records of the config topic whose key could not be read."""
        self.lowered = 0
        """Values that a client or the file has lowered or removed in this process."""
        self.changes = 0
        """Increased by whatever may change a requirement."""

    def _changed(self) -> None:
        self.changes += 1
        self._cache.clear()

    def replace_file(self, config: FilePolicies) -> None:
        replaced = self._config
        topics = {topic for topic in {*replaced.topics, *config.topics} if replaced.own(topic) != config.own(topic)}
        values, of_topics = self.values, {topic: self._by_leader(topic) for topic in topics}
        self._config = config
        changes = {place: (value, self.values.get(place, 1)) for place, value in values.items()}
        # A topic's own value in the file precedes those of brokers, and what comes instead of it may be one of those.
        changes |= {_file_place(topic): _worst(before, self._by_leader(topic)) for topic, before in of_topics.items()}
        for place, (before, after) in changes.items():
            if after < before:
                self.record_lowered(place, before, after)
        self._changed()

    def record_lowered(self, place: str, before: int, after: int, *, is_certain: bool = True) -> None:
        """Fewer racks have to hold a record from now on. It may be meant, and is never silent."""
        self.lowered += 1
        log.warning(
            "%s: %s %s lowered from %s to %d, so that acks=all is acknowledged with fewer racks; set it again if that was not meant",
            place,
            MIN_INSYNC_RACKS,
            "is" if is_certain else "may be",
            "a record that cannot be read" if before == INT32_MAX else before,
            after,
        )

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        parsed = parse_record(key, value)
        if parsed is None:
            self.unreadable_keys += 1
            log.error("a record of the config topic has a key that cannot be read, and is not followed: %r", key)
            return
        scope, name, entry = parsed
        if entry is not None and self.entries.get((scope, name)) == entry:
            return
        if entry is None:
            self.entries.pop((scope, name), None)
        else:
            self.entries[scope, name] = entry
            if not entry.readable:
                log.error(
                    "%s %s: its record in the config topic cannot be read, so that acks=all is refused there; update this "
                    "gateway if a later version wrote the record, else set %s again",
                    scope.value,
                    name or "(default)",
                    MIN_INSYNC_RACKS,
                )
        if scope is Scope.TOPIC:
            self._other_id_since.pop(name, None)
            self._other_id_at.pop(name, None)
            self._gone.pop(name, None)
        self._changed()

    @property
    def unreadable(self) -> list[tuple[Scope, str]]:
        """Topics and brokers whose latest record cannot be read."""
        return sorted((key for key, entry in self.entries.items() if not entry.readable), key=str)

    def record_topic(self, topic: str, topic_id: UUID | None, now: float) -> None:
        """A topic's id as a broker reports it, which may be an earlier topic's. `now` in seconds, of one monotonic clock."""
        if topic_id is None:
            return
        self.names[topic_id] = topic
        if self.topic_ids.get(topic) != topic_id:
            self.topic_ids[topic] = topic_id
            self.min_insync_replicas.pop(topic, None)
            self._changed()
        entry = self.entries.get((Scope.TOPIC, topic))
        if entry is None or entry.topic_id is None:
            return
        if entry.topic_id == topic_id:
            self._other_id_since.pop(topic, None)
            # Where it was gone, another id was the last one: that this one is not has been noted above.
            self._gone.pop(topic, None)
            if now - self._other_id_at.get(topic, now) >= GONE_SECONDS:
                del self._other_id_at[topic]
                self._changed()
            return
        self._other_id_at[topic] = now
        if now - self._other_id_since.setdefault(topic, now) >= GONE_SECONDS and topic not in self._gone:
            self._gone[topic] = entry.topic_id
            self._changed()

    def entry_id(self, topic: str) -> UUID | None:
        """The topic id in the topic's entry."""
        entry = self.entries.get((Scope.TOPIC, topic))
        return None if entry is None else entry.topic_id

    def record_created(self, topic: str, earlier: UUID | None, topic_id: UUID | None, now: float) -> None:
        """CreateTopics created a topic. `earlier` is the entry's id when the request was sent: that topic is gone."""
        if earlier is not None:
            self._superseded.setdefault(topic, set()).add(earlier)
            self._changed()
        self.record_topic(topic, topic_id, now)

    def record_min_insync_replicas(self, values: Mapping[str, int]) -> None:
        changed = {topic: value for topic, value in values.items() if self.min_insync_replicas.get(topic) != value}
        if changed:
            self.min_insync_replicas.update(changed)
            self._changed()

    def requirement(self, topic: str, leader: int) -> Requirement | None:
        """The requirement of a topic on one leader; None if one rack is enough."""
        if len(topic) > TOPIC_NAME_MAX:
            # Kafka has no such topic. Names of 32 KB would be kept, and sent to every broker.
            return None
        known = (topic, leader)
        if known not in self._cache:
            if len(self._cache) >= _MOST_CACHED:
                self._cache.clear()
            self._cache[known] = self._requirement(topic, leader)
        return self._cache[known]

    def _requirement(self, topic: str, leader: int) -> Requirement | None:
        racks, _ = self.topic_value(topic, leader)
        if racks <= 1:
            return None
        written = self._config.topics.get(topic)
        fail_open = self._config.fail_open or (written is not None and written.fail_open)
        return Requirement(Thresholds(self.min_insync_replicas.get(topic, 1), racks), fail_open)

    def is_raisable(self, topic: str, leader: int) -> bool:
        """Whether a record of the config topic that is not replayed may require more of the topic on this leader than is required now."""
        override, written = self._config.override, self._config.topics.get(topic)
        if self._config.fail_open or (written is not None and written.fail_open):
            return False
        return override is None or self.topic_value(topic, leader)[0] < override

    def topic_value(self, topic: str, leader: int | None) -> tuple[int, ValueSource]:
        """A topic's value on one leader, and its source."""
        return self._overridden(self._topic_value(topic, leader))

    def _overridden(self, value: tuple[int, ValueSource]) -> tuple[int, ValueSource]:
        override = self._config.override
        return value if override is None or value[0] <= override else (override, ValueSource.OVERRIDE)

    def _topic_value(self, topic: str, leader: int | None) -> tuple[int, ValueSource]:
        entry, without = self.topic_entry(topic), self._value_without(topic, leader)
        if entry is None or (entry.value < without[0] and not self._is_present(topic, entry)):
            return without
        return entry.value, ValueSource.TOPIC

    def _is_present(self, topic: str, entry: Entry) -> bool:
        """Whether the topic that there is is the entry's own. Until that is certain an entry lowers nothing: it may be of an earlier topic."""
        return entry.topic_id is None or (
            self.topic_ids.get(topic) == entry.topic_id and topic not in self._other_id_at
        )

    def _value_without(self, topic: str, leader: int | None) -> tuple[int, ValueSource]:
        """The value of a topic without an entry."""
        written = self._config.own(topic)
        if written is not None:
            return written, ValueSource.FILE_TOPIC
        return self._broker_value(leader)

    def lowering_topics(self) -> list[str]:
        """Topics whose entry requires less than what comes without it. While it does, nothing else may sample their ids."""
        leaders = self._leaders
        return [
            name
            for (scope, name), entry in self.entries.items()
            if scope is Scope.TOPIC and any(entry.value < self._value_without(name, leader)[0] for leader in leaders)
        ]

    def topic_entry(self, topic: str) -> Entry | None:
        """The topic's own value, unless it was set on an earlier topic of that name."""
        entry = self.entries.get((Scope.TOPIC, topic))
        if entry is None or entry.topic_id is None:
            return entry
        gone = self._gone.get(topic) == entry.topic_id or entry.topic_id in self._superseded.get(topic, ())
        return None if gone else entry

    def _broker_value(self, broker: int | None) -> tuple[int, ValueSource]:
        """The value for topics without one of their own."""
        own = self.entries.get((Scope.BROKER, str(broker))) if broker is not None else None
        if own is not None:
            return own.value, ValueSource.BROKER
        default = self.entries.get((Scope.BROKER, ""))
        if default is not None:
            return default.value, ValueSource.CLUSTER
        if self._config.min_insync_racks > 1:
            return self._config.min_insync_racks, ValueSource.FILE
        return 1, ValueSource.DEFAULT

    def broker_value_after(self, broker: int | None, name: str, entry: Entry | None) -> int:
        """The value of a broker once another entry, or none, is set on the broker or default of this name."""
        after = {**self.entries, (Scope.BROKER, name): entry}
        for key in (str(broker), ""):
            found = after.get((Scope.BROKER, key))
            if found is not None:
                return found.value
        return self._config.min_insync_racks

    @property
    def values(self) -> dict[str, int]:
        """Every value in force above 1, by what it is set on. Without entries that cannot be read: no value is known of those."""
        found = {f"the file's acknowledgements.{MIN_INSYNC_RACKS}": self._config.min_insync_racks}
        for topic, written in self._config.topics.items():
            found[_file_place(topic)] = written.min_insync_racks or 1
        for (scope, name), entry in self.entries.items():
            if entry.readable and (scope is Scope.BROKER or self.topic_entry(name) is not None):
                found[f"{scope.value} {name or '(default)'}"] = entry.value
        return {place: self._overridden((value, ValueSource.FILE))[0] for place, value in found.items() if value > 1}

    @property
    def guards_by_default(self) -> bool:
        """Whether topics without a value of their own may require more than one rack."""
        defaults = [entry.value for (scope, _), entry in self.entries.items() if scope is Scope.BROKER]
        return max(self._config.min_insync_racks, *defaults, 1) > 1

    @property
    def largest(self) -> int:
        """The largest value in force anywhere."""
        return max(self.values.values(), default=1)

    def racks_to_hold(self, scope: Scope, name: str, value: int | None) -> int:
        """How many racks have to hold the record that sets a value, or removes it, before that is acknowledged.

        A raise: as many as any value in force requires, or the new one; it must not be lost before the records that it guards. A lowering:
        as many as the new value requires, so that it is possible while a rack is down; if it is lost, the higher value is in force again.
        """
        entry = self.entries.get((scope, name))
        before, after = self.values_around(scope, name, value)
        if (entry is None or entry.readable) and after <= before:
            return after
        return max(self.largest, after)

    def values_around(self, scope: Scope, name: str, value: int | None) -> tuple[int, int]:
        """What a topic, a broker or the default requires now, and with another value of its own, or none.

        What precedes its own value is left out. Without one of its own a topic counts as by the highest that any broker has.
        """
        entry = self.topic_entry(name) if scope is Scope.TOPIC else self.entries.get((scope, name))
        of_file = self.file_topic(name) if scope is Scope.TOPIC else None
        others = [
            known.value
            for (kind, other), known in self.entries.items()
            if kind is Scope.BROKER and known.readable and (kind, other) != (scope, name)
        ]
        without = of_file if of_file is not None else max(self._config.min_insync_racks, *others, 1)
        return without if entry is None else entry.value, without if value is None else value

    @property
    def _leaders(self) -> list[int | None]:
        """Every broker with a value of its own, and None for the others."""
        return [None, *(int(name) for scope, name in self.entries if scope is Scope.BROKER and name.isdecimal())]

    def _by_leader(self, topic: str) -> list[int]:
        return [self.topic_value(topic, leader)[0] for leader in self._leaders]

    def largest_change(self, scope: Scope, name: str, value: int | None) -> tuple[int, int]:
        """The values before and after a change of one, on the broker for which that lowers it most. `value` None removes it.

        For a topic the broker that leads it. What precedes the value of a broker is left out.
        """
        if scope is Scope.BROKER:
            broker = int(name) if name.isdecimal() else None
            entry = None if value is None else Entry(value)
            return self._broker_value(broker)[0], self.broker_value_after(broker, name, entry)
        before = [self._topic_value(name, leader)[0] for leader in self._leaders]
        without = self.file_topic(name) if value is None else value
        after = [self._broker_value(leader)[0] if without is None else without for leader in self._leaders]
        return _worst(before, after)

    @property
    def override(self) -> int | None:
        """The value that higher values count as."""
        return self._config.override

    @property
    def file_default(self) -> int:
        return self._config.min_insync_racks

    def file_topic(self, topic: str) -> int | None:
        return self._config.own(topic)

    def guarded_topics(self) -> list[str]:
        """Topics with a value of their own above 1."""
        named = [name for (scope, name), _ in self.entries.items() if scope is Scope.TOPIC]
        return [topic for topic in {*named, *self._config.topics} if self.topic_value(topic, None)[0] > 1]


def _file_place(topic: str) -> str:
    return f"the file's topic {topic}"


def _worst(before: list[int], after: list[int]) -> tuple[int, int]:
    """The values of the broker for which they fall most."""
    return max(zip(before, after, strict=True), key=lambda pair: pair[0] - pair[1])
