"""Samples of the ISR from the controllers' metadata log, for acknowledgements.mode strict."""

from rackspan.acks.isr_samples import Sample, SampledPartition
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.upstream.cluster import Cluster
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.gateway.upstream.topic_names import TopicNames
from rackspan.model import Broker, BrokerId, RackId


class CommittedMetadata:
    """The metadata log of the controllers: everything that was committed when the sample was requested."""

    def __init__(self, quorum: MetadataQuorum, cluster: Cluster, names: TopicNames) -> None:
        self._quorum = quorum
        self._cluster = cluster
        self._names = names

    async def prepare(self, broker: int) -> None:
        """Nothing: the read itself begins when the sample is requested."""

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        image = await self._quorum.current()
        for topic in topics:
            self._names.record(topic, image.topic_ids.get(topic))
        return sample_of_image(broker, requested_at, topics, image, self._cluster)

    def close(self) -> None:
        self._quorum.close()


def sample_of_image(
    source: int, requested_at: float, topics: frozenset[str], image: CommittedImage, cluster: Cluster
) -> Sample:
    """The state of the metadata log as a sample. Brokers that are down keep their racks."""
    brokers = [
        Broker(BrokerId(broker), None if rack is None else RackId(rack))
        for broker, registered in image.racks.items()
        if cluster.is_located(broker)
        for rack in [cluster.rack(broker, registered)]
    ]
    partitions = {
        (topic, partition): SampledPartition(state.leader, state.leader_epoch, tuple(map(BrokerId, state.isr)))
        for topic in topics
        for partition, state in image.topic(topic).items()
    }
    topic_ids = {topic: image.topic_ids[topic] for topic in topics if topic in image.topic_ids}
    return Sample(source, requested_at, rack_bits(brokers), topics, partitions, topic_ids)
