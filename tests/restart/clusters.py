"""Random clusters of up to ten brokers, wrong in every way a real one can be."""

import re
from random import Random

from rackspan.audit import RackPolicy
from rackspan.model import (
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
    columns,
)
from rackspan.restart import BlockOn, StopPolicy

ACCEPTED = "t1|t3"


def random_cluster(rng: Random, brokers_most: int = 10) -> ClusterSnapshot:
    """Racks uneven or missing, brokers fenced or unlisted, ISRs short, leaders missing, reassignments under way."""
    ids = sorted(rng.sample(range(1, 13), rng.randint(1, brokers_most)))
    healthy, racks = rng.random() < 0.4, rng.choice((["a"], ["a", "b"], ["a", "b", "c"], ["a", "b", None], [None]))
    brokers = tuple(
        Broker(
            BrokerId(broker),
            None if (rack := racks[at % len(racks)]) is None else RackId(rack),
            not healthy and rng.random() < 0.12,
        )
        for at, broker in enumerate(ids)
    )
    topics = [Topic(TopicName(f"t{code}"), config=_config(rng, healthy=healthy)) for code in range(rng.randint(1, 4))]
    rows = [_partition(rng, ids, healthy=healthy) for _ in topics for _ in range(rng.randint(1, 4))]
    codes = sorted(rng.randrange(len(topics)) for _ in rows)
    numbers = [sum(code == before for before in codes[:at]) for at, code in enumerate(codes)]
    return ClusterSnapshot(
        brokers=brokers,
        topics=tuple(topics),
        controllers=_controllers(rng, ids),
        partial=rng.choice(((),) * 8 + (("sizes of broker 3: unknown",), ("which brokers are fenced: unknown",))),
        partitions=columns(
            topic=codes,
            partition=numbers,
            leader=[row[2] for row in rows],
            replicas=[row[0] for row in rows],
            isr=[row[1] for row in rows],
            adding_replicas=[row[3] for row in rows],
            removing_replicas=[row[4] for row in rows],
        ),
    )


def _config(rng: Random, *, healthy: bool) -> dict[str, str]:
    config = {} if not healthy and rng.random() < 0.1 else {"min.insync.replicas": str(rng.choice((1, 1, 2, 2, 2, 3)))}
    if rng.random() < 0.25:
        config["min.insync.racks"] = str(rng.choice((1, 2, 2, 3)))
    return config


def _partition(rng: Random, ids: list[int], *, healthy: bool) -> tuple[list[int], list[int], int, list[int], list[int]]:
    known = ids if healthy else [*ids, 90]
    replicas = rng.sample(known, min(len(known), rng.choice((1, 2, 3, 3, 3, 4, 5))))
    isr = [replica for replica in replicas if healthy or rng.random() < 0.8]
    rng.shuffle(isr)
    leader = rng.choice(isr) if isr and (healthy or rng.random() < 0.95) else -1
    if healthy or len(replicas) < 2 or rng.random() < 0.8:
        return replicas, isr, leader, [], []
    moved = rng.sample(replicas, rng.randint(1, len(replicas) - 1))
    cut = rng.randint(0, len(moved))
    return replicas, isr, leader, moved[:cut], moved[cut:]


def _controllers(rng: Random, ids: list[int]) -> tuple[Controller, ...]:
    voters = rng.sample([*ids, 101, 102], min(len(ids), rng.choice((0, 1, 3, 3, 5))))
    alive = (None, None, None, True, True, True, False)
    return tuple(Controller(BrokerId(voter), voter=rng.random() < 0.9, alive=rng.choice(alive)) for voter in voters)


def random_policies(rng: Random) -> tuple[RackPolicy, StopPolicy]:
    policy = RackPolicy(
        unracked=rng.choice((UnrackedPolicy.SHARED, UnrackedPolicy.OWN, UnrackedPolicy.IGNORE)),
        min_insync_racks=rng.choice((1, 1, 1, 2)),
        topic_min_insync_racks={"t2": 2} if rng.random() < 0.2 else {},
        require_controllers=rng.random() < 0.2,
    )
    block_on = frozenset(one for one in BlockOn if rng.random() < 0.2)
    accepted = re.compile(ACCEPTED) if rng.random() < 0.25 else None
    return policy, StopPolicy(rng.choice((0, 0, 1, 2)), block_on, accepted)
