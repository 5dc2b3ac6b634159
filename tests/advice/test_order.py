"""Lists of advice carried out line by line as they are printed, on plain dictionaries: each line saves what it says.

Plain loops count what crosses racks before and after each line. Replicas are moved by the planner and partitions assigned by the
assignor that a line names: these have judges of their own.
"""

import shlex
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic, ranked, repaired, risks, savings
from rackspan.advice.advice import Concern
from rackspan.audit import RackPolicy, audit
from rackspan.audit.policy import Survive
from rackspan.clients import GroupReads, ReplicaSelectors, find_causes, group_reads
from rackspan.model import RackId
from rackspan.reassign import plan, snapshot_after
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.price_file import price_file
from rackspan.traffic.what_if import reading_best_assigned
from tests.advice.test_chain import Passing
from tests.advice.test_savings import prices
from tests.audit import repairs
from tests.clients.worlds import World
from tests.depth import at_depth
from tests.traffic.volumes import volumes_of

RACKS = ("r1", "r2", "r3")
BYTES = 6_000_000
"""A multiple of the number of racks, so that equal parts are whole."""

RACK_AWARE, LEADER = ReplicaSelectors.RACK_AWARE, ReplicaSelectors.LEADER


@dataclass
class Followed(Passing):
    """A world of several groups. `named`: groups whose members name their rack by now."""

    groups: dict[str, list[str]] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)

    def crossing(self) -> Counter[str]:
        """Bytes that cross racks, by path."""
        sums = Counter[str]()
        for partition, (leader, replicas, in_sync) in self.world.placed.items():
            home = self.rack_of(leader)
            sums["replicate"] += BYTES * sum(self.rack_of(broker) != home for broker in replicas)
            sums["produce"] += BYTES * (self.written_from[partition[0]] != home)
            near = {self.rack_of(broker) for broker in in_sync}
            for group, members in self.groups.items():
                for member in members:
                    if partition not in self.world.reads[member]:
                        continue
                    declared = self.world.declared[member]
                    for place in [declared] if declared else RACKS:
                        by_rack = declared is not None or group in self.named
                        by_rack &= self.world.selectors[leader] is RACK_AWARE
                        served = place if by_rack and place in near else home
                        sums["consume"] += (BYTES if declared else BYTES // 3) * (served != place)
        return sums

    def described(self, group: str) -> Any:
        members = self.groups[group]
        some = replace(self.world, declared={member: self.world.declared[member] for member in members})
        return replace(some.group(), group_id=group)

    def reads(self) -> list[GroupReads]:
        snapshot = self.world.snapshot()
        return [group_reads(self.described(group), snapshot, self.world.selectors) for group in self.groups]

    def advised(self, policy: RackPolicy, priced: Any, least: int = 1) -> list[Advice]:
        snapshot = self.world.snapshot()
        findings = audit(snapshot, policy).findings
        # Savings are those of the cluster after its repairs.
        then = deepcopy(self)
        then.place(repaired(snapshot, policy, findings))
        after, reads = then.world.snapshot(), then.reads()
        volumes = volumes_of(after, np.full(len(self.world.placed), BYTES, np.int64))
        traffic = MeasuredTraffic(after, volumes, reads, {}, MONTH_SECONDS, self.world.selectors, then.produced())
        causes = [cause for group in reads for cause in find_causes(group, after)]
        return ranked([*savings(traffic, causes, policy, priced, least), *risks(snapshot, policy, findings)])

    def follow(self, advice: Advice, policy: RackPolicy) -> RackPolicy:
        """Do what the line says, to all that it concerns. Settings of topics change no byte."""
        if advice.concern is not Concern.MONEY:
            if advice.command.startswith("rackspan reassign plan"):
                _, options = repairs.parsed(shlex.split(advice.command.partition(",")[0])[1:])
                before = self.world.snapshot()
                self.place(snapshot_after(before, plan(before, policy, repairs.requested(options))))
            return policy
        if advice.kind not in ("read-in-rack", "assignor"):
            return self.carry_out(advice, policy)
        if "replica.selector.class=" in advice.command:
            self.world.selectors = dict.fromkeys(self.world.selectors, RACK_AWARE)
        if advice.kind == "assignor":
            (reads,) = [each for each in self.reads() if each.group.group_id == advice.group]
            for member in reading_best_assigned(reads).members:
                self.world.reads[member.member.member_id] = [
                    (read.partition.topic, read.partition.partition) for read in member.reads
                ]
        elif "set client.rack" in advice.command:
            self.named.add(str(advice.group))
        return policy


def random_followed(rng: Random) -> Followed:
    racks: dict[int, str | None] = {broker: RACKS[(broker - 1) % 3] for broker in range(1, 7)}
    placed = {}
    for topic in "tuv"[: rng.randint(1, 3)]:
        factor = rng.choice([1, 2, 2, 3, 4])
        for number in range(rng.randint(1, 3)):
            replicas = rng.sample(list(racks), factor)
            placed[topic, number] = (replicas[0], replicas, replicas)
    groups = {f"g{at}": [f"g{at}-{number}" for number in range(rng.randint(1, 2))] for at in range(rng.randint(1, 4))}
    declared: dict[str, str | None] = {}
    reads: dict[str, list[tuple[str, int]]] = {}
    for members in groups.values():
        # A group without any rack, or one of which each member names its own.
        nowhere = rng.random() < 0.3
        declared |= {member: None if nowhere else rng.choice(RACKS) for member in members}
        reads |= {member: [] for member in members}
        topics = rng.sample("tuv", rng.randint(1, 3))
        for partition in placed:
            if partition[0] in topics:
                reads[rng.choice(members)].append(partition)
    selectors = dict.fromkeys(racks, rng.choice([LEADER, LEADER, RACK_AWARE]))
    world = World(racks, placed, selectors, declared=declared, reads=reads, protocol="roundrobin")
    return Followed(world, {topic: rng.choice(RACKS) for topic, _ in placed}, groups=groups)


def follow_lists(seeds: range) -> Counter[str]:
    """Carry out so many lists; returns what was met on the way."""
    met = Counter[str]()
    for seed in seeds:
        rng = Random(seed)
        followed = random_followed(rng)
        policy = RackPolicy(survive=rng.choice(list(Survive)))
        paths = {path: rng.choice([0, 0.01, 0.02, 0.05]) for path in ("consume", "replicate", "produce")}
        priced = prices(**paths, follower_fetch=0.01) if rng.random() < 0.7 else None
        lines = followed.advised(policy, priced)
        for number, advice in enumerate(lines, 1):
            before = followed.crossing()
            policy = followed.follow(advice, policy)
            if advice.concern is not Concern.MONEY:
                met["a repair"] += followed.crossing() != before
                continue
            saved = {path: before[path] - size for path, size in followed.crossing().items()}
            # Parts of members that may be anywhere are rounded.
            assert sum(saved.values()) == pytest.approx(advice.bytes_a_month, abs=50), (seed, number, lines)
            if priced is not None:
                money = sum(size * paths[path] * 2 / 2**30 for path, size in saved.items())
                assert advice.money_a_month == pytest.approx(money, abs=1e-6), (seed, number, lines)
            met[advice.kind] += 1
        met["lists"] += 1
        met["of two lines"] += len(lines) > 1
        of_topics = [bool(line.topic) for line in lines if line.concern is Concern.MONEY]
        met["a topic before a group"] += sorted(of_topics) != of_topics
        met["several groups"] += any(line.kind == "read-in-rack" and line.group is None for line in lines)
    return met


KINDS = {"read-in-rack", "assignor", "replica-in-rack", "lower-factor", "leaders-in-racks"}


@pytest.mark.slow
def test_each_line_saves_what_it_says_once_those_before_it_are_carried_out() -> None:
    met = follow_lists(range(at_depth(test=30)))
    assert met.keys() >= KINDS
    assert min(met["a topic before a group"], met["several groups"], met["a repair"]) > 0


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 3_000, 500))
def test_each_line_of_two_thousand_lists_saves_what_it_says(first: int) -> None:
    met = follow_lists(range(first, first + 500))
    print(dict(met))
    assert met["of two lines"] > 250


def test_the_first_of_a_list_is_worth_following_by_itself() -> None:
    """A third copy saves nothing while brokers send every reader to the leader: their setting comes first, once for four groups.

    Ten MB in each partition in 100 s are 259.2 GB in 30 days. Each group reads two, one of them in a rack without a replica.
    """
    followed = Followed(
        World(
            {1: "a", 2: "b", 3: "c"},
            {("t0", 0): (1, [1, 2], [1, 2]), ("t0", 1): (2, [2, 1], [2, 1])},
            dict.fromkeys((1, 2, 3), LEADER),
            declared={f"g{at}-{rack}": rack for at in range(4) for rack in "bc"},
            reads={f"g{at}-{rack}": [("t0", "bc".index(rack))] for at in range(4) for rack in "bc"},
        ),
        {},
        groups={f"g{at}": [f"g{at}-b", f"g{at}-c"] for at in range(4)},
    )
    snapshot, reads = followed.world.snapshot(), followed.reads()
    volumes = volumes_of(snapshot, np.full(2, 10_000_000, np.int64))
    traffic = MeasuredTraffic(snapshot, volumes, reads, {}, 100.0, followed.world.selectors)
    causes = [cause for group in reads for cause in find_causes(group, snapshot)]
    found = savings(traffic, causes, RackPolicy(), price_file(Path("deploy/prices/aws.json").read_bytes()))
    expected: list[Any] = [
        ("read-in-rack", None, None, 4 * 259.2, pytest.approx(4 * 5.184)),
        ("replica-in-rack", None, "t0", (4 - 2) * 259.2, pytest.approx(2 * 5.184)),
    ]
    assert [
        (each.kind, each.group, each.topic, (each.bytes_a_month or 0) / 1e9, each.money_a_month) for each in found
    ] == expected
    assert found[0].reason == (
        "client.rack is set and has no effect in 4 groups: brokers direct every reader to the leader"
    )
    assert found[0].cost == "a restart of each of 3 brokers"


def test_brokers_are_changed_with_the_group_that_saves_most_by_it() -> None:
    """No member names a rack, so that neither setting is worth anything alone. What rests on it comes after it."""
    racks: dict[int, str | None] = {1: "r1", 2: "r2", 3: "r3"}
    placed = {("t", at): (1, [1, 2, 3], [1, 2, 3]) for at in range(3)}
    followed = Followed(
        World(
            racks,
            placed,
            dict.fromkeys(racks, LEADER),
            declared={"few-0": None, "many-0": None},
            reads={"few-0": [("t", 0)], "many-0": list(placed)},
            protocol="custom",
        ),
        {"t": "r1"},
        groups={"few": ["few-0"], "many": ["many-0"]},
    )
    found = followed.advised(RackPolicy(topic_leader_racks={"t": (RackId("r1"),)}), None)
    savings_found = [each for each in found if each.concern is Concern.MONEY]
    assert [(each.kind, each.group, "replica.selector" in each.command) for each in savings_found] == [
        ("read-in-rack", "many", True),
        ("read-in-rack", "few", False),
    ]
