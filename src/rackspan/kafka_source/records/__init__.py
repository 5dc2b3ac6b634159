"""Record batches of a fetch response become NumPy columns, and these Spark's rows as Arrow batches. Begin with columns.py.

Nothing here reads from a broker.
"""
