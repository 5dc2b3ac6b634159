"""KafkaCluster over a stand-in for Java that logs what Kafka logs: which processes are started, stopped, killed and reported.

test_cluster.py does the same with real Kafka.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan.errors import KafkaProcessFailed, UsageError
from rackspan.java import Java
from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_process import cluster as module
from rackspan.kafka_process.cluster import console_tool
from tests.processes import alive, gone_within
from tests.waiting import WITHIN_SECONDS

JAVA = """#!/bin/sh
for last in "$@"; do :; done
folder=$(dirname "$last")/$(basename "$last" .properties)
case "$*" in
*kafka.tools.StorageTool*)
  grep -q fake.refused "$last" && echo "ERROR ConfigException: fake.refused" && exit 1
  mkdir -p "$folder"
  test -e "$folder/meta.properties" && exit 0
  echo "$*" | sed 's/.* -t /cluster.id=/; s/ -c .*//' > "$folder/meta.properties"
  { grep ^node.id= "$last"; echo directory.id=by-the-tool; } >> "$folder/meta.properties"
  grep ^process.roles= "$last" > "$folder/bootstrap" ;;
*)
  grep -q fake.fails "$last" && grep -q '^node.id=1$' "$last" && echo "ERROR a cause" && echo "	at a line of the stack" && exit 1
  grep -q fake.silent "$last" && sed -n 's/^node.id=\\(.*\\)/node \\1 begins/p' "$last" || echo "Kafka Server started"
  for word in "$@"; do case "$word" in -XX:ArchiveClassesAtExit=*) archive=${word#*=} ;; esac; done
  echo "$*" > "$folder/words"
  trap 'echo "shut down in order"; test -z "$archive" || echo classes > "$archive"; exit 143' TERM
  while :; do sleep 0.02; done ;;
esac
"""

Make = Callable[..., KafkaCluster]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    executable, lib = tmp_path / "java", tmp_path / "release" / "lib"
    executable.write_text(JAVA)
    executable.chmod(0o755)
    lib.mkdir(parents=True)
    monkeypatch.setattr(module, "find_java", lambda: Java(executable, 17))
    monkeypatch.setattr(module, "resolve_jars", lambda *_words, **_named: lib)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def made(**options: Any) -> KafkaCluster:
        return KafkaCluster(**{"racks": ("r1", "r2"), "brokers": 3, "controllers": {1: "r1", 101: "r2"}, **options})

    return made


def state(pid: int) -> str:
    """One letter: T is a process that is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def paused_within(seconds: float, pid: int, *, paused: bool = True) -> bool:
    until = time.monotonic() + seconds
    while (state(pid) == "T") != paused and time.monotonic() < until:
        time.sleep(0.01)
    return (state(pid) == "T") == paused


@pytest.mark.slow
def test_every_node_is_formatted_for_one_cluster_and_started(make: Make, tmp_path: Path) -> None:
    lines: list[str] = []
    with make(progress=lines.append, config={"num.io.threads": "3"}, listeners={"TLS": "SSL"}) as cluster:
        assert cluster.pids.keys() == {1, 2, 3, 101}
        assert all(map(alive, cluster.pids.values()))
        assert cluster.brokers == (1, 2, 3)
        assert lines[-1] == f"starting 4 Kafka {cluster.version} nodes"
        (folder,) = tmp_path.glob("rackspan-kafka-*")
        assert {ids(folder, number)["cluster.id"] for number in (1, 2, 3, 101)} == {cluster.cluster_id}
        settings = (folder / "node-2.properties").read_text()
        assert "num.io.threads=3\n" in settings
        servers = [cluster.bootstrap_servers, cluster.bootstrap_servers_of("TLS"), cluster.bootstrap_controllers]
        assert [len(one.split(",")) for one in servers] == [3, 3, 2]
        assert len({address for one in servers for address in one.split(",")}) == 8
        assert f"TLS://{servers[1].split(',')[1]}" in settings
        pids = cluster.pids.values()
    assert gone_within(WITHIN_SECONDS, *pids)
    assert list(tmp_path.glob("rackspan-kafka-*")) == []
    cluster.close()


def ids(folder: Path, node: int) -> dict[str, str]:
    lines = (folder / f"node-{node}" / "meta.properties").read_text().splitlines()
    return dict(line.split("=") for line in lines)


@pytest.mark.slow
def test_the_tool_formats_one_node_of_each_combination_of_roles_and_the_others_are_copies(
    make: Make, tmp_path: Path
) -> None:
    nodes = (1, 2, 3, 101)
    with make(data_dir=tmp_path / "kept"):
        written = [ids(tmp_path / "kept", node) for node in nodes]
        roles = [(tmp_path / "kept" / f"node-{node}" / "bootstrap").read_text().strip() for node in nodes]
    assert [one["node.id"] for one in written] == ["1", "2", "3", "101"]
    assert [one["directory.id"] == "by-the-tool" for one in written] == [True, True, False, True]
    assert len(written[2]["directory.id"]) == 22
    assert roles == [f"process.roles={one}" for one in ("broker,controller", "broker", "broker", "controller")]


@pytest.mark.slow
def test_a_folder_with_data_is_no_model_for_one_without(make: Make, tmp_path: Path) -> None:
    """One broker more, beside those that have topics."""
    with make(data_dir=tmp_path / "kept"):
        (tmp_path / "kept" / "node-2" / "orders-0").mkdir()
    with make(data_dir=tmp_path / "kept", brokers=4):
        assert ids(tmp_path / "kept", 4)["directory.id"] == "by-the-tool"
        assert not (tmp_path / "kept" / "node-4" / "orders-0").exists()


@pytest.mark.slow
def test_a_node_of_its_own_archives_the_classes_once_and_all_others_load_them(make: Make, tmp_path: Path) -> None:
    lines: list[str] = []
    for _ in range(2):
        with make(progress=lines.append) as cluster:
            archive = cluster.runtime.class_archive
            assert archive.read_text() == "classes\n"
            (folder,) = tmp_path.glob("rackspan-kafka-*")
            words = [(folder / f"node-{number}" / "words").read_text() for number in cluster.pids]
            assert [f"-XX:SharedArchiveFile={archive}" in line for line in words] == [True] * 4
    assert len([line for line in lines if "archive its classes" in line]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["sleep 5", "exit 134"])
def test_an_archive_that_may_be_cut_off_is_not_kept_and_the_cluster_starts_without(
    make: Make, tmp_path: Path, ending: str
) -> None:
    """A Java that hangs while it writes, or crashes."""
    java = tmp_path / "java"
    java.write_text(JAVA.replace('echo classes > "$archive"', f'{{ echo half > "$archive"; {ending}; }}'))
    with make(ready_seconds=2) as cluster:
        assert len(cluster.pids) == 4
        assert not cluster.runtime.class_archive.exists()


@pytest.mark.slow
def test_a_lost_rack_is_killed_a_stopped_one_shuts_down_and_both_start_again(make: Make) -> None:
    with make() as cluster:
        before = cluster.pids
        assert cluster.nodes_in("r2") == (2, 101)
        cluster.lose_rack("r2")
        assert cluster.pids == {number: before[number] for number in (1, 3)}
        assert gone_within(WITHIN_SECONDS, before[2], before[101])
        assert "shut down" not in cluster.log_tail(2)
        cluster.stop(*cluster.nodes_in("r1"))
        assert cluster.pids == {}
        assert cluster.log_tail(1).splitlines()[-1] == cluster.log_tail(3).splitlines()[-1] == "shut down in order"
        for rack in ("r1", "r2"):
            cluster.restore_rack(rack)
        assert cluster.pids.keys() == before.keys()
        assert not set(cluster.pids.values()) & set(before.values())
        assert cluster.log_tail(1) == "Kafka Server started"


@pytest.mark.slow
def test_one_broker_is_stopped_killed_and_restarted(make: Make) -> None:
    with make() as cluster:
        first = cluster.pids
        cluster.restart(2)
        assert cluster.pids[2] != first[2], "one that runs is killed first"
        assert {**cluster.pids, 2: first[2]} == first
        cluster.stop(2)
        assert "shut down in order" in cluster.log_tail(2)
        cluster.kill(3)
        assert cluster.pids.keys() == {1, 101}
        cluster.restart(2)
        cluster.restart(3)
        cluster.wait_until_ready()
        assert cluster.pids.keys() == first.keys()


@pytest.mark.slow
def test_a_paused_broker_resumes_and_one_that_is_killed_starts_again_running(make: Make) -> None:
    with make() as cluster:
        pid = cluster.pids[2]
        cluster.pause(2)
        assert paused_within(5, pid)
        cluster.resume(2)
        assert paused_within(5, pid, paused=False)
        cluster.pause(2)
        assert paused_within(5, pid)
        cluster.kill(2)
        assert gone_within(WITHIN_SECONDS, pid)
        cluster.restart(2)
        assert paused_within(5, cluster.pids[2], paused=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("fake.refused", "broker 1 could not prepare its data folder: ERROR ConfigException: fake.refused"),
        ("fake.fails", "broker 1 ended while it started: ERROR a cause"),
    ],
)
def test_a_node_that_fails_is_named_with_the_cause_and_nothing_is_left(
    make: Make, tmp_path: Path, setting: str, message: str
) -> None:
    with pytest.raises(KafkaProcessFailed) as failed, make(config={setting: "yes"}):
        pass
    assert str(failed.value).splitlines()[0] == message
    assert "ERROR" in failed.value.log_tail
    assert list(tmp_path.glob("rackspan-kafka-*")) == []


@pytest.mark.slow
def test_nodes_that_are_never_ready_are_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    silent = {"config": {"fake.silent": "yes"}, "ready_seconds": 1.4}
    with (
        pytest.raises(
            KafkaProcessFailed, match=r"Kafka nodes 1, 2, 3, 101 were not ready after 1 s; are enough"
        ) as failed,
        make(**silent),
    ):
        pass
    assert set(pauses) == {0.1}
    # The log of the first of them.
    assert failed.value.log_tail.splitlines() == ["node 1 begins"]


def test_every_node_that_runs_is_waited_for(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    def node(number: int, *, is_running: bool) -> Any:
        def is_ready() -> bool:
            polled.append(number)
            return len(polled) > 3

        return SimpleNamespace(is_running=is_running, is_ready=is_ready)

    polled: list[int] = []
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _seconds: None))
    cluster = make()
    cluster._processes = {1: node(1, is_running=True), 2: node(2, is_running=False)}
    cluster.wait_until_ready()
    assert polled == [1, 1, 1, 1]


@pytest.mark.slow
def test_a_folder_of_the_users_own_is_stopped_in_order_and_is_the_same_cluster_again(
    make: Make, tmp_path: Path
) -> None:
    with make(data_dir=tmp_path / "mine") as first:
        assert first.cluster_id
    assert "shut down in order" in (tmp_path / "mine" / "node-1.log").read_text()
    with make(data_dir=tmp_path / "mine") as second:
        assert second.cluster_id == first.cluster_id
        assert "shut down" not in second.log_tail(1)


@pytest.mark.slow
def test_what_is_not_there_is_named(make: Make) -> None:
    cluster = make()
    with pytest.raises(UsageError, match="is not started; use it in a with statement"):
        _ = cluster.runtime
    with pytest.raises(
        UsageError, match="no node 1 in this Kafka cluster; its nodes are none, since it is not started"
    ):
        cluster.kill(1)
    with cluster:
        with pytest.raises(UsageError, match="no node 9 in this Kafka cluster; its nodes are 1, 2, 3, 101"):
            cluster.kill(9)
        with pytest.raises(UsageError, match="no rack 'r9' in this Kafka cluster; its racks are r1, r2"):
            cluster.lose_rack("r9")
        held = int(cluster.bootstrap_servers.split(":")[1].split(",")[0])
        assert os.path.exists(cluster.runtime.java.executable)
        assert held in cluster._ports._sockets
    assert cluster._ports._sockets == {}


def test_six_brokers_are_in_three_racks_where_nothing_is_given() -> None:
    assert [(node.id, node.rack, node.is_controller) for node in KafkaCluster().nodes] == [
        *((broker, f"r{broker}", True) for broker in (1, 2, 3)),
        *((broker, f"r{broker - 3}", False) for broker in (4, 5, 6)),
    ]


def test_the_jars_of_the_clusters_version_are_fetched_for_the_java_there_is(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[tuple[object, ...]] = []

    def resolve_jars(version: object, progress: object, *, java: object) -> Path:
        fetched.append((str(version), progress, java))
        raise KafkaProcessFailed("no network", "")

    monkeypatch.setattr(module, "resolve_jars", resolve_jars)
    progress = list[str]().append
    with pytest.raises(KafkaProcessFailed, match="no network"):
        make(version="3.9.1", progress=progress).start()
    assert fetched == [("3.9.1", progress, Java(tmp_path / "java", 17))]


def test_a_console_tool_gets_the_clusters_servers_and_its_own_arguments() -> None:
    ran: list[tuple[tuple[str, ...], dict[str, float]]] = []

    def run_tool(*words: str, **limits: float) -> str:
        ran.append((words, limits))
        return "output"

    cluster: Any = SimpleNamespace(bootstrap_servers="a:1,b:2", runtime=SimpleNamespace(run_tool=run_tool))
    assert console_tool(cluster, "TopicCommand", "--describe", "--topic", "t", seconds=3) == "output"
    assert ran == [(("TopicCommand", "--bootstrap-server", "a:1,b:2", "--describe", "--topic", "t"), {"seconds": 3})]
