"""Faults as `with` blocks: a fault begins with the block and is undone at its end, also after an exception.

    with losing(rackspan_cluster, "r1"):
        producer.produce("orders", b"written without r1")

At the end the brokers may lead again. `cluster.wait_for_isr()` waits until the ISRs are complete. Real Kafka can lose, kill and
pause, and refuses the others by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    # For type checking only: a test run without a cluster must not import it.
    from rackspan.cluster import EmbeddedCluster
    from rackspan.practice.faults import PracticeCluster

BrokerOrRack = TypeVar("BrokerOrRack", int, "str | None")


@contextmanager
def losing(cluster: PracticeCluster, *racks: str | None) -> Iterator[None]:
    """The racks' brokers refuse connections and are fenced; None is the rack of brokers without one."""
    with _each(racks, cluster.lose_rack, cluster.restore_rack):
        yield


@contextmanager
def isolating(cluster: EmbeddedCluster, *racks: str | None) -> Iterator[None]:
    """The racks' brokers reach each other and their clients, no other broker and not the controller."""
    with _each(racks, cluster.isolate_rack, cluster.rejoin_rack):
        yield


@contextmanager
def killing(cluster: PracticeCluster, *brokers: int, power_loss: bool = False) -> Iterator[None]:
    """The brokers' processes are killed. After a power loss their logs may be incomplete (KIP-966)."""
    with _each(brokers, lambda broker: cluster.kill(broker, power_loss=power_loss), cluster.restart):
        yield


@contextmanager
def pausing(cluster: PracticeCluster, *brokers: int) -> Iterator[None]:
    """The brokers accept connections and send no response."""
    with _each(brokers, cluster.pause, cluster.resume):
        yield


@contextmanager
def fencing(cluster: EmbeddedCluster, *brokers: int) -> Iterator[None]:
    """The controller receives nothing from the brokers."""
    with _each(brokers, cluster.fence, cluster.unfence):
        yield


@contextmanager
def lagging(cluster: EmbeddedCluster, *brokers: int, milliseconds: int) -> Iterator[None]:
    """Messages of other brokers reach these brokers this much later."""
    with _each(brokers, lambda broker: cluster.lag(broker, milliseconds), lambda broker: cluster.lag(broker, 0)):
        yield


@contextmanager
def cutting(cluster: EmbeddedCluster, one: int, other: int) -> Iterator[None]:
    """No message passes between two brokers."""
    with _each((one,), lambda broker: cluster.cut(broker, other), lambda broker: cluster.heal(broker, other)):
        yield


@contextmanager
def _each(
    targets: tuple[BrokerOrRack, ...], begin: Callable[[BrokerOrRack], None], end: Callable[[BrokerOrRack], None]
) -> Iterator[None]:
    begun: list[BrokerOrRack] = []
    try:
        for target in targets:
            begin(target)
            begun.append(target)
        yield
    finally:
        for target in reversed(begun):
            end(target)
