"""Committed offsets of a group: commit, fetch, delete.

Begin with committed_offsets.py (the state), then commits.py (the requests). Offsets never expire here.
"""
