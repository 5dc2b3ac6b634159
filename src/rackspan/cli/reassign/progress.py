"""Reports the progress of a run on standard error: a bar on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rackspan.cli import output
from rackspan.cli.pages.difference import human_duration
from rackspan.cli.pages.throttles import throttle_lines
from rackspan.plan import ConfigKey
from rackspan.plan.execution.effects import CancelMoves, ElectPreferredLeaders, Record, SetConfigs, StartMoves, Wait
from rackspan.plan.execution.events import ForeignThrottleRecorded, StepCompleted, StepDeferred, ThrottleRecorded
from rackspan.plan.execution.progress import NO_SIZES, CopySizes, Progress, awaited, progress
from rackspan.text import count_noun, human_bytes

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

LINE_EVERY_SECONDS: Final = 30.0
"""Between two lines about the same wait, where there is no terminal."""

STALLED_SECONDS: Final = 5.0
"""How long something keeps a run before it is named."""

QUIET_SECONDS: Final = 300.0
"""How long no replica gets in sync before those that are awaited are named. A large copy may take longer and be well."""

Report = Callable[["RunUpdate", str | None], None]


def follow(updates: "Iterator[RunUpdate]", sizes: CopySizes | None = None) -> "RunUpdate":
    """Report each update as it comes; returns the last one. `sizes`: what is copied, for bytes and the time that is left."""
    timer = _Timer()
    with _reporter(sizes) as report:
        for last in updates:
            report(last, _words(last, sizes, timer))
    return last


class _Timer:
    """Estimates the time that is left from the bytes that were copied since the first report, and how long none got in sync."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began: tuple[float, int] | None = None
        self._changed_at = now()
        self._last: tuple[int, int, int] | None = None

    def quiet(self, one: "RunUpdate", done: Progress) -> str:
        """`; none got in sync for 5 min, orders-0 waits for 4`, once that has lasted QUIET_SECONDS."""
        now, current = self._now(), (done.step, done.copied, done.moving)
        if current != self._last:
            self._last, self._changed_at = current, now
        waiting = awaited(one.state, one.cluster)
        if now - self._changed_at < QUIET_SECONDS or not waiting:
            return ""
        (topic, partition), brokers = next(iter(waiting.items()))
        more = f" and {count_noun(len(waiting) - 1, 'partition')} for others" if len(waiting) > 1 else ""
        which = f"{topic}-{partition} waits for {','.join(map(str, brokers))}{more}"
        lasts = human_duration(round(now - self._changed_at))
        return f"; none got in sync for {lasts}, {which}: a large copy, or a broker that cannot follow"

    def left(self, done: Progress) -> str:
        """`, about 3 min left`; nothing before enough is known."""
        now = self._now()
        self._began = self._began or (now, done.bytes_copied)
        seconds, copied = now - self._began[0], done.bytes_copied - self._began[1]
        if not (seconds > 0 and copied > 0 and done.bytes_copied < done.bytes):
            return ""
        return f", about {human_duration(round((done.bytes - done.bytes_copied) * seconds / copied))} left"


@contextmanager
def _reporter(sizes: CopySizes | None) -> Iterator[Report]:
    console = output.stderr_console()
    if not console.is_terminal:
        yield _Lines().report
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[copied]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading the cluster", total=None, copied="")

        def report(one: "RunUpdate", words: str | None) -> None:
            done = progress(one.state, one.cluster, sizes or NO_SIZES)
            completed, total = (done.bytes_copied, done.bytes) if done.bytes else (done.copied, done.copies)
            bar.update(
                task,
                description=f"step {done.step} of {done.steps}",
                completed=completed,
                total=total,
                copied=_copied(done),
            )
            if words is not None and not isinstance(one.effect, Wait):
                bar.console.print(words, style="dim", markup=False)

        yield report


class _Lines:
    """A line for each effect, and while waiting a line every LINE_EVERY_SECONDS."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._reported_at = self._stalled_since = now()
        self._stalled: str | None = None

    def report(self, one: "RunUpdate", words: str | None) -> None:
        now = self._now()
        if words is not None and (not isinstance(one.effect, Wait) or self._is_due(one.effect, now)):
            output.note(words)
            self._reported_at = now

    def _is_due(self, wait: Wait, now: float) -> bool:
        if wait.stalled != self._stalled:
            self._stalled, self._stalled_since = wait.stalled, now
        # A broker that lags briefly is not reported.
        is_new = wait.stalled is not None and self._reported_at < self._stalled_since
        lasts = now - self._stalled_since >= STALLED_SECONDS
        return (is_new and lasts) or now - self._reported_at >= LINE_EVERY_SECONDS


def _restored(values: Mapping[ConfigKey, str | None]) -> str:
    """A throttle of somebody else that stays is no throttle that was removed."""
    theirs = {config: value for config, value in values.items() if value is not None}
    if not theirs:
        return "throttle removed"
    return f"throttle of this run removed, others restored: {'; '.join(throttle_lines(theirs))}"


def _copied(done: Progress) -> str:
    """`3 of 6 copies, 1.2 GiB of 4.5 GiB`."""
    copies = f"{done.copied} of {count_noun(done.copies, 'copy', plural='copies')} in sync"
    return f"{copies}, {human_bytes(done.bytes_copied)} of {human_bytes(done.bytes)}" if done.bytes else copies


def _words(one: "RunUpdate", sizes: CopySizes | None, timer: _Timer) -> str | None:
    done = progress(one.state, one.cluster, sizes or NO_SIZES)
    step = f"step {done.step} of {done.steps}"
    match one.effect:
        case StartMoves(targets, copies):
            return f"{step}: {count_noun(len(targets), 'partition')} started, {count_noun(copies, 'copy', plural='copies')} to make"
        case Wait(None):
            return f"{step}: {done.moving} moving, {_copied(done)}{timer.left(done)}{timer.quiet(one, done)}"
        case Wait(str(why)):
            return f"{step}: waiting: {why}"
        case _:
            return _of_others(one, step)


def _of_others(one: "RunUpdate", step: str) -> str | None:
    match one.effect:
        case CancelMoves(places):
            return f"{count_noun(len(places), 'partition')} on the way cancelled"
        case ElectPreferredLeaders(partitions):
            return f"electing {count_noun(len(partitions), 'preferred leader')}"
        case Record(ThrottleRecorded()):
            return f"{step}: throttled"
        case Record(ForeignThrottleRecorded(own)):
            return f"{step}: changed by others: {'; '.join(throttle_lines(own))}: restored when this run ends"
        case SetConfigs(values) if values.items() <= one.state.own.items():
            return f"{step}: {_restored(values)}"
        case Record(StepCompleted()):
            return f"{step}: done"
        case Record(StepDeferred(number)):
            return f"step {number}: deferred: what is left of it cannot finish now; the steps behind it go on"
        case _:
            return None
