"""The words of a scenario page, one function each. A page builds a cluster line by line and judges it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rackspan.acks.harden import harden
from rackspan.acks.wording import loss_words, reason, remedies
from rackspan.audit import RackPolicy, audit, outage
from rackspan.audit.outage import RackLoss
from rackspan.audit.policy import Survive
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
from rackspan.model.ids import shown
from rackspan.model.partitions import Partition
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.new_partitions import PlacerChoice, new_topic
from rackspan.reassign import ReassignmentRequest
from tests.scenarios import gateway, group, live, moves, spark_source, warehouse
from tests.strategies import from_rows


@dataclass
class World:
    """What the page has output so far."""

    brokers: list[Broker] = field(default_factory=list)
    controllers: list[Controller] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    rows: list[Partition] = field(default_factory=list)
    policy: RackPolicy = field(default_factory=RackPolicy)
    running: tuple[Mapping[str, Callable[..., Iterator[str]]], Any] | None = None
    """The words of the rest of the page and what they are about, where that is no snapshot."""

    def snapshot(self) -> ClusterSnapshot:
        return ClusterSnapshot(
            brokers=tuple(self.brokers),
            controllers=tuple(self.controllers),
            topics=tuple(self.topics),
            partitions=from_rows(self.rows),
        )


def cluster(world: World, *_: str, racks: str, brokers_per_rack: str = "1") -> Iterator[str]:
    """cluster racks=a,b,c brokers_per_rack=2: ids from 1, dealt to racks in turn."""
    names = racks.split(",")
    world.brokers = [
        Broker(BrokerId(index + 1), RackId(names[index % len(names)]))
        for index in range(len(names) * int(brokers_per_rack))
    ]
    yield from ()


def broker(
    world: World, name: str, *flags: str, rack: str | None = None, host: str | None = None, failed: str = ""
) -> Iterator[str]:
    """broker 7 rack=a fenced host=127.0.0.1 failed=/data/b: `failed` is a log directory"""
    named = None if rack is None else RackId(rack)
    directories = tuple(failed.split(",")) if failed else ()
    world.brokers.append(Broker(BrokerId(int(name)), named, "fenced" in flags, host=host, failed_log_dirs=directories))
    yield from ()


def controllers(world: World, *voters: str) -> Iterator[str]:
    """controllers 101:a 102:b 103 104:a:dead: a controller, its rack after the colon if it is known"""
    for voter in voters:
        name, rack, state = [*voter.split(":"), "", ""][:3]
        alive = {"": None, "alive": True, "dead": False}[state]
        world.controllers.append(Controller(BrokerId(int(name)), RackId(rack) if rack else None, alive=alive))
    yield from ()


def topic(world: World, name: str, *flags: str, **config: str) -> Iterator[str]:
    """topic orders min_insync_replicas=2, then its partitions; without it Kafka's default, with the flag `unread` no config is known"""
    kafkas = {} if "unread" in flags else {MIN_INSYNC_REPLICAS: "1"}
    dotted = kafkas | {key.replace("_", "."): value for key, value in config.items()}
    world.topics.append(Topic(TopicName(name), internal="internal" in flags, config=dotted))
    yield from ()


def partition(
    world: World,
    *_: str,
    replicas: str,
    isr: str | None = None,
    leader: str | None = None,
    adding: str = "",
    removing: str = "",
    size: str | None = None,
    offline: str = "",
) -> Iterator[str]:
    """partition replicas=1,2,3 isr=1,2 offline=3: of the last topic; in sync and led by the first unless output otherwise"""
    held, in_sync = _ids(replicas), _ids(replicas if isr is None else isr)
    code = len(world.topics) - 1
    world.rows.append(
        Partition(
            topic=code,
            partition=sum(row.topic == code for row in world.rows),
            leader=int(leader) if leader else (in_sync[0] if in_sync else -1),
            replicas=held,
            isr=in_sync,
            adding_replicas=_ids(adding),
            removing_replicas=_ids(removing),
            size_bytes=None if size is None else int(size),
            offline_replicas=_ids(offline),
        )
    )
    yield from ()


def policy(world: World, *_: str, **settings: str) -> Iterator[str]:
    """policy min_insync_racks=2 unracked=own excluded=4,5 survive=broker may_stop=clicks leader_racks=orders:a+b: `may_stop`: the topics to survive nothing"""
    for name, text in settings.items():
        world.policy = replace(world.policy, **_POLICY[name](text))
    yield from ()


_POLICY: dict[str, Callable[[str], dict[str, Any]]] = {
    "min_insync_racks": lambda text: {"min_insync_racks": int(text)},
    "unracked": lambda text: {"unracked": UnrackedPolicy(text)},
    "excluded": lambda text: {"excluded_brokers": frozenset(_ids(text))},
    "survive": lambda text: {"survive": Survive(text)},
    "require_controllers": lambda text: {"require_controllers": text == "true"},
    "leader_racks": lambda text: {
        "topic_leader_racks": {topic: tuple(racks.split("+")) for topic, racks in _pairs(text)}
    },
    "may_stop": lambda text: {"topic_survive": dict.fromkeys(text.split(","), Survive.NONE)},
}


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(","):
        name, _, value = pair.partition(":")
        yield name, value


def begin_live(world: World, *_: str, **options: str) -> Iterator[str]:
    """live racks=a,b,c: from here on the page is about a running cluster (live.py)"""
    world.running = live.WORDS, live.Live.begun(**{key: value.replace("_", " ") for key, value in options.items()})
    yield from ()


def begin_gateway(world: World, *_: str, **options: str) -> Iterator[str]:
    """gateway override=1: from here on the page is about a gateway (gateway.py)"""
    world.running = gateway.WORDS, gateway.Gateway.begun(**options)
    yield from ()


def begin_group(world: World, *_: str, **configs: str) -> Iterator[str]:
    """group group_max_size=2: from here on the page is about a consumer group (group.py)"""
    world.running = group.WORDS, group.Group.begun(**configs)
    yield from ()


def begin_stream(world: World, *_: str, **options: str) -> Iterator[str]:
    """stream failOnDataLoss=false, or source: from here on the page is about the Spark source (spark_source.py)"""
    world.running = spark_source.WORDS, spark_source.Stream(options)
    yield from ()


def begin_warehouse(world: World, *_: str, **settings: str) -> Iterator[str]:
    """warehouse min_insync_racks=2: from here on the page is about a warehouse (warehouse.py)"""
    world.running = warehouse.WORDS, warehouse.Kept.begun(**settings)
    yield from ()


def run_audit(world: World, *_: str) -> Iterator[str]:
    judged = audit(world.snapshot(), world.policy)
    findings = judged.findings
    for lost in judged.lost_racks:
        yield lost.reason
    for one in findings:
        place = one.topic if one.partition is None else f"{one.topic}-{one.partition}"
        where = "cluster" if one.topic is None else place
        yield f"{one.severity} {one.constraint}, {where}: {one.reason}"
        yield f"  fix with: {one.remedy}"
    if not findings:
        yield "nothing found"


def run_outage(world: World, *flags: str, lose: str | None = None) -> Iterator[str]:
    """outage, outage lose=a,b, outage pairs"""
    named = None if lose is None else tuple(lose.split(","))
    _, losses = outage(world.snapshot(), world.policy, lose=named, pairs="pairs" in flags)
    for loss in losses:
        yield from _loss_lines(loss)


def _loss_lines(loss: RackLoss) -> Iterator[str]:
    survives = "lost already" if loss.happened else "survives" if loss.survived else "does not survive"
    yield f"without {'+'.join(shown(rack) for rack in loss.racks)}: {survives}"
    if loss.quorum_lost and loss.quorum is not None:
        yield f"  controllers left: {loss.quorum.surviving} of {loss.quorum.voters}, no majority"
    elif loss.quorum is not None and not loss.quorum_certain:
        yield f"  controllers left: {loss.quorum.surviving} of {loss.quorum.voters}, or fewer"
    for one in loss.topics:
        states = {
            "offline": one.offline,
            "unclean election only": one.needs_unclean_election,
            "under min ISR": one.under_min_isr,
            "under min racks": one.under_min_racks,
            "once the reassignment has ended": one.after_reassignment,
        }
        marked = f"{one.topic} (internal)" if one.internal else one.topic
        yield f"  {marked}: " + ", ".join(f"{state} {count}" for state, count in states.items() if count)
    for gaining, leaders in loss.leader_surge.items():
        yield f"  broker {gaining} leads {leaders} more"


def run_plan(
    world: World, *flags: str, drain: str = "", replace: str = "", factor: str | None = None, topic: str | None = None
) -> Iterator[str]:
    """plan, plan drain=3,4, plan replace=3, plan factor=3, plan topic=orders, plan balance, plan keep_leaders,
    plan allow_fewer_racks, plan replace_missing, plan leaders"""
    request = ReassignmentRequest(
        drain=frozenset(_ids(drain)),
        replace=frozenset(_ids(replace)),
        replication_factor=None if factor is None else int(factor),
        topics=topic,
        balance="balance" in flags,
        reorder_leaders="keep_leaders" not in flags,
        replace_missing="replace_missing" in flags,
        allow_fewer_racks="allow_fewer_racks" in flags,
        leaders="leaders" in flags,
    )
    yield from moves.planned(world.snapshot(), world.policy, request)


def run_place(world: World, *_: str, partitions: str, factor: str) -> Iterator[str]:
    """place partitions=12 factor=3: a new topic by the default placer, and what of it each broker holds"""
    choice = PlacerChoice(exclusion=Exclusion(world.policy.excluded_brokers))
    proposal = new_topic(world.snapshot(), "placed", int(partitions), int(factor), choice, JavaRandom(1))
    rows = proposal.assignment.replicas
    for one in world.brokers:
        yield f"broker {one.id}: leads {int((rows[:, 0] == one.id).sum())}, holds {int((rows == one.id).sum())}"


def run_lint(world: World, *_: str, drain: str = "", **wanted: str) -> Iterator[str]:
    """lint orders-0=1,2,3 drain=4: a plan somebody else made"""
    yield from moves.linted(world.snapshot(), world.policy, wanted, frozenset(_ids(drain)))


def run_harden(world: World, *_: str) -> Iterator[str]:
    for one in harden(world.snapshot(), world.policy):
        yield f"{one.topic}{' (internal)' if one.internal else ''}: {one.outcome}, {reason(one)}"
        for loss in one.losses:
            yield f"  {loss_words(one, loss)}"
        for remedy in remedies(one):
            yield f"  {remedy}"


COMMANDS: dict[str, Callable[..., Iterator[str]]] = {
    "cluster": cluster,
    "broker": broker,
    "controllers": controllers,
    "topic": topic,
    "partition": partition,
    "policy": policy,
    "audit": run_audit,
    "outage": run_outage,
    "plan": run_plan,
    "place": run_place,
    "lint": run_lint,
    "harden": run_harden,
    "live": begin_live,
    "gateway": begin_gateway,
    "group": begin_group,
    "stream": begin_stream,
    "source": begin_stream,
    "warehouse": begin_warehouse,
}


def run(lines: Sequence[str]) -> str:
    """What the page's commands response."""
    world = World()
    responses: list[str] = []
    for line in lines:
        if line and not line.startswith("#"):
            verb, *words = line.split()
            options = dict(word.split("=", 1) for word in words if "=" in word)
            plain = [word for word in words if "=" not in word]
            if world.running is not None:
                known, subject = world.running
                responses += known[verb](subject, *plain, **options)
            else:
                responses += COMMANDS[verb](world, *plain, **options)
    return "".join(f"{response}\n" for response in responses)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)
