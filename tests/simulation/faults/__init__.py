"""Faults of a world. drawing.py draws the list from the seed; injection.py applies each one and undoes it."""
