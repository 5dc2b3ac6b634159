"""The pytest plug-in: fixture `rackspan_cluster`, its markers and options. pytest finds it where rackspan is installed.

@pytest.mark.rackspan(racks=3, brokers=6, config={"min.insync.racks": "2"})
@pytest.mark.lose_rack("r1")
def test_orders_are_taken_without_r1(rackspan_cluster): ...
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

from rackspan.errors import RackspanError, UsageError
from rackspan.testing.clusters import ClusterArguments, Clusters
from rackspan.testing.faults import killing, losing, pausing
from rackspan.testing.report import ClusterWarnings, status_lines

if TYPE_CHECKING:
    from rackspan.practice.faults import PracticeCluster

FIXTURE: Final = "rackspan_cluster"
OPTION: Final = "--rackspan-cluster-scope"
INI: Final = "rackspan_cluster_scope"
SCOPES: Final = ("function", "session")
KAFKA_OPTION: Final = "--rackspan-kafka"
KAFKA_INI: Final = "rackspan_kafka"

_EXAMPLES: Final = {
    "lose_rack": 'lose_rack("r1")',
    "kill_brokers": "kill_brokers(1)",
    "pause_brokers": "pause_brokers(1)",
}

MARKERS: Final = (
    "rackspan(racks=3, brokers=3, config={}, settings=None, seed=None, kafka=True): the arguments of rackspan_cluster, and whether it may be real Kafka",
    "lose_rack(*racks): these racks of rackspan_cluster are lost when the test begins",
    "kill_brokers(*ids): these brokers of rackspan_cluster are killed when the test begins",
    "pause_brokers(*ids): these brokers of rackspan_cluster are paused when the test begins",
)
_FAULTS: Final[dict[str, Callable[..., Any]]] = {
    "lose_rack": losing,
    "kill_brokers": killing,
    "pause_brokers": pausing,
}

_WARNINGS: Final = pytest.StashKey[ClusterWarnings]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rackspan", "rackspan: a Kafka cluster with racks")
    group.addoption(
        OPTION, choices=SCOPES, help="one cluster for each test, or one for the session that is reset between tests"
    )
    parser.addini(INI, f"the default of {OPTION}: {' or '.join(SCOPES)}", default=SCOPES[0])
    group.addoption(
        KAFKA_OPTION,
        metavar="VERSION",
        help="run the tests on real Apache Kafka of this version, a cluster for each; needs Java",
    )
    parser.addini(KAFKA_INI, f"the default of {KAFKA_OPTION}", default="")


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    _scope(config)
    if _kafka(config) is not None and config.getoption(OPTION) == "session":
        raise pytest.UsageError(f"{KAFKA_OPTION}: each test has a cluster of its own; leave out {OPTION} session")


def pytest_report_header(config: pytest.Config) -> str | None:
    version = _kafka(config)
    return None if version is None else f"rackspan: Apache Kafka {version}, a cluster for each test"


def _kafka(config: pytest.Config) -> str | None:
    """The version of real Kafka that tests run on; None for the embedded cluster."""
    version = config.getoption(KAFKA_OPTION) or config.getini(KAFKA_INI)
    if not version:
        return None
    from rackspan.kafka_process import KafkaVersion

    try:
        return str(KafkaVersion.parse(str(version)))
    except RackspanError as error:
        raise pytest.UsageError(f"{KAFKA_OPTION} {version}: {error}") from None


def _scope(config: pytest.Config) -> str:
    scope = str(config.getoption(OPTION) or config.getini(INI))
    if scope not in SCOPES:
        raise pytest.UsageError(f"{INI} {scope!r}: there are {' and '.join(SCOPES)}")
    return scope


@pytest.fixture(scope="session")
def _rackspan_clusters(pytestconfig: pytest.Config) -> Iterator[Clusters]:
    clusters = Clusters(shared=_scope(pytestconfig) == "session", kafka=_kafka(pytestconfig))
    yield clusters
    clusters.close()


@pytest.fixture
def rackspan_cluster(request: pytest.FixtureRequest, _rackspan_clusters: Clusters) -> Iterator[PracticeCluster]:
    """A Kafka cluster with racks: `rackspan_cluster.bootstrap_servers` is for any Kafka client.

    In memory, or real Kafka by --rackspan-kafka. After the test every fault is undone and all records are deleted.
    """
    with ExitStack() as stack:
        try:
            request.node.stash[_WARNINGS] = stack.enter_context(ClusterWarnings())
            arguments = _arguments(request.node)
            if _kafka(request.config) is not None and arguments.get("kafka") is False:
                pytest.skip(f"its marker rackspan says kafka=False: not run on Apache Kafka by {KAFKA_OPTION}")
            cluster = stack.enter_context(_rackspan_clusters.for_test(arguments))
            for name, fault in _FAULTS.items():
                for marker in request.node.iter_markers(name):
                    if not marker.args or marker.kwargs:
                        raise UsageError(f"marker {name}: there are no targets in it; write {_EXAMPLES[name]}")
                    stack.enter_context(fault(cluster, *marker.args))
        except RackspanError as error:
            # An error in a marker is reported in one line, without a traceback and without the error behind it.
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        yield cluster


def _arguments(item: pytest.Item) -> ClusterArguments:
    """A test's own marker overrides those of its class and its module, argument by argument."""
    arguments: dict[str, Any] = {}
    for marker in item.iter_markers("rackspan"):
        if marker.args:
            raise UsageError(f"marker rackspan: {marker.args[0]!r} has no name; write racks=… or brokers=…")
        arguments = {**marker.kwargs, **arguments}
    return arguments


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test whose fault has no cluster. Adds the status and the warnings of the cluster to the report of a failed test."""
    report = yield
    unused = [marker.name for marker in item.own_markers if marker.name in _FAULTS and _WARNINGS not in item.stash]
    if report.when == "call" and report.passed and unused:
        # It passed without the fault that it was to be tested with.
        report.outcome = "failed"
        report.longrepr = f"marker {unused[0]}: the test does not use {FIXTURE}, so that it had no effect"
    cluster = getattr(item, "funcargs", {}).get(FIXTURE)
    if report.when == "call" and report.failed and cluster is not None:
        report.sections.append(("rackspan cluster", status_lines(cluster)))
        warnings = item.stash[_WARNINGS].lines
        if warnings:
            report.sections.append(("rackspan warnings", "\n".join(warnings)))
    return report
