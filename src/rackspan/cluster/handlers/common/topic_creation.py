"""Topics that come into being because somebody asks for them: a client's, or a coordinator's own."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import AdminResponse, CreateTopics, NewTopic
from rackspan.cluster.core.metadata import NO_LEADER, MetadataImage

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost

CREATION_MS: Final = 5_000


async def create_missing_topics(broker: "BrokerHost", topics: Sequence[NewTopic]) -> dict[str, KafkaError]:
    """Ask the controller, and wait until this broker knows who leads them; why some were refused, by topic.

    Somebody else may ask at the same time: a topic that is there already is as good as one created.
    """
    results: Iterable[AdminResponse] = await broker.controller_response(
        lambda correlation_id: CreateTopics(correlation_id, tuple(topics), automatic=True), CREATION_MS, ()
    )
    fine = (KafkaError.NONE, KafkaError.TOPIC_ALREADY_EXISTS)
    refused: dict[str, KafkaError] = {str(one.key): one.error for one in results if one.error not in fine}
    wanted = {topic.name for topic in topics} - refused.keys()
    await broker.wait_for_image(lambda image: all(led(image, topic) for topic in wanted), CREATION_MS)
    return refused


def led(image: MetadataImage, topic: str) -> bool:
    """Whether the topic is there and every partition has a leader."""
    found = image.topics.get(topic)
    return found is not None and all(partition.leader != NO_LEADER for partition in found.partitions)
