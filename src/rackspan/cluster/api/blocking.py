"""Methods of an embedded cluster that run in the cluster's thread, for callers in other threads."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from rackspan.cluster.host.assembly import Assembly

T = TypeVar("T")
P = ParamSpec("P")
ClusterT = TypeVar("ClusterT", bound="ThreadedCluster")


class ThreadedCluster(ABC):
    """A cluster whose event loop runs in a thread of its own."""

    @abstractmethod
    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run it in the cluster's thread and wait for what it returns."""

    @property
    @abstractmethod
    def _running(self) -> Assembly:
        """The running cluster. Errors: UsageError if it is not running."""


def blocking(
    method: Callable[Concatenate[ClusterT, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[ClusterT, P], T]:
    """The method for callers in other threads: it returns when the coroutine has ended in the cluster's."""

    @wraps(method)
    def call(cluster: ClusterT, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return cluster._run(method(cluster, *args, **kwargs))

    return call
