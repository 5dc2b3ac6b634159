"""Processes of the Spark tests leave nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import eventually

TEST_PROCESS = """
from tests.kafka_source.standalone import group
with group(["sleep", "600"], {}) as process:
    print(process.pid, flush=True)
    input()
"""


def is_running(pid: int) -> bool:
    try:
        # That of a process which has ended and was not waited for yet is empty.
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux ends a process with its parent")
def test_a_test_that_is_killed_leaves_no_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", TEST_PROCESS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as test:
        assert test.stdout is not None
        pid = int(test.stdout.readline())
        assert Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")
        test.kill()
    eventually(lambda: not is_running(pid), "the process has ended")
