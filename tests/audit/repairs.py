"""A model of a cluster that does what a remedy says: the commands through the command line's own parser and `rackspan.api`,
the rest as an operator would. Shared by the property of remedies and its soak."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any, cast

import click

from rackspan import api
from rackspan.audit import Finding, RackPolicy
from rackspan.audit.policy import Survive
from rackspan.cli import command_tree
from rackspan.model import (
    MIN_INSYNC_REPLICAS,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
)
from rackspan.model.partitions import Partition
from rackspan.reassign import ReassignmentRequest
from tests.strategies import from_rows

COMMAND = re.compile(r"(rackspan|kafka-[a-z-]+\.sh) ")


class NothingChanged(Exception):
    """A command was followed, and the cluster is as it was."""


def generated(rng: Random, topics_max: int = 3) -> tuple[ClusterSnapshot, RackPolicy]:
    """A cluster of 1 to 5 racks, healthy or not: brokers fenced, gone or without a rack, any factor and minimum."""
    brokers = tuple(_brokers(rng))
    ids = [int(one.id) for one in brokers]
    gone = [900] if rng.random() < 0.15 else []
    topics, rows = [], []
    for code in range(rng.randint(1, topics_max)):
        config = {}
        if rng.random() < 0.8:
            config[MIN_INSYNC_REPLICAS] = str(rng.choice([1, 1, 2, 2, 2, 3, 4]))
        if rng.random() < 0.2:
            config["min.insync.racks"] = str(rng.randint(1, 3))
        name = "__consumer_offsets" if code == 2 else f"topic-{code}"
        topics.append(Topic(TopicName(name), internal=code == 2, config=config))
        factor = rng.randint(1, 5)
        rows += [_partition(rng, code, number, factor, brokers, ids + gone) for number in range(rng.randint(1, 4))]
    racks = sorted({one.rack for one in brokers if one.rack is not None})
    voters = [BrokerId(3000 + one) for one in range(rng.choice([0, 1, 2, 3, 3, 3, 5]))]
    snapshot = ClusterSnapshot(
        brokers=brokers,
        controllers=tuple(
            Controller(one, RackId(rng.choice(racks)) if racks and rng.random() < 0.9 else None) for one in voters
        ),
        topics=tuple(topics),
        partitions=from_rows(rows),
    )
    names = [str(one.name) for one in topics]
    policy = RackPolicy(
        unracked=rng.choice([UnrackedPolicy.SHARED, UnrackedPolicy.SHARED, UnrackedPolicy.OWN, UnrackedPolicy.IGNORE]),
        min_insync_racks=rng.choice([1, 1, 1, 2, 2, 3]),
        topic_min_insync_racks={names[0]: rng.randint(1, 3)} if rng.random() < 0.2 else {},
        survive=rng.choice([Survive.RACK, Survive.RACK, Survive.RACK, Survive.BROKER, Survive.NONE]),
        topic_survive={names[-1]: rng.choice(list(Survive))} if rng.random() < 0.2 else {},
    )
    return _with_states_of_0_3(snapshot, Random(str(rng.getstate()))), policy


def _with_states_of_0_3(snapshot: ClusterSnapshot, rng: Random) -> ClusterSnapshot:
    """Controllers that are dead or in the process of a broker, racks with names alike. Drawn apart, so that a seed has the other draws it had before."""
    ids = [one.id for one in snapshot.brokers]
    combined = rng.random() < 0.5 and len(snapshot.controllers) <= len(ids)
    controllers = [
        replace(one, id=ids[place] if combined else one.id, alive=rng.choice([None, None, True, True, False]))
        for place, one in enumerate(snapshot.controllers)
    ]
    snapshot = replace(snapshot, controllers=tuple(controllers))
    if rng.random() < 0.15:
        # One broker's rack is written in another way.
        brokers = [replace(one, rack=one.rack and RackId(one.rack.upper())) for one in snapshot.brokers[:1]]
        snapshot = replace(snapshot, brokers=(*brokers, *snapshot.brokers[1:]))
    if rng.random() < 0.1:
        # The last broker's rack has its long form.
        last = snapshot.brokers[-1]
        renamed = replace(last, rack=last.rack and RackId(f"rack{last.rack[1:]}"))
        snapshot = replace(snapshot, brokers=(*snapshot.brokers[:-1], renamed))
    return snapshot


def _brokers(rng: Random) -> Iterator[Broker]:
    racks = rng.randint(1, 5)
    uneven = rng.random() < 0.3
    rackless = rng.random() < 0.15
    number = 0
    for rack in range(racks):
        for _ in range(rng.randint(1, 4) if uneven else racks and 2):
            number += 1
            named = None if rackless and rng.random() < 0.4 else RackId(f"r{rack + 1}")
            yield Broker(BrokerId(number), named, fenced=rng.random() < 0.1)


def _partition(
    rng: Random, topic: int, number: int, factor: int, brokers: tuple[Broker, ...], ids: list[int]
) -> Partition:
    replicas = rng.sample(ids, min(factor, len(ids)))
    if rng.random() < 0.6:
        by_rack: dict[object, list[int]] = {}
        for one in rng.sample(brokers, len(brokers)):
            by_rack.setdefault(one.rack, []).append(int(one.id))
        # Dealt to racks in turn: the usual placement, which needs no repair by itself.
        dealt = [one[place] for place in range(4) for one in by_rack.values() if place < len(one)]
        replicas = dealt[: len(replicas)]
    alive = {int(one.id) for one in brokers if not one.fenced}
    isr = [one for one in replicas if one in alive and rng.random() < 0.93]
    moving = rng.random() < 0.04 and len(replicas) > 1
    return Partition(
        topic=topic,
        partition=number,
        leader=rng.choice(isr) if isr else -1,
        replicas=tuple(replicas),
        isr=tuple(isr),
        adding_replicas=tuple(replicas[:1]) if moving else (),
        removing_replicas=tuple(replicas[-1:]) if moving else (),
        size_bytes=rng.randint(0, 1000),
    )


def alternatives(remedy: str) -> list[str]:
    """`bring back broker 3, or rackspan reassign plan --drain 3` has two."""
    return re.split(r",? or (?=rackspan |kafka-|lower |accept |wait |\(ask|ask )|; or ", remedy)


def is_command(remedy: str) -> bool:
    return COMMAND.match(remedy) is not None


def follow(snapshot: ClusterSnapshot, policy: RackPolicy, finding: Finding, rng: Random) -> ClusterSnapshot | None:
    """The cluster after one alternative of a finding's remedy; None where rackspan cannot do it and the remedy says so.

    Errors: NothingChanged.
    """
    possible = [one for one in alternatives(finding.remedy) if is_command(one) or _by_operator(one)]
    if not possible:
        return None
    chosen = rng.choice(possible)
    after = settled(_run(snapshot, policy, chosen) if is_command(chosen) else _operated(snapshot, chosen, finding))
    if _same(after, snapshot):
        raise NothingChanged(f"{finding.constraint}: {chosen}: changes nothing; {finding.reason}")
    return after


def _same(one: ClusterSnapshot, other: ClusterSnapshot) -> bool:
    members = (one.brokers, one.topics, one.controllers) == (other.brokers, other.topics, other.controllers)
    return members and one.partitions.same_as(other.partitions)


def settled(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """What Kafka does by itself: live replicas of a partition with a leader join its ISR, and moves end."""
    alive = {int(one.id) for one in snapshot.brokers if not one.fenced}
    rows = [_settled(row, alive) for row in snapshot.partitions]
    return replace(snapshot, partitions=from_rows(rows))


def _settled(row: Partition, alive: set[int]) -> Partition:
    led = row.leader if row.leader in alive else next((one for one in row.isr if one in alive), -1)
    if led == -1:
        return replace(row, leader=-1)
    replicas = row.replicas
    if row.adding_replicas or row.removing_replicas:
        target = tuple(one for one in replicas if one not in row.removing_replicas)
        if set(target) <= alive:
            row = replace(row, replicas=target, adding_replicas=(), removing_replicas=())
            replicas = target
    isr = tuple(one for one in replicas if one in alive)
    return replace(row, isr=isr, leader=led if led in isr else (isr[0] if isr else -1))


def _run(snapshot: ClusterSnapshot, policy: RackPolicy, command: str) -> ClusterSnapshot:
    tool, *arguments = shlex.split(command)
    if tool == "kafka-configs.sh":
        topic = arguments[arguments.index("--entity-name") + 1]
        key, _, value = arguments[arguments.index("--add-config") + 1].partition("=")
        return _configured(snapshot, {topic: {key: value}})
    assert tool == "rackspan", command
    path, params = parsed(arguments)
    if path == ("reassign", "plan"):
        planned = api.plan_reassignment(snapshot, policy, requested(params))
        return api.snapshot_after(snapshot, planned) if len(planned) else snapshot
    if path == ("acks", "harden"):
        # As on the command line: the flag counts for every topic.
        flag = params["min_insync_racks"]
        advised = policy if flag == 1 else replace(policy, min_insync_racks=flag, topic_min_insync_racks={})
        pattern = re.compile(params["topic"])
        advice = api.harden(snapshot, advised, pattern)
        set_to = {one.topic: one.least for one in advice if one.outcome == "raise"}
        return _configured(snapshot, {topic: {MIN_INSYNC_REPLICAS: str(value)} for topic, value in set_to.items()})
    raise AssertionError(f"no model of {command}")


def requested(params: Mapping[str, Any]) -> ReassignmentRequest:
    """What `rackspan reassign plan` would plan with these options."""
    return ReassignmentRequest(
        drain=frozenset(map(int, params["drain"].split(","))) if params["drain"] else frozenset(),
        topics=params["topic"],
        replication_factor=params["replication_factor"],
        balance=params["balance"],
        leaders=params["leaders"],
    )


def parsed(arguments: list[str]) -> tuple[tuple[str, ...], dict[str, Any]]:
    """A command line as the real command line parses it: the verb, and its options. Errors: click.UsageError."""
    command: click.Command = _APP
    path: list[str] = []
    rest = list(arguments)
    while isinstance(command, click.Group) or hasattr(command, "commands"):
        name = rest.pop(0)
        path.append(name)
        command = cast("Any", command).commands[name]
    return tuple(path), dict(command.make_context(path[-1], rest).params)


_APP = cast("click.Command", command_tree())


def _configured(snapshot: ClusterSnapshot, configs: Mapping[str, Mapping[str, str]]) -> ClusterSnapshot:
    topics = [replace(one, config={**one.config, **configs.get(one.name, {})}) for one in snapshot.topics]
    return replace(snapshot, topics=tuple(topics))


def concede(snapshot: ClusterSnapshot, policy: RackPolicy, finding: Finding) -> tuple[ClusterSnapshot, RackPolicy]:
    """What a remedy that rackspan cannot carry out offers instead: to require less, in rackspan.toml or a config."""
    remedy, topic = finding.remedy, finding.topic or ""
    if lower := re.search(r"lower min\.insync\.racks(?: to (\d+))?", remedy):
        config = next(one.config for one in snapshot.topics if one.name == topic)
        value = int(lower[1] or 1)
        own = {**policy.topic_min_insync_racks, topic: value}
        if "min.insync.racks" in config:
            snapshot = _configured(snapshot, {topic: {"min.insync.racks": str(value)}})
        return snapshot, replace(policy, topic_min_insync_racks=own)
    if remedy.startswith('take survive = "none" for the topic out of rackspan.toml'):
        own_survive = {name: value for name, value in policy.topic_survive.items() if name != topic}
        return snapshot, replace(policy, topic_survive=own_survive)
    if accept := re.search(r'survive = "(\w+)" for the topic', remedy):
        return snapshot, replace(policy, topic_survive={**policy.topic_survive, topic: Survive(accept[1])})
    weaker = re.search(r'require less: survive = "(\w+)"', remedy)
    assert weaker is not None, remedy
    survive = Survive(weaker[1])

    def lowered(one: Survive) -> Survive:
        return Survive(min(one, survive, key=["none", "broker", "rack"].index))

    lower_own = {name: lowered(one) for name, one in policy.topic_survive.items()}
    return snapshot, replace(policy, survive=lowered(policy.survive), topic_survive=lower_own)


def _by_operator(remedy: str) -> bool:
    return remedy.startswith(
        (
            "bring back ",
            "see the log",
            "wait ",
            "set broker.rack to",
            "set broker.rack as",
            "set broker.rack on broker",
            "name the rack of",
            "name them in rackspan.toml",
        )
    )


def snapshot_racks(snapshot: ClusterSnapshot) -> list[RackId]:
    """The racks of brokers, by name; one of its own where no broker has any."""
    return sorted({one.rack for one in snapshot.brokers if one.rack is not None}) or [RackId("r1")]


def _with_racks_back(snapshot: ClusterSnapshot, words: str) -> tuple[ClusterSnapshot, str]:
    """All of the racks that the words name is up again; and the ids of their brokers in place of their names."""
    named = set(re.findall(r"\brack (\S+)", words))
    back = [str(one.id) for one in snapshot.brokers if one.rack in named]
    controllers = [replace(one, alive=True) if one.rack in named else one for one in snapshot.controllers]
    return replace(snapshot, controllers=tuple(controllers)), " ".join([re.sub(r"\brack \S+", "", words), *back])


def _operated(snapshot: ClusterSnapshot, remedy: str, finding: Finding) -> ClusterSnapshot:
    first = remedy.split("; then ")[0]
    if first.startswith("bring back "):
        snapshot, first = _with_racks_back(snapshot, first)
    ids = {int(one) for one in re.findall(r"\d+", first)}
    if first.startswith("wait for "):
        rows = [replace(row, adding_replicas=(), removing_replicas=()) for row in snapshot.partitions]
        return replace(snapshot, partitions=from_rows(rows))
    if alike := re.match(
        r"set broker.rack (?:to|as the other racks are named, such as) '(.*?)',? on brokers? ([\d,]+)"
        r"|name the rack of controllers? ([\d,]+) (?:as the other racks are named, such as )?'(.*?)'",
        first,
    ):
        name = RackId(alike[1] or alike[4])
        of = {int(one) for one in (alike[2] or alike[3]).split(",")}
        return replace(
            snapshot,
            brokers=tuple(replace(one, rack=name) if alike[2] and one.id in of else one for one in snapshot.brokers),
            controllers=tuple(
                replace(one, rack=name) if one.id in of and one.rack is not None else one
                for one in snapshot.controllers
            ),
        )
    if first.startswith("set broker.rack on broker"):
        known = snapshot_racks(snapshot)
        return replace(
            snapshot,
            brokers=tuple(
                replace(b, rack=known[b.id % len(known)]) if int(b.id) in ids else b for b in snapshot.brokers
            ),
        )
    if first.startswith("name them in rackspan.toml"):
        known = snapshot_racks(snapshot)
        named = [
            replace(one, rack=known[place % len(known)]) if int(one.id) in ids else one
            for place, one in enumerate(snapshot.controllers)
        ]
        return replace(snapshot, controllers=tuple(named))
    if first.startswith("bring back controller"):
        snapshot = replace(
            snapshot,
            controllers=tuple(replace(one, alive=True) if int(one.id) in ids else one for one in snapshot.controllers),
        )
        ids &= {int(one.id) for one in snapshot.brokers}
    brokers = [replace(one, fenced=False) if int(one.id) in ids else one for one in snapshot.brokers]
    listed = {int(one.id) for one in brokers}
    brokers += [Broker(BrokerId(one), RackId("r1")) for one in sorted(ids - listed)]
    back = {int(one.id) for one in brokers}
    # A partition without anyone in sync is led by the first of its replicas that is back.
    rows = [
        replace(row, isr=row.isr or tuple(one for one in row.replicas if one in ids & back)[:1])
        if row.leader == -1 or set(row.replicas) & ids
        else row
        for row in snapshot.partitions
    ]
    return replace(snapshot, brokers=tuple(brokers), partitions=from_rows(rows))
