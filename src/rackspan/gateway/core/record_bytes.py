"""Bytes of records through the gateway, by path, topic, client, and the racks that they left and reached.

Bytes are added as they pass, by what the connection shows: the topic's id or name, and the broker. The topic's name, and whether
that broker led the partition, come from metadata a few seconds later (`settle`).
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from rackspan.model.ids import BrokerId, RackId
from rackspan.model.topic import TOPIC_NAME_MAX

OTHER: Final = "(other)"
"""The label of topics, and of clients, beyond those that have labels of their own. Topics cannot have this name."""

UNKNOWN_TOPIC: Final = "(unknown)"
"""The label of topic ids that no broker reports: deleted topics, and those that the gateway may not describe."""

MOST_UNSETTLED: Final = 10_000
"""Clients and partitions whose topics are looked up at a time: clients name what they like, and no broker may respond."""

Topic: TypeAlias = bytes | str
"""A topic's id as bytes, or its name: what a request or response of its version has."""


class BytesPath(StrEnum):
    """Why the bytes passed. `CONSUME`: the partition's leader is not known."""

    PRODUCE = "produce"
    CONSUME_LEADER = "consume_leader"
    CONSUME_FOLLOWER = "consume_follower"
    CONSUME = "consume"


class ClientLabels(NamedTuple):
    """A client as it names itself; empty where it does not. `rack` is the one of its fetches, or of [readers]."""

    client_id: str = ""
    software_name: str = ""
    software_version: str = ""
    rack: str = ""


class RecordFlow(NamedTuple):
    """What a number of bytes is about. The fields are the labels of its metric; a rack that is not known is empty."""

    path: BytesPath
    topic: str
    client_id: str
    client_software_name: str
    client_software_version: str
    from_rack: str
    to_rack: str


class _Passed(NamedTuple):
    client: ClientLabels
    broker: int
    topic: Topic
    partition: int
    produced: bool


class TopicLeaders(NamedTuple):
    """A topic of the metadata: its name, and the leader of each partition that has one."""

    name: str
    leaders: Mapping[int, int]


class RecordBytes:
    """The bytes of a process. The first `topics_max` topics and `clients_max` clients have labels of their own."""

    def __init__(self, topics_max: int, clients_max: int) -> None:
        self.flows: Counter[RecordFlow] = Counter()
        """Since the start, without what was not settled yet."""
        self.topics_max = topics_max
        self.clients_max = clients_max
        self._topics: set[str] = set()
        self._clients: set[ClientLabels] = set()
        self._passed: Counter[_Passed] = Counter()

    def add(
        self,
        client: ClientLabels,
        broker: int,
        topic: Topic,
        partition: int,
        size_bytes: int,
        *,
        produced: bool = False,
    ) -> None:
        """Bytes of one partition's records between a client and a broker."""
        passed = _Passed(client, broker, topic, partition, produced)
        if len(topic) > TOPIC_NAME_MAX or (len(self._passed) >= MOST_UNSETTLED and passed not in self._passed):
            passed = _Passed(ClientLabels(OTHER, OTHER, OTHER), broker, OTHER, 0, produced)
        self._passed[passed] += size_bytes

    def unsettled(self) -> frozenset[Topic]:
        """The topics of bytes that are not in `flows` yet."""
        return frozenset(passed.topic for passed in self._passed)

    def settle(
        self, topics: frozenset[Topic], described: Mapping[Topic, TopicLeaders], racks: Mapping[BrokerId, RackId | None]
    ) -> None:
        """Count the bytes of these topics, as the metadata describes them, and no others."""
        for passed in [passed for passed in self._passed if passed.topic in topics]:
            self.flows[self._flow(passed, described, racks)] += self._passed.pop(passed)

    def _flow(
        self, passed: _Passed, described: Mapping[Topic, TopicLeaders], racks: Mapping[BrokerId, RackId | None]
    ) -> RecordFlow:
        topic = described.get(passed.topic) or TopicLeaders(
            passed.topic if isinstance(passed.topic, str) else UNKNOWN_TOPIC, {}
        )
        broker_rack = racks.get(BrokerId(passed.broker)) or ""
        racks_in_order = passed.client.rack, broker_rack
        if passed.produced:
            path = BytesPath.PRODUCE
        else:
            leader = topic.leaders.get(passed.partition)
            racks_in_order = racks_in_order[::-1]
            path = _consumed_from(passed.broker, leader)
        client_id, software_name, software_version, _ = self._client(passed.client)
        return RecordFlow(path, self._topic(topic.name), client_id, software_name, software_version, *racks_in_order)

    def _topic(self, name: str) -> str:
        if name not in self._topics and name != UNKNOWN_TOPIC:
            if len(self._topics) >= self.topics_max:
                return OTHER
            self._topics.add(name)
        return name

    def _client(self, client: ClientLabels) -> ClientLabels:
        named = client._replace(rack="")
        if named not in self._clients:
            if len(self._clients) >= self.clients_max:
                return ClientLabels(OTHER, OTHER, OTHER)
            self._clients.add(named)
        return named

    def summary(self, flows_max: int) -> list[str]:
        """A line for each of the largest flows, and one for the rest."""
        lines = [
            f"{size_bytes} bytes of records: {flow.path} {flow.topic}, client {flow.client_id!r}"
            f" ({flow.client_software_name or 'unknown'} {flow.client_software_version or 'software'}),"
            f" from rack {flow.from_rack or 'unknown'} to rack {flow.to_rack or 'unknown'}"
            for flow, size_bytes in self.flows.most_common(flows_max)
        ]
        rest = len(self.flows) - len(lines)
        if rest:
            left = self.flows.total() - sum(size for _, size in self.flows.most_common(flows_max))
            lines.append(f"{left} bytes of records in {rest} more series")
        return lines


def _consumed_from(broker: int, leader: int | None) -> BytesPath:
    if leader is None:
        return BytesPath.CONSUME
    return BytesPath.CONSUME_LEADER if broker == leader else BytesPath.CONSUME_FOLLOWER
