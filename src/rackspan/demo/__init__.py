"""The demo: the main job end to end on real Kafka. A cluster, traffic, a rack lost and restored, Spark, a report.

Begin with story.py. topics.py says what is placed well and badly, traffic.py is what the clients see. It uses verbs as
any user would and decides nothing they do not.
"""

from rackspan.demo.story import Outcome, tell

__all__ = ["Outcome", "tell"]
