"""A rolling restart batch by batch: which effect is next, by the journal and the cluster as it is.

Begin with decision.py; events.py is the journal, places.py the in-sync replicas that a batch has to regain. Pure: `apply`
reads the cluster, writes the journal and runs the command.
"""
