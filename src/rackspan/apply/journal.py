"""The journal of a run: a file of events, one line each, on the disk before the run goes on.

It is locked while a run has it, and the lock ends with the process however that ends. A last line without its line feed
was being written when the machine lost power: its event did not happen yet, so it is dropped.
"""

import fcntl
import os
from io import FileIO
from pathlib import Path
from types import TracebackType

from rackspan.disk import append_line, to_disk
from rackspan.errors import InvalidJournal, UsageError
from rackspan.plan.execution.events import Event, RunStarted, RunState, after, replay, started
from rackspan.plan.execution.events_format import event_line, read_events


class Journal:
    """An open journal. Errors when opened: UsageError, InvalidJournal, each naming the file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = _locked(path)
        try:
            self._state = _read(self._file, path)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """A journal without events leaves no file."""
        if self._state is None:
            self.path.unlink(missing_ok=True)
        self._file.close()

    @property
    def begun(self) -> RunState | None:
        """The state so far; None for a journal without events."""
        return self._state

    @property
    def state(self) -> RunState:
        if self._state is None:
            raise InvalidJournal(f"{self.path}: nothing has begun in it; name the --journal of the run")
        return self._state

    def append(self, event: Event) -> None:
        """Returns once the event would outlive a power cut."""
        following = (
            started(event) if self._state is None and isinstance(event, RunStarted) else after(self.state, event)
        )
        append_line(self._file, event_line(event))
        if self._state is None:
            to_disk(self.path.parent)
        self._state = following


def peek(path: Path) -> RunState | None:
    """The state in a journal, which is not locked for it. Errors: UsageError, InvalidJournal."""
    if not path.exists():
        return None
    try:
        return _state_of(path.read_bytes(), path)
    except OSError as error:
        raise _unusable(path, error) from None


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


def _read(file: FileIO, path: Path) -> RunState | None:
    content = file.readall()
    state = _state_of(content, path)
    file.truncate(content.rfind(b"\n") + 1)
    return state


def _state_of(content: bytes, path: Path) -> RunState | None:
    whole = content[: content.rfind(b"\n") + 1]
    if not whole:
        if content and not content.startswith(b'{"event":"began"'[: len(content)]):
            raise InvalidJournal(f"{path}: not a journal of rackspan; name another --journal")
        return None
    try:
        # Split by line feeds alone: JSON may hold other characters that Python counts as ends of lines.
        return replay(read_events(whole.decode().removesuffix("\n").split("\n")))
    except UnicodeDecodeError:
        raise InvalidJournal(f"{path}: not a journal of rackspan; name another --journal") from None
    except InvalidJournal as error:
        raise InvalidJournal(f"{path}: {error}") from None


def _unusable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path}: cannot be used as a journal: {error.strerror}; name another --journal")
