"""Rack disasters by seed: the embedded cluster's own core on a virtual clock, network and disks, judged from outside.

Begin with world.py (one run), then faults.py (what goes wrong), judges/ (what must hold), kinds.py (under which
assumptions). planted.py holds mistakes that must be caught, measure.py takes the figures of docs/min-insync-racks.md.
Nothing here draws from a global die or reads a real clock; measure.py alone looks at one, to say how long it took.
"""
