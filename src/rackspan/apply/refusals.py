"""Errors for changes that were not made: which thing, Kafka's reason, what to do next."""

from kafka.errors import AuthorizationError, KafkaConnectionError

from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable, SourceError
from rackspan.sources.live.error_messages import TIMEOUTS, cause, message_of


def change_failed(what: str, right: str, error: Exception) -> SourceError:
    """The error for a change; `what` says what was not done. Only a silence or a broken connection leaves that open."""
    if isinstance(error, AuthorizationError):
        return ClusterUnauthorized(f"{what}: this user needs {right}; grant it with kafka-acls.sh")
    if isinstance(error, (*TIMEOUTS, KafkaConnectionError, OSError)):
        return ClusterUnreachable(f"{what}, as far as is known: {cause(error)}; check the cluster before trying again")
    return ClusterRequestFailed(f"{what}: {message_of(error)}")
