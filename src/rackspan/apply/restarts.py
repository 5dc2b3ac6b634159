"""The loop of a rolling restart: read the cluster, decide, carry out one effect, repeat. `restart.execution` decides.

Nothing is kept in memory that a later run needs: it resumes from the journal and the cluster.
"""

import logging
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from rackspan.apply.executor import Pace
from rackspan.apply.journal import RestartJournal
from rackspan.audit import RackPolicy
from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnreachable,
    InvalidJournal,
    RackspanError,
    RestartStopped,
)
from rackspan.interrupts import shortened
from rackspan.model import ClusterSnapshot, TopicPartition
from rackspan.restart.execution.decision import (
    AwaitBrokers,
    CommandStatus,
    Effect,
    ElectLeadersOfBatch,
    EndRestart,
    RecordEvent,
    RestartFinished,
    RunCommand,
    decide,
)
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    CommandStarted,
    LeadersElected,
    RestartStarted,
    RestartState,
)
from rackspan.restart.execution.plan_file import RestartBatches, command_for

log = logging.getLogger(__name__)

_GATED: Final = 'read -r start && exec /bin/sh -c "$0" </dev/null'
"""Runs the command once a line arrives: by then its process id is in the journal, whenever this process is killed."""

_STDERR: Final = 2

STOP_SECONDS: Final = 2.0
"""For a command to end after a signal."""


@dataclass(frozen=True, slots=True)
class RestartUpdate:
    """An effect, with the state and the snapshot that it follows from. Yielded once it is carried out, a wait before it."""

    effect: Effect
    state: RestartState
    snapshot: ClusterSnapshot


class RestartExecutor(Protocol):
    """Restarts the brokers of a batch, and elects their preferred leaders. `RestartCommand`, and the double of the tests."""

    def prepare(self, brokers: tuple[int, ...]) -> int:
        """A process that will restart these brokers; returns its id. It does nothing before `start`."""
        ...

    def start(self) -> None: ...

    def status(self, pid: int | None, started: int | None = None) -> CommandStatus:
        """The status of the process that `prepare` made, or that an earlier run did: `pid` is of the latest, `started` its `start_of`."""
        ...

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None: ...


class RestartCommand:
    """Restarts brokers by a command of the shell, in which {brokers} stands for their ids: 1,4.

    Its output goes to standard error. It is in a process group of its own: a signal that ends this process alone lets it end by itself.
    Ctrl-C within the block stops it, as does a caller that reads no more updates.
    """

    def __init__(self, template: str, elect: Callable[[tuple[TopicPartition, ...]], None]) -> None:
        command_for(template, ())  # Refused now, not when the first batch may stop.
        self._template, self.elect_leaders = template, elect
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None and kind in (KeyboardInterrupt, GeneratorExit):
            _stop(self._process)

    def prepare(self, brokers: tuple[int, ...]) -> int:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _GATED, command_for(self._template, brokers)],
            stdin=subprocess.PIPE,
            stdout=_STDERR,
            start_new_session=True,
        )
        return self._process.pid

    def start(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(b"start\n")
            self._process.stdin.close()

    def status(self, pid: int | None, started: int | None = None) -> CommandStatus:
        if self._process is not None and self._process.pid == pid:
            status = self._process.poll()
            return CommandStatus(running=status is None, exit_status=status)
        return CommandStatus(running=pid is not None and _exists(pid, started))


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """Send SIGINT to the process group, as a terminal would, and SIGKILL if its leader does not end."""
    for number, consequence in ((signal.SIGINT, "and is killed"), (signal.SIGKILL, "and is left behind")):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        seconds = shortened(STOP_SECONDS)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            log.warning(
                "the command of --exec (process %d) did not end in %.3g s after %s %s",
                *(process.pid, seconds, number.name, consequence),
            )
        except BaseException:
            # A second Ctrl-C: nothing would end the command later.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise


def _exists(pid: int, started: int | None) -> bool:
    """Whether a process runs. One that has ended, and whose parent never read its status, does not run.

    Nor does one that started at another time than `started`: since a restart of the machine, or of a container, the id is
    another process's.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # Another user's.
        pass
    fields = _fields_of(pid)
    # A system without /proc has none.
    return not fields or (fields[0] != "Z" and started in (None, int(fields[_START])))


def start_of(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did; None if that is not known."""
    fields = _fields_of(pid)
    return int(fields[_START]) if fields else None


_START: Final = 19


def _fields_of(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from its state on, the third; none if there is no such file."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def restart(
    journal: RestartJournal,
    batches: RestartBatches,
    read: Callable[[bool], ClusterSnapshot],
    policy: RackPolicy,
    executor: RestartExecutor | None,
    pace: Pace,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[RestartUpdate]:
    """Follow a rolling restart, or carry it out by `executor`, to its end; resume it if its journal has begun.

    `read(whole)`: a snapshot, with whatever decides about a stop if `whole`. `stopping`: whether to end as soon as no command
    runs. A plan without batches leaves no journal. Errors: RestartStopped, InvalidJournal, those of the first reading.
    """
    if not batches.batches:
        return
    _refuse_another(journal.begun, batches, read(False), journal.path)
    if journal.begun is None:
        journal.append(RestartStarted(batches))
    run = _Run(journal, read, policy, executor, pace)
    while not (stopping() and run.may_end):
        update = run.next_update()
        if update is None:
            continue
        if isinstance(update.effect, EndRestart):
            raise RestartStopped(update.effect.why)
        # No batch is reported as one that may stop before the journal has what its brokers must regain.
        if not isinstance(update.effect, AwaitBrokers) and not run.carry_out(update.effect):
            continue
        yield update
        if isinstance(update.effect, RestartFinished):
            return
        if isinstance(update.effect, AwaitBrokers):
            run.carry_out(update.effect)


def next_step(snapshot: ClusterSnapshot, batches: RestartBatches, journal: Path, policy: RackPolicy) -> RestartUpdate:
    """Where a run would start or resume by a command, and its next effect. Errors: RestartStopped, InvalidJournal."""
    begun = RestartJournal.peek(journal)
    _refuse_another(begun, batches, snapshot, journal)
    state = begun or RestartState(batches)
    return RestartUpdate(decide(state, snapshot, policy, CommandStatus()), state, snapshot)


def _refuse_another(
    begun: RestartState | None, batches: RestartBatches, snapshot: ClusterSnapshot, journal: Path
) -> None:
    """Refuse another plan's journal, and another cluster."""
    if begun is not None and begun.batches != batches:
        raise InvalidJournal(f"{journal}: the journal of another plan; name the --journal of this one")
    if batches.cluster_id is not None and snapshot.cluster_id not in (None, batches.cluster_id):
        raise RestartStopped(
            f"this is cluster {snapshot.cluster_id}, the plan is for {batches.cluster_id}; name that one"
        )


_ELECTION: Final = "election"


class _Run:
    """The memory of a run, all of which may be lost."""

    def __init__(
        self,
        journal: RestartJournal,
        read: Callable[[bool], ClusterSnapshot],
        policy: RackPolicy,
        executor: RestartExecutor | None,
        pace: Pace,
    ) -> None:
        self._journal, self._read, self._policy, self._executor, self._pace = journal, read, policy, executor, pace
        self._patience = _Patience(pace)

    @property
    def may_end(self) -> bool:
        """Whether no command runs."""
        status = self._status()
        return status is None or not status.running

    def next_update(self) -> RestartUpdate | None:
        """The next effect and why; None if the cluster could not be read, or two readings in a row disagree."""
        try:
            update = self._decided(whole=False)
            if _needs_two_readings(update.effect):
                # A broker may lag the controller.
                self._pace.sleep(self._pace.settle_seconds)
                again = self._decided(whole=_lets_stop(update.effect))
                if _needs_two_readings(again.effect) and not _same(update.effect, again.effect):
                    return None
                return again
        except (ClusterUnreachable, ClusterRequestFailed) as error:
            self._patience.wait_or_raise("", 0, error)
            return None
        return update

    def carry_out(self, effect: Effect) -> bool:
        """Whether it is done; if not, the next reading decides again."""
        match effect:
            case RecordEvent(event):
                self._journal.append(event)
                self._patience.reset()
            case RunCommand(brokers) if self._executor is not None:
                pid = self._executor.prepare(brokers)
                self._journal.append(CommandStarted(brokers, pid, start_of(pid)))
                self._executor.start()
                self._patience.reset()
            case ElectLeadersOfBatch(partitions) if self._executor is not None:
                try:
                    self._executor.elect_leaders(partitions)
                except (ClusterUnreachable, ClusterRequestFailed) as error:
                    # The controller may have been in the batch, or a topic be deleted since the reading.
                    self._patience.wait_or_raise(_ELECTION, 0, error)
                    return False
                self._journal.append(LeadersElected())
            case AwaitBrokers(_, _, None):
                self._patience.reset()
                self._pace.sleep(self._pace.poll_seconds)
            case AwaitBrokers(why, missing, str(remedy)):
                lasting = f"{why}, for {self._pace.patience_seconds:g} s; {remedy}"
                self._patience.wait_or_raise(remedy, missing, RestartStopped(lasting))
        return True

    def _decided(self, *, whole: bool) -> RestartUpdate:
        state, snapshot = self._journal.state, self._read(whole)
        return RestartUpdate(decide(state, snapshot, self._policy, self._status()), state, snapshot)

    def _status(self) -> CommandStatus | None:
        state = self._journal.state
        return None if self._executor is None else self._executor.status(state.command_pid, state.command_started)


def _needs_two_readings(effect: Effect) -> bool:
    return _lets_stop(effect) or isinstance(effect, ElectLeadersOfBatch) or _is_record_of(effect, BatchCompleted)


def _lets_stop(effect: Effect) -> bool:
    return isinstance(effect, RunCommand) or _is_record_of(effect, BatchStarted)


def _is_record_of(effect: Effect, kind: type) -> bool:
    return isinstance(effect, RecordEvent) and isinstance(effect.event, kind)


def _same(effect: Effect, other: Effect) -> bool:
    """Whether both are of one kind: the ISRs of a batch that starts may differ between two readings."""
    if isinstance(effect, RecordEvent) and isinstance(other, RecordEvent):
        return type(effect.event) is type(other.event)
    return type(effect) is type(other)


class _Patience:
    """How long there has been no progress: nothing new to wait for, and of each thing no less is missing."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._least: dict[str, int] = {}
        self._since = pace.now()

    def reset(self) -> None:
        self._least, self._since = {}, self._pace.now()

    def wait_or_raise(self, what: str, missing: int, error: RackspanError) -> None:
        """Sleep, or raise the error once there was no progress for `patience_seconds`."""
        if what not in self._least or missing < self._least[what]:
            self._least[what], self._since = missing, self._pace.now()
        if self._pace.now() - self._since >= self._pace.patience_seconds:
            raise error
        self._pace.sleep(self._pace.poll_seconds)
