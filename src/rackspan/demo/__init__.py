"""The demo: the main job end to end. A cluster, traffic, racks lost and restored, Spark, a report.

Begin with story.py. stage.py is where it plays (embedded, or real Kafka), topics.py says what is placed well and badly,
traffic.py is what the clients see, racks_lost.py is the act that needs min.insync.racks. It uses verbs as
any user would and decides nothing they do not.
"""

from rackspan.demo.story import Outcome, tell

__all__ = ["Outcome", "tell"]
