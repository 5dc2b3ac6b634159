"""A pytest plug-in for users' tests: a Kafka cluster with racks for each test, embedded or, by one switch, real.

Begin with plugin.py (fixture, markers, options), then faults.py (faults as `with` blocks) and reads.py (reads in the reader's rack).
Nothing here imports a cluster before a test uses the fixture: a test run without Kafka pays nothing.
Depends on: cluster, kafka_process, model, practice, sources.
"""

from typing import TYPE_CHECKING

from rackspan.lazy_exports import lazy_getattr
from rackspan.testing.clients import closing
from rackspan.testing.faults import cutting, fencing, isolating, killing, lagging, losing, pausing
from rackspan.testing.reads import READS_IN_RACK, assert_reads_in_rack

if TYPE_CHECKING:
    from rackspan.practice.faults import PracticeCluster
else:
    __getattr__ = lazy_getattr("rackspan.practice", {"faults": ("PracticeCluster",)}, __name__)

__all__ = [
    "READS_IN_RACK",
    "PracticeCluster",
    "assert_reads_in_rack",
    "closing",
    "cutting",
    "fencing",
    "isolating",
    "killing",
    "lagging",
    "losing",
    "pausing",
]
