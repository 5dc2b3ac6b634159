"""The clusters of a test run: one for each test, or one for each set of arguments, shared and reset between tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rackspan.errors import UsageError

if TYPE_CHECKING:
    from rackspan.cluster import EmbeddedCluster

ClusterArguments: TypeAlias = Mapping[str, Any]
"""Arguments of EmbeddedCluster by name."""

ARGUMENT_NAMES: Final = ("racks", "brokers", "config", "settings", "seed")


def validated(arguments: ClusterArguments) -> ClusterArguments:
    """The same arguments. Errors: UsageError for an argument that EmbeddedCluster does not have."""
    unknown = sorted(arguments.keys() - set(ARGUMENT_NAMES))
    if unknown:
        raise UsageError(f"marker rackspan: {unknown[0]!r} shapes no cluster; there are {', '.join(ARGUMENT_NAMES)}")
    return arguments


class Clusters:
    """The clusters of one test run. `shared` keeps one cluster for each set of arguments."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._clusters: dict[str, EmbeddedCluster] = {}

    @contextmanager
    def for_test(self, arguments: ClusterArguments) -> Iterator[EmbeddedCluster]:
        """A new cluster, or a shared one that is reset after the test."""
        if not self._shared:
            with _cluster(arguments) as cluster:
                yield cluster
            return
        cluster = self._shared_cluster(arguments)
        try:
            yield cluster
            cluster.reset()
        except BaseException:
            # As after a test that closed it: the next test gets a new one.
            self._clusters = {key: kept for key, kept in self._clusters.items() if kept is not cluster}
            cluster.close()
            raise

    def _shared_cluster(self, arguments: ClusterArguments) -> EmbeddedCluster:
        key = repr(sorted(arguments.items()))
        if key not in self._clusters:
            cluster = _cluster(arguments)
            cluster.start()
            self._clusters[key] = cluster
        return self._clusters[key]

    def close(self) -> None:
        while self._clusters:
            self._clusters.popitem()[1].close()


def _cluster(arguments: ClusterArguments) -> EmbeddedCluster:
    # Imported here: the import is most of a cluster's cost, and most test runs use no cluster.
    from rackspan.cluster import EmbeddedCluster

    return EmbeddedCluster(**validated(arguments))
