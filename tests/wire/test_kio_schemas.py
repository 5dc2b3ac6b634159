"""What importing the wire package imports."""

import subprocess
import sys

import pytest


def output_of(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
def test_the_cluster_does_not_import_hypothesis() -> None:
    program = "import rackspan.cluster.api.embedded, sys; from kio.index import load_request_schema; print('hypothesis' in sys.modules)"
    assert output_of(program) == "False"


@pytest.mark.slow
@pytest.mark.parametrize("order", ["hypothesis, rackspan.wire.codec", "rackspan.wire.codec, hypothesis"])
def test_hypothesis_can_be_imported_before_and_after_the_wire_package(order: str) -> None:
    assert output_of(f"import {order}; print(hypothesis.given.__name__)") == "given"
