"""The journal of a run: a file of events, one line each, on the disk before the run goes on.

It is locked while a run has it, and the lock ends with the process however that ends. A last line without its line feed
was being written when the machine lost power: its event did not happen yet, so it is dropped.
"""

import fcntl
import os
from abc import ABC, abstractmethod
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from rackspan.disk import append_line, to_disk
from rackspan.errors import InvalidJournal, UsageError
from rackspan.plan.execution import events as reassignment
from rackspan.plan.execution.events_format import event_line, read_events
from rackspan.restart.execution import events as restart

Event = TypeVar("Event")
State = TypeVar("State")


class EventJournal(ABC, Generic[Event, State]):
    """An open journal of events of one kind. Errors when opened: UsageError, InvalidJournal, each naming the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _locked(path)
        try:
            self._state = self._read()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """A journal without events leaves no file."""
        if self._state is None:
            self.path.unlink(missing_ok=True)
        self._file.close()

    @property
    def begun(self) -> State | None:
        """The state so far; None for a journal without events."""
        return self._state

    @property
    def state(self) -> State:
        if self._state is None:
            raise InvalidJournal(f"{self.path}: nothing has begun in it; name the --journal of the run")
        return self._state

    def append(self, event: Event) -> None:
        """Returns once the event would outlive a power cut. Errors: UsageError, such as for a full disk."""
        following = self._after(self._state, event)
        try:
            append_line(self._file, self._line(event))
            if self._state is None:
                to_disk(self.path.parent)
        except OSError as error:
            why = f"the journal cannot be written: {error.strerror}"
            raise UsageError(f"{self.path}: {why}; make room, and run the same command again to resume") from None
        self._state = following

    @classmethod
    def peek(cls, path: Path) -> State | None:
        """The state in a journal, which is not locked for it. Errors: UsageError, InvalidJournal."""
        if not path.exists():
            return None
        try:
            return cls._state_of(path.read_bytes(), path)
        except OSError as error:
            raise _unusable(path, error) from None

    def _read(self) -> State | None:
        content = self._file.readall()
        state = self._state_of(content, self.path)
        self._file.truncate(content.rfind(b"\n") + 1)
        return state

    @classmethod
    def _state_of(cls, content: bytes, path: Path) -> State | None:
        whole = content[: content.rfind(b"\n") + 1]
        if not whole:
            if content and not content.startswith(b'{"event":"began"'[: len(content)]):
                raise InvalidJournal(f"{path}: not a journal of rackspan; name another --journal")
            return None
        try:
            # Split by line feeds alone: JSON may hold other characters that Python counts as ends of lines.
            return cls._replay(whole.decode().removesuffix("\n").split("\n"))
        except UnicodeDecodeError:
            raise InvalidJournal(f"{path}: not a journal of rackspan; name another --journal") from None
        except InvalidJournal as error:
            raise InvalidJournal(f"{path}: {error}") from None

    @staticmethod
    @abstractmethod
    def _line(event: Event) -> str: ...

    @staticmethod
    @abstractmethod
    def _replay(lines: list[str]) -> State: ...

    @staticmethod
    @abstractmethod
    def _after(state: State | None, event: Event) -> State: ...


class Journal(EventJournal[reassignment.Event, reassignment.RunState]):
    """The journal of a reassignment."""

    _line = staticmethod(event_line)

    @staticmethod
    def _replay(lines: list[str]) -> reassignment.RunState:
        return reassignment.replay(read_events(lines))

    @staticmethod
    def _after(state: reassignment.RunState | None, event: reassignment.Event) -> reassignment.RunState:
        if state is None and isinstance(event, reassignment.RunStarted):
            return reassignment.started(event)
        if state is None:
            raise InvalidJournal("nothing has begun in it; name the --journal of the run")
        return reassignment.after(state, event)


class RestartJournal(EventJournal[restart.RestartEvent, restart.RestartState]):
    """The journal of a rolling restart."""

    _line = staticmethod(restart.event_line)
    _after = staticmethod(restart.after)

    @staticmethod
    def _replay(lines: list[str]) -> restart.RestartState:
        return restart.replay(restart.read_events(lines))


def _locked(path: Path) -> FileIO:
    try:
        file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), "r+")
    except OSError as error:
        raise _unusable(path, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise UsageError(f"{path}: another rackspan is carrying this plan out; wait for it, or end it first") from None
    return file


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path}: cannot be used as a journal: {error.strerror}; name another --journal")
