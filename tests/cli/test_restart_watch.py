"""rackspan restart watch and safe --wait, as processes beside an embedded cluster whose brokers are stopped and started."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from rackspan import api
from rackspan.apply import RestartJournal
from rackspan.cluster import EmbeddedCluster
from rackspan.restart.execution.events import RestartState
from tests.cli.conftest import Ran
from tests.cli.restarted_brokers import command_that_calls
from tests.cli.test_terminal import in_terminal
from tests.depth import at_depth
from tests.processes import gone_within, running
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.slow

RACKSPAN = (sys.executable, "-m", "rackspan")
BATCHES = [[1, 4], [2, 5], [3, 6]]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        ring = [[(first + at) % 6 + 1 for at in range(3)] for first in range(12)]
        cluster.create_topic("orders", replicas=ring, config={"min.insync.replicas": "2"})
        yield cluster


@pytest.fixture
def plan(cli: Callable[..., Ran], cluster: EmbeddedCluster, tmp_path: Path) -> Path:
    ran = cli("restart", "plan", "--bootstrap-server", cluster.bootstrap_servers, "-o", "json")
    assert [batch["brokers"] for batch in ran.document["batches"]] == BATCHES
    (tmp_path / "plan.json").write_text(ran.out)
    return tmp_path / "plan.json"


def words(cluster: EmbeddedCluster, plan: Path, *more: str) -> list[str]:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    return [*RACKSPAN, "restart", "watch", *server, "--plan", str(plan), "--every", "0.2", *more]


class Restarter:
    """Stops and starts brokers, and records which were out of sync at each stop."""

    def __init__(self, cluster: EmbeddedCluster, plan: Path) -> None:
        self._cluster = cluster
        self._journal = plan.with_name("plan.json.journal")
        self.is_over = False
        self.restarts: list[list[int]] = []
        self.out_of_sync: list[set[int]] = []

    def restart(self, brokers: list[int]) -> None:
        """Stop the brokers, and start them once some watch has recorded them as stopped."""
        lagging = {
            int(replica)
            for partition in range(12)
            for replica in set(self._cluster.replicas("orders", partition)) - self._cluster.isr("orders", partition)
        }
        self.out_of_sync.append(lagging)
        self.restarts.append(brokers)
        for broker in brokers:
            self._cluster.stop(broker)
        self.await_state(lambda state: set(brokers) <= state.stopped)
        self._cluster.restart(*brokers)

    def await_state(self, holds: Callable[[RestartState], bool]) -> None:
        eventually(
            lambda: self.is_over or ((state := RestartJournal.peek(self._journal)) is not None and holds(state)),
            "the journal shows it",
        )


def test_a_restart_by_somebody_else_is_followed(cluster: EmbeddedCluster, plan: Path) -> None:
    restarter, steps = Restarter(cluster, plan), []
    with running(words(cluster, plan, "-o", "json"), stdout=subprocess.PIPE) as watch:
        assert watch.stdout is not None
        for line in watch.stdout:
            event = json.loads(line)
            steps.append((event["event"], event["batch"]))
            if event["event"] == "may-stop":
                restarter.restart(event["brokers"])
        assert watch.wait(WITHIN_SECONDS) == 0
    assert restarter.restarts == BATCHES
    assert restarter.out_of_sync == [set()] * 3
    found = [step for step in steps if step[0] in ("may-stop", "batch-done", "done")]
    assert found == [(event, number) for number in (1, 2, 3) for event in ("may-stop", "batch-done")] + [("done", 3)]


def test_a_watch_that_is_killed_again_and_again_goes_on_from_its_journal_and_the_cluster(
    cluster: EmbeddedCluster, plan: Path
) -> None:
    restarter, rng = Restarter(cluster, plan), Random(3)

    def somebody_else() -> None:
        """Restarts each batch once the journal shows it started, and starts it when some watch has recorded it stopped."""
        for number, batch in enumerate(BATCHES):

            def started(state: RestartState, done: int = number) -> bool:
                return state.done == done and state.places is not None

            restarter.await_state(started)
            restarter.restart(batch)

    performer = threading.Thread(target=somebody_else, daemon=True)
    performer.start()
    try:
        for _ in range(at_depth(test=5, soak=10)):
            with running(words(cluster, plan, "-o", "json"), stdout=subprocess.PIPE) as watch:
                assert watch.stdout is not None
                assert watch.stdout.readline()
                time.sleep(rng.uniform(0.0, 0.5))
                watch.kill()
        with running(words(cluster, plan, "-o", "json"), stdout=subprocess.PIPE) as watch:
            output, _ = watch.communicate(timeout=WITHIN_SECONDS)
    finally:
        restarter.is_over = True
        performer.join()
    assert watch.returncode == 0
    assert json.loads(output.splitlines()[-1])["event"] == "done"
    assert restarter.restarts == BATCHES
    assert restarter.out_of_sync == [set()] * 3


def test_a_plan_made_by_other_settings_is_warned_of_before_anything_is_done(
    cli: Callable[..., Ran], cluster: EmbeddedCluster, plan: Path
) -> None:
    own = plan.with_name("own.toml")
    own.write_text("min-insync-racks = 2\n", encoding="utf-8")
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    dry_run = ("restart", "watch", *server, "--plan", plan, "--exec", "./restart.sh {brokers}")
    changed = cli(*dry_run, "--settings", own)
    assert changed.err.splitlines()[0] == (
        f"warning: {plan}: made by other settings (no rackspan.toml): min-insync-racks was not set and is 2; plan again"
    )
    assert changed.out.splitlines()[0] == f"settings: {own}"
    alike = cli(*dry_run)
    assert "made by other settings" not in alike.err
    assert (alike.code, alike.out.splitlines()[0]) == (changed.code, "settings: none")
    assert not plan.with_name("plan.json.journal").exists()


def test_a_command_restarts_the_batches_and_leaders_are_elected(
    cli: Callable[..., Ran], cluster: EmbeddedCluster, plan: Path
) -> None:
    restarter = Restarter(cluster, plan)
    with command_that_calls(restarter.restart, plan.parent) as command:
        ran = subprocess.run(
            [*words(cluster, plan, "--exec", command, "--apply")],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN_SECONDS,
        )
    assert ran.returncode == 0, ran.stderr
    assert (restarter.restarts, restarter.out_of_sync) == (BATCHES, [set()] * 3)
    assert ran.stdout.splitlines()[-1] == "done: 3 batches"
    assert "elected" in ran.stdout
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    left = cli("restart", "watch", *server, "--plan", plan, "--exec", "./restart.sh {brokers}")
    assert (left.code, left.out) == (0, "settings: none\ndone: 3 batches\n")
    assert all(cluster.leader("orders", at) == cluster.replicas("orders", at)[0] for at in range(12))


def test_a_run_with_a_command_that_is_killed_leaves_the_command_and_resumes(
    cluster: EmbeddedCluster, plan: Path
) -> None:
    restarter = Restarter(cluster, plan)
    with command_that_calls(restarter.restart, plan.parent) as command:
        for stops in (1, 2):
            with running(words(cluster, plan, "--exec", command, "--apply"), stdout=subprocess.DEVNULL) as run:
                while len(restarter.restarts) < stops:
                    time.sleep(0.05)
                run.kill()
        ran = subprocess.run(words(cluster, plan, "--exec", command, "--apply"), check=False, timeout=WITHIN_SECONDS)
    assert ran.returncode == 0
    assert restarter.out_of_sync == [set()] * len(restarter.restarts)
    # A stop that no run has recorded is repeated.
    assert [batch for batch in BATCHES if batch not in restarter.restarts] == []


def test_the_first_sigterm_lets_the_command_end(cluster: EmbeddedCluster, plan: Path) -> None:
    restarter = Restarter(cluster, plan)
    with (
        command_that_calls(restarter.restart, plan.parent) as command,
        running(words(cluster, plan, "--exec", command, "--apply"), stderr=subprocess.PIPE) as run,
    ):
        while not restarter.restarts:
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, noted = run.communicate(timeout=WITHIN_SECONDS)
        assert not (plan.parent / "request").exists()
    assert run.returncode == 2, noted
    assert "ended; run the same command again to resume" in noted
    assert restarter.restarts == BATCHES[:1]


@pytest.mark.parametrize(
    ("ignores", "consequence"),
    [("", ""), ("trap '' INT; ", "did not end in {} s after SIGINT and is killed")],
    ids=["heeds", "ignores"],
)
def test_ctrl_c_stops_the_command_and_kills_one_that_ignores_it(
    cluster: EmbeddedCluster, plan: Path, ignores: str, consequence: str
) -> None:
    command = f"{ignores}echo $$ {{brokers}} > begun; mv begun ran; while :; do sleep 0.1; done"
    with running(words(cluster, plan, "--exec", command, "--apply"), stderr=subprocess.PIPE, cwd=plan.parent) as run:
        eventually((plan.parent / "ran").exists, "the command runs")
        run.send_signal(signal.SIGINT)
        _, noted = run.communicate(timeout=WITHIN_SECONDS)
    pid = int((plan.parent / "ran").read_text().split()[0])
    assert gone_within(WITHIN_SECONDS, pid)
    assert run.returncode == 2, noted
    lines = noted.splitlines()
    assert lines[-1] == "ended; run the same command again to resume"
    named = [line for line in lines if "--exec" in line]
    assert named == ([f"the command of --exec (process {pid}) " + consequence.format(2)] if consequence else [])


def test_without_apply_the_command_is_only_shown(cli: Callable[..., Ran], cluster: EmbeddedCluster, plan: Path) -> None:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    ran = cli("restart", "watch", *server, "--plan", plan, "--exec", "touch ran; ./restart.sh {brokers}")
    assert ran.code == 2
    assert ran.out.splitlines()[1:] == [
        f"batch {number} of 3 (brokers {ids}): would run: touch ran; ./restart.sh {ids}"
        for number, ids in enumerate(("1,4", "2,5", "3,6"), 1)
    ]
    assert sorted(path.name for path in plan.parent.iterdir() if path.is_file()) == ["plan.json"]


def test_a_broker_that_does_not_come_back_ends_it_with_one_line(
    cli: Callable[..., Ran], cluster: EmbeddedCluster, plan: Path
) -> None:
    cluster.stop(4)
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    ran = cli("restart", "watch", *server, "--plan", plan, "--patience", "1")
    assert ran.code == 1
    assert ran.err.splitlines()[-1] == (
        "rackspan: batch 1 of 3 (brokers 1,4): broker 4 has not come back, for 1 s; "
        "start broker 4, and run the same command again to resume"
    )


def test_safe_waits_until_the_broker_may_stop(cli: Callable[..., Ran], cluster: EmbeddedCluster) -> None:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    cluster.stop(4)
    assert cli("restart", "safe", *server, "--broker", "2,5", "--wait", "1").code == 2
    timer = threading.Timer(2.0, cluster.restart, [4])
    timer.start()
    try:
        assert cli("restart", "safe", *server, "--broker", "2,5", "--wait", "60").code == 0
    finally:
        timer.join()


def test_two_hosts_that_check_at_once_both_get_yes(cluster: EmbeddedCluster) -> None:
    """It is a check, not a lock: brokers 1 and 2 may each stop, and not together."""
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    hosts = [
        subprocess.Popen([*RACKSPAN, "restart", "safe", *server, "--broker", broker], stdout=subprocess.DEVNULL)
        for broker in ("1", "2")
    ]
    assert [host.wait(WITHIN_SECONDS) for host in hosts] == [0, 0]
    both = subprocess.run(
        [*RACKSPAN, "restart", "safe", *server, "--broker", "1,2"], stdout=subprocess.DEVNULL, check=False
    )
    assert both.returncode == 2


def test_a_cluster_whose_bootstrap_server_stops_is_read_by_another_broker(cluster: EmbeddedCluster) -> None:
    source = api.live_cluster(cluster.address(1), None, 10)
    source.read()
    cluster.stop(1)
    stopped = source.read().snapshot.broker(1)
    assert stopped is None or stopped.fenced


@pytest.mark.parametrize("columns", [60, 80])
def test_on_a_terminal_the_bar_and_all_that_is_waited_for_are_drawn(
    cluster: EmbeddedCluster, plan: Path, tmp_path: Path, columns: int
) -> None:
    """Brokers 1 and 4 are down, and stay down until the patience ends."""
    cluster.stop(1)
    cluster.stop(4)
    arguments = words(cluster, plan, "--patience", "2")[len(RACKSPAN) :]
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", in_terminal(arguments, columns, tmp_path))
    # The first line of the page takes the place of the bar that was erased.
    drawn = [line.removesuffix("settings: none") for line in re.split(r"[\r\n]+", shown) if line.strip()]
    assert any("━" in line and "batch 1 of 3 (brokers 1,4): brokers 1,4" in line for line in drawn)
    assert " ".join(re.sub(r"[━╸╺]+|\d:\d\d:\d\d", "", " ".join(drawn)).split()).count("have not come back") > 0
    assert [line for line in drawn if len(line.rstrip()) > columns or "…" in line] == []
    last = "rackspan: batch 1 of 3 (brokers 1,4): brokers 1,4 have not come back, for 2 s; start"
    assert last in " ".join(" ".join(drawn).split())
