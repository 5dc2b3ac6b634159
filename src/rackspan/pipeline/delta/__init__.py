"""Delta tables without Spark: delta-rs opens, reads and commits; on a local disk every commit survives a power cut.

Begin with table.py (open, read), then append.py (write). local_disk.py flushes what was written, and removes log entries that
a power cut has torn. Only tables that delta-rs writes are appended to here; Spark writes the derived ones.
"""
