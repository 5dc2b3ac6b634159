"""Reads one range of offsets inside a task. Begin with progress.py, which decides; task.py does what it decides.

No record is skipped without failOnDataLoss=false.
"""
