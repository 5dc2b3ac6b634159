"""rackspan: rack awareness for Apache Kafka.

Begin with api.py: the whole system on one page.
"""

__version__ = "0.2.0.dev0"
