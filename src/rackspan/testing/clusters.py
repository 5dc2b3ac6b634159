"""The clusters of a test run: one a test, or one a shape, shared and made as new between tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rackspan.errors import MissingRequirement, UsageError

if TYPE_CHECKING:
    from rackspan.cluster import EmbeddedCluster

Shape: TypeAlias = Mapping[str, Any]
"""What a cluster is made of: EmbeddedCluster's own arguments."""

SHAPED_BY: Final = ("racks", "brokers", "config", "settings", "seed")


def checked(shape: Shape) -> Shape:
    """Errors: UsageError for an argument that shapes nothing."""
    unknown = sorted(shape.keys() - set(SHAPED_BY))
    if unknown:
        raise UsageError(f"marker rackspan: {unknown[0]!r} shapes no cluster; there are {', '.join(SHAPED_BY)}")
    return shape


class Clusters:
    """Of one test run. `shared` keeps a cluster of each shape that was asked for."""

    def __init__(self, *, shared: bool) -> None:
        self._shared = shared
        self._kept: dict[str, EmbeddedCluster] = {}

    @contextmanager
    def one(self, shape: Shape) -> Iterator[EmbeddedCluster]:
        """A cluster as new, for one test."""
        if not self._shared:
            with _made(shape) as own:
                yield own
            return
        cluster = self._of(shape)
        yield cluster
        cluster.reset()

    def _of(self, shape: Shape) -> EmbeddedCluster:
        key = repr(sorted(shape.items()))
        if key not in self._kept:
            cluster = _made(shape)
            cluster.start()
            self._kept[key] = cluster
        return self._kept[key]

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()


def _made(shape: Shape) -> EmbeddedCluster:
    if find_spec("kio") is None:
        raise MissingRequirement(
            "the embedded cluster speaks by kio, which is missing; pip install 'rackspan[cluster]'"
        )
    # Here, and not above: this import is most of what a cluster costs, and most test runs need none.
    from rackspan.cluster import EmbeddedCluster

    return EmbeddedCluster(**checked(shape))
