"""Reports the progress of a run on standard error: a bar on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rackspan.cli import output
from rackspan.cli.pages.reassignment_plan import count
from rackspan.plan.execution.effects import CancelMoves, Effect, Record, SetConfigs, StartMoves, Wait
from rackspan.plan.execution.events import StepCompleted, StepDeferred, ThrottleRecorded
from rackspan.plan.execution.progress import progress

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

LINE_EVERY_SECONDS: Final = 30.0
"""Between two lines about the same wait, where there is no terminal."""

STALLED_SECONDS: Final = 5.0
"""How long something keeps a run before it is named."""

Report = Callable[["RunUpdate", str | None], None]


def follow(updates: "Iterator[RunUpdate]") -> "RunUpdate":
    """Report each update as it comes; returns the last one."""
    with _reporter() as report:
        for last in updates:
            report(last, _words(last))
    return last


@contextmanager
def _reporter() -> Iterator[Report]:
    console = output.stderr_console()
    if not console.is_terminal:
        yield _Lines().report
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("looking", total=None)

        def report(one: "RunUpdate", words: str | None) -> None:
            done = progress(one.state, one.cluster)
            bar.update(task, description=f"step {done.step} of {done.steps}", completed=done.copied, total=done.copies)
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


def _words(one: "RunUpdate") -> str | None:
    done = progress(one.state, one.cluster)
    step = f"step {done.step} of {done.steps}"
    match one.effect:
        case StartMoves(targets, copies):
            return f"{step}: {count(len(targets), 'partition')} started, {count(copies, 'copy', 'copies')} to make"
        case Wait(None):
            return f"{step}: {done.moving} moving, {done.copied} of {count(done.copies, 'copy', 'copies')} in sync"
        case Wait(str(why)):
            return f"{step}: waiting: {why}"
        case _:
            return _of_others(one.effect, step)


def _of_others(effect: Effect, step: str) -> str | None:
    match effect:
        case CancelMoves(places):
            return f"{count(len(places), 'partition')} on the way cancelled"
        case Record(ThrottleRecorded()):
            return f"{step}: throttled"
        case SetConfigs(values) if None in values.values():
            return f"{step}: throttle taken away"
        case Record(StepCompleted()):
            return f"{step}: done"
        case Record(StepDeferred(number)):
            return f"step {number}: deferred: what is left of it cannot finish now; the steps behind it go on"
        case _:
            return None
