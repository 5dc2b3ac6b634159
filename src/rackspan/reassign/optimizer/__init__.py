"""The steps of a reassignment plan: repair, then balance, then preferred leaders.

Begin with repair.py (the fewest moves into the constraints) and bounds.py (why fewer do not suffice). balance.py and
leaders.py follow it when requested. All of them solve min-cost flows over groups of equal partitions, which
placement_flow.py builds, row_groups.py groups and load_costs.py prices. Nothing here reads a snapshot: problem.py does.
"""
