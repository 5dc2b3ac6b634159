"""The lease by which a gateway acknowledges after it has read the config topic to its end."""

from typing import Final

LEASE_SECONDS: Final = 3.0
"""One length for all gateways of a cluster."""
