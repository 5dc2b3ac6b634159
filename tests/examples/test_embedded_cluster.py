"""The examples of the embedded cluster, as somebody runs them: whole processes."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import WITHIN_SECONDS

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(*words: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=WITHIN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_rack_is_lost_in_fifteen_lines(tmp_path: Path) -> None:
    script = EXAMPLES / "embedded_cluster.py"
    assert ran(str(script), folder=tmp_path).splitlines() == [
        "no rack lost, in sync r1, r2, r3:",
        "  acknowledged",
        "r1 lost, in sync r2, r3:",
        "  acknowledged",
        "r2 lost, in sync r3:",
        "  refused",
    ]
    code = [line for line in script.read_text().splitlines() if line and not line.startswith(('"""', "from "))]
    assert len(code) <= 15


def test_the_tests_of_an_application_pass_in_a_pytest_of_its_own(tmp_path: Path) -> None:
    output = ran(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / "test_orders_survive.py"), folder=tmp_path
    )
    assert "3 passed" in output


PLANTED = """
import threading
import confluent_kafka

def never(*_):
    threading.Event().wait()

class Consumer(confluent_kafka.Consumer):
    close = never

class Producer(confluent_kafka.Producer):
    close = never

confluent_kafka.Consumer, confluent_kafka.Producer = Consumer, Producer
"""


def test_the_examples_end_though_no_client_of_theirs_ever_closes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Python imports a module of this name when it starts.
    (tmp_path / "sitecustomize.py").write_text(PLANTED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert ran(str(EXAMPLES / "embedded_cluster.py"), folder=tmp_path).splitlines()[-1] == "  refused"
    test = f"{EXAMPLES / 'test_orders_survive.py'}::test_an_order_survives_the_rack_of_its_leader"
    output = ran("-m", "pytest", "-q", "-p", "no:cacheprovider", test, folder=tmp_path)
    assert "UserWarning: Producer did not end in 10 s and is left behind" in output
    assert "UserWarning: Consumer did not end in 10 s and is left behind" in output
    assert "1 passed" in output
