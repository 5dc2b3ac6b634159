"""ElectLeaders (key 43), versions 0-2. Unclean election arrives in v1 (KIP-460)."""

from collections.abc import Iterable

from rackspan.cluster.context.call import Body, Call
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import AdminResponse, ElectLeaders
from rackspan.cluster.handlers.common.admin_responses import timed_out
from rackspan.cluster.handlers.common.topics import by_topic, named
from rackspan.model.ids import TopicPartition

PREFERRED, UNCLEAN = 0, 1


async def handle(call: Call) -> Body:
    asked = call.body["topic_partitions"]
    partitions = None if asked is None else tuple(
        TopicPartition(topic["topic"], index) for topic in asked for index in topic["partitions"]
    )  # fmt: skip
    if call.body.get("election_type", PREFERRED) not in (PREFERRED, UNCLEAN):
        return _refused(call, partitions or ())
    unclean = call.body.get("election_type", PREFERRED) == UNCLEAN
    results: tuple[AdminResponse, ...] = await call.broker.requests.controller_response(
        lambda correlation_id: ElectLeaders(correlation_id, partitions, unclean),
        call.body["timeout"],
        timed_out(partitions or (), AdminResponse),
    )
    await call.broker.metadata_updates.wait_until_caught_up(call.body["timeout"])
    if partitions is None:
        # Asked for all, Kafka names only those of which there is something to say.
        results = tuple(one for one in results if one.error is not KafkaError.ELECTION_NOT_NEEDED)
    return {"replica_election_results": _by_topic(call, results)}


def _refused(call: Call, partitions: Iterable[TopicPartition]) -> Body:
    message = f"Unknown election type {call.body['election_type']}"
    results = [AdminResponse(one, KafkaError.INVALID_REQUEST, message) for one in partitions]
    return {"error_code": KafkaError.INVALID_REQUEST, "replica_election_results": _by_topic(call, results)}


def _by_topic(call: Call, results: Iterable[AdminResponse]) -> list[dict[str, object]]:
    return [
        {"topic": topic, "partition_result": [_elected(call, one) for one in listed]}
        for topic, listed in by_topic(results, lambda one: named(one).topic).items()
    ]


def _elected(call: Call, one: AdminResponse) -> dict[str, object]:
    return {
        "partition_id": named(one).partition,
        "error_code": call.broker.code(one.error),
        "error_message": one.message,
    }
