"""The clusters of a test run: one for each test, or one for each set of arguments, shared and reset between tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rackspan.errors import UsageError

if TYPE_CHECKING:
    from rackspan.cluster import EmbeddedCluster
    from rackspan.practice.faults import PracticeCluster
    from rackspan.practice.kafka import PracticeKafka

ClusterArguments: TypeAlias = Mapping[str, Any]
"""Arguments of EmbeddedCluster by name, and `kafka`: whether the test runs on real Kafka too."""

ARGUMENT_NAMES: Final = ("racks", "brokers", "config", "settings", "seed", "kafka")
ON_BOTH: Final = ("racks", "brokers", "config")
"""Those that real Kafka has too."""


def validated(arguments: ClusterArguments) -> ClusterArguments:
    """The same arguments. Errors: UsageError for an argument that no cluster has."""
    unknown = sorted(arguments.keys() - set(ARGUMENT_NAMES))
    if unknown:
        raise UsageError(f"marker rackspan: {unknown[0]!r} shapes no cluster; there are {', '.join(ARGUMENT_NAMES)}")
    return arguments


class Clusters:
    """The clusters of one test run. `shared` keeps one embedded cluster for each set of arguments.

    `kafka` is a version: then each test has a cluster of real Kafka of its own.
    """

    def __init__(self, *, shared: bool, kafka: str | None = None) -> None:
        self._shared = shared
        self._kafka = kafka
        self._clusters: dict[str, EmbeddedCluster] = {}

    @contextmanager
    def for_test(self, arguments: ClusterArguments) -> Iterator[PracticeCluster]:
        """A new cluster, or a shared one that is reset after the test."""
        arguments = {name: value for name, value in validated(arguments).items() if name != "kafka"}
        if self._kafka is not None:
            with _kafka_cluster(arguments, self._kafka) as kafka:
                yield kafka
            return
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

    return EmbeddedCluster(**arguments)


def _kafka_cluster(arguments: ClusterArguments, version: str) -> PracticeKafka:
    from rackspan.practice.kafka import AS_EMBEDDED, PracticeKafka

    for name in arguments:
        if name not in ON_BOTH:
            raise UsageError(
                f"marker rackspan: Apache Kafka has no {name}; the marker of a test that needs it says kafka=False too"
            )
    # AS_EMBEDDED: the same test finds the same defaults on both.
    config = {**AS_EMBEDDED, **arguments.get("config", {})}
    return PracticeKafka(**{**arguments, "config": config}, version=version)
