"""Prometheus metrics over HTTP: `server.py` serves any metrics and health pages, `families.py` makes those of brokers and of a watch,
`rack_losses.py` those of what the loss of each rack would do.

Begin with server.py. No value is computed here. Names and help texts are in acks/metrics.py, in rack_losses.py and in the packages that own the values.
Depends on: acks, audit, model.
"""
