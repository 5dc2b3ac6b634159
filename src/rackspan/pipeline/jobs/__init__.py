"""The Spark jobs: which frames make which table, and the only place where Spark writes.

Begin with tables.py (a table is a line in JOBS), then build.py.
"""
