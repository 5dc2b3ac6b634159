"""The embedded cluster: Kafka's brokers and controller in memory, with real racks, for development and tests.

Begin with core/ (every decision, pure); what stands beside it feeds the core from sockets and timers and decides nothing;
embedded.py is the door for users. Never a production broker: nothing is written to a disk, and everything ends with the process.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import late_names

if TYPE_CHECKING:
    from rackspan.cluster.api.embedded import EmbeddedCluster
    from rackspan.cluster.core.settings import ClusterSettings
else:
    __getattr__ = late_names(__name__, {"core.settings": ("ClusterSettings",), "api.embedded": ("EmbeddedCluster",)})

__all__ = ["ClusterSettings", "EmbeddedCluster"]
