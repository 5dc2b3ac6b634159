"""Runs one child process that ends when its owner ends. Run as a script; imports nothing of rackspan.

    owner ── pipe ──► keeper ── fork ──► Java

The owner writes one byte for a signal (the table below), and gets a line once SIGSTOP is in effect; when the pipe closes, because the owner closed it or died, the
child is killed. The keeper prints the child's process id as its first line and ends with the child's exit status. It
signals only its own child, so a process id that is reused by another process is never signalled.

Usage: python keeper.py LOG-FILE COMMAND [ARGUMENT...]
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable

SIGNALS = {b"t": signal.SIGTERM, b"k": signal.SIGKILL, b"s": signal.SIGSTOP, b"c": signal.SIGCONT}

POLL_SECONDS = 0.2
"""How often the child is polled, and the owner, whose pipe may be held open by another forked process."""

KILL_SECONDS = 5.0
"""A process that waits for a device ends only after that, whatever signal it got."""

_PR_SET_PDEATHSIG = 1


def main() -> int:
    log_file, command = sys.argv[1], sys.argv[2:]
    owner = os.getppid()
    with open(log_file, "ab") as log:
        # This process has one thread, so the thread that PDEATHSIG is tied to ends only with the process.
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent()
        )
    print(child.pid, flush=True)
    try:
        return _keep(child, owner)
    finally:
        child.kill()
        _status(child)


def _keep(child: subprocess.Popen[bytes], owner: int) -> int:
    while child.poll() is None and os.getppid() == owner:
        readable, _, _ = select.select([0], [], [], POLL_SECONDS)
        if readable:
            code = os.read(0, 1)
            if not code:
                break
            child.send_signal(SIGNALS[code])
            if SIGNALS[code] is signal.SIGSTOP:
                _wait_until_stopped(child.pid)
                print("stopped", flush=True)
    child.kill()
    return _status(child)


def _status(child: subprocess.Popen[bytes]) -> int:
    """The exit status of a killed child, as a shell reports it: 128 + n for a death by signal n."""
    try:
        status = child.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        # Standard error is the log.
        print(f"process {child.pid} did not end in {KILL_SECONDS:g} s although it was killed", file=sys.stderr)
        status = -signal.SIGKILL
    return status if status >= 0 else 128 - status


def _wait_until_stopped(pid: int) -> None:
    """Return when every thread has stopped, or the child has ended: on a busy machine that takes a tenth of a second."""
    if hasattr(os, "waitid"):  # Not on macOS before Python 3.13.
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)


def die_with_parent() -> Callable[[], None] | None:
    """A preexec_fn by which Linux kills the child when the thread that started it ends, if only by SIGKILL; None elsewhere."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return set_death_signal


if __name__ == "__main__":
    # The owner handles Ctrl-C; it closes the pipe when it is done.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main())
