"""A child process that cannot outlive this process: the owner's side of keeper.py."""

import logging
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.child_process import keeper
from rackspan.ends import not_ended
from rackspan.interrupts import shortened

log = logging.getLogger(__name__)

_WAIT_SECONDS: Final = 10.0
"""For a keeper that kills its child, which takes no time; a bound in case it hangs."""

_LINE_SECONDS: Final = 60.0
"""For a line of the keeper: it starts Python and its child, or suspends every thread of the child."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a command: its exit status, None if it had to be killed, and its output."""

    status: int | None
    output: str


def run_kept(command: list[str], seconds: float) -> ProcessExit:
    """Run a command to its end, or kill it after `seconds`; like subprocess.run, but it never outlives this process."""
    with tempfile.TemporaryDirectory(prefix="rackspan-run-") as folder:
        kept = KeptProcess(command, Path(folder) / "output")
        try:
            status = kept.wait(seconds)
        finally:
            kept.kill()
        return ProcessExit(status, kept.log_file.read_text(errors="replace"))


class KeptProcess:
    """One running command. Its output goes to `log_file`; `pid` is the command's own, not the keeper's."""

    def __init__(self, command: list[str], log_file: Path) -> None:
        self.log_file = log_file
        # A session of its own: the terminal's Ctrl-C reaches this process alone, which then stops its children.
        # -I and -S: the keeper imports only the standard library and starts in a fifth of the time.
        with log_file.open("ab") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", keeper.__file__, str(log_file), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.pid = self._keeper.pid
        self.pid = self._first_line()

    @property
    def exit_status(self) -> int | None:
        """None while it runs; 128 + n after a death by signal n."""
        return self._keeper.poll()

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._signal(b"t")

    def freeze(self) -> None:
        """Send SIGSTOP, and return once every thread has stopped: its sockets stay open and get no response. Errors: TimeoutError."""
        if self._signal(b"s"):
            self._line("was not suspended")

    def thaw(self) -> None:
        """Send SIGCONT."""
        self._signal(b"c")

    def wait(self, seconds: float) -> int | None:
        """Its exit status, or None if it still runs after `seconds`."""
        try:
            return self._keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self) -> None:
        """Send SIGKILL and wait. Safe to call twice."""
        for pipe in (self._keeper.stdin, self._keeper.stdout):
            if pipe is not None:
                pipe.close()
        seconds = shortened(_WAIT_SECONDS)
        if self.wait(seconds) is None:
            log.warning(not_ended(f"process {self.pid}, which was killed,", seconds))

    def _signal(self, code: bytes) -> bool:
        """Whether the command still ran."""
        pipe = self._keeper.stdin
        if pipe is None or pipe.closed or self.exit_status is not None:
            return False
        try:
            pipe.write(code)
            pipe.flush()
        except BrokenPipeError:
            return False  # It has just ended, which is the purpose of most signals.
        return True

    def _first_line(self) -> int:
        try:
            line = self._line("did not start")
        except BaseException:
            self.kill()
            raise
        if not line:
            self.kill()
            raise OSError(f"{self.log_file.name}: the command did not start; see {self.log_file}")
        return int(line)

    def _line(self, failure: str) -> bytes:
        """The keeper's next line, empty if it has ended. Errors: TimeoutError with what the lack of the line means."""
        pipe = self._keeper.stdout
        assert pipe is not None  # noqa: S101 - Popen was given stdout=PIPE; this is for the type checker
        if not select.select([pipe], [], [], _LINE_SECONDS)[0]:
            raise TimeoutError(f"process {self.pid} {failure} in {_LINE_SECONDS:g} s; see {self.log_file}")
        return pipe.readline()
