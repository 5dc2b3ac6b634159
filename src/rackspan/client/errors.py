"""Words for the errors of a cluster: which server or request, why, and what to do next."""

import errno
import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rackspan.client.connection import OtherProtocol, UnsupportedVersion
from rackspan.client.login import Login, LoginRefused
from rackspan.errors import (
    ClusterRequestFailed,
    ClusterUnauthorized,
    ClusterUnreachable,
    MalformedRequest,
    SourceError,
    WireError,
)
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.wire.apis import ApiKey

_CAUSES_AND_REMEDIES: Final = {
    "certificate has expired": ("its certificate has expired", "have it renewed on the broker"),
    "certificate is not yet valid": ("its certificate is not valid yet", "compare the clocks of both machines"),
    "certificate is not valid for": (
        "its certificate is for another host name",
        "name the broker in --bootstrap-server as its certificate does "
        "(ssl.endpoint.identification.algorithm= in --command-config leaves names unchecked)",
    ),
    "certificate verify failed": (
        "its certificate is signed by no authority that is trusted here",
        "set ssl.truststore.location in --command-config to a PEM file of the one that signed it",
    ),
    "wrong version number": (
        "it does not speak TLS",
        "set security.protocol in --command-config to PLAINTEXT or SASL_PLAINTEXT, or name its TLS port",
    ),
}
"""By a part of OpenSSL's message; the first match counts, since "verify failed" is in the message of every one."""

# A broker without TLS reads the handshake as a length, which is too large, and closes the connection.
_CAUSES_AND_REMEDIES["EOF occurred in violation of protocol"] = _CAUSES_AND_REMEDIES["wrong version number"]

CAUSES: Final = {part: cause for part, (cause, _) in _CAUSES_AND_REMEDIES.items()}
_REMEDIES: Final = dict(_CAUSES_AND_REMEDIES.values())

_ALERTS: Final = ("certificate", "unknown ca")

_REQUIRED: Final = "requires a client certificate; set ssl.keystore.location in --command-config to a PEM file of a key and its certificates"
_NOT_ACCEPTED: Final = (
    "does not accept the client certificate of --command-config: it has expired, or no authority that the broker trusts "
    "signed it; look with: openssl x509 -noout -dates -issuer -in FILE"
)


def remedy(causes: Iterable[str]) -> str | None:
    """What to do, where one of the causes concerns TLS; None otherwise."""
    return next((_REMEDIES[cause] for cause in causes if cause in _REMEDIES), None)


def client_certificate_refused(message: str, lost: bool, presented: bool) -> str | None:
    """Why a broker refused our certificate, or None. `message` and `lost`: how the connection ended before any Kafka response.

    With TLS 1.3 the client's handshake ends before the broker has checked its certificate, so that the alert comes late,
    or is lost with the connection.
    """
    alert = "alert" in message and any(words in message for words in _ALERTS)
    if alert or lost:
        return _NOT_ACCEPTED if presented else _REQUIRED
    return None


_LOGIN_KEYS: Final = "sasl.mechanism and sasl.jaas.config in --command-config"


class ErrorResponse(ClusterRequestFailed):
    """A response with an error code. The message is the broker's; the name of the code if it sent none."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or code.name)
        self.code = code


class NameLookupTimedOut(TimeoutError):
    """The address of a host was not found in time."""


FAILURES: Final = (OSError, SourceError, WireError)
"""What a request may raise: no connection, no response in time, an error response, a login refused, no common version."""

CONNECTION_FAILURES: Final = (OSError, ClusterUnreachable, WireError)
"""No connection, or no response that can be read: another attempt may succeed."""

_REFUSALS: Final = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
    }
)

_UNCONNECTED: Final = {
    errno.ECONNREFUSED: "connection refused",
    errno.EHOSTUNREACH: "no route to this host",
    errno.ENETUNREACH: "no route to this network",
    errno.ETIMEDOUT: "no response from this host",
}
_NO_SUCH_HOST: Final = "no such host name"
_OTHER_PROTOCOL: Final = "it does not speak Kafka's protocol"
_NO_LOOKUP: Final = "not even a name look-up; check the name service"


def raise_for(response: Any) -> None:
    """Raise ErrorResponse for a response, or a part of one, that has an error code."""
    if response.error_code != ErrorCode.NONE:
        raise error_response(response)


def error_response(part: Any) -> ErrorResponse:
    """The error of a response, or of a part of one."""
    return ErrorResponse(error_code(part.error_code), getattr(part, "error_message", None))


def is_refusal(error: Exception) -> bool:
    """Whether the user lacks a right."""
    return isinstance(error, ErrorResponse) and error.code in _REFUSALS


def no_server_responded(errors: Mapping[str, Exception], seconds: float) -> SourceError:
    """The error for a cluster whose bootstrap servers all failed. `errors` are by address."""
    for address, error in errors.items():
        if isinstance(error, LoginRefused):
            return ClusterUnauthorized(f"{address} {error}")
    reasons = "; ".join(f"{address}: {cause(error, seconds)}" for address, error in errors.items())
    untrusted = remedy(cause(error) for error in errors.values())
    if untrusted is not None:
        return ClusterUnreachable(f"no broker can be spoken to: {reasons}; {untrusted}")
    advice = "" if reasons.endswith(_NO_LOOKUP) else f"; {_advice(errors)}"
    return ClusterUnreachable(f"no broker responded: {reasons}{advice}")


def certificate_refused(error: Exception, login: Login) -> Exception:
    """The error behind a connection that a server closed over TLS before ApiVersions."""
    text = client_certificate_refused(message_of(error), isinstance(error, ConnectionError), login.presents_certificate)
    return error if text is None else LoginRefused(text)


def login_refused(mechanism: str | None) -> LoginRefused:
    """The error behind a connection that a server closed, or a login that it refused, after ApiVersions.

    The server's own message may be lost with the connection, so the same refusal gets the same words in both cases.
    """
    if mechanism is None:
        return LoginRefused(f"requires a login; set security.protocol, {_LOGIN_KEYS}")
    if mechanism == "OAUTHBEARER":
        return LoginRefused(
            "refused the login: its token is not accepted, or mechanism OAUTHBEARER is wrong; check sasl.mechanism and the "
            "token endpoint or file in --command-config"
        )
    return LoginRefused(f"refused the login: user, password or mechanism {mechanism} is wrong; check {_LOGIN_KEYS}")


def cause(error: Exception, seconds: float | None = None) -> str:
    """Why one server failed, in plain words."""
    message = message_of(error)
    if isinstance(error, NameLookupTimedOut) and seconds is not None:
        return f"nothing within {seconds:g} s, {_NO_LOOKUP}"
    for number, words in _UNCONNECTED.items():
        # asyncio joins the errors of several addresses of one host into one message.
        if getattr(error, "errno", None) == number or f"[Errno {number}]" in message:
            return words
    if _is_timeout(error):
        return "no response in time" if seconds is None else f"no response within {seconds:g} s"
    if isinstance(error, socket.gaierror | UnicodeError):
        return _NO_SUCH_HOST
    if isinstance(error, OtherProtocol | MalformedRequest):
        return _OTHER_PROTOCOL
    if isinstance(error, UnsupportedVersion) and error.api_key is ApiKey.METADATA:
        return "it is a controller, not a broker"
    if isinstance(error, ConnectionError):
        return "it closed the connection at the first request"
    return next((words for part, words in CAUSES.items() if part in message), message)


def request_failed(what: str, right: str, error: Exception) -> SourceError:
    """The error for a request that the caller cannot do without."""
    if is_refusal(error):
        return ClusterUnauthorized(f"{what} may not be read: this user needs {right}; grant it with kafka-acls.sh")
    if _leaves_open(error):
        return ClusterUnreachable(f"{what} was not received: {cause(error)}; raise --timeout, or name another broker")
    return ClusterRequestFailed(f"{what} could not be read: {message_of(error)}; try again")


def change_failed(what: str, right: str, error: Exception) -> SourceError:
    """The error for a change; `what` says what was not done. Only a missing response leaves that open."""
    if is_refusal(error):
        return ClusterUnauthorized(f"{what}: this user needs {right}; grant it with kafka-acls.sh")
    if _leaves_open(error):
        return ClusterUnreachable(f"{what}, as far as is known: {cause(error)}; check the cluster before trying again")
    return ClusterRequestFailed(f"{what}: {message_of(error)}")


def needs(right: str) -> str:
    """The reason in a note, for a missing right."""
    return f"this user needs {right}"


def listed(names: Sequence[object], most: int = 3) -> str:
    """The first few of many."""
    shown = ", ".join(str(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def message_of(error: Exception) -> str:
    """The error's message on one line; its class name if it has none."""
    # OpenSSL adds its own codes: "[SSL: CODE] words (_ssl.c:1006)".
    text = re.sub(r"\[SSL[^\]]*\] | \(_ssl\.c:\d+\)", "", " ".join(str(error).split()))
    return text or type(error).__name__


def _is_timeout(error: Exception) -> bool:
    timed_out = isinstance(error, ErrorResponse) and error.code is ErrorCode.REQUEST_TIMED_OUT
    return timed_out or isinstance(error, TimeoutError)


def _leaves_open(error: Exception) -> bool:
    return isinstance(error, OSError | MalformedRequest | ClusterUnreachable) or _is_timeout(error)


def _advice(errors: Mapping[str, Exception]) -> str:
    if all(cause(error) in (*_UNCONNECTED.values(), _NO_SUCH_HOST) for error in errors.values()):
        return "check --bootstrap-server, and that the cluster is up"
    return "is it Kafka's port, and does it require TLS or a login (--command-config)?"
