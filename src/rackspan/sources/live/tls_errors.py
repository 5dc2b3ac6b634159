"""Who did not trust whom, in words: what OpenSSL and a broker's alert say of certificates, and what to do about it."""

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
"""By OpenSSL's words, in which the first that fits counts: that verification failed is said of every wrong certificate."""

# A broker without TLS takes the greeting for a length, finds it too long and hangs up.
_CAUSES_AND_REMEDIES["EOF occurred in violation of protocol"] = _CAUSES_AND_REMEDIES["wrong version number"]

CAUSES: Final = {sign: cause for sign, (cause, _) in _CAUSES_AND_REMEDIES.items()}
_REMEDIES: Final = dict(_CAUSES_AND_REMEDIES.values())

_ALERTS: Final = ("certificate", "unknown ca")
_HUNG_UP: Final = ("socket disconnected", "ECONNRESET", "EPIPE", "Connection reset", "Broken pipe")

_WANTED: Final = "wants a client certificate; set ssl.keystore.location in --command-config to a PEM file of a key and its certificates"
_NOT_ACCEPTED: Final = (
    "does not accept the client certificate of --command-config: it has expired, or no authority that the broker trusts "
    "signed it; look with: openssl x509 -noout -dates -issuer -in FILE"
)


def remedy(causes: Iterable[str]) -> str | None:
    """What to do, where one of the causes is a matter of certificates."""
    return next((_REMEDIES[cause] for cause in causes if cause in _REMEDIES), None)


def client_certificate_refused(said: str, presented: bool) -> str | None:
    """What a broker misses in our certificate; `said` is how the connection ended before a word of Kafka was spoken.

    With TLS 1.3 a client is done shaking hands before the broker has looked at its certificate, so that the alert comes
    late, or is lost with the connection.
    """
    alert = "alert" in said and any(words in said for words in _ALERTS)
    lost = "Handshake failed" not in said and any(words in said for words in _HUNG_UP)
    if alert or lost:
        return _NOT_ACCEPTED if presented else _WANTED
    return None
