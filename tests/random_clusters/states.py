"""Random clusters with each state that Kafka can report: one generator for the tests of every command.

A cluster is drawn without a fault. Each entry of STATES then comes about with its chance, and a third of the clusters get none.
The cluster is a snapshot document and a policy in plain values. What is true of it and cannot be read is in `RandomCluster`,
for judges. A new state is a function and a line of STATES.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final

from rackspan.model import ClusterSnapshot, json_format

Document = dict[str, Any]
Replica = tuple[str, int, int]
"""Topic, partition and broker."""

ZONE_NAMES: Final = ("us-east-1a", "us-east-1b", "us-east-1c", "us-east-1d", "us-east-1e")
ZONE_IDS: Final = ("use1-az1", "use1-az2", "use1-az4", "use1-az5", "use1-az6")
OBSERVERS: Final = (4001, 4002)
UNKNOWN_LEADER: Final = -2
"""There may be a leader, and none was reported."""


@dataclass
class RandomCluster:
    """A cluster as it is read, its policy, and what is true of it beyond that.

    `states`: which entries of STATES came about. `failed`: replicas in a directory that has failed, or in a log that cannot be opened. `stale`: brokers that never come back. `hidden`: brokers that are up, and not listed.
    """

    rng: Random
    document: Document
    policy: dict[str, Any] = field(default_factory=dict)
    states: list[str] = field(default_factory=list)
    failed: set[Replica] = field(default_factory=set)
    stale: set[int] = field(default_factory=set)
    hidden: dict[int, Document] = field(default_factory=dict)

    @property
    def two_schemes(self) -> bool:
        racks = {one["rack"] for one in (*self.document["brokers"], *self.document["controllers"])}
        return not racks.isdisjoint(ZONE_NAMES) and not racks.isdisjoint(ZONE_IDS)

    @property
    def brokers(self) -> list[Document]:
        return list(self.document["brokers"])

    @property
    def up(self) -> set[int]:
        return {broker["id"] for broker in self.brokers if not broker["fenced"]}

    @property
    def running(self) -> set[int]:
        return self.up | self.hidden.keys()

    @property
    def racks(self) -> list[str]:
        return sorted({broker["rack"] for broker in self.brokers if broker["rack"] is not None})

    def snapshot(self) -> ClusterSnapshot:
        return json_format.from_document(self.document).snapshot

    def copy(self) -> "RandomCluster":
        return replace(
            self,
            document=deepcopy(self.document),
            policy=deepcopy(self.policy),
            failed=set(self.failed),
            hidden=dict(self.hidden),
        )

    def partitions(self) -> Iterator[tuple[Document, Document]]:
        """Each partition with its topic."""
        return ((topic, partition) for topic in self.document["topics"] for partition in topic["partitions"])

    def some(self, chance: float) -> list[tuple[Document, Document]]:
        """Some of the partitions, one at least."""
        found = list(self.partitions())
        return [one for one in found if self.rng.random() < chance] or found[:1]


def random_cluster(rng: Random, brokers_most: int = 12, topics_most: int = 3, only: str = "") -> RandomCluster:
    """A cluster of 1 to `brokers_most` brokers. `only`: with this state for certain, and no other."""
    cluster = RandomCluster(rng, _healthy(rng, brokers_most, topics_most))
    cluster.policy = _policy(rng, cluster)
    base, faultless = rng.getrandbits(64), rng.random() < 0.33
    for state in STATES:
        # Draws of its own, so that a new entry leaves the other draws of a seed as they are.
        cluster.rng = Random(f"{base} {state.name}")
        comes = not faultless and cluster.rng.random() < state.chance
        if state.name == only if only else comes:
            state.apply(cluster)
            cluster.states.append(state.name)
    cluster.rng = rng
    return cluster


def _healthy(rng: Random, brokers_most: int, topics_most: int) -> Document:
    racks = "abcde"[: rng.choice((1, 2, 2, 3, 3, 3, 3, 4, 5))]
    sizes = [rng.randint(1, 4) if rng.random() < 0.3 else 2 for _ in racks]
    places = [rack for at in range(4) for rack, size in zip(racks, sizes, strict=True) if at < size][:brokers_most]
    ids = sorted(rng.sample(range(1, 20), len(places)))
    return {
        "version": 1,
        "cluster_id": "random",
        "taken_at": None,
        "partial": [],
        "brokers": [
            {"id": broker, "host": f"b{broker}.example", "port": 9092, "rack": rack, "fenced": False, "cordoned": False}
            for broker, rack in zip(ids, places, strict=True)
        ],
        "controllers": _controllers(rng, ids, racks),
        "topics": [_topic(rng, code, ids, places) for code in range(rng.randint(1, topics_most))],
    }


def _controllers(rng: Random, ids: list[int], racks: str) -> list[Document]:
    """None, dedicated ones, or combined ones, whose racks are those of their brokers."""
    count = rng.choice((0, 1, 2, 3, 3, 3, 5))
    combined = rng.random() < 0.5 and count <= len(ids)
    first = rng.randrange(len(racks))
    return [
        {
            "id": ids[at] if combined else 3001 + at,
            "rack": None if combined else racks[(first + at) % len(racks)],
            "voter": True,
            "alive": None if combined and rng.random() < 0.3 else True,
            "active": at == 0,
        }
        for at in range(count)
    ]


def _topic(rng: Random, code: int, ids: list[int], racks: list[str]) -> Document:
    by_rack: dict[str, list[int]] = {}
    for broker, rack in zip(ids, racks, strict=True):
        by_rack.setdefault(rack, []).append(broker)
    config = {"min.insync.replicas": str(rng.choice((1, 1, 2, 2, 2, 3)))}
    if rng.random() < 0.2:
        config["min.insync.racks"] = str(rng.choice((1, 2, 2, 3)))
    factor = min(len(ids), rng.choice((1, 2, 3, 3, 3, 4, 5)))
    partitions = []
    for number in range(rng.randint(1, 4)):
        queues = [rng.sample(held, len(held)) for held in rng.sample(list(by_rack.values()), len(by_rack))]
        # In turn to the racks: as Kafka places them.
        dealt = [queue[at] for at in range(max(map(len, queues))) for queue in queues if at < len(queue)][:factor]
        partitions.append(_partition(number, dealt, rng.randint(0, 1000)))
    return {
        "name": "__consumer_offsets" if code == 2 else f"t{code}",
        "topic_id": None,
        "internal": code == 2,
        "config": config,
        "partitions": partitions,
    }


def _partition(number: int, replicas: list[int], size: int) -> Document:
    return {
        "partition": number,
        "leader": replicas[0],
        "replicas": replicas,
        "isr": list(replicas),
        "adding_replicas": [],
        "removing_replicas": [],
        "size_bytes": size,
    }


def _policy(rng: Random, cluster: RandomCluster) -> dict[str, Any]:
    names = [topic["name"] for topic in cluster.document["topics"]]
    survive = ("rack", "rack", "rack", "broker", "none")
    return {
        "unracked": rng.choice(("shared", "shared", "own", "ignore")),
        "min_insync_racks": rng.choice((1, 1, 1, 2, 2, 3)),
        "topic_min_insync_racks": {names[0]: rng.randint(1, 3)} if rng.random() < 0.2 else {},
        "survive": rng.choice(survive),
        "topic_survive": {names[-1]: rng.choice(survive)} if rng.random() < 0.2 else {},
    }


def stop(cluster: RandomCluster, stopped: set[int]) -> None:
    """What Kafka does when brokers stop: the first replica in sync leads, and the last one in sync stays in the ISR."""
    for broker in cluster.document["brokers"]:
        broker["fenced"] = broker["fenced"] or broker["id"] in stopped
    for controller in cluster.document["controllers"]:
        if controller["id"] in stopped and controller["alive"]:
            controller["alive"] = cluster.rng.choice((False, None))
    for _, partition in cluster.partitions():
        leave(cluster, partition, stopped)


def leave(cluster: RandomCluster, partition: Document, stopped: set[int]) -> None:
    left = [broker for broker in partition["isr"] if broker not in stopped]
    if set(partition["isr"]) & stopped:
        # With eligible leader replicas (KIP-966) the ISR may be empty.
        last = [] if cluster.rng.random() < 0.1 else partition["isr"][-1:]
        partition["isr"] = left or last
    if partition["leader"] not in left:
        able = [broker for broker in partition["replicas"] if broker not in partition.get("offline_replicas", ())]
        partition["leader"] = next((broker for broker in able if broker in left), -1)


def _fenced(cluster: RandomCluster) -> None:
    ids = sorted(cluster.up)
    stop(cluster, set(cluster.rng.sample(ids, min(len(ids), cluster.rng.choice((1, 1, 2, 3))))))


def _rack_down(cluster: RandomCluster) -> None:
    rack = cluster.rng.choice(cluster.racks or [""])
    stop(cluster, {broker["id"] for broker in cluster.brokers if broker["rack"] == rack})


def _gone(cluster: RandomCluster) -> None:
    """Brokers of which the cluster lists nothing any more, though replicas are on them."""
    if len(cluster.up) > 1:
        gone = set(cluster.rng.sample(sorted(cluster.up), 1))
        stop(cluster, gone)
        cluster.document["brokers"] = [broker for broker in cluster.brokers if broker["id"] not in gone]
        for controller in cluster.document["controllers"]:
            controller["alive"] = False if controller["id"] in gone else controller["alive"]


def _lagging(cluster: RandomCluster) -> None:
    for _, partition in cluster.some(0.3):
        others = [broker for broker in partition["isr"] if broker != partition["leader"]]
        leave(cluster, partition, set(cluster.rng.sample(others, cluster.rng.randint(0, len(others)))))


def _fenced_in_isr(cluster: RandomCluster) -> None:
    """Brokers that have just stopped: fenced, and still in the ISR that was read."""
    for broker in cluster.rng.sample(cluster.brokers, 1):
        broker["fenced"] = True


def _failed_directory(cluster: RandomCluster) -> None:
    """A directory of a broker that is up: its replicas leave the ISR, and never come back by themselves."""
    member = cluster.rng.choice(cluster.document["brokers"])
    member["failed_log_dirs"] = ["/data/b"]
    for topic, partition in cluster.some(0.5):
        if (broker := member["id"]) in partition["replicas"]:
            leave(cluster, partition, {broker})
            cluster.failed.add((topic["name"], partition["partition"], broker))
            partition["offline_replicas"] = [broker]


def _log_failed(cluster: RandomCluster) -> None:
    """No leader, though the last in sync is up: its log could not be opened."""
    for topic, partition in cluster.some(0.2):
        partition["isr"], partition["leader"] = partition["isr"][:1], -1
        for broker in partition["isr"]:
            cluster.failed.add((topic["name"], partition["partition"], broker))


def _missing_listener(cluster: RandomCluster) -> None:
    """A broker without a listener of the name that is required: it is not listed, and what it leads has LISTENER_NOT_FOUND."""
    if len(cluster.up) > 1:
        hidden = cluster.rng.choice(sorted(cluster.up))
        cluster.hidden = {broker["id"]: broker for broker in cluster.brokers if broker["id"] == hidden}
        cluster.document["brokers"] = [broker for broker in cluster.brokers if broker["id"] != hidden]
        for _, partition in cluster.partitions():
            if partition["leader"] == hidden:
                partition["leader"] = UNKNOWN_LEADER


def _leader_not_available(cluster: RandomCluster) -> None:
    """LEADER_NOT_AVAILABLE of some partitions while leaders are elected."""
    for _, partition in cluster.some(0.2):
        if partition["leader"] != -1:
            partition["leader"] = UNKNOWN_LEADER


def _unracked(cluster: RandomCluster) -> None:
    for broker in cluster.rng.sample(cluster.brokers, cluster.rng.randint(1, len(cluster.brokers))):
        broker["rack"] = None


def _alike(cluster: RandomCluster) -> None:
    spelt: Callable[[str], str] = cluster.rng.choice((str.upper, " {}".format, "{} ".format))
    broker = cluster.rng.choice(cluster.brokers)
    broker["rack"] = broker["rack"] and spelt(broker["rack"])


def _two_schemes(cluster: RandomCluster) -> None:
    """Names of zones become ids of zones, broker by broker."""
    names = dict(zip("abcde", zip(ZONE_NAMES, ZONE_IDS, strict=True), strict=True))
    for member in (*cluster.document["brokers"], *cluster.document["controllers"]):
        if member["rack"] in names:
            member["rack"] = names[member["rack"]][cluster.rng.random() < 0.5]


def _elsewhere(cluster: RandomCluster) -> None:
    """Replicas that a tool without racks has placed."""
    up = sorted(cluster.up)
    for _, partition in cluster.some(0.5):
        replicas = cluster.rng.sample(up, min(len(up), len(partition["replicas"])))
        partition.update(_partition(partition["partition"], replicas or partition["replicas"], 10))


def _mixed_factors(cluster: RandomCluster) -> None:
    for _, partition in cluster.some(0.3):
        more = [broker for broker in sorted(cluster.up) if broker not in partition["replicas"]]
        if more and cluster.rng.random() < 0.5:
            new = cluster.rng.choice(more)
            partition["replicas"], partition["isr"] = [*partition["replicas"], new], [*partition["isr"], new]
        elif len(partition["isr"]) > 1:
            leave(cluster, partition, {last := partition["replicas"][-1]})
            partition["replicas"] = partition["replicas"][:-1]
            partition["isr"] = [broker for broker in partition["isr"] if broker != last]


def _moving(cluster: RandomCluster) -> None:
    """Reassignments in flight, which add, remove, or do both. Those that are added are in sync, or not yet."""
    for _, partition in cluster.some(0.2):
        others = [broker for broker in sorted(cluster.up) if broker not in partition["replicas"]]
        added = cluster.rng.sample(others, min(len(others), cluster.rng.choice((0, 1, 1, 2))))
        removed = cluster.rng.sample(partition["replicas"], min(len(partition["replicas"]) - 1, len(added)))
        partition["replicas"] = [*partition["replicas"], *added]
        partition["isr"] = [*partition["isr"], *(broker for broker in added if cluster.rng.random() < 0.4)]
        partition["adding_replicas"], partition["removing_replicas"] = added, removed


def _dead_voters(cluster: RandomCluster) -> None:
    for controller in cluster.document["controllers"]:
        controller["alive"] = cluster.rng.choice((True, None, False))


def _voters_elsewhere(cluster: RandomCluster) -> None:
    """Voters whose racks are not known, or together in one."""
    together = cluster.rng.choice([None, *cluster.racks])
    for controller in cluster.document["controllers"]:
        controller["rack"] = together if cluster.rng.random() < 0.7 else controller["rack"]


def _observers(cluster: RandomCluster) -> None:
    """Members of the quorum without a vote, alive or not: they save no majority, and endanger none."""
    cluster.document["controllers"] += [
        {"id": one, "rack": None, "voter": False, "alive": cluster.rng.choice((True, False)), "active": False}
        for one in OBSERVERS
    ]


def _stale_registration(cluster: RandomCluster) -> None:
    """A node that was a broker too and is a controller only: its registration stays, fenced, and holds nothing."""
    free = [broker for broker in range(20, 24) if broker not in cluster.up]
    broker = cluster.rng.choice(free)
    rack = cluster.rng.choice(cluster.racks or [None])
    cluster.document["brokers"].append(
        {"id": broker, "host": "old.example", "port": 9092, "rack": rack, "fenced": True, "cordoned": False}
    )
    cluster.stale.add(broker)


def _diskless(cluster: RandomCluster) -> None:
    """Topics whose records are in object storage (KIP-1150): one replica, which any broker serves."""
    topic = cluster.rng.choice(cluster.document["topics"])
    topic["config"][cluster.rng.choice(("diskless.enable", "inkless.enable"))] = "true"
    for partition in topic["partitions"]:
        partition.update(_partition(partition["partition"], [cluster.rng.choice(sorted(cluster.up) or [1])], 0))


def _unread_minimums(cluster: RandomCluster) -> None:
    for topic in cluster.document["topics"]:
        if cluster.rng.random() < 0.5:
            topic["config"].pop("min.insync.replicas", None)


def _high_minimums(cluster: RandomCluster) -> None:
    for topic in cluster.document["topics"]:
        topic["config"]["min.insync.replicas"] = str(cluster.rng.choice((2, 3, 4, 5)))


def _other_configs(cluster: RandomCluster) -> None:
    for topic in cluster.document["topics"]:
        topic["config"]["unclean.leader.election.enable"] = cluster.rng.choice(("true", "false"))
        if cluster.rng.random() < 0.5:
            topic["config"]["follower.replication.throttled.replicas"] = "*"


def _cordoned(cluster: RandomCluster) -> None:
    cluster.rng.choice(cluster.document["brokers"])["cordoned"] = True


def _partly_read(cluster: RandomCluster) -> None:
    notes = ("sizes of broker 3: unknown", "reassignments under way: unknown", "which brokers are fenced: unknown")
    cluster.document["partial"] = [cluster.rng.choice(notes)]


def _empty_topic(cluster: RandomCluster) -> None:
    cluster.document["topics"].append(
        {"name": "zz-empty", "topic_id": None, "internal": False, "config": {}, "partitions": []}
    )


def _one_machine(cluster: RandomCluster) -> None:
    for broker in cluster.document["brokers"]:
        broker["host"] = "127.0.0.1"


@dataclass(frozen=True)
class State:
    """A state with the chance that it comes about."""

    name: str
    apply: Callable[[RandomCluster], None]
    chance: float = 0.1


STATES: Final = (
    State("replicas placed without racks", _elsewhere, 0.2),
    State("several replication factors", _mixed_factors),
    State("minimums above the factor", _high_minimums),
    State("minimums not read", _unread_minimums),
    State("throttles and unclean elections", _other_configs),
    State("a topic without partitions", _empty_topic, 0.03),
    State("brokers without a rack", _unracked, 0.08),
    State("rack names alike", _alike, 0.05),
    State("racks in two schemes", _two_schemes, 0.08),
    State("on one machine", _one_machine, 0.05),
    State("voters of unknown rack or together", _voters_elsewhere),
    State("voters dead or not known", _dead_voters),
    State("observers", _observers),
    State("diskless topics", _diskless, 0.05),
    State("adding and removing at once", _moving),
    State("replicas behind", _lagging, 0.15),
    State("a failed log directory", _failed_directory, 0.1),
    State("brokers fenced", _fenced, 0.2),
    State("a rack down", _rack_down, 0.05),
    State("brokers gone", _gone),
    State("a broker that has just stopped", _fenced_in_isr, 0.05),
    State("a log that cannot be opened", _log_failed, 0.05),
    State("leaders of a missing listener", _missing_listener, 0.08),
    State("leaders that are not available", _leader_not_available, 0.08),
    State("stale registrations", _stale_registration, 0.05),
    State("brokers cordoned", _cordoned, 0.05),
    State("partly read", _partly_read, 0.03),
)
"""In the order in which they come about: placement first, then what fails."""
