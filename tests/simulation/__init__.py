"""Rack failures by seed: the embedded cluster's own core on a virtual clock, network and disks, judged from outside.

Begin with world.py (one run), then faults/ (what goes wrong), judges/ (what must hold), kinds.py (under which
assumptions). clients/, groups/ and transactions/ are the traffic; mistakes/ holds bugs that must be caught; measure.py
takes the figures of docs/min-insync-racks.md. Nothing here draws from a global random generator or reads a real clock;
only measure.py reads one, to report how long a run took.
"""
