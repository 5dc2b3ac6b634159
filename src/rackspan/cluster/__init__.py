"""The embedded cluster: Kafka's brokers and controller in memory, with racks, for development and tests.

    api ─► host ─► net ─► handlers ─► context ─► core

core/ makes every decision and is pure. host/ runs it in an event loop, net.py serves the sockets, handlers/ has one file per request,
context.py is what handlers may use, zookeeper_era/ has the formats of KIP-36, api/ is for users: begin with api/embedded.py, or with handlers/metadata.py.
Never a production broker: nothing is written to a disk, and everything ends with the process.
Depends on: acks, kafka_bytes, model, placement, prometheus_metrics, sources, wire.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from rackspan.cluster.api.embedded import EmbeddedCluster
    from rackspan.cluster.core.settings import ClusterSettings
else:
    __getattr__ = lazy_getattr(__name__, {"core.settings": ("ClusterSettings",), "api.embedded": ("EmbeddedCluster",)})

__all__ = ["ClusterSettings", "EmbeddedCluster"]
