"""rackspan: rack awareness for Apache Kafka.

Begin with api.py: the whole system on one page. Nothing is imported before it is used.
"""

__version__ = "0.2.0.dev0"
