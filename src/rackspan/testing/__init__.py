"""A pytest plug-in for users' tests: an embedded Kafka cluster with racks for each test.

Begin with plugin.py (fixture, markers, options), then faults.py (faults as `with` blocks).
Nothing here imports the cluster before a test uses the fixture: a test run without Kafka pays nothing.
Depends on: cluster.
"""

from rackspan.testing.faults import cutting, fencing, freezing, isolating, killing, lagging, losing

__all__ = ["cutting", "fencing", "freezing", "isolating", "killing", "lagging", "losing"]
