"""A price file that has no price of replication."""

from rackspan.traffic.price_file import price_file

PRICES = price_file(
    """{"currency": "USD", "prices": [
        {"paths": ["produce", "consume", "follower-fetch", "restore"], "sides": ["source", "destination"], "amount": 0.01, "unit": "GB", "source": "x", "read_on": null},
        {"paths": ["replicate"], "sides": ["source", "destination"], "amount": null, "unit": "GB", "source": "x", "read_on": null}]}"""
)
