"""What brokers carry, as kept up to date, is what counting everything anew gives."""

from collections import Counter
from random import Random
from uuid import UUID

import pytest

from rackspan.cluster.core.controller.context import BrokerLoad
from rackspan.cluster.core.metadata import PartitionState, TopicImage
from rackspan.model.ids import BrokerId


def topic(name: str, rng: Random) -> TopicImage:
    states = []
    for _ in range(rng.randint(1, 4)):
        replicas = tuple(map(BrokerId, rng.sample(range(1, 7), 4)))
        removing = tuple(rng.sample(replicas, rng.choice((0, 0, 1, 2))))
        states.append(PartitionState(replicas, replicas, replicas[0], removing=removing))
    return TopicImage(name, UUID(int=rng.getrandbits(128)), tuple(states))


def counted(topics: dict[str, TopicImage]) -> tuple[Counter[BrokerId], Counter[BrokerId]]:
    staying = [
        [broker for broker in state.replicas if broker not in state.removing]
        for one in topics.values()
        for state in one.partitions
    ]
    return Counter(row[0] for row in staying), Counter(broker for row in staying for broker in row)


@pytest.mark.parametrize("seed", range(20))
def test_counts_follow_every_change(seed: int) -> None:
    rng, load = Random(seed), BrokerLoad()
    topics: dict[str, TopicImage] = {}
    for _ in range(40):
        topics = dict(topics)
        for _ in range(rng.randint(0, 3)):
            name = f"t{rng.randint(0, 9)}"
            if name in topics and rng.random() < 0.4:
                del topics[name]
            else:
                topics[name] = topic(name, rng)
        load.update(topics)
        leaders, replicas = counted(topics)
        assert +load.leaders == leaders
        assert +load.replicas == replicas
