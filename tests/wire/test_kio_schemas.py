"""What importing the wire brings along."""

import subprocess
import sys

import pytest


def said_by(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


def test_the_cluster_does_not_import_hypothesis_which_kio_would() -> None:
    program = "import rackspan.cluster.api.embedded, sys; from kio.index import load_request_schema; print('hypothesis' in sys.modules)"
    assert said_by(program) == "False"


@pytest.mark.parametrize("order", ["hypothesis, rackspan.wire.codec", "rackspan.wire.codec, hypothesis"])
def test_whoever_imports_hypothesis_has_it_in_either_order(order: str) -> None:
    assert said_by(f"import {order}; print(hypothesis.given.__name__)") == "given"
