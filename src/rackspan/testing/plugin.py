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

from rackspan.errors import RackspanError
from rackspan.testing.clusters import Clusters, Shape
from rackspan.testing.faults import freezing, killing, losing
from rackspan.testing.report import Warnings, state

if TYPE_CHECKING:
    from rackspan.cluster import EmbeddedCluster

FIXTURE: Final = "rackspan_cluster"
OPTION: Final = "--rackspan-cluster-scope"
INI: Final = "rackspan_cluster_scope"
SCOPES: Final = ("function", "session")

MARKERS: Final = (
    "rackspan(racks=3, brokers=3, config={}, settings=None, seed=None): what rackspan_cluster is made of",
    "lose_rack(*racks): rackspan_cluster has lost these racks when the test begins",
    "kill_brokers(*ids): rackspan_cluster has lost these brokers when the test begins",
    "freeze_brokers(*ids): these brokers of rackspan_cluster are frozen when the test begins",
)
_FAULTS: Final[dict[str, Callable[..., Any]]] = {
    "lose_rack": losing,
    "kill_brokers": killing,
    "freeze_brokers": freezing,
}

_WARNINGS: Final = pytest.StashKey[Warnings]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rackspan", "rackspan: an embedded Kafka cluster with racks")
    group.addoption(OPTION, choices=SCOPES, help="a cluster a test, or one for the session, made as new between tests")
    parser.addini(INI, f"what {OPTION} is where it is not given: {' or '.join(SCOPES)}", default=SCOPES[0])


def pytest_configure(config: pytest.Config) -> None:
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    _scope(config)


def _scope(config: pytest.Config) -> str:
    scope = str(config.getoption(OPTION) or config.getini(INI))
    if scope not in SCOPES:
        raise pytest.UsageError(f"{INI} {scope!r}: there are {' and '.join(SCOPES)}")
    return scope


@pytest.fixture(scope="session")
def _rackspan_clusters(pytestconfig: pytest.Config) -> Iterator[Clusters]:
    clusters = Clusters(shared=_scope(pytestconfig) == "session")
    yield clusters
    clusters.close()


@pytest.fixture
def rackspan_cluster(request: pytest.FixtureRequest, _rackspan_clusters: Clusters) -> Iterator[EmbeddedCluster]:
    """A Kafka cluster in memory with real racks: `rackspan_cluster.bootstrap_servers` is for any Kafka client.

    Every fault is undone after the test, and nothing that was written is left.
    """
    with ExitStack() as undone:
        try:
            request.node.stash[_WARNINGS] = undone.enter_context(Warnings())
            cluster = undone.enter_context(_rackspan_clusters.one(_shape(request.node)))
            for name, fault in _FAULTS.items():
                for marker in request.node.iter_markers(name):
                    undone.enter_context(fault(cluster, *marker.args, **marker.kwargs))
        except RackspanError as mistake:
            # A mistake in a marker is one line, not a page of ours.
            pytest.fail(str(mistake), pytrace=False)
        yield cluster


def _shape(item: pytest.Item) -> Shape:
    """The nearest marker goes before those of the class and the module, argument by argument."""
    shape: dict[str, Any] = {}
    for marker in item.iter_markers("rackspan"):
        shape = {**marker.kwargs, **shape}
    return shape


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test tells how its cluster stood: that is gone when somebody reads of the failure."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get(FIXTURE)
    if report.when == "call" and report.failed and cluster is not None:
        report.sections.append(("rackspan cluster", state(cluster)))
        warnings = item.stash[_WARNINGS].lines
        if warnings:
            report.sections.append(("rackspan warnings", "\n".join(warnings)))
    return report
