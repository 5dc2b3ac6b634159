"""Why requests about ACLs are refused: brokers of this cluster have no authorizer."""

from typing import Final

from rackspan.cluster.core.errors import KafkaError

NO_AUTHORIZER: Final = (KafkaError.SECURITY_DISABLED, "No Authorizer is configured.")
"""Error and message of Kafka without an authorizer, to requests that change ACLs."""
