"""Judges stored snapshots in tasks that need nothing of each other: Arrow in, the functions of `rackspan.audit`, files of all tables out.

Begin with tasks.py (which snapshots a task judges, planned on the driver), then task.py, which an executor runs: read.py turns
rows of the landing tables into batches of partitions, rows.py the results of `rackspan.audit` into rows of each table, write.py
rows into files. Every table but `drift` is a function of one snapshot, `drift` of two, so no row has to be moved or
joined. No Spark: spark/build.py runs the tasks. newest_losses.py judges each cluster's newest snapshot again, for the metrics of
a `follow`.
"""
