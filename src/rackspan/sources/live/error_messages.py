"""Words for the errors of a cluster connection: which server, why, and what to do next."""

import re
from collections.abc import Mapping, Sequence

from kafka.errors import (
    AuthorizationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable, SourceError
from rackspan.sources.live.tls_errors import CAUSES, client_certificate_refused, remedy

_LOGIN_KEYS = "sasl.mechanism and sasl.jaas.config in --command-config"


class LoginRefused(Exception):
    """A broker closed the connection before or during the login."""


_AUTHENTICATION = (LoginRefused, SaslAuthenticationFailedError, UnsupportedSaslMechanismError)
TIMEOUTS = (KafkaTimeoutError, RequestTimedOutError, NodeNotReadyError)

_CAUSES = CAUSES | {
    "ECONNREFUSED": "connection refused",
    "DNS Resolution failure": "no such host name",
    "'idna' codec": "no such host name",
    "EHOSTUNREACH": "no route to this host",
    "ENETUNREACH": "no route to this network",
    "ETIMEDOUT": "no response from this host",
    "Connection timed out": "no response from this host",
    "Invalid frame length": "it does not speak Kafka's protocol",
    "Correlation IDs do not match": "it does not speak Kafka's protocol",
    "UnknownError": "it does not speak Kafka's protocol",
    "socket disconnected": "it closed the connection at the first request",
    "does not support the 'MetadataRequest'": "it is a controller, not a broker",
}
"""By a part of kafka-python's message: the cause in plain words."""


_UNCONNECTED = frozenset(
    {"connection refused", "no such host name", "no route to this host", "no route to this network"}
)


def no_server_responded(errors: Mapping[str, Exception], seconds: float) -> SourceError:
    """The error for a cluster whose bootstrap servers all failed. `errors` are by address."""
    refused = {address: error for address, error in errors.items() if isinstance(error, _AUTHENTICATION)}
    if refused:
        address, error = next(iter(refused.items()))
        text = (
            str(error)
            if isinstance(error, LoginRefused)
            else f"refused the login: {message_of(error)}; check {_LOGIN_KEYS}"
        )
        return ClusterUnauthorized(f"{address} {text}")
    reasons = "; ".join(f"{address}: {cause(error, seconds)}" for address, error in errors.items())
    untrusted = remedy(cause(error) for error in errors.values())
    if untrusted is not None:
        return ClusterUnreachable(f"no broker can be spoken to: {reasons}; {untrusted}")
    return ClusterUnreachable(f"no broker responded: {reasons}; {_advice(errors)}")


def certificate_refused(error: Exception, presented: bool) -> Exception:
    """The error behind a connection that a server closed over TLS before ApiVersions. `presented`: whether we sent a certificate."""
    text = client_certificate_refused(message_of(error), presented) if isinstance(error, KafkaConnectionError) else None
    return error if text is None else LoginRefused(text)


def login_refused(error: Exception, mechanism: str | None) -> Exception:
    """The error behind a connection that a server closed after ApiVersions.

    The server's own message may be lost with the connection, so the same refusal gets the same words in both cases.
    """
    if not isinstance(error, KafkaConnectionError | SaslAuthenticationFailedError | UnsupportedSaslMechanismError):
        return error
    if mechanism is None:
        return LoginRefused(f"requires a login; set security.protocol, {_LOGIN_KEYS}")
    if mechanism == "OAUTHBEARER":
        return LoginRefused(
            "refused the login: its token is not accepted, or mechanism OAUTHBEARER is wrong; check sasl.mechanism and the "
            "token endpoint or file in --command-config"
        )
    return LoginRefused(f"refused the login: user, password or mechanism {mechanism} is wrong; check {_LOGIN_KEYS}")


def no_response(bootstrap_servers: str, seconds: float) -> str:
    return f"no broker responded: {bootstrap_servers}: nothing within {seconds:g} s, not even a name look-up; check the name service"


def cause(error: Exception, seconds: float | None = None) -> str:
    """Why one server failed, in plain words."""
    if isinstance(error, TIMEOUTS):
        return "no response in time" if seconds is None else f"no response within {seconds:g} s"
    message = message_of(error)
    return next((words for part, words in _CAUSES.items() if part in message), None) or message


def request_failed(what: str, right: str, error: Exception) -> SourceError:
    """The error for a request that the caller cannot do without."""
    if isinstance(error, AuthorizationError):
        return ClusterUnauthorized(f"{what} may not be read: this user needs {right}; grant it with kafka-acls.sh")
    if isinstance(error, (*TIMEOUTS, KafkaConnectionError)):
        return ClusterUnreachable(f"{what} was not received: {cause(error)}; raise --timeout, or name another broker")
    return ClusterRequestFailed(f"{what} could not be read: {message_of(error)}; try again")


def needs(right: str) -> str:
    """The reason in a note, for a missing right."""
    return f"this user needs {right}"


def listed(names: Sequence[object], most: int = 3) -> str:
    """The first few of many."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def message_of(error: Exception) -> str:
    """The error's message without kafka-python's prefix; its class name where it has none."""
    text = str(error.args[0]) if error.args and error.args[0] is not None else ""
    text = text.replace("KafkaConnectionError: ", "").strip() or type(error).__name__
    # OpenSSL adds its own codes: "[SSL: CODE] words (_ssl.c:1006)".
    text = re.sub(r"\[SSL[^\]]*\] | \(_ssl\.c:\d+\)", "", text)
    return text if isinstance(error, KafkaError) else f"{type(error).__name__}: {text}"


def _advice(errors: Mapping[str, Exception]) -> str:
    if all(cause(error) in _UNCONNECTED for error in errors.values()):
        return "check --bootstrap-server, and that the cluster is up"
    return "is it Kafka's port, and does it require TLS or a login (--command-config)?"
