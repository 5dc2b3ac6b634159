"""Tables of changes: what differs between two snapshots is stored, and readers see every row at each snapshot.

Begin with difference.py, which finds differences and puts rows together again, for snapshots and for verdicts alike. at_each_snapshot.py
and views.py are for readers: the one in Arrow, the other in SQL. Nothing here opens a table or decides what is stored.
"""
