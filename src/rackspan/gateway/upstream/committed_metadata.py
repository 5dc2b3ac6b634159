"""Samples of the ISR from the controllers' metadata log, for acknowledgements.mode strict."""

from rackspan.acks.isr_samples import Sample, SampledPartition
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.model import BrokerId


class CommittedMetadata:
    """The metadata log of the controllers: everything that was committed when the sample was requested."""

    def __init__(self, quorum: MetadataQuorum, cluster: UpstreamCluster, policies: Policies) -> None:
        self._quorum = quorum
        self._cluster = cluster
        self._policies = policies

    async def prepare(self, broker: int) -> None:
        """Nothing: the read itself begins when the sample is requested."""

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        image = await self._quorum.current()
        for topic in topics:
            self._policies.record_topic(topic, image.topic_ids.get(topic), requested_at)
        return sample_of_image(broker, requested_at, topics, image, self._cluster)

    def close(self) -> None:
        self._quorum.close()


def sample_of_image(
    source: int, requested_at: float, topics: frozenset[str], image: CommittedImage, cluster: UpstreamCluster
) -> Sample:
    """The state of the metadata log as a sample. Brokers that are down keep their racks."""
    partitions = {
        (topic, partition): SampledPartition(
            state.leader, state.leader_epoch, tuple(map(BrokerId, state.isr)), state.replication_factor
        )
        for topic in topics
        for partition, state in image.topic(topic).items()
    }
    topic_ids = {topic: image.topic_ids[topic] for topic in topics if topic in image.topic_ids}
    return Sample(source, requested_at, cluster.rack_bits(image.racks.items()), topics, partitions, topic_ids)
