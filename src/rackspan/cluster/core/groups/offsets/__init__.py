"""Committed offsets of a group: commit, fetch, delete.

Begin with commits.py (the requests). Offsets never expire here.
"""
