"""The lease on the config topic: for how long a gateway may acknowledge by the values that it has replayed."""

from typing import Final

LEASE_SECONDS: Final = 3.0
"""One length for all gateways of a cluster: who raises a value waits until every lease has ended that began before it."""
