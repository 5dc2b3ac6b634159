"""The public suites of clients fail in nothing that has no reason (tools/client_suites.py)."""

import os
import shutil
from pathlib import Path

import pytest

from tools.client_suites import GATEWAYS, SuiteResult, run_suite

pytestmark = pytest.mark.soak

SOURCES = {
    "aiokafka": os.environ.get("RACKSPAN_AIOKAFKA_SOURCE"),
    "librdkafka": os.environ.get("RACKSPAN_LIBRDKAFKA_SOURCE"),
}


@pytest.mark.parametrize(("suite", "least"), [("kgo", 400), ("aiokafka", 900), ("librdkafka", 20)])
def test_nothing_fails_in_a_clients_own_suite_but_for_a_reason(suite: str, least: int, tmp_path: Path) -> None:
    source = SOURCES.get(suite)
    if suite == "kgo" and shutil.which("go") is None:
        pytest.skip("kgo needs Go, which is not installed here")
    if suite != "kgo" and source is None:
        pytest.skip(f"RACKSPAN_{suite.upper()}_SOURCE names no copy of {suite}'s repository")
    result = run_suite(suite, Path(source) if source else None, tmp_path)
    assert result.unexpected == ()
    assert result.passed >= least


@pytest.mark.timeout(3_600)
@pytest.mark.skipif(shutil.which("go") is None, reason="kgo needs Go, which is not installed here")
def test_kgos_suite_is_the_same_through_a_gateway_in_every_mode(tmp_path: Path) -> None:
    results = {}
    for gateway in GATEWAYS:
        (folder := tmp_path / gateway).mkdir()
        result = run_suite("kgo", None, folder, gateway=gateway)
        assert result.unexpected == ()
        results[gateway] = (result.passed, result.skipped)
    assert len({*results.values()}) == 1
    assert results["off"][0] >= 400


def test_a_failure_without_a_reason_is_unexpected() -> None:
    assert SuiteResult(1, 0, ("do_test_CreateAcls", "TestProduce")).unexpected == ("TestProduce",)
