"""What each topic requires: min.insync.racks from the config topic, the gateway's file or the default.

The config topic is compacted, on the cluster itself, and every gateway replays it: a record for each topic or broker that has a
value. A topic's record carries the topic's id, so that a topic created anew under the name starts without a value.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final
from uuid import UUID

from rackspan.acks.min_insync_racks import Thresholds
from rackspan.gateway.core.acknowledgement.samples import Requirement
from rackspan.model import INT32_MAX, MIN_INSYNC_RACKS

_VERSION: Final = 1


class Scope(Enum):
    """Whose config a value is."""

    TOPIC = "topic"
    BROKER = "broker"
    """The empty name is the default of the whole cluster."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One value in the config topic."""

    value: int
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """A topic's entry in the gateway's file. `min_insync_racks` None: not set here."""

    min_insync_racks: int | None = None
    fail_open: bool = False


@dataclass(frozen=True, slots=True)
class FilePolicies:
    """What the gateway's own file says of acknowledgements."""

    min_insync_racks: int = 1
    topics: Mapping[str, TopicPolicy] = field(default_factory=dict)
    fail_open: bool = False


class Source(Enum):
    """Where the value of a topic or broker comes from, in order of precedence."""

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
    """The inverse of `record`; None for what is no record of this version."""
    try:
        parsed = json.loads(key or b"")
        scope, name = Scope(parsed["type"]), parsed["name"]
        if not isinstance(name, str):
            return None
        if value is None:
            return scope, name, None
        content = json.loads(value)
        racks, topic_id = content[MIN_INSYNC_RACKS], content.get("topic_id")
        if content["version"] != _VERSION or type(racks) is not int or not 1 <= racks <= INT32_MAX:
            return None
        return scope, name, Entry(racks, None if topic_id is None else UUID(topic_id))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


_MOST_CACHED: Final = 100_000
"""Requirements. A client chooses how many topics it names, existing or not."""


class Policies:
    """The requirements of all topics. Lookups are cached until something changes."""

    def __init__(self, config: FilePolicies) -> None:
        self._config = config
        self.entries: dict[tuple[Scope, str], Entry] = {}
        self.topic_ids: dict[str, UUID] = {}
        """As the cluster reported them last."""
        self.min_insync_replicas: dict[str, int] = {}
        """As the cluster reported them last, of topics that require more than one rack."""
        self._older_ids: dict[str, set[UUID]] = {}
        """Ids that a topic had before its entry was written: metadata that is behind may still report them."""
        self._cache: dict[tuple[str, int], Requirement | None] = {}
        self.unreadable = 0
        """Records of the config topic that could not be read."""

    def replace_file(self, config: FilePolicies) -> None:
        self._config = config
        self._cache.clear()

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        parsed = parse_record(key, value)
        if parsed is None:
            self.unreadable += 1
            return
        scope, name, entry = parsed
        if entry is None:
            self.entries.pop((scope, name), None)
        else:
            self.entries[scope, name] = entry
            if scope is Scope.TOPIC and name in self.topic_ids and self.topic_ids[name] != entry.topic_id:
                self._older_ids.setdefault(name, set()).add(self.topic_ids[name])
        self._cache.clear()

    def learn_topic(self, topic: str, topic_id: UUID | None) -> None:
        if topic_id is not None and self.topic_ids.get(topic) != topic_id:
            self.topic_ids[topic] = topic_id
            self.min_insync_replicas.pop(topic, None)
            self._cache.clear()

    def learn_min_insync_replicas(self, values: Mapping[str, int]) -> None:
        changed = {topic: value for topic, value in values.items() if self.min_insync_replicas.get(topic) != value}
        if changed:
            self.min_insync_replicas.update(changed)
            self._cache.clear()

    def requirement(self, topic: str, leader: int) -> Requirement | None:
        """None where one rack is enough."""
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

    def topic_value(self, topic: str, leader: int | None) -> tuple[int, Source]:
        """A topic's value on one leader, and where it comes from."""
        entry = self.topic_entry(topic)
        if entry is not None:
            return entry.value, Source.TOPIC
        written = self._config.topics.get(topic)
        if written is not None and written.min_insync_racks is not None:
            return written.min_insync_racks, Source.FILE_TOPIC
        return self.broker_value(leader)

    def topic_entry(self, topic: str) -> Entry | None:
        """The topic's own value, unless it was set on an earlier topic of that name."""
        entry = self.entries.get((Scope.TOPIC, topic))
        if entry is None:
            return None
        current = self.topic_ids.get(topic)
        if entry.topic_id in (None, current) or current is None or current in self._older_ids.get(topic, ()):
            return entry
        return None

    def broker_value(self, broker: int | None) -> tuple[int, Source]:
        """The value for topics without one of their own."""
        own = self.entries.get((Scope.BROKER, str(broker))) if broker is not None else None
        if own is not None:
            return own.value, Source.BROKER
        default = self.entries.get((Scope.BROKER, ""))
        if default is not None:
            return default.value, Source.CLUSTER
        if self._config.min_insync_racks > 1:
            return self._config.min_insync_racks, Source.FILE
        return 1, Source.DEFAULT

    @property
    def largest(self) -> int:
        """The largest value in force anywhere."""
        named = (entry.value for entry in self.entries.values())
        written = (topic.min_insync_racks or 1 for topic in self._config.topics.values())
        return max((self._config.min_insync_racks, *named, *written))

    @property
    def file_default(self) -> int:
        return self._config.min_insync_racks

    def file_topic(self, topic: str) -> int | None:
        written = self._config.topics.get(topic)
        return None if written is None else written.min_insync_racks

    def guarded_topics(self) -> list[str]:
        """Topics with a value of their own above 1."""
        named = [name for (scope, name), _ in self.entries.items() if scope is Scope.TOPIC]
        return [topic for topic in {*named, *self._config.topics} if self.topic_value(topic, None)[0] > 1]
