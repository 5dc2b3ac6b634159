"""What a failing test leaves behind."""

import signal
import subprocess
import sys

import pytest

from tests.processes import running
from tests.waiting import WITHIN_SECONDS


def test_a_process_is_killed_where_its_block_fails() -> None:
    started: list[subprocess.Popen[str]] = []

    def fail() -> None:
        with running([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            started.append(process)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert started[0].returncode == -signal.SIGKILL


HANGING = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.processes import running

def test_that_hangs():
    with running([sys.executable, "-c", "import time; time.sleep(600)"], stdout=-1) as process:
        process.stdout.readline()

def test_after_it():
    pass
"""


@pytest.mark.slow
def test_a_test_that_hangs_fails_and_the_others_run(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    pytester.makepyfile(HANGING.format(root=str(request.config.rootpath)))
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--timeout=1", timeout=WITHIN_SECONDS)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*Timeout (>1.0s)*"])
