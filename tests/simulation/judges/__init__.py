"""What must hold, judged from outside: observer.py turns what happened into evidence, the other modules hold the rules.

Begin with evidence.py, then rules.py (every acknowledgement, election, truncation and watermark) and survival.py (what the
loss of racks leaves). groups.py and transactions.py hold what clients rely on, reassignments.py what an operator does.
"""
