"""Advice about random clusters, carried out on plain dictionaries: by plain loops as many bytes less cross racks as it foretold."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic, savings
from rackspan.audit import RackPolicy, audit
from rackspan.audit.findings import Severity
from rackspan.audit.policy import Survive
from rackspan.clients import ReplicaSelectors, find_causes, group_reads
from rackspan.model import ClusterSnapshot, RackId, unpadded
from rackspan.reassign import ReassignmentRequest, plan, snapshot_after
from rackspan.traffic import Basis, TrafficFlow, TrafficPath
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.flows import Link
from tests.clients.worlds import World
from tests.depth import at_depth
from tests.traffic.volumes import volumes_of

pytestmark = pytest.mark.slow

RACKS = ("r1", "r2", "r3")
BYTES = 6_000_000
"""A multiple of the number of racks, so that equal parts are whole."""


@dataclass
class Passing:
    """A world, the rack from which each topic is written, and the members that name their rack once that is advised."""

    world: World
    written_from: dict[str, str]
    named_racks: bool = False

    def rack_of(self, broker: int) -> str:
        return str(self.world.racks[broker])

    def across(self) -> int:
        total = 0
        for partition, (leader, replicas, in_sync) in self.world.placed.items():
            home = self.rack_of(leader)
            total += BYTES * sum(self.rack_of(broker) != home for broker in replicas)
            total += BYTES * (self.written_from[partition[0]] != home)
            near = {self.rack_of(broker) for broker in in_sync}
            for member, declared in self.world.declared.items():
                if partition not in self.world.reads[member]:
                    continue
                for place in [declared] if declared else RACKS:
                    named = declared is not None or self.named_racks
                    selects = self.world.selectors[leader] is ReplicaSelectors.RACK_AWARE
                    served = place if named and selects and place in near else home
                    total += (BYTES if declared else BYTES // 3) * (served != place)
        return total

    def produced(self) -> list[TrafficFlow]:
        flows: dict[tuple[str, str], int] = {}
        for (topic, _), (leader, _, _) in self.world.placed.items():
            key = topic, self.rack_of(leader)
            flows[key] = flows.get(key, 0) + BYTES
        return [
            TrafficFlow(
                Link(
                    TrafficPath.PRODUCE,
                    topic,
                    None,
                    RackId(self.written_from[topic]),
                    RackId(rack),
                    Basis.MEASURED,
                    "counted",
                ),
                size,
            )
            for (topic, rack), size in flows.items()
        ]

    def place(self, after: ClusterSnapshot) -> None:
        rows = after.partitions
        for at, key in enumerate(sorted(self.world.placed)):
            replicas = [int(broker) for broker in unpadded(rows.replicas[at])]
            self.world.placed[key] = (int(rows.leader[at]), replicas, replicas)

    def carry_out(self, advice: Advice, policy: RackPolicy) -> RackPolicy:
        if advice.kind in ("read-in-rack", "gateway-rack"):
            self.named_racks = True
            self.world.selectors = dict.fromkeys(self.world.selectors, ReplicaSelectors.RACK_AWARE)
            return policy
        command = re.search(r"rackspan reassign plan (.*)$", advice.command)
        assert command is not None
        words = command[1].split()
        request = ReassignmentRequest(
            topics=words[words.index("--topic") + 1].strip("'"),
            replication_factor=int(words[words.index("--replication-factor") + 1])
            if "--replication-factor" in words
            else None,
            leaders="--leaders" in words,
            allow_fewer_racks="--allow-fewer-racks" in words,
        )
        if request.leaders:
            racks = tuple(RackId(rack) for rack in re.findall(r'"(r\d)"', advice.command))
            policy = replace(policy, topic_leader_racks={**policy.topic_leader_racks, str(advice.topic): racks})
        before = self.world.snapshot()
        made = plan(before, policy, request)
        assert not made.infeasible
        self.place(snapshot_after(before, made))
        return policy


def random_passing(rng: Random) -> Passing:
    racks: dict[int, str | None] = {broker: RACKS[(broker - 1) % 3] for broker in range(1, 7)}
    placed = {}
    for topic in ("t", "u")[: rng.randint(1, 2)]:
        factor = rng.randint(1, 5)
        for number in range(rng.randint(1, 4)):
            replicas = rng.sample(list(racks), factor)
            placed[topic, number] = (replicas[0], replicas, replicas)
    members = [f"m{at}" for at in range(rng.randint(1, 2))]
    selector = rng.choice([ReplicaSelectors.LEADER, ReplicaSelectors.RACK_AWARE])
    world = World(
        racks,
        placed,
        dict.fromkeys(racks, selector),
        declared={member: rng.choice([*RACKS, None]) for member in members},
        reads={member: [] for member in members},
        protocol="custom",
    )
    for partition in placed:
        world.reads[rng.choice(members)].append(partition)
    return Passing(world, {topic: rng.choice(RACKS) for topic, _ in placed})


def advised(passing: Passing, policy: RackPolicy) -> list[Advice]:
    snapshot = passing.world.snapshot()
    reads = [group_reads(passing.world.group(), snapshot, passing.world.selectors)]
    volumes = volumes_of(snapshot, np.full(len(passing.world.placed), BYTES, np.int64))
    traffic = MeasuredTraffic(snapshot, volumes, reads, {}, MONTH_SECONDS, passing.world.selectors, passing.produced())
    causes = list(find_causes(reads[0], snapshot))
    return list(savings(traffic, causes, policy, None, 1))


def test_all_that_is_advised_saves_what_was_foretold_and_no_byte_twice() -> None:
    rng = Random(33)
    kinds = set()
    for _ in range(at_depth(test=15, soak=40)):
        passing = random_passing(rng)
        policy = RackPolicy(survive=rng.choice(list(Survive)))
        for advice in advised(passing, policy):
            if advice.kind == "assignor":
                break
            before, found = passing.across(), constraints(passing, policy)
            policy = passing.carry_out(advice, policy)
            # Parts of a member that may be anywhere are rounded.
            assert before - passing.across() == pytest.approx(advice.bytes_a_month, abs=50), (advice, passing)
            assert constraints(passing, policy) <= found, advice
            kinds.add(advice.kind)
    assert kinds >= {"read-in-rack", "replica-in-rack", "leaders-in-racks", "lower-factor"}


def constraints(passing: Passing, policy: RackPolicy) -> Counter[str]:
    """Violations by constraint, and leaders outside the racks that earlier advice holds them in."""
    found = audit(passing.world.snapshot(), policy, re.compile(".*")).findings
    return Counter(
        finding.constraint
        for finding in found
        if finding.severity is Severity.VIOLATION or finding.constraint == "leader-racks"
    )


def test_no_list_of_racks_for_leaders_is_better_than_the_one_that_is_advised() -> None:
    rng = Random(351)
    judged = 0
    for _ in range(15):
        passing = random_passing(rng)
        found = advised(passing, RackPolicy())
        # The other advice changes what leaders are worth.
        if {each.kind for each in found} - {"leaders-in-racks"}:
            continue
        for topic in passing.written_from:
            best = max((_saved(passing, topic, racks) for racks in permutations(RACKS)), default=0)
            given = [each.bytes_a_month for each in found if each.topic == topic]
            assert given == ([best] if best > 0 else [])
            judged += best > 0
    assert judged


def _saved(passing: Passing, topic: str, racks: tuple[str, ...]) -> int:
    """Bytes that stay in their rack if each partition is led in the first of these racks that has a replica."""
    world = passing.world
    placed = {
        key: (
            next(broker for rack in racks for broker in replicas if world.racks[broker] == rack)
            if key[0] == topic
            else leader,
            replicas,
            in_sync,
        )
        for key, (leader, replicas, in_sync) in world.placed.items()
    }
    return passing.across() - replace(passing, world=replace(world, placed=placed)).across()


def test_a_topic_whose_minimum_is_not_known_keeps_its_replicas() -> None:
    """Its min.insync.replicas may be as many as it would be left with, of which the loss of any broker stops writes."""
    rng, kinds = Random(33), {True: set[str](), False: set[str]()}
    for _ in range(at_depth(test=15, soak=40)):
        passing = random_passing(rng)
        for known, config in ((True, {"min.insync.replicas": "1"}), (False, dict[str, str]())):
            passing.world.config = config
            kinds[known] |= {advice.kind for advice in advised(passing, RackPolicy(survive=Survive.BROKER))}
    assert kinds[True] - kinds[False] == {"lower-factor"}
