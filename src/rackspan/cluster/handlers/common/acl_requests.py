"""Why requests about ACLs are refused: brokers of this cluster have no authorizer."""

from typing import Final

from rackspan.kafka_bytes.error_codes import ErrorCode

NO_AUTHORIZER: Final = (ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
"""Error and message of Kafka without an authorizer, to requests that change ACLs."""
