"""Prometheus metrics over HTTP: `server.py` serves any metrics and health pages, `families.py` makes those of brokers and of a watch.

Begin with server.py. No metric is named or computed here: names and help texts are in acks/metrics.py and in the packages that own the values.
Depends on: acks, model.
"""
