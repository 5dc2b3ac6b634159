"""Executing a plan: the next effect, decided from the journal's events and an observation of the cluster.

Begin with decision.py (the next effect), then events.py (what a journal records and the state of a run that it adds up to)
and start.py (whether a run may start). observed.py is what a cluster shows, mismatch.py where it differs from the plan.
Nothing here touches a cluster or a file: `apply` does.
"""
