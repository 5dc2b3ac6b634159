"""Rack disasters by seed: the embedded cluster's own core on a virtual clock, network and disks, judged from outside.

Begin with world.py (one run), then faults.py (what goes wrong), judges/ (what must hold), kinds.py (under which
assumptions). planted.py holds mistakes that must be caught. Nothing here draws from a global die or reads a real clock.
"""
