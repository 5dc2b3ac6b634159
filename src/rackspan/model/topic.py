"""A topic without its partitions, and its configs that audits read."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from rackspan.errors import InvalidSnapshot
from rackspan.model.ids import TopicName

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
MIN_INSYNC_RACKS: Final = "min.insync.racks"
UNCLEAN_LEADER_ELECTION: Final = "unclean.leader.election.enable"
LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
DISKLESS: Final = ("diskless.enable", "inkless.enable")
"""Configs of topics whose records are in object storage (KIP-1150, Aiven Inkless). Any broker serves any partition of such a topic."""
AUDITED_CONFIGS: Final = (
    MIN_INSYNC_REPLICAS,
    MIN_INSYNC_RACKS,
    UNCLEAN_LEADER_ELECTION,
    LEADER_REPLICAS,
    FOLLOWER_REPLICAS,
    *DISKLESS,
)
"""All that an audit reads of a topic's configs."""

GATEWAY_CONFIG_TOPIC: Final = "__rackspan_configs"
"""The compacted topic in which gateways keep min.insync.racks, unless their file names another."""

TOPIC_NAME_MAX: Final = 249
TOPIC_NAME_RULE: Final = re.compile(rf"(?!\.{{1,2}}\Z)[a-zA-Z0-9._-]{{1,{TOPIC_NAME_MAX}}}")
"""Kafka's own rule for topic names (Topic.validate), which are neither one dot nor two."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic without its partitions. `config` holds effective values, the broker's defaults included."""

    name: TopicName
    topic_id: str | None = None
    internal: bool = False
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not TOPIC_NAME_RULE.fullmatch(self.name):
            raise InvalidSnapshot(
                f"topic {self.name!r}: Kafka allows 1 to 249 letters, digits, '.', '_' and '-' in a name; fix it in the file"
            )
        object.__setattr__(self, "config", MappingProxyType(dict(sorted(self.config.items()))))
        self.config_number(MIN_INSYNC_REPLICAS)
        self.config_number(MIN_INSYNC_RACKS)

    @property
    def diskless(self) -> bool:
        """Whether brokers hold no data of the topic, so that the replicas that Kafka lists say nothing about its safety."""
        return any(self.config.get(key) == "true" for key in DISKLESS)

    def config_number(self, key: str) -> int:
        """A whole-number config of at least 1, as both min.insync.* are; 1 where it is not set."""
        text = self.config.get(key)
        if text is None:
            return 1
        if not re.fullmatch(r"[0-9]{1,9}", text) or int(text) < 1:
            raise InvalidSnapshot(
                f"topic {self.name!r}: {key} is {text!r}, expected a whole number of at least 1; fix it in the snapshot"
            )
        return int(text)


def parse_config_list(text: str) -> tuple[str, ...]:
    """The items of a config such as `delete, compact`; no items where the text is blank.

    As Kafka's ConfigDef.parseType: blanks around an item do not count, and a comma too many makes an empty item, which
    keys with a fixed choice of items refuse.
    """
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()
