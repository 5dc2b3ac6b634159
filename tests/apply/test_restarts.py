"""A rolling restart with its journal on a real disk, against a cluster in memory whose brokers are stopped and started."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from rackspan.apply import Pace, RestartCommand, RestartJournal, RestartUpdate, next_step, restart
from rackspan.apply.restarts import _needs_two_readings, start_of
from rackspan.audit import RackPolicy
from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnauthorized,
    ClusterUnreachable,
    InvalidJournal,
    RestartStopped,
    SourceError,
)
from rackspan.model import ClusterSnapshot, TopicPartition
from rackspan.restart.execution.decision import (
    AwaitBrokers,
    CommandStatus,
    Effect,
    ElectLeadersOfBatch,
    RecordEvent,
    RestartFinished,
    RunCommand,
    decide,
)
from rackspan.restart.execution.events import BatchCompleted, BatchStarted, LeadersElected, RestartState
from tests.restart.execution.snapshots import BATCHES, REPLICAS, cluster

POLLS_DOWN, POLLS_LAGGING = 6, 3


class FakeCluster:
    """Each reading is a second later: a broker that is stopped is down for some readings, then out of sync for some.

    Another replica leads its partitions then, until the preferred leader is elected.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.readings = 0
        self.until_up: dict[int, int] = {}
        self.until_in_sync: dict[int, int] = {}
        self.restarts: list[int] = []
        self.violations: list[str] = []
        self.leaders = {(topic, at): row[0] for topic, rows in REPLICAS.items() for at, row in enumerate(rows)}
        self.elected: list[TopicPartition] = []
        self.dead: set[int] = set()
        self.unreachable: set[int] = set()

    def stop(self, brokers: tuple[int, ...]) -> None:
        allowed = {broker for batch in BATCHES.batches for broker in batch.brokers if set(brokers) & set(batch.brokers)}
        out = {broker for broker, at in self.until_in_sync.items() if at > self.readings} | self.dead
        if not (out | set(brokers)) <= allowed:
            self.violations.append(f"{brokers} stopped while {sorted(out)} were out of sync")
        for broker in brokers:
            self.restarts.append(broker)
            self.until_up[broker] = self.readings + POLLS_DOWN
            self.until_in_sync[broker] = self.readings + POLLS_DOWN + POLLS_LAGGING

    def read(self, whole: bool) -> ClusterSnapshot:
        self.readings += 1
        if self.readings in self.unreachable:
            raise ClusterUnreachable("no broker responded")
        down = {broker for broker, at in self.until_up.items() if at > self.readings} | self.dead
        lagging = {broker for broker, at in self.until_in_sync.items() if at > self.readings} | down
        isr = {
            (topic, at): tuple(broker for broker in row if broker not in lagging)
            for topic, rows in REPLICAS.items()
            for at, row in enumerate(rows)
        }
        for partition, in_sync in isr.items():
            if self.leaders[partition] not in in_sync and in_sync:
                self.leaders[partition] = in_sync[0]
        return cluster(gone=tuple(down), isr=isr, leaders=self.leaders)

    def elect(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.elected += partitions
        for topic, at in partitions:
            self.leaders[topic, at] = REPLICAS[topic][at][0]

    def pace(self, patience_seconds: float = 60.0) -> Pace:
        return Pace(patience_seconds, 1.0, 0.25, now=lambda: self.seconds, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.seconds += seconds


class FakeExecutor:
    """A command that stops and starts its brokers at once and runs for some readings; it outlives the run that started it."""

    def __init__(self, target: FakeCluster, exit_status: int = 0) -> None:
        self.target, self._exit_status = target, exit_status
        self._prepared: tuple[int, ...] = ()
        self._pids = count(1)
        self._ends: dict[int, int] = {}
        self._own: set[int] = set()

    def prepare(self, brokers: tuple[int, ...]) -> int:
        self._prepared, pid = brokers, next(self._pids)
        self._own.add(pid)
        return pid

    def start(self) -> None:
        self.target.stop(self._prepared)
        self._ends[max(self._own)] = self.target.readings + 2

    def status(self, pid: int | None, started: int | None = None) -> CommandStatus:
        if pid is None or pid not in self._ends:
            return CommandStatus()
        running = self._ends[pid] > self.target.readings
        return CommandStatus(running, self._exit_status if pid in self._own and not running else None)

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.target.elect(partitions)

    def killed(self) -> None:
        """The next run did not start this one's commands."""
        self._own = set()


def run(
    target: FakeCluster, journal: Path, executor: FakeExecutor | None = None, patience_seconds: float = 60.0
) -> Iterator[RestartUpdate]:
    with RestartJournal(journal) as opened:
        yield from restart(opened, BATCHES, target.read, RackPolicy(), executor, target.pace(patience_seconds))


def somebody_else(target: FakeCluster, update: RestartUpdate) -> None:
    """Restarts each batch broker by broker once it may stop."""
    if isinstance(update.effect, AwaitBrokers) and "may stop now" in update.effect.why:
        pending = [broker for broker in update.state.brokers if broker not in update.state.stopped]
        target.stop((pending[0],))


ALL = [1, 4, 2, 5, 3, 6]


def test_a_restart_by_somebody_else_is_followed_to_its_end(tmp_path: Path) -> None:
    target = FakeCluster()
    for update in run(target, tmp_path / "journal"):
        somebody_else(target, update)
    assert update.effect == RestartFinished()
    assert (target.restarts, target.violations) == (ALL, [])


def test_a_command_restarts_every_batch_once_the_one_before_is_back(tmp_path: Path) -> None:
    target = FakeCluster()
    updates = list(run(target, tmp_path / "journal", FakeExecutor(target)))
    assert updates[-1].effect == RestartFinished()
    assert (target.restarts, target.violations) == (ALL, [])
    assert sorted(target.elected) == [("logs", 0), *(("orders", at) for at in range(4))]
    assert target.leaders == FakeCluster().leaders


def test_a_command_starts_the_brokers_that_are_down_when_the_restart_begins(tmp_path: Path) -> None:
    target = FakeCluster()
    target.dead = {1, 4}

    class Starting(FakeExecutor):
        def start(self) -> None:
            target.dead -= set(self._prepared)
            super().start()

    assert list(run(target, tmp_path / "journal", Starting(target)))[-1].effect == RestartFinished()
    assert (target.restarts, target.violations) == (ALL, [])


@pytest.mark.parametrize("execute", [False, True], ids=["watch", "exec"])
@pytest.mark.parametrize("seed", range(5))
def test_killed_ten_times_it_resumes(tmp_path: Path, seed: int, execute: bool) -> None:
    target, rng, kills = FakeCluster(), Random(seed), 10
    executor = FakeExecutor(target) if execute else None
    finished = False
    while not finished:
        left = rng.randint(1, 8) if kills else 1_000
        kills -= kills > 0
        for update in run(target, tmp_path / "journal", executor):
            if executor is None:
                somebody_else(target, update)
            finished = isinstance(update.effect, RestartFinished)
            left -= 1
            if not left:
                break
        if executor is not None:
            executor.killed()
    assert kills == 0 or finished
    assert target.violations == []
    assert (sorted(set(target.restarts)), len(target.restarts)) == (sorted(ALL), len(ALL))


def stopped(target: FakeCluster, journal: Path, executor: FakeExecutor | None = None) -> str:
    try:
        for update in run(target, journal, executor):
            if executor is None:
                somebody_else(target, update)
    except RestartStopped as error:
        return str(error)
    return "it ended well"


def test_a_broker_that_does_not_come_back_ends_it_and_a_later_run_resumes(tmp_path: Path) -> None:
    target = FakeCluster()
    target.dead = {4}
    assert stopped(target, tmp_path / "journal") == (
        "batch 1 of 3 (brokers 1,4): broker 4 has not come back, for 60 s; "
        "start broker 4, and run the same command again to resume"
    )
    target.dead = set()
    for update in run(target, tmp_path / "journal"):
        somebody_else(target, update)
    assert update.effect == RestartFinished()


def test_a_broker_that_starts_and_ends_again_and_again_is_no_progress(tmp_path: Path) -> None:
    target = Flapping()
    assert re.search(
        r"(broker 1 has not come back|are not regained, .* is the first), for 60 s",
        stopped(target, tmp_path / "journal"),
    )
    assert target.seconds < 200


class Flapping(FakeCluster):
    """Broker 1 is never in sync again once it stopped, and up every other ten seconds."""

    def read(self, whole: bool) -> ClusterSnapshot:
        if 1 in self.restarts:
            self.dead = {1} if self.readings % 20 < 10 else set()
            self.until_in_sync[1] = 10**9
        return super().read(whole)


def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    target = FakeCluster()
    assert "the command ended with status 3" in stopped(target, tmp_path / "journal", FakeExecutor(target, 3))
    assert target.restarts == [1, 4]


@pytest.mark.slow
def test_somebody_else_may_take_any_time(tmp_path: Path) -> None:
    target = FakeCluster()
    assert all(
        target.seconds < 1_000 or isinstance(update.effect, AwaitBrokers)
        for update in islice(run(target, tmp_path / "journal"), 1_100)
    )
    assert target.seconds > 1_000


def test_a_cluster_that_cannot_be_read_for_a_while_is_waited_for(tmp_path: Path) -> None:
    target = FakeCluster()
    target.unreachable = set(range(5, 20))
    assert list(run(target, tmp_path / "journal", FakeExecutor(target)))[-1].effect == RestartFinished()


def test_a_cluster_that_cannot_be_read_any_more_ends_it(tmp_path: Path) -> None:
    target = FakeCluster()
    target.unreachable = set(range(5, 10_000))
    with pytest.raises(ClusterUnreachable):
        list(run(target, tmp_path / "journal", FakeExecutor(target)))


def test_how_long_a_batch_was_waited_for_does_not_count_for_the_next(tmp_path: Path) -> None:
    target, stop = FakeCluster(), FakeCluster.stop

    def stop_for_long(brokers: tuple[int, ...]) -> None:
        stop(target, brokers)
        target.until_in_sync |= dict.fromkeys(brokers, target.readings + 50)

    target.stop = stop_for_long  # type: ignore[method-assign]
    for update in run(target, tmp_path / "journal", FakeExecutor(target)):
        if isinstance(update.effect, AwaitBrokers) and not target.unreachable:
            target.unreachable = {target.readings + 1}
        if isinstance(update.effect, RecordEvent) and isinstance(update.effect.event, BatchCompleted):
            target.unreachable |= set(range(target.readings + 1, target.readings + 40))
    assert update.effect == RestartFinished()


@pytest.mark.slow
def test_how_long_a_command_was_held_back_does_not_count_once_it_runs(tmp_path: Path) -> None:
    """Another broker is down for most of the patience, and the cluster cannot be read right after the start."""
    target, held = FakeCluster(), 0
    for update in run(target, tmp_path / "journal", FakeExecutor(target)):
        if isinstance(update.effect, RecordEvent) and isinstance(update.effect.event, BatchStarted) and not held:
            target.dead = {2}
        if isinstance(update.effect, AwaitBrokers) and target.dead:
            held += 1
            target.unreachable |= {target.readings + 1} if held == 1 else set()
            target.dead = {2} if held < 57 else set()
        if isinstance(update.effect, RunCommand) and len(target.unreachable) == 1:
            target.unreachable |= set(range(target.readings + 1, target.readings + 5))
    assert (update.effect, held) == (RestartFinished(), 57)


def test_one_reading_that_says_yes_starts_no_batch(tmp_path: Path) -> None:
    target = FakeCluster()
    target.dead, original = {2}, target.read

    def lagging(whole: bool) -> ClusterSnapshot:
        target.dead = set() if target.readings % 2 else {2}
        return original(whole)

    with RestartJournal(tmp_path / "journal") as opened:
        for update in restart(opened, BATCHES, lagging, RackPolicy(), None, target.pace()):
            assert not (isinstance(update.effect, RecordEvent) and isinstance(update.effect.event, BatchStarted))
            if target.readings > 50:
                break


@pytest.mark.slow
def test_whether_a_batch_may_stop_is_read_with_everything_that_decides(tmp_path: Path) -> None:
    target = FakeCluster()

    def read(whole: bool) -> ClusterSnapshot:
        hidden = ("topics on disk that this user may not see: 1",) if whole else ()
        return replace(target.read(whole), partial=hidden)

    with RestartJournal(tmp_path / "journal") as opened:
        for update in restart(opened, BATCHES, read, RackPolicy(), None, target.pace()):
            assert isinstance(update.effect, AwaitBrokers)
            assert "may not stop yet: topics on disk" in update.effect.why
            if target.readings > 50:
                break


def test_a_journal_is_of_one_plan_and_a_plan_of_one_cluster(tmp_path: Path) -> None:
    target = FakeCluster()
    another = replace_batches(cluster_id="another")
    with (
        RestartJournal(tmp_path / "journal") as opened,
        pytest.raises(RestartStopped, match="this is cluster c1, the plan is for another"),
    ):
        list(restart(opened, another, target.read, RackPolicy(), None, target.pace()))
    assert not (tmp_path / "journal").exists()
    list(run(target, tmp_path / "journal", FakeExecutor(target)))
    with (
        RestartJournal(tmp_path / "journal") as opened,
        pytest.raises(InvalidJournal, match="the journal of another plan; name the --journal of this one"),
    ):
        list(restart(opened, replace_batches(margin=1), target.read, RackPolicy(), None, target.pace()))


def replace_batches(**changed: object):  # type: ignore[no-untyped-def]
    from msgspec.structs import replace as replaced

    return replaced(BATCHES, **changed)


def test_a_plan_without_batches_leaves_no_journal(tmp_path: Path) -> None:
    with RestartJournal(tmp_path / "journal") as opened:
        assert not list(restart(opened, replace_batches(batches=()), FakeCluster().read, RackPolicy(), None, Pace()))
    assert not (tmp_path / "journal").exists()


def test_an_end_that_is_requested_waits_for_the_command(tmp_path: Path) -> None:
    target = FakeCluster()
    executor = FakeExecutor(target)
    with RestartJournal(tmp_path / "journal") as opened:
        last = list(
            restart(opened, BATCHES, target.read, RackPolicy(), executor, target.pace(), lambda: bool(target.restarts))
        )[-1]
        assert not executor.status(opened.state.command_pid).running
    assert target.restarts == [1, 4]
    assert not isinstance(last.effect, RestartFinished)


def test_the_next_step_is_that_of_a_run_which_starts_and_leaves_no_journal(tmp_path: Path) -> None:
    target = FakeCluster()
    step = next_step(target.read(True), BATCHES, tmp_path / "journal", RackPolicy())
    assert step.state == RestartState(BATCHES)
    assert not (tmp_path / "journal").exists()
    first = next(run(target, tmp_path / "journal", FakeExecutor(target)))
    assert step.effect == first.effect


@pytest.mark.parametrize("effects", [2, 5, 8])
def test_the_next_step_is_that_of_a_run_which_resumes(tmp_path: Path, effects: int) -> None:
    target = FakeCluster()
    executor = FakeExecutor(target)
    list(islice(run(target, tmp_path / "journal", executor), effects))
    with RestartJournal(tmp_path / "journal") as opened:
        state = opened.state
    assert state != RestartState(BATCHES)
    snapshot = target.read(True)
    step = next_step(snapshot, BATCHES, tmp_path / "journal", RackPolicy())
    assert (step.state, step.snapshot) == (state, snapshot)
    assert step.effect == decide(state, snapshot, RackPolicy(), CommandStatus())


def test_the_next_step_of_another_plan_or_cluster_is_refused(tmp_path: Path) -> None:
    target = FakeCluster()
    next(run(target, tmp_path / "journal", FakeExecutor(target)))
    with pytest.raises(InvalidJournal) as refused:
        next_step(target.read(True), replace_batches(margin=1), tmp_path / "journal", RackPolicy())
    assert str(refused.value) == (f"{tmp_path}/journal: the journal of another plan; name the --journal of this one")
    with pytest.raises(RestartStopped, match="this is cluster c1, the plan is for another"):
        next_step(target.read(True), replace_batches(cluster_id="another"), tmp_path / "none", RackPolicy())


class Observing(FakeExecutor):
    """Notes which process the journal named at each start, and whether it had the election's end at the election."""

    def __init__(self, target: FakeCluster, journal: RestartJournal) -> None:
        super().__init__(target)
        self._journal = journal
        self.named_at_start: list[bool] = []
        self.elected_before: list[bool] = []

    def start(self) -> None:
        self.named_at_start.append(self._journal.state.command_pid == max(self._own))
        super().start()

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.elected_before.append(self._journal.state.elected)
        super().elect_leaders(partitions)


def test_a_command_is_in_the_journal_before_it_starts_and_an_election_once_it_is_over(tmp_path: Path) -> None:
    target = FakeCluster()
    with RestartJournal(tmp_path / "journal") as opened:
        executor = Observing(target, opened)
        for _ in restart(opened, BATCHES, target.read, RackPolicy(), executor, target.pace()):
            pass
    assert executor.named_at_start == [True] * 3
    assert executor.elected_before == [False] * 3


class FailingElections(FakeExecutor):
    """Each of so many elections fails: no controller is active, or a topic was deleted since the reading."""

    def __init__(self, target: FakeCluster, failures: int, error: SourceError) -> None:
        super().__init__(target)
        self.failures, self._error = failures, error

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.failures -= 1
        if self.failures >= 0:
            raise self._error
        super().elect_leaders(partitions)


@pytest.mark.parametrize("error", [ClusterUnreachable("no response in time"), ClusterRequestFailed("NOT_CONTROLLER")])
def test_an_election_that_fails_is_tried_again_and_reported_once(tmp_path: Path, error: SourceError) -> None:
    target = FakeCluster()
    updates = list(run(target, tmp_path / "journal", FailingElections(target, 3, error)))
    assert updates[-1].effect == RestartFinished()
    assert (target.restarts, target.leaders) == (ALL, FakeCluster().leaders)
    assert sum(isinstance(update.effect, ElectLeadersOfBatch) for update in updates) == 3


@pytest.mark.parametrize(
    ("error", "seconds"), [(ClusterUnreachable("no response in time"), 60.0), (ClusterUnauthorized("needs Alter"), 0.0)]
)
def test_an_election_that_fails_for_long_or_is_not_allowed_ends_it(
    tmp_path: Path, error: SourceError, seconds: float
) -> None:
    target, since = FakeCluster(), [0.0]
    updates = run(target, tmp_path / "journal", FailingElections(target, 10_000, error))
    with pytest.raises(type(error), match=str(error)):
        since.extend(target.seconds for _ in updates)
    assert seconds <= target.seconds - since[-1] <= seconds + 2


@pytest.mark.slow
def test_how_long_a_batch_was_waited_for_does_not_count_for_its_election(tmp_path: Path) -> None:
    target, stop = FakeCluster(), FakeCluster.stop

    def stop_for_long(brokers: tuple[int, ...]) -> None:
        stop(target, brokers)
        target.until_in_sync |= dict.fromkeys(brokers, target.readings + 50)
        target.unreachable = {target.readings + 5}

    target.stop = stop_for_long  # type: ignore[method-assign]
    executor = FailingElections(target, 20, ClusterUnreachable("no response in time"))
    assert list(run(target, tmp_path / "journal", executor))[-1].effect == RestartFinished()


def test_what_cannot_be_taken_back_needs_two_readings() -> None:
    certain: list[Effect] = [RunCommand((1,)), ElectLeadersOfBatch((TopicPartition("orders", 0),))]
    assert [_needs_two_readings(effect) for effect in certain] == [True] * 2
    assert _needs_two_readings(RecordEvent(BatchStarted(1, {})))
    assert _needs_two_readings(RecordEvent(BatchCompleted()))
    others: list[Effect] = [AwaitBrokers("why", 1, None), RestartFinished(), RecordEvent(LeadersElected())]
    assert [_needs_two_readings(effect) for effect in others] == [False] * 3


def test_another_process_with_the_id_of_the_command_is_not_the_command(tmp_path: Path) -> None:
    """As after a restart of the machine, or in another container with the same journal."""
    command, target = RestartCommand("{brokers}", lambda _: None), FakeCluster()
    started = start_of(os.getpid())
    assert command.status(os.getpid(), started) == CommandStatus(running=True)
    assert command.status(os.getpid(), started and started - 1) == CommandStatus()
    executor = Remembering(target)
    list(run(target, tmp_path / "journal", executor))
    assert executor.started == {start_of(os.getpid())}


class Remembering(FakeExecutor):
    """Every command is this process; notes when the journal says that it started."""

    started: set[int | None]

    def prepare(self, brokers: tuple[int, ...]) -> int:
        self._prepared, self.started = brokers, set()
        self._own.add(os.getpid())
        return os.getpid()

    def status(self, pid: int | None, started: int | None = None) -> CommandStatus:
        if pid is not None:
            self.started.add(started)
        return super().status(pid, started)
