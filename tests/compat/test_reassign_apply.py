"""A badly placed topic of a real Kafka is moved under load, by a program that is killed again and again.

The judges are Kafka's own --verify and describe, the audit, and a client that reads back what was acknowledged to it.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource

from rackspan.audit import RackPolicy, audit
from rackspan.client.cluster import ConnectionSettings
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.sources.live.cluster import read_cluster
from tests.compat.load import lost, writing
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import REASSIGN_TOOL, described, produce
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

TOPIC = "moved"

BADLY = [[1, 4, 2], [4, 1, 2], [2, 5, 3], [5, 2, 3], [3, 6, 1], [6, 3, 1]]
"""Each in two of three racks: 1 and 4 are in r1, 2 and 5 in r2, 3 and 6 in r3."""

BYTES_EACH = 500_000
BYTES_PER_SECOND = 500_000
BYTES_WEIGHED_DOWN = 60_000_000

KILLS_SOAK, KILLS = 14, 2

OWN = {"follower.replication.throttled.rate": "123456789"}
"""What broker 2's operator has set; it must be there again afterwards."""

RUN_SECONDS = 240.0


@dataclass(frozen=True)
class Kill:
    """When a run was killed: how many events its journal held, and what it was doing by its own last words."""

    events: int
    last: str


@dataclass(frozen=True)
class Reassign:
    """`rackspan reassign` as processes of its own."""

    cluster: KafkaCluster
    folder: Path

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"

    @property
    def journal(self) -> Path:
        return self.folder / "plan.json.journal"

    def command(self, verb: str, *words: str) -> list[str]:
        where = ("--bootstrap-server", self.cluster.bootstrap_servers)
        return [sys.executable, "-m", "rackspan", "reassign", verb, *where, *words]

    def start(self, verb: str, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.command(verb, "--plan", str(self.plan), *words),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, verb: str, *words: str) -> tuple[int, str, str]:
        process = self.start(verb, *words)
        out, err = process.communicate(timeout=RUN_SECONDS)
        return process.returncode, out, err

    def events(self) -> list[str]:
        """The names of the events that are whole in the journal."""
        if not self.journal.exists():
            return []
        whole = self.journal.read_text().rpartition("\n")[0]
        return [json.loads(line)["event"] for line in whole.split("\n") if line]

    def killed(self, rng: Random, at_events: int, *words: str) -> Kill | None:
        """Run until the journal holds so many events and a little longer, then SIGKILL; None if it ended before."""
        process = self.start("apply", "--apply", *words)
        try:
            until = time.monotonic() + RUN_SECONDS
            while process.poll() is None and len(self.events()) < at_events and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.8))
            if process.poll() is not None:
                return None
            os.kill(process.pid, signal.SIGKILL)
        finally:
            process.kill()
            _, output = process.communicate()
        doing = output.strip().rpartition("\n")[2].partition(": ")[2]
        return Kill(len(self.events()), re.sub(r"\d+ \w+ ", "", doing) or "looking")


def replicas(cluster: KafkaCluster) -> list[list[int]]:
    found = {place: one for place, one in described(cluster).items() if place[0] == TOPIC}
    return [list(found[TOPIC, partition].replicas) for partition in range(len(BADLY))]


def kafkas_verdicts(cluster: KafkaCluster, plan: Path) -> list[str]:
    output = console_tool(
        cluster, REASSIGN_TOOL, "--verify", "--reassignment-json-file", str(plan), "--preserve-throttles"
    )
    return [line for line in output.splitlines() if TOPIC in line]


def throttles(cluster: KafkaCluster, topic: str = TOPIC) -> dict[str, str]:
    """Every replication throttle that is set on a broker that runs or on the topic, as librdkafka describes them."""
    brokers = [ConfigResource(ConfigResource.Type.BROKER, str(node)) for node in cluster.pids]
    requested = [*brokers, ConfigResource(ConfigResource.Type.TOPIC, topic)]
    describing = admin(cluster)
    own = {ConfigSource.DYNAMIC_BROKER_CONFIG.value, ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
    return {
        f"{resource.name} {entry.name}": str(entry.value)
        for one in requested  # librdkafka describes one broker at a time.
        for resource, response in describing.describe_configs([one]).items()
        for entry in response.result(WITHIN_SECONDS).values()
        if ".replication.throttled." in entry.name and entry.source in own
    }


def set_own(cluster: KafkaCluster, operation: AlterConfigOpType) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=operation) for key, value in OWN.items()]
    resource = ConfigResource(ConfigResource.Type.BROKER, "2", incremental_configs=entries)
    changing = admin(cluster)
    changing.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)


def admin(cluster: KafkaCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


def findings(cluster: KafkaCluster) -> list[Any]:
    found = audit(read_cluster(ConnectionSettings(cluster.bootstrap_servers, {}, 30.0)).snapshot, RackPolicy()).findings
    return [one for one in found if one.topic == TOPIC]


@pytest.fixture(scope="module")
def moved(kafka: KafkaCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reassign]:
    create_topic(kafka, TOPIC, assignment=BADLY, config={"min.insync.replicas": "2"})
    produce(kafka, TOPIC, len(BADLY), BYTES_EACH)
    set_own(kafka, AlterConfigOpType.SET)
    reassign = Reassign(kafka, tmp_path_factory.mktemp("moved"))
    words = ("--topic", TOPIC, "--moves-per-step", "1", "--out", str(reassign.plan), "-o", "json")
    planned = subprocess.run(reassign.command("plan", *words), cwd=reassign.folder, capture_output=True, text=True)
    assert planned.returncode == 2, planned.stderr
    yield reassign
    set_own(kafka, AlterConfigOpType.DELETE)
    deleting = admin(kafka)
    deleting.delete_topics([TOPIC])[TOPIC].result(WITHIN_SECONDS)


def kill_and_resume(moved: Reassign, kills: int, rng: Random) -> list[Kill]:
    """Kill so often, each time a little further on, and then let it end."""
    document = json.loads(moved.plan.read_text())
    most = 3 * len(document["steps"])
    at = sorted(rng.sample(range(1, most + 1), min(kills, most)))
    throttle = ("--throttle", str(BYTES_PER_SECOND))
    kill_points = [moved.killed(rng, events, *throttle) for events in at]
    code, out, err = moved.run("apply", "--apply", *throttle, "-o", "json")
    assert code == 0, err
    assert json.loads(out)["state"] == "done"
    return [point for point in kill_points if point is not None]


def check_killed_run(moved: Reassign, kills: int, seed: int) -> None:
    cluster = moved.cluster
    assert replicas(cluster) == BADLY
    assert findings(cluster) != []
    moved.journal.unlink(missing_ok=True)
    with writing(cluster, TOPIC, len(BADLY), f"seed-{seed}") as acknowledged:
        kill_points = kill_and_resume(moved, kills, Random(seed))
    print(f"\nkilled {len(kill_points)} times, by what the program output last:")
    for last, times in sorted(Counter(point.last for point in kill_points).items()):
        print(f"  {last:24} {'#' * times} {times}")
    print(
        f"  after {sorted(point.events for point in kill_points)} events; {len(acknowledged)} records acknowledged meanwhile"
    )
    assert len(kill_points) >= min(kills, 10)
    assert len({point.events for point in kill_points}) >= min(kills, 10) // 2, "spread over the run"
    assert {line.rpartition(" is ")[2] for line in kafkas_verdicts(cluster, moved.plan)} == {"completed."}
    assert moved.run("verify")[0] == 0
    assert findings(cluster) == []
    assert throttles(cluster) == {f"2 {key}": value for key, value in OWN.items()}
    for one in json.loads(moved.plan.read_text())["partitions"]:
        assert described(cluster)[TOPIC, one["partition"]].leader == one["replicas"][0], "elected at the end"
    assert len(acknowledged) > 100
    assert lost(cluster, TOPIC, acknowledged) == set()


def check_undo(moved: Reassign) -> None:
    code, _, err = moved.run("undo")
    assert code == 2, err
    code, out, err = moved.run("undo", "--apply", "-o", "json")
    assert (code, json.loads(out)["state"]) == (0, "undone"), err
    assert replicas(moved.cluster) == BADLY
    assert throttles(moved.cluster) == {f"2 {key}": value for key, value in OWN.items()}
    assert all("There is no active reassignment" in line for line in kafkas_verdicts(moved.cluster, moved.plan))
    code, out, _ = moved.run("verify", "-o", "json")
    assert (code, json.loads(out)["summary"]["not_started"]) == (
        2,
        len(json.loads(moved.plan.read_text())["partitions"]),
    )


@pytest.mark.rest
def test_killed_at_any_time_it_is_resumed_and_can_be_undone(moved: Reassign) -> None:
    check_killed_run(moved, KILLS, seed=1)
    check_undo(moved)


def a_receiver(plan: Path) -> tuple[int, list[int]]:
    """A broker that the first step copies to, rather not a controller, and which partitions."""
    step = json.loads(plan.read_text())["steps"][0]
    copies = [(one["partition"], set(one["replicas"]) - set(one["undo"])) for one in step["partitions"]]
    broker: int = max(broker for _, receivers in copies for broker in receivers)
    return broker, [partition for partition, receivers in copies if broker in receivers]


def weigh_down(cluster: KafkaCluster, partitions: list[int], topic: str = TOPIC) -> None:
    """So much to copy that it cannot be done before the receiver is killed, however late the test gets to it."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for partition in partitions:
        for _ in range(BYTES_WEIGHED_DOWN // 100_000):
            producer.produce(topic, bytes(100_000), partition=partition)
            producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0


def refused(moved: Reassign, verb: str, *words: str) -> str:
    """The one line of a command that is refused; the journal is as it was."""
    before = moved.journal.read_bytes()
    code, out, err = moved.run(verb, *words)
    assert (code, out) == (1, ""), err
    assert moved.journal.read_bytes() == before
    return err.removeprefix("rackspan: ").rstrip("\n")


@pytest.mark.soak
def test_a_broker_lost_on_the_way_stops_it_and_it_can_be_cancelled_and_gone_on_with(moved: Reassign) -> None:
    cluster = moved.cluster
    lost_broker, partitions = a_receiver(moved.plan)
    moved.journal.unlink(missing_ok=True)
    weigh_down(cluster, partitions)
    with writing(cluster, TOPIC, len(BADLY), "lost-broker") as acknowledged:
        process = moved.start("apply", "--apply", "--patience", "5")
        while process.poll() is None and not moved.events():
            time.sleep(0.01)
        # The controller misses it after nine seconds only; what is copied to it has been started by then.
        cluster.kill(lost_broker)
        try:
            _, err = process.communicate(timeout=RUN_SECONDS)
            assert process.returncode == 1, err
            assert f"rackspan: broker {lost_broker} is down and must receive {TOPIC}-" in err
            check_refusals(moved)
            code, _, err = moved.run("cancel", "--apply")
            assert code == 0, err
            assert all(listed in (*BADLY, *targets(moved.plan)) for listed in replicas(cluster))
            assert not any(one.adding or one.removing for one in described(cluster).values())
        finally:
            cluster.restart(lost_broker)
        code, _, err = moved.run("apply", "--apply", "--throttle", str(BYTES_WEIGHED_DOWN))
        assert code == 0, err
    assert {line.rpartition(" is ")[2] for line in kafkas_verdicts(cluster, moved.plan)} == {"completed."}
    assert throttles(cluster) == {f"2 {key}": value for key, value in OWN.items()}
    assert lost(cluster, TOPIC, acknowledged) == set()
    check_undo(moved)


@pytest.mark.soak
def test_a_step_that_cannot_finish_holds_up_none_that_can(kafka: KafkaCluster, tmp_path: Path) -> None:
    """The first step's partition has lost its only replica, hence its leader; the two steps after it are done all the same."""
    topic = "held-up"
    create_topic(kafka, topic, assignment=[[2], [1], [6]])
    # The smallest is planned first.
    for partitions in (3, 2, 1):
        produce(kafka, topic, partitions, BYTES_EACH)
    reassigned = Reassign(kafka, tmp_path)
    words = ("--topic", topic, "--replication-factor", "2", "--exclude-brokers", "6", "--moves-per-step", "1")
    planning = reassigned.command("plan", *words, "--out", str(reassigned.plan), "-o", "json")
    planned = subprocess.run(planning, cwd=tmp_path, capture_output=True, text=True)
    assert planned.returncode == 2, planned.stderr
    order = [
        one["partition"] for step in json.loads(reassigned.plan.read_text())["steps"] for one in step["partitions"]
    ]
    assert order == [2, 1, 0]

    def complete() -> list[bool]:
        found = described(kafka)
        return [len(one.replicas) == len(one.isr) == 2 and not one.adding for one in (found[topic, at] for at in order)]

    kafka.kill(6)
    try:
        eventually(lambda: described(kafka)[topic, 2].leader == -1, "the partition has no leader")
        code, _, err = reassigned.run("apply", "--apply", "--patience", "5")
        assert code == 1, err
        assert f"{topic}-2" in err.rstrip().rpartition("\n")[2], err
        assert complete() == [False, True, True]
    finally:
        kafka.restart(6)
    code, _, err = reassigned.run("apply", "--apply")
    assert code == 0, err
    assert complete() == [True, True, True]
    deleting = admin(kafka)
    deleting.delete_topics([topic])[topic].result(WITHIN_SECONDS)


@pytest.mark.soak
def test_a_run_resumed_without_a_throttle_keeps_the_one_of_its_journal_and_names_that_of_others(
    moved: Reassign,
) -> None:
    cluster, rate = moved.cluster, BYTES_PER_SECOND * 4
    moved.journal.unlink(missing_ok=True)
    others = {f"2 {key}": value for key, value in OWN.items()}
    assert throttles(cluster) == others
    # What others set on broker 2 is recorded in the second line, and the first step is under way.
    assert moved.killed(Random(5), 2, "--throttle", str(rate)) is not None
    process = moved.start("apply", "--apply", "-o", "json")
    shown: set[str] = set()
    while process.poll() is None:
        shown |= {value for name, value in throttles(cluster).items() if name.endswith(".rate")}
        time.sleep(0.1)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "throttled to 1.9 MiB a second as before; --throttle RATE changes it, --throttle none ends it" in err
    assert shown <= {str(rate), *OWN.values()}
    assert str(rate) in shown
    line = "broker 2: follower.replication.throttled.rate = 123456789"
    assert f"warning: throttle not set by this run: {line}: this run replaces it and restores it at the end" in err
    assert f"throttle of this run removed, others restored: {line}" in err
    assert f"warning: throttle not set by this run: {line}: still set" in err
    assert json.loads(out)["foreign_throttles"] == [
        {"of": "broker", "name": "2", "config": "follower.replication.throttled.rate", "value": "123456789"}
    ]
    assert throttles(cluster) == others
    code, _, err = moved.run("undo", "--apply", "--throttle", "none")
    assert code == 0, err
    assert "not throttled from now on; the run was throttled to 1.9 MiB a second before" in err
    assert "throttle not set by this run" in err
    assert (replicas(cluster), throttles(cluster)) == (BADLY, others)


def test_a_move_of_others_is_cancelled_by_the_command_that_audit_and_apply_name(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    topic = "of-others"
    create_topic(kafka, topic, assignment=[[1, 2], [2, 3]])
    weigh_down(kafka, [0], topic)
    theirs, ours = tmp_path / "theirs.json", Reassign(kafka, tmp_path)
    theirs.write_text(reassignment(topic, [4, 2]))
    ours.plan.write_text(reassignment(topic, [1, 3]))
    throttled = ("--execute", "--reassignment-json-file", str(theirs), "--throttle", "1000")
    console_tool(kafka, REASSIGN_TOOL, *throttled)
    eventually(lambda: bool(described(kafka)[topic, 0].adding), "it is under way")
    set_by_others = throttles(kafka, topic)
    code, out, _ = ours.run("verify", "-o", "json")
    assert (code, json.loads(out)["partitions"][0]["verdict"]) == (2, "differs")
    assert json.loads(out)["partitions"][0]["reason"] == "moves to 4,2"
    where = ("--bootstrap-server", kafka.bootstrap_servers)
    audited = run_rackspan("audit", *where, "-o", "json")
    (remedy,) = {
        one["remedy"]
        for one in json.loads(audited.stdout)["findings"]
        if (one["constraint"], one["topic"]) == ("reassignment-in-progress", topic)
    }
    _, _, err = ours.run("apply", "--apply", "--cluster-id", kafka.cluster_id)
    planned = run_rackspan("reassign", "plan", *where)
    # The page and the errors name the command with the address that they were given.
    named = f"rackspan reassign cancel {' '.join(where)} --in-flight"
    assert remedy == f"wait for it, or {named}"
    assert named in err
    # A line of the terminal may end within the command.
    assert named in " ".join((planned.stdout + planned.stderr).split())
    shown = run_rackspan(*named.split()[1:])
    assert (shown.returncode, f"{topic}-0" in shown.stdout) == (2, True), shown.stderr
    assert described(kafka)[topic, 0].adding, "a dry run"
    done = run_rackspan(*named.split()[1:], "--topic", topic, "--apply")
    assert done.returncode == 0, done.stderr
    assert "1 reassignment cancelled" in done.stdout
    assert set(described(kafka)[topic, 0].replicas) == {1, 2}
    assert not any(one.adding for one in described(kafka).values())
    assert throttles(kafka, topic) == set_by_others
    assert "leader.replication.throttled.rate = 1000: still set" in done.stderr
    console_tool(kafka, REASSIGN_TOOL, "--verify", "--reassignment-json-file", str(theirs))
    set_own(kafka, AlterConfigOpType.SET)
    deleting = admin(kafka)
    deleting.delete_topics([topic])[topic].result(WITHIN_SECONDS)


def reassignment(topic: str, target: list[int]) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": target}]})


def run_rackspan(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rackspan", *words], capture_output=True, text=True, timeout=RUN_SECONDS
    )


def targets(plan: Path) -> list[list[int]]:
    return [one["replicas"] for one in json.loads(plan.read_text())["partitions"]]


def check_refusals(moved: Reassign) -> None:
    """While something is in flight: what may not be begun beside it, and what is not this cluster's. Nothing changes."""
    before = replicas(moved.cluster), throttles(moved.cluster)
    output = refused(moved, "apply", "--apply", "--journal", str(moved.folder / "second.journal"))
    assert output.endswith(
        "is being reassigned already, and not by this journal; wait for the end, or cancel it with rackspan reassign cancel "
        f"--bootstrap-server {moved.cluster.bootstrap_servers} --in-flight, then run again"
    )
    assert not (moved.folder / "second.journal").exists()
    output = refused(moved, "apply", "--apply", "--cluster-id", "another")
    assert output == f"--cluster-id another: the plan is for cluster {moved.cluster.cluster_id}; name one of them"
    elsewhere = {**json.loads(moved.plan.read_text()), "cluster_id": "another", "steps": []}
    other = moved.folder / "other.json"
    other.write_text(json.dumps(elsewhere))
    output = refused(moved, "apply", "--apply", "--plan", str(other))
    assert output.startswith(f"this is cluster {moved.cluster.cluster_id}, the plan is for another; ")
    topic = {"version": 1, "partitions": [{"topic": "absent", "partition": 0, "replicas": [1]}]}
    other.write_text(json.dumps(topic))
    where = ("--plan", str(other), "--cluster-id", moved.cluster.cluster_id)
    output = refused(moved, "apply", "--apply", *where)
    assert output == "topic absent is not in the cluster; make a new plan with rackspan reassign plan"
    topic["partitions"] = [{"topic": TOPIC, "partition": 5, "replicas": [6, 3, 77]}]
    other.write_text(json.dumps(topic))
    assert "being reassigned" in refused(moved, "apply", "--apply", *where)
    assert (replicas(moved.cluster), throttles(moved.cluster)) == before


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3])
def test_killed_many_times_it_is_gone_on_with_and_can_be_undone(moved: Reassign, seed: int) -> None:
    check_killed_run(moved, KILLS_SOAK, seed)
    check_undo(moved)
