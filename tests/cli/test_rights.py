"""The table of docs/security.md holds: exactly these rights suffice for a command, and each one that is missing is named.

Rights are read from the page, given to a user of a real cluster, and taken away one at a time.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewTopic

from rackspan import api
from rackspan.api import Cluster, cancel_reassignment, carry_out
from rackspan.cli import command_tree
from rackspan.plan import RunLimits, read_plan
from rackspan.plan.execution.effects import Wait
from rackspan.reassign import ReassignmentPlan
from tests.cli.conftest import Ran
from tests.compat.streams_app import StreamsProcess
from tests.depth import one_in
from tests.kafka_fixtures import client_properties
from tests.secured_fixtures import Secured, admin_config
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

Cli = Callable[..., Ran]

GROUP = "rights-application"
"""A Kafka Streams application on the secured cluster."""

PAGE = Path(__file__).parents[2] / "docs" / "security.md"

_OPERATIONS = {operation.name.replace("_", "").lower(): operation for operation in AclOperation}
_KINDS = {"Topic": ResourceType.TOPIC, "Group": ResourceType.GROUP, "Cluster": ResourceType.BROKER}
_FRESH = (f"fresh.{number}" for number in count())


@dataclass(frozen=True)
class Right:
    """As the page has it: "DescribeConfigs on Topic *"."""

    operation: str
    resource: str

    def binding(self, user: str, topic: str) -> AclBinding:
        kind, _, name = self._meant(topic).partition(" ")
        return AclBinding(
            restype=_KINDS[kind],
            name=name or "kafka-cluster",
            resource_pattern_type=ResourcePatternType.LITERAL,
            principal=f"User:{user}",
            host="*",
            operation=_OPERATIONS[self.operation.lower()],
            permission_type=AclPermissionType.ALLOW,
        )

    def named_in(self, output: str, topic: str) -> bool:
        """The missing right by name; of every topic's, by the names of those that are missed."""
        return f"{self.operation} on {self._meant(topic)}".removesuffix(" *") in output

    def _meant(self, topic: str) -> str:
        return self.resource.replace("NAME", topic).replace("ID", GROUP)

    def __str__(self) -> str:
        return f"{self.operation} on {self.resource}"


def table() -> dict[str, tuple[Right, ...]]:
    """Rights by verb. "the same" stands for the first row's."""
    rows = re.findall(r"^\| (`.*`) \| (.* on .*) \|$", PAGE.read_text(encoding="utf-8"), re.M)
    found: dict[str, tuple[Right, ...]] = {}
    first: tuple[Right, ...] = ()
    for listed, needs in rows:
        named = needs.replace("\\*", "*").split(", ")
        own = tuple(Right(*one.split(" on ")) for one in named if one != "the same")
        first = first or own
        found |= dict.fromkeys(re.findall(r"`([^`]*)`", listed), own if "the same" not in named else (*first, *own))
    return found


RIGHTS = table()

_CARRIED_OUT = ("--plan", "{topic}.json", "--apply", "--patience", "10")
_THROTTLE = ("--throttle", "1000000")

COMMANDS = {
    "snapshot": ("snapshot", "--out", "{out}.json"),
    "audit": ("audit",),
    "outage": ("outage",),
    "place create": ("place", "create", "--topic", "{topic}.new", "--partitions", "2", "--replication-factor", "2"),
    "place extend": ("place", "extend", "--topic", "{topic}", "--partitions", "3"),
    "reassign generate": ("reassign", "generate", "--topics-to-move-json-file", "topics.json", "--broker-list", "1,2"),
    "reassign plan": ("reassign", "plan"),
    "reassign lint": ("reassign", "lint", "--reassignment-json-file", "plan.json"),
    "reassign apply": ("reassign", "apply", "--plan", "{topic}.json"),
    "reassign undo": ("reassign", "undo", "--plan", "{topic}.json"),
    "reassign cancel": ("reassign", "cancel", "--plan", "{topic}.json"),
    "reassign verify": ("reassign", "verify", "--plan", "{topic}.json"),
    "restart safe": ("restart", "safe", "--broker", "2"),
    "restart plan": ("restart", "plan", "--brokers", "2"),
    "restart watch": ("restart", "watch", "--plan", "rolling.json", "--exec", "true {{brokers}}"),
    "streams audit": ("streams", "audit", "--group", GROUP, "--changelog", f"1={GROUP}-customers-changelog"),
    "clients": ("clients", "--group", GROUP),
    "traffic": ("traffic", "--seconds", "1"),
    "advise": ("advise", "--seconds", "1"),
    "acks harden": ("acks", "harden"),
    "acks watch": ("acks", "watch"),
    "pipeline collect": ("pipeline", "collect", "--warehouse", "{out}"),
    "place create --apply": (
        *("place", "create", "--topic", "{topic}.new", "--partitions", "2", "--replication-factor", "2"),
        "--apply",
    ),
    "place extend --apply": ("place", "extend", "--topic", "{topic}", "--partitions", "3", "--apply"),
    "reassign apply --apply": ("reassign", "apply", *_CARRIED_OUT),
    "reassign undo --apply": ("reassign", "undo", *_CARRIED_OUT),
    "reassign apply --apply --throttle": ("reassign", "apply", *_CARRIED_OUT, *_THROTTLE),
    "reassign undo --apply --throttle": ("reassign", "undo", *_CARRIED_OUT, *_THROTTLE),
    "reassign cancel --apply": ("reassign", "cancel", *_CARRIED_OUT),
    "acks harden --apply": ("acks", "harden", "--min-insync-racks", "2", "--topic", "{topic}", "--apply"),
}
"""A command line for each verb of the page; `{topic}` is there, on both brokers, and is new for every set of rights.

Plans have a topic that is on broker 1 alone and shall be on broker 2.
"""

NOT_RUN = {"restart watch --apply"}
"""It restarts brokers, which others use meanwhile: its election is the one of `reassign apply`, whose row has the same right."""

CHANGED = {"place create --apply": "{topic}.new"}
"""The topic that NAME stands for, where it is not `{topic}`."""


class Users:
    """The reader's rights on the secured cluster, as its admin gives and takes them."""

    name = "reader"

    def __init__(self, admin: AdminClient) -> None:
        self._admin = admin

    def may(self, topic: str, rights: tuple[Right, ...]) -> None:
        """Exactly these."""
        everything = AclBindingFilter(
            restype=ResourceType.ANY,
            name=None,  # type: ignore[arg-type]
            resource_pattern_type=ResourcePatternType.ANY,
            principal=f"User:{self.name}",
            host=None,  # type: ignore[arg-type]
            operation=AclOperation.ANY,
            permission_type=AclPermissionType.ANY,
        )
        for gone in self._admin.delete_acls([everything]).values():
            gone.result(WITHIN_SECONDS)
        wanted = [right.binding(self.name, topic) for right in rights]
        if wanted:
            for given in self._admin.create_acls(wanted).values():
                given.result(WITHIN_SECONDS)

    def fresh_topic(self, *replicas: int) -> str:
        topic = next(_FRESH)
        self._admin.create_topics([NewTopic(topic, 1, replica_assignment=[list(replicas)])])[topic].result(
            WITHIN_SECONDS
        )
        return topic


@pytest.fixture(scope="module")
def users(secured: Secured) -> Iterator[Users]:
    here = Users(secured.for_admin())
    yield here
    here.may("", ())


@pytest.fixture(scope="module")
def application(secured: Secured, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A group of Kafka Streams at rest, of one process."""
    admin = secured.for_admin()
    sources = [NewTopic(f"rights-{name}", 1, 1) for name in ("clicks", "orders", "customers", "kept")]
    for created in admin.create_topics(sources).values():
        created.result(WITHIN_SECONDS)
    config = {
        **client_properties("admin"),
        "application.id": GROUP,
        "bootstrap.servers": secured.cluster.bootstrap_servers,
        "client.id": "r1-a",
        "client.rack": "r1",
        "replication.factor": "1",
        "sources.prefix": "rights-",
    }
    with StreamsProcess(tmp_path_factory.mktemp("application"), config) as process:
        eventually(lambda: process.tasks().state == "RUNNING" and bool(process.tasks().active), "it runs")
        yield


class Moves:
    """What a verb of reassign finds: a plan, and for cancel a run under way that was begun by the admin, with a throttle."""

    def __init__(self, secured: Secured, folder: Path, verb: str) -> None:
        self._secured, self._folder = secured, folder
        self._cluster = Cluster(secured.cluster.bootstrap_servers, folder / "admin.properties", 30.0)
        words = verb.split()
        self.are_made = words[0] == "reassign" and words[1] in ("apply", "undo", "cancel", "verify")
        self._cancels, self._undoes = words[:2] == ["reassign", "cancel"], words[:2] == ["reassign", "undo"]

    def begin(self, topic: str) -> None:
        if self.are_made:
            self._plan(topic).write_text(json.dumps(self._document(topic)))
        if self._cancels:
            self._fill(topic)
            limits, journal = RunLimits(bytes_per_second=1), self._journal(topic)
            for happened in carry_out(
                self._cluster, self._written(topic), journal, limits=limits, patience_seconds=30.0
            ):
                if isinstance(happened.effect, Wait):
                    break

    def end(self, topic: str) -> None:
        if self._cancels:
            list(cancel_reassignment(self._cluster, self._written(topic), self._journal(topic), patience_seconds=30.0))

    def _document(self, topic: str) -> dict[str, Any]:
        before, after = ([2], [1]) if self._undoes else ([1], [2])
        entry = {"topic": topic, "partition": 0, "replicas": after}
        step = {"step": 1, "reason": "by hand", "partitions": [{**entry, "undo": before}]}
        cluster_id = self._secured.cluster.cluster_id
        return {"version": 1, "cluster_id": cluster_id, "partitions": [entry], "steps": [step]}

    def _fill(self, topic: str) -> None:
        """More than a follower is sent at once, so that the throttle has something to hold back."""
        producer = Producer({**admin_config(self._secured.cluster), "acks": "all"})
        for _ in range(60):
            producer.produce(topic, bytes(100_000))
        assert producer.flush(WITHIN_SECONDS) == 0

    def _plan(self, topic: str) -> Path:
        return self._folder / f"{topic}.json"

    def _journal(self, topic: str) -> Path:
        return self._folder / f"{topic}.json.journal"

    def _written(self, topic: str) -> ReassignmentPlan:
        return read_plan(self._plan(topic).read_bytes())


class Verb:
    """One command of the page, run until the changed rights have reached the brokers."""

    def __init__(self, cli: Cli, users: Users, secured: Secured, folder: Path, name: str) -> None:
        self._cli, self._users, self._name = cli, users, name
        (folder / "topics.json").write_text(json.dumps({"topics": []}))
        (folder / "plan.json").write_text(json.dumps({"version": 1, "partitions": []}))
        rolling: dict[str, object] = {"cluster_id": None, "as_of": None, "margin": 0, "block_on": [], "accept": None}
        (folder / "rolling.json").write_text(json.dumps({**rolling, "batches": [{"brokers": [2]}]}))
        for user in (users.name, "admin"):
            lines = (f"{key}={value}\n" for key, value in client_properties(user).items())
            (folder / f"{user}.properties").write_text("".join(lines))
        self._moves = Moves(secured, folder, name)
        self._where = ("--bootstrap-server", secured.cluster.bootstrap_servers, "--command-config", "reader.properties")

    def with_rights(self, rights: tuple[Right, ...], good: Callable[[Ran, str], bool], what: str) -> None:
        topic = self._users.fresh_topic(*((1,) if self._moves.are_made else (1, 2)))
        self._moves.begin(topic)
        changed = CHANGED.get(self._name, "{topic}").format(topic=topic)
        self._users.may(changed, rights)
        tries: list[Ran] = []

        def holds() -> bool:
            out = f"out-{topic}-{len(tries)}"
            tries.append(self._cli(*(word.format(topic=topic, out=out) for word in COMMANDS[self._name]), *self._where))
            return good(tries[-1], changed)

        try:
            eventually(holds, what)
        except AssertionError:
            pytest.fail(f"{what}: {tries[-1]}")
        finally:
            self._moves.end(topic)


@pytest.fixture
def watched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """`acks watch` would not end; its first reading shows what it may read."""
    endless = api.watch
    monkeypatch.setattr(api, "watch", lambda *words, **more: islice(endless(*words, **more), 1))


@pytest.mark.rest
@pytest.mark.usefixtures("watched_once")
@pytest.mark.parametrize("name", one_in(4, COMMANDS))
def test_the_rights_of_the_page_suffice_and_none_of_them_is_too_many(
    cli: Cli, users: Users, secured: Secured, tmp_path: Path, name: str, request: pytest.FixtureRequest
) -> None:
    if name in ("streams audit", "clients", "traffic", "advise"):
        request.getfixturevalue("application")
    verb, needed = Verb(cli, users, secured, tmp_path, name), RIGHTS[name]
    for missing in needed:
        rest = tuple(right for right in needed if right != missing)

        def is_named(ran: Ran, topic: str, missing: Right = missing) -> bool:
            return missing.named_in(ran.out + ran.err, topic)

        verb.with_rights(rest, is_named, f"{name} names {missing}")
    verb.with_rights(needed, _is_content, f"{name} misses nothing with {', '.join(map(str, needed))}")


def _is_content(ran: Ran, _topic: str) -> bool:
    return ran.code in (0, 2) and "user needs" not in ran.out + ran.err and "could not be" not in ran.out + ran.err


def test_every_command_on_a_cluster_has_a_row() -> None:
    assert RIGHTS.keys() - NOT_RUN == COMMANDS.keys()
    commands = set(_commands_with_a_cluster(command_tree(), ()))
    assert commands == RIGHTS.keys()


def _commands_with_a_cluster(command: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands_with_a_cluster(below, (*path, name))
    flags = {flag for parameter in command.params for flag in parameter.opts}
    if "--bootstrap-server" in flags:
        yield " ".join(path)
        if "--apply" in flags:
            yield f"{' '.join(path)} --apply"
        if "--throttle" in flags:
            yield f"{' '.join(path)} --apply --throttle"
