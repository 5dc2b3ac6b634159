"""The tables of hours: traffic, its bill, groups and seconds in states, made an hour of a cluster at a time.

Begin with work.py (the hours that a run has to make, and the readings that they need), then task.py, which an executor runs: read.py
turns landing rows into readings, rows.py what passed between two of them into rows of each hour, durability.py stored states into seconds. An hour that
anything new concerns is made again as a whole, so late and doubled work needs no rule of its own. again.py compares hours made again with their rows,
dropped.py has those that rest on snapshots which are dropped. No Spark: spark/build.py runs the tasks.
"""
