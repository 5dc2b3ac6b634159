"""Ways to run a world: replay.py one seed, shrink.py with fewer faults, exhaustive.py every order of events to a depth."""
