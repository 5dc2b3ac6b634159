"""A remedy, carried out on the model of a cluster to its end: the operator's part here, the plans and values by rackspan.

Errors are Impossible where the words say to do what cannot be done, or to wait for what never comes.
"""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rackspan import api
from rackspan.errors import UsageError
from tests.audit.repairs import parsed, requested
from tests.random_clusters.plain import Impossible, in_sync, reassigned, settled, takes_writes
from tests.random_clusters.plain import voters as voters_of
from tests.random_clusters.states import ZONE_IDS, ZONE_NAMES, Document, RandomCluster
from tests.random_clusters.values import policy_of


@dataclass(frozen=True)
class Place:
    """What a remedy is about: a partition, a topic, or neither."""

    topic: str | None = None
    partition: int | None = None

    def rows(self, cluster: RandomCluster) -> list[tuple[Document, Document]]:
        return [
            (topic, row)
            for topic, row in cluster.partitions()
            if topic["name"] == self.topic and self.partition in (None, row["partition"])
        ]


def carried_out(cluster: RandomCluster, way: str, place: Place) -> RandomCluster | None:
    """The cluster once every step of one way is done, and Kafka has done the rest; None for what only changes the cluster's shape.

    Errors: Impossible.
    """
    for step in re.split(r"; then | and (?=wait |uncordon |stop excluding )", way):
        act = next((act for words, act in ACTS if re.search(words, step)), None)
        if act is None:
            raise AssertionError(f"no model of {step!r}")
        after = act(cluster.copy(), step, place)
        if after is None:
            return None
        cluster = settled(after)
    return cluster


def brokers_in(words: str) -> set[int]:
    """The ids in a list such as `brokers 1,4`."""
    return {int(one) for listed in re.findall(r"\bbrokers? ([\d,]+)", words) for one in listed.split(",") if one}


def controllers_in(words: str) -> set[int]:
    return {int(one) for listed in re.findall(r"\bcontrollers? ([\d,]+)", words) for one in listed.split(",") if one}


def _bring_back(cluster: RandomCluster, back: str, _place: Place) -> RandomCluster:
    known = {*cluster.racks, *filter(None, voters_of(cluster).values())}
    racks = [rack for rack in known if re.search(rf"\brack {re.escape(rack)}(?![\w-])", back)]
    # Of a rack all come back that ever do.
    of_racks = {broker["id"] for broker in cluster.brokers if broker["rack"] in racks} - cluster.stale
    brokers = brokers_in(back) | of_racks
    voters = controllers_in(back) | {voter for voter, rack in voters_of(cluster).items() if rack in racks}
    if never := brokers & cluster.stale:
        raise Impossible(f"brokers {sorted(never)} are stale registrations")
    alive = {one["id"] for one in cluster.document["controllers"] if one["alive"]}
    if not (brokers - cluster.running) and not (voters - alive):
        raise Impossible("all of them are up")
    if "one of" in back:
        brokers = set(sorted(brokers)[:1])
    for broker in sorted(brokers - {broker["id"] for broker in cluster.brokers}):
        cluster.document["brokers"].append(
            {"id": broker, "host": "back.example", "port": 9092, "rack": cluster.racks[0] if cluster.racks else None}
            | {"fenced": False, "cordoned": False}
        )
    for one in cluster.document["brokers"]:
        one["fenced"] = one["fenced"] and one["id"] not in brokers | voters
    for one in cluster.document["controllers"]:
        one["alive"] = True if one["id"] in voters | brokers else one["alive"]
    for _, partition in cluster.partitions():
        # Without anyone in sync the first that is back leads: it was eligible.
        first = [broker for broker in partition["replicas"] if broker in brokers][:1]
        partition["isr"] = partition["isr"] or first
    return cluster


def _wait(cluster: RandomCluster, words: str, place: Place) -> RandomCluster:
    after = settled(cluster)
    for _, row in place.rows(after):
        if late := brokers_in(words) & set(row["replicas"]) - set(row["isr"]):
            raise Impossible(f"brokers {sorted(late)} never get in sync")
    return after


def _wait_for_reassignment(cluster: RandomCluster, _words: str, place: Place) -> RandomCluster:
    after = settled(cluster)
    for _, row in place.rows(after):
        if row["adding_replicas"] or row["removing_replicas"]:
            raise Impossible("the reassignment never ends")
    return after


def _cancel(cluster: RandomCluster, _words: str, place: Place) -> RandomCluster:
    """The cancel of all in flight, which leaves out what it would harm: this partition is not to be among them."""
    of_place = {id(row) for _, row in place.rows(cluster)}
    for topic, row in cluster.partitions():
        added = set(row["adding_replicas"])
        if not added and not row["removing_replicas"]:
            continue
        now, name = in_sync(cluster, topic, row), f"{topic['name']}-{row['partition']}"
        back = [broker for broker in row["replicas"] if broker not in added]
        stops = takes_writes(cluster, topic, now, len(row["replicas"])) and not takes_writes(
            cluster, topic, now - added, len(back)
        )
        if not set(row["isr"]) - added or stops:
            if id(row) in of_place:
                raise Impossible(f"{name}: the cancel stops acks=all, or Kafka refuses it")
            continue
        row.update(replicas=back, adding_replicas=[], removing_replicas=[])
        row["isr"] = [broker for broker in row["isr"] if broker not in added]
        if row["leader"] in added:
            row["leader"] = row["isr"][0]
    return cluster


def _see_log(cluster: RandomCluster, words: str, place: Place) -> RandomCluster:
    if not brokers_in(words) <= cluster.up:
        raise Impossible("they are not up")
    for topic, row in place.rows(cluster):
        cluster.failed -= {(topic["name"], row["partition"], broker) for broker in brokers_in(words)}
        row["isr"] = row["isr"] or [broker for broker in row["replicas"] if broker in brokers_in(words)][:1]
    return cluster


def _repair(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    """The disk of a broker that is up, which is restarted."""
    brokers = brokers_in(words.split(":")[0])
    if not brokers & (
        {broker for _, _, broker in cluster.failed} | {b["id"] for b in cluster.brokers if b.get("failed_log_dirs")}
    ):
        raise Impossible(f"no directory of brokers {sorted(brokers)} has failed")
    cluster.failed = {failed for failed in cluster.failed if failed[2] not in brokers}
    for broker in cluster.document["brokers"]:
        if broker["id"] in brokers:
            broker.pop("failed_log_dirs", None)
    for _, row in cluster.partitions():
        row["offline_replicas"] = [broker for broker in row.get("offline_replicas", ()) if broker not in brokers]
        row["isr"] = row["isr"] or [broker for broker in row["replicas"] if broker in brokers][:1]
    return cluster


def _unregister(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    (name,) = re.findall(r"--id (\d+)", words)
    if int(name) in cluster.up:
        raise Impossible(f"Kafka refuses to unregister broker {name}, which is up")
    if held := [row for _, row in cluster.partitions() if int(name) in row["replicas"]]:
        raise Impossible(f"broker {name} holds {len(held)} replicas")
    cluster.document["brokers"] = [broker for broker in cluster.brokers if broker["id"] != int(name)]
    return cluster


def _give_address(cluster: RandomCluster, _words: str, _place: Place) -> RandomCluster:
    """Another listener, by which every broker and leader is reported."""
    if not cluster.hidden:
        raise Impossible("every broker is listed")
    cluster.document["brokers"] = sorted(
        [*cluster.brokers, *cluster.hidden.values()], key=lambda broker: int(broker["id"])
    )
    cluster.hidden = {}
    return cluster


def _place_anew(cluster: RandomCluster, _words: str, place: Place) -> RandomCluster:
    cluster.policy["topic_survive"].pop(place.topic, None)
    return cluster


def _set_rack(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    name = re.search(r"(?:to|controllers? [\d,]+) '(.*?)'", words)
    known = cluster.racks or ["a"]
    if example := re.search(r"such as '(.*?)'", words):
        # The other scheme's names of the same zones.
        to, of = (ZONE_IDS, ZONE_NAMES) if example[1] in ZONE_IDS else (ZONE_NAMES, ZONE_IDS)
        for member in (*cluster.document["brokers"], *cluster.document["controllers"]):
            member["rack"] = to[of.index(member["rack"])] if member["rack"] in of else member["rack"]
        return cluster
    for part in words.split("; "):
        for broker in cluster.document["brokers"]:
            if broker["id"] in brokers_in(part):
                broker["rack"] = name[1] if name else known[broker["id"] % len(known)]
        for controller in cluster.document["controllers"]:
            if name and controller["id"] in controllers_in(part):
                controller["rack"] = name[1]
    return cluster


def _name_controllers(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    known = cluster.racks or ["a"]
    named = [int(voter) for voter in re.findall(r'(\d+) = "RACK"', words)]
    racks = {voter: known[at % len(known)] for at, voter in enumerate(named)}
    cluster.policy["controller_racks"] = {**cluster.policy.get("controller_racks", {}), **racks}
    for controller in cluster.document["controllers"]:
        controller["rack"] = racks.get(controller["id"], controller["rack"])
    return cluster


def _configure(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    _, *arguments = shlex.split(words)
    options = dict(pairwise(arguments))
    config = next(one for one in cluster.document["topics"] if one["name"] == options["--entity-name"])["config"]
    if "--add-config" in options:
        key, _, value = options["--add-config"].partition("=")
        config[key] = value
    for key in options.get("--delete-config", "").split(","):
        config.pop(key, None)
    return cluster


def _elect(cluster: RandomCluster, _words: str, _place: Place) -> RandomCluster:
    elected = 0
    for topic, row in cluster.partitions():
        first = row["replicas"][0]
        if first != row["leader"] and row["leader"] != -1 and first in in_sync(cluster, topic, row):
            row["leader"] = first
            elected += 1
    if not elected:
        raise Impossible("no preferred replica is in sync")
    return cluster


def _plan(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    _, params = parsed(shlex.split(words)[1:])
    try:
        planned = api.plan_reassignment(cluster.snapshot(), policy_of(cluster), requested(params))
    except UsageError as error:
        raise Impossible(str(error)) from None
    for step in planned.steps:
        cluster = reassigned(cluster, {(one.topic, one.partition): list(one.replicas) for one in step.partitions})
    return cluster


def _harden(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    _, params = parsed(shlex.split(words)[1:])
    if (flag := params["min_insync_racks"]) != 1:
        cluster.policy.update(min_insync_racks=flag, topic_min_insync_racks={})
    advised = api.harden(cluster.snapshot(), policy_of(cluster), re.compile(params["topic"]))
    values = {one.topic: str(one.least) for one in advised if one.to_set}
    for topic in cluster.document["topics"]:
        if topic["name"] in values:
            topic["config"]["min.insync.replicas"] = values[topic["name"]]
    return cluster


def _lower(cluster: RandomCluster, words: str, place: Place) -> RandomCluster:
    key, value = re.findall(r"lower (min\.insync\.\w+)(?: to (\d+))?", words)[0]
    for topic, row in place.rows(cluster):
        if key == "min.insync.racks":
            cluster.policy["topic_min_insync_racks"][topic["name"]] = int(value or 1)
        if key in topic["config"]:
            topic["config"][key] = value or str(1 if key == "min.insync.racks" else len(row["replicas"]))
    return cluster


def _accept(cluster: RandomCluster, words: str, place: Place) -> RandomCluster:
    survive = re.findall(r'survive = "(\w+)"', words)[0]
    if place.topic is not None:
        cluster.policy["topic_survive"][place.topic] = survive
        return cluster
    order = ["none", "broker", "rack"].index
    cluster.policy["survive"] = min(cluster.policy["survive"], survive, key=order)
    lower = {topic: min(own, survive, key=order) for topic, own in cluster.policy["topic_survive"].items()}
    cluster.policy["topic_survive"] = lower
    return cluster


def _grant(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    name = re.findall(r"on topic (\S+),", words)[0]
    for topic in cluster.document["topics"]:
        if topic["name"] == name:
            topic["config"]["min.insync.replicas"] = "1"
    return cluster


def _uncordon(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    names = brokers_in(words) | {int(name) for name in re.findall(r"--entity-name (\d+)", words)}
    for broker in cluster.document["brokers"]:
        broker["cordoned"] = broker["cordoned"] and broker["id"] not in names
    return cluster


def _stop_excluding(cluster: RandomCluster, words: str, _place: Place) -> RandomCluster:
    cordoned = {broker["id"] for broker in cluster.brokers if broker["cordoned"]} & brokers_in(words)
    if cordoned:
        raise Impossible(f"brokers {sorted(cordoned)} are cordoned, and nothing excludes them")
    return cluster


def _outside(_cluster: Any, _words: str, _place: Place) -> None:
    return None


Act = Callable[[RandomCluster, str, Place], RandomCluster | None]

ACTS: Final[tuple[tuple[str, Act], ...]] = (
    (r"^rackspan reassign plan", _plan),
    (r"^rackspan reassign cancel --in-flight", _cancel),
    (r"^rackspan acks harden", _harden),
    (r"^kafka-configs.sh", _configure),
    (r"^kafka-leader-election.sh .*--election-type preferred", _elect),
    (r"^bring back ", _bring_back),
    (r"^uncordon ", _uncordon),
    (r"^stop excluding", _stop_excluding),
    (r"^wait until brokers? ", _wait),
    (r"^wait for (it|the reassignment)", _wait_for_reassignment),
    (r"^see the logs? of", _see_log),
    (r"^(set broker.rack (on|to|as)|name the rack of)", _set_rack),
    (r"^name them in rackspan.toml", _name_controllers),
    (r"^grant DESCRIBE_CONFIGS", _grant),
    (r"^give the address of a listener", _give_address),
    (r"^repair ", _repair),
    (r"^kafka-cluster.sh unregister ", _unregister),
    (r"^take survive = ", _place_anew),
    (r"survive = ", _accept),
    (r"^lower min", _lower),
    # The cluster gets another shape, records are lost, or nothing is to be done.
    (
        r"^(only if|where they are|read all|add|run|spread|nothing on|no plan|take the snapshot|start the controllers|(or )?let them suffer)",
        _outside,
    ),
)
"""What each remedy that an audit may print does, by its first words."""
