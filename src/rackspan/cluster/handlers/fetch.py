"""Fetch (key 1), versions 4-18. Rack arrives in v11 (KIP-392), topic ids in v13, who leads now in v16 (KIP-951).

A fetch that finds too little waits in the broker's delayed_fetches and reads again on news, never on a timer alone. Sessions
are declined with id 0, which every client takes: an idle partition costs a fetch a few bytes. Batches go out as they lie.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from rackspan.cluster.context.call import Body, Call, Response
from rackspan.cluster.core.broker import Isolation
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.log.producer_state import AbortedTransaction
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.handlers.common.topics import topic_name
from rackspan.model.ids import BrokerId, TopicPartition

READ_COMMITTED: Final = 1
FOLLOWERS_FROM: Final = 11
"""Older clients expect to read from leaders alone."""

NO_SESSION: Final = 0
NEW_SESSION_EPOCHS: Final = (0, -1)
NO_PREFERENCE: Final = -1
MAX_BYTES: Final = 55 * 1024 * 1024
"""A broker's fetch.max.bytes."""

_UNKNOWN: Final = (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""A fetch waits on for what is known beside what is not, as Kafka's does."""
_MOVED: Final = (KafkaError.NOT_LEADER_OR_FOLLOWER, KafkaError.FENCED_LEADER_EPOCH)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One partition of the request."""

    partition: TopicPartition
    known: bool
    offset: int
    leader_epoch: int
    max_bytes: int


@dataclass(slots=True)
class _Round:
    """What one look at the partitions came to."""

    bodies: list[dict[str, Any]]
    size_bytes: int
    final: bool
    """Something must be said at once, records or not: an error, another replica to read from, a diverging log."""
    moved: set[BrokerId]


def handle(call: Call) -> Response | asyncio.Future[Response]:
    if call.body.get("session_epoch", -1) not in NEW_SESSION_EPOCHS:
        return {"error_code": KafkaError.FETCH_SESSION_ID_NOT_FOUND, "session_id": NO_SESSION}
    wanted = list(_wanted(call))
    first = _look(call, wanted)
    first.final |= all(body["error_code"] in _UNKNOWN for body in first.bodies)
    if first.final or first.size_bytes >= call.body["min_bytes"] or call.body["max_wait"] <= 0 or not wanted:
        return _answer(call, first)
    return _Parked(call, wanted).answered


class _Parked:
    """A fetch in the delayed_fetches."""

    def __init__(self, call: Call, wanted: list[_Wanted]) -> None:
        self._call = call
        self._wanted = wanted
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[Response] = loop.create_future()
        self.answered.add_done_callback(self._leave)
        self._timer = loop.call_later(call.body["max_wait"] / 1000, self._finish)
        call.broker.delayed_fetches.add(self._partitions(), self._news)

    def _partitions(self) -> Iterator[TopicPartition]:
        return (one.partition for one in self._wanted)

    def _news(self) -> None:
        if self.answered.done():
            return
        seen = _look(self._call, self._wanted)
        if seen.final or seen.size_bytes >= self._call.body["min_bytes"]:
            self.answered.set_result(_answer(self._call, seen))

    def _finish(self) -> None:
        if not self.answered.done():
            self.answered.set_result(_answer(self._call, _look(self._call, self._wanted)))

    def _leave(self, _: asyncio.Future[Response]) -> None:
        self._timer.cancel()
        self._call.broker.delayed_fetches.remove(self._partitions(), self._news)


def _wanted(call: Call) -> Iterator[_Wanted]:
    for topic in call.body["topics"]:
        name = topic_name(call, topic, "topic")
        for one in topic["partitions"]:
            yield _Wanted(
                TopicPartition(name or str(topic.get("topic_id")), one["partition"]),
                name is not None,
                one["fetch_offset"],
                one.get("current_leader_epoch", -1),
                one["partition_max_bytes"],
            )


def _look(call: Call, wanted: Iterable[_Wanted]) -> _Round:
    seen = _Round([], 0, False, set())
    left = min(call.body["max_bytes"], MAX_BYTES)
    for one in wanted:
        body, size = _read(call, one, left, first=seen.size_bytes == 0, seen=seen)
        seen.bodies.append(body)
        seen.size_bytes += size
        left -= size
    return seen


def _read(call: Call, one: _Wanted, left: int, *, first: bool, seen: _Round) -> tuple[dict[str, Any], int]:
    if not one.known:
        return {"partition_index": one.partition.partition, "error_code": KafkaError.UNKNOWN_TOPIC_ID}, 0
    result = call.broker.core.read(
        one.partition,
        one.offset,
        min(left, one.max_bytes),
        Isolation(call.body["isolation_level"] & READ_COMMITTED),
        rack=call.body.get("rack_id") or None,
        follower_ok=call.version >= FOLLOWERS_FROM,
        current_leader_epoch=one.leader_epoch,
    )
    refused = result.error is not KafkaError.NONE and result.error not in _UNKNOWN
    seen.final |= refused or result.preferred_read_replica != NO_PREFERENCE
    records = [batch.data for batch in result.batches]
    # The first batch found is given even if it is more than was asked for: else its reader would stand still (KIP-74).
    if not first and sum(map(len, records)) > left:
        records = []
    body = {
        "partition_index": one.partition.partition,
        "error_code": call.broker.code(result.error),
        "high_watermark": result.high_watermark,
        "last_stable_offset": result.last_stable_offset,
        "log_start_offset": result.log_start,
        "preferred_read_replica": result.preferred_read_replica,
        "aborted_transactions": _aborted(call, result.aborted),
        "records": records,
    }
    if result.error in _MOVED:
        _say_who_leads(call, one.partition, body, seen.moved)
    return body, sum(map(len, records))


def _aborted(call: Call, aborted: Iterable[AbortedTransaction]) -> list[dict[str, int]] | None:
    if call.body["isolation_level"] != READ_COMMITTED:
        return None
    return [{"producer_id": one.producer_id, "first_offset": one.first_offset} for one in aborted]


def _say_who_leads(call: Call, partition: TopicPartition, body: dict[str, Any], moved: set[BrokerId]) -> None:
    state = call.broker.image.partition(partition)
    if state is not None and state.leader != NO_LEADER:
        body["current_leader"] = {"leader_id": state.leader, "leader_epoch": state.leader_epoch}
        moved.add(state.leader)


def _answer(call: Call, seen: _Round) -> Body:
    bodies = iter(seen.bodies)
    responses = [
        {
            "topic": topic.get("topic"),
            "topic_id": topic.get("topic_id"),
            "partitions": [next(bodies) for _ in topic["partitions"]],
        }
        for topic in call.body["topics"]
    ]
    _count_traffic(call, responses)
    return {"session_id": NO_SESSION, "responses": responses, "node_endpoints": call.broker.endpoints(seen.moved)}


def _count_traffic(call: Call, responses: Iterable[dict[str, Any]]) -> None:
    broker, client_rack = call.broker, call.body.get("rack_id")
    for topic in responses:
        size_bytes = sum(len(batch) for one in topic["partitions"] for batch in one.get("records", ()))
        if size_bytes:
            name = topic["topic"] or broker.image.topic_names.get(topic["topic_id"], "")
            broker.traffic.add_fetched(broker.id, call.header.client_id, client_rack, name, size_bytes)
