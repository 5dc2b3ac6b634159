"""Faults as `with` blocks: what goes wrong at the beginning is mended at the end, however the block is left.

    with losing(rackspan_cluster, "r1"):
        producer.produce("orders", b"written without r1")

At the end brokers are back in office; whether the ISR is whole again is `cluster.wait_for_isr()`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # Only for the types: a test run that uses no cluster must not pay for its import.
    from rackspan.cluster import EmbeddedCluster

Named = TypeVar("Named", int, "str | None")


@contextmanager
def losing(cluster: EmbeddedCluster, *racks: str | None) -> Iterator[None]:
    """The racks' brokers refuse connections and are fenced; None is the rack of brokers without one."""
    with _each(racks, cluster.lose_rack, cluster.restore_rack):
        yield


@contextmanager
def isolating(cluster: EmbeddedCluster, *racks: str | None) -> Iterator[None]:
    """The racks' brokers reach each other and their clients, nobody else."""
    with _each(racks, cluster.isolate_rack, cluster.rejoin_rack):
        yield


@contextmanager
def killing(cluster: EmbeddedCluster, *brokers: int, power_loss: bool = False) -> Iterator[None]:
    """The brokers' processes are ended; after a power loss their logs are not trusted to be whole (KIP-966)."""
    with _each(brokers, lambda broker: cluster.kill(broker, power_loss=power_loss), cluster.restart):
        yield


@contextmanager
def freezing(cluster: EmbeddedCluster, *brokers: int) -> Iterator[None]:
    """The brokers accept connections and say nothing."""
    with _each(brokers, cluster.freeze, cluster.thaw):
        yield


@contextmanager
def fencing(cluster: EmbeddedCluster, *brokers: int) -> Iterator[None]:
    """The controller hears nothing of the brokers."""
    with _each(brokers, cluster.fence, cluster.unfence):
        yield


@contextmanager
def lagging(cluster: EmbeddedCluster, *brokers: int, milliseconds: int) -> Iterator[None]:
    """The brokers hear the others this much later."""
    with _each(brokers, lambda broker: cluster.lag(broker, milliseconds), lambda broker: cluster.lag(broker, 0)):
        yield


@contextmanager
def cutting(cluster: EmbeddedCluster, one: int, other: int) -> Iterator[None]:
    """Nothing passes between two brokers."""
    with _each((one,), lambda broker: cluster.cut(broker, other), lambda broker: cluster.heal(broker, other)):
        yield


@contextmanager
def _each(named: tuple[Named, ...], begin: Callable[[Named], None], end: Callable[[Named], None]) -> Iterator[None]:
    begun: list[Named] = []
    try:
        for one in named:
            begin(one)
            begun.append(one)
        yield
    finally:
        for one in reversed(begun):
            end(one)
