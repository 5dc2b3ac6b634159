"""The jobs: which frames make which table, and the one place where Spark reads and writes.

Begin with tables.py (a table is a line in JOBS), then build.py.
"""
