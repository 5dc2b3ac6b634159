"""For other people's tests: a pytest plug-in that gives each test an embedded Kafka cluster with real racks.

Begin with plugin.py (fixture, markers, options), then faults.py (what goes wrong inside a `with`, and is mended after it).
Nothing here imports the cluster before a test asks for one: a test run that needs no Kafka pays nothing.
"""

from rackspan.testing.faults import cutting, fencing, freezing, isolating, killing, lagging, losing

__all__ = ["cutting", "fencing", "freezing", "isolating", "killing", "lagging", "losing"]
