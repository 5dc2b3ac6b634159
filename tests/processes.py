"""Whether processes that a test started are gone. By their ids, never by name."""

import os
import sys
import time
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether the process runs. A zombie does not: it only waits for a parent to read its status."""
    try:
        os.kill(pid, 0)
        return sys.platform != "linux" or "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False


def gone_within(seconds: float, *pids: int) -> bool:
    until = time.monotonic() + seconds
    while any(map(alive, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(alive, pids))
