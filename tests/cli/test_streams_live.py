"""A real Kafka Streams application of four processes in three racks, on real Kafka: what streams audit says of it.

The judges are Kafka's own tools: kafka-consumer-groups for who reads which partition, kafka-topics for where its replicas
are, and the application itself for its standbys.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rackspan.kafka_process import KafkaCluster, console_tool
from tests.cli.conftest import Ran
from tests.compat.streams_app import BEFORE_RACKS, StreamsProcess
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import described
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

Cli = Callable[..., Ran]

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CLIENTS = {"r1-a": 2, "r2-a": 1, "r3-a": 1, "r3-b": 1}
"""Threads of each process; its rack is the start of its name."""


@dataclass(frozen=True)
class Application:
    """A running application, and audits of its group."""

    group: str
    cluster: KafkaCluster
    cli: Cli
    processes: dict[str, StreamsProcess]

    def audit(self, *words: str) -> Ran:
        return self.cli(
            *("streams", "audit", "--bootstrap-server", self.cluster.bootstrap_servers, "--group", self.group),
            *("--changelog", f"1={self.group}-customers-changelog", "-o", "json", *words),
        )

    def settled(self, members: int = 4) -> dict[str, Any]:
        """The audit of the settled group: twice in a row equal and in agreement with every process."""
        audits: list[dict[str, Any]] = []

        def is_settled() -> bool:
            ran = self.audit()
            # With reads that are unknown the audit ends with 1, and is one all the same.
            if not ran.out or len(ran.document["clients"]) != members:
                return False
            audits.append(ran.document)
            return audits[-2:].count(ran.document) == 2 and self._agrees(ran.document)

        eventually(is_settled, f"group {self.group} of {members} processes is at rest")
        return audits[-1]

    def _agrees(self, audit: dict[str, Any]) -> bool:
        running = {name: process.tasks() for name, process in self.processes.items()}
        return {name: (len(one.active), len(one.standby)) for name, one in running.items()} == {
            client["client"]: (client["active"], client["standby"])
            for client in audit["clients"]
            if client["client"] in running
        }

    # -- by hand

    def active_across_racks(self) -> int:
        """From kafka-consumer-groups and kafka-topics alone."""
        output = console_tool(self.cluster, GROUPS_TOOL, "--describe", "--members", "--verbose", "--group", self.group)
        replica_racks = self.replica_racks()
        crossing = 0
        for line in output.splitlines():
            match line.split():
                case [group, _, _, client, total, _, assignment, *_] if group == self.group:
                    partitions = [
                        (topic, int(one))
                        for topic, _, numbers in (part.partition(":") for part in assignment.split(";"))
                        for one in numbers.split(",")
                    ]
                    assert len(partitions) == int(total)
                    crossing += sum(client[:2] not in replica_racks[partition] for partition in partitions)
        return crossing

    def standby_across_racks(self) -> int:
        """From the application's own output and kafka-topics."""
        replica_racks = self.replica_racks()
        return sum(
            name[:2] not in replica_racks[f"{self.group}-{STORES[task[0]]}-changelog", int(task.partition("_")[2])]
            for name, process in self.processes.items()
            for task in process.tasks().standby
        )

    def replica_racks(self) -> dict[tuple[str, int], set[str | None]]:
        racks = {broker: self.cluster.rack(broker) for broker in self.cluster.brokers}
        return {
            partition: {racks[broker] for broker in one.replicas} for partition, one in described(self.cluster).items()
        }


STORES = {"1": "customers", "2": "counts"}
"""The store of each sub-topology that has one."""


@pytest.fixture(scope="module")
def topics(kafka: KafkaCluster) -> str:
    """Source topics with one or two replicas, so that the rack of a reader counts. Returns their prefix."""
    create_topic(kafka, "app-clicks", assignment=[[1], [2], [3], [4]])
    create_topic(kafka, "app-orders", assignment=[[1], [1], [2], [5], [3], [6]])
    create_topic(kafka, "app-customers", assignment=[[1, 2], [4, 1], [2, 6], [3, 5], [3, 6], [6, 4]])
    create_topic(kafka, "app-kept", partitions=1)
    return "app-"


@contextmanager
def running(
    cluster: KafkaCluster, cli: Cli, folder: Path, strategy: str, zones: Mapping[str, str] | None = None
) -> Iterator[Application]:
    """The application under a strategy; with `zones`, the tag `zone` of each process, also with rack-aware tags."""
    group = f"app-{strategy.replace('_', '-')}" + ("-tagged" if zones else "")
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(
                StreamsProcess(folder, config(cluster, group, strategy, name, threads) | tag_config(zones, name))
            )
            for name, threads in CLIENTS.items()
        }
        yield Application(group, cluster, cli, processes)


def config(cluster: KafkaCluster, group: str, strategy: str, client: str, threads: int) -> dict[str, str]:
    return {
        "application.id": group,
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": client,
        "client.rack": client[:2],
        "rack.aware.assignment.strategy": strategy,
        "num.stream.threads": str(threads),
        "num.standby.replicas": "1",
        "replication.factor": "1",
        "session.timeout.ms": "10000",
        "sources.prefix": "app-",
    }


def tag_config(zones: Mapping[str, str] | None, client: str) -> dict[str, str]:
    return {} if zones is None else {"rack.aware.assignment.tags": "zone", "client.tag.zone": zones[client]}


def test_a_group_without_rack_awareness_costs_what_kafkas_tools_count(
    kafka: KafkaCluster, topics: str, cli: Cli, tmp_path: Path
) -> None:
    with running(kafka, cli, tmp_path, "none") as app:
        audit = app.settled()
        assert [(one["client"], one["rack"], one["threads"]) for one in sorted_by_name(audit)] == [
            (name, name[:2], threads) for name, threads in CLIENTS.items()
        ]
        assert audit["tasks"] == {"stateful": 12, "stateless": 4}
        assert audit["partitions"] == {"active": 4 + 6 + 6 + 6, "standby": 12}
        assert audit["now"]["cross_rack"] == {
            "active": app.active_across_racks(),
            "standby": app.standby_across_racks(),
        }
        assert audit["now"]["cross_rack"]["active"] > audit["at_best"]["active"]
        assert audit["strategies"]["none"]["cross_rack"] == audit["now"]["cross_rack"]
        assert app.audit().code == 2


@pytest.mark.soak
def test_under_min_traffic_a_settled_group_is_at_best(
    kafka: KafkaCluster, topics: str, cli: Cli, tmp_path: Path
) -> None:
    with running(kafka, cli, tmp_path, "min_traffic") as app:
        audit = app.settled()
        assert audit["unknown"] == []
        assert audit["now"]["cross_rack"] == {
            "active": app.active_across_racks(),
            "standby": app.standby_across_racks(),
        }
        assert audit["now"]["cross_rack"]["active"] == audit["at_best"]["active"]
        assert app.audit("--capture", "group.json").code == 0
        lab = cli("streams", "lab", "--problem", "group.json", "--assignor", "high-availability", "-o", "json").document
        [none, least, spread] = lab["problems"][0]["runs"]
        # Among assignments of equal cost Kafka's cycles and ours may choose differently: costs are one, tasks are not.
        assert least["cross_rack"]["active"] == audit["at_best"]["active"]
        assert least["converged"]
        assert none["cross_rack"]["active"] >= spread["cross_rack"]["active"] >= least["cross_rack"]["active"]
        assigned = cli("streams", "assign", "--problem", "group.json", "--assignor", "high-availability").document
        assert sum(len(held["active"]) for held in assigned["assignment"].values()) == 16
        an_old_member_turns_it_off_until_it_leaves(app, tmp_path)


ZONES = {"r1-a": "south", "r2-a": "north", "r3-a": "south", "r3-b": "north"}
"""Two zones over three racks: rack r3 is in both, so that racks alone would not give the zones."""


@pytest.mark.rest
def test_with_client_rack_and_tags_standbys_follow_the_tags_and_active_tasks_the_racks(
    kafka: KafkaCluster, topics: str, cli: Cli, tmp_path: Path
) -> None:
    with running(kafka, cli, tmp_path, "min_traffic", ZONES) as app:
        audit = app.settled()
        assert audit["now"]["cross_rack"]["active"] == app.active_across_racks() == audit["at_best"]["active"]
        tasks = {name: process.tasks() for name, process in app.processes.items()}
        standby_zone = {task: ZONES[name] for name, held in tasks.items() for task in held.standby}
        active_zone = {task: ZONES[name] for name, held in tasks.items() for task in held.active}
        assert len(standby_zone) == 12
        assert all(zone != active_zone[task] for task, zone in standby_zone.items())
        reports_tags_that_a_group_does_not_send(app, audit)


def reports_tags_that_a_group_does_not_send(app: Application, audit: dict[str, Any]) -> None:
    """Part of the test above: the captured problem, with the tags added by hand, has its standbys in the other zone too."""
    assert audit["unknown"] == [
        "client.tag.zone is set, but a group does not send rack.aware.assignment.tags: standbys are placed as if it named none"
    ]
    assert app.audit("--capture", "tagged.json").code == 0
    problem = json.loads(Path("tagged.json").read_text())
    problem["config"] |= {"rack.aware.assignment.tags": ["zone"], "acceptable.recovery.lag": 2**63 - 1}
    Path("tagged.json").write_text(json.dumps(problem))
    ran = app.cli("streams", "assign", "--problem", "tagged.json", "--assignor", "high-availability")
    assert "rack.aware.assignment.tags does not name rack: standbys are spread by the tags alone" in ran.err
    zone = {client["process_id"]: client["tags"]["zone"] for client in problem["clients"]}
    assigned = ran.document["assignment"]
    active = {task: zone[process_id] for process_id, held in assigned.items() for task in held["active"]}
    standby = {task: zone[process_id] for process_id, held in assigned.items() for task in held["standby"]}
    assert len(standby) == 12
    assert all(zone != active[task] for task, zone in standby.items())


def an_old_member_turns_it_off_until_it_leaves(app: Application, folder: Path) -> None:
    """Part of the test above: a process of Kafka Streams 3.3 joins and leaves."""
    old = config(app.cluster, app.group, "min_traffic", "r1-old", 1)
    del old["rack.aware.assignment.strategy"]
    with StreamsProcess(folder, old, BEFORE_RACKS) as process:
        audit = Application(app.group, app.cluster, app.cli, {**app.processes, "r1-old": process}).settled(members=5)
        assert "client r1-old is older than Kafka 3.4 and does not report its rack; upgrade it" in audit["unknown"]
        assert audit["now"]["cross_rack"] == {"active": None, "standby": None}
        assert not audit["strategies"]["min_traffic"]["enabled"]
        known = [one for one in audit["clients"] if one["client"] != "r1-old"]
        assert all(one["cross_rack"]["active"] is not None for one in known)
    audit = app.settled(members=4)
    assert audit["now"]["cross_rack"]["active"] == audit["at_best"]["active"]
    assert audit["unknown"] == []


def sorted_by_name(audit: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(audit["clients"], key=lambda one: str(one["client"]))
