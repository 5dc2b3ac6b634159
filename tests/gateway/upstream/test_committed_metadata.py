"""Samples of mode strict: what the controllers' log had committed when the sample was requested."""

import asyncio
from random import Random
from typing import cast
from uuid import UUID

from rackspan.acks.isr_samples import SampledPartition
from rackspan.client.login import Login
from rackspan.gateway.core.metadata_log import CommittedImage, CommittedPartition
from rackspan.gateway.core.policies import FilePolicies, Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.guard_readers import CommittedMetadata
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.model import BrokerId

ORDERS, PAY = UUID(int=1), UUID(int=2)
IMAGE = CommittedImage(
    racks={1: "a", 2: "b", 3: "a"},
    topic_ids={"orders": ORDERS, "pay": PAY},
    partitions={ORDERS: {0: CommittedPartition(1, 5, (1, 2), 2), 1: CommittedPartition(3, 6, (3,), 3)}, PAY: {}},
)


class Quorum:
    """Controllers whose log has `IMAGE`."""

    def __init__(self) -> None:
        self.closed = False

    async def current(self) -> CommittedImage:
        return IMAGE

    def close(self) -> None:
        self.closed = True


def test_a_sample_has_the_committed_isr_racks_and_ids_of_its_topics() -> None:
    quorum, policies = Quorum(), Policies(FilePolicies())
    cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
    source = CommittedMetadata(cast("MetadataQuorum", quorum), cluster, policies)
    asyncio.run(source.prepare(1))
    sample = asyncio.run(source.sample(1, 7.0, frozenset({"orders", "missing"})))
    assert (sample.source, sample.requested_at, sample.topics) == (1, 7.0, frozenset({"orders", "missing"}))
    first, second = (BrokerId(1), BrokerId(2)), (BrokerId(3),)
    assert sample.partitions == {
        ("orders", 0): SampledPartition(1, 5, first, 2),
        ("orders", 1): SampledPartition(3, 6, second, 3),
    }
    assert sample.topic_ids == {"orders": ORDERS}
    assert [sample.racks.count(isr) for isr in (first, second, (*first, *second))] == [2, 1, 2]
    # By its id a client may name a topic later.
    assert policies.names == {ORDERS: "orders"}
    source.close()
    assert quorum.closed
