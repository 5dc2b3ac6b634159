"""Where snapshots come from: a live cluster, or a file that was taken of one.

Begin with live_cluster.py, then snapshot_file.py. This room talks to the world and decides nothing: what it returns is
a ClusterSnapshot, marked partial where something could not be read. It never writes to a cluster.
"""
