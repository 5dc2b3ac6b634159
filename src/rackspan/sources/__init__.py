"""Where snapshots come from: a live cluster, or a file that was taken of one.

Begin with snapshot_file.py, then live_cluster.py. This room talks to the world and decides nothing: what it returns is
a ClusterSnapshot, marked partial where something could not be read.
"""
