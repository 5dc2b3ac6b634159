"""Where snapshots come from: a running cluster, or a file somebody wrote.

Begin with live_cluster.py; interview.py is what is asked and what happens when an answer does not come, and assembly.py
how answers become a snapshot. client_keys.py is the table behind --command-config. Reads only; never writes to a cluster.
"""
