"""Words for TLS errors: which certificate was refused and why, from OpenSSL's message or a broker's alert."""

from collections.abc import Iterable
from typing import Final

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
