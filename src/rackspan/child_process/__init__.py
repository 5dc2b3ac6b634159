"""Runs other programs, none of which outlives this process. Begin with kept_process.py; keeper.py is its other side.

Depends on no other package.
"""
