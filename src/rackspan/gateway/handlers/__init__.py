"""Requests that are read whole: Produce against the acknowledgement guard, admin requests with configs and placement."""
