"""Makes an SSLContext from PEM files or PEM text, as Kafka's clients accept them."""

import os
import re
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan.errors import UsageError

TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
TLS_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}

TLS_1_3_SUITES: Final = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
"""OpenSSL has all three wherever it has TLS 1.3, and Python 3.11 has no way to choose among them."""


@dataclass(frozen=True, slots=True)
class TlsLimits:
    """The versions of TLS that a client may use, and OpenSSL's names of the cipher suites of TLS 1.2, None for its own choice."""

    versions: tuple[str, ...] = (TLS_1_2, TLS_1_3)
    ciphers: tuple[str, ...] | None = None


def tls_limits(
    *, protocol: str = TLS_1_3, enabled_protocols: Sequence[str] = (), cipher_suites: Sequence[str] = ()
) -> TlsLimits:
    """The limits that `ssl.protocol`, `ssl.enabled.protocols` and `ssl.cipher.suites` set together, as in Java.

    Cipher suites have their IANA names. Errors: UsageError where they leave no version of TLS, or a part of TLS 1.3's suites.
    """
    ciphers = tuple(openssl_cipher(suite) for suite in cipher_suites if suite not in TLS_1_3_SUITES)
    newest = [suite for suite in TLS_1_3_SUITES if suite in cipher_suites]
    versions = [version for version in TLS_VERSIONS if not enabled_protocols or version in enabled_protocols]
    if protocol == TLS_1_2 and not newest:
        versions = [version for version in versions if version == TLS_1_2]
    if cipher_suites:
        versions = [version for version in versions if (newest if version == TLS_1_3 else ciphers)]
    if not versions:
        raise UsageError(
            "ssl.protocol, ssl.enabled.protocols and ssl.cipher.suites in --command-config leave no version of TLS to use; "
            f"allow {TLS_1_2} or {TLS_1_3}"
        )
    if TLS_1_3 in versions and 0 < len(newest) < len(TLS_1_3_SUITES):
        missing = ", ".join(suite for suite in TLS_1_3_SUITES if suite not in newest)
        raise UsageError(
            f"ssl.cipher.suites in --command-config: {TLS_1_3} is used with all of its suites or not at all; add {missing}, or "
            f"set ssl.enabled.protocols={TLS_1_2} and leave out {', '.join(newest)}"
        )
    return TlsLimits(tuple(versions), ciphers if TLS_1_2 in versions and cipher_suites else None)


_SUITE: Final = re.compile(
    r"TLS_(?:(?P<exchange>ECDHE_ECDSA|ECDHE_RSA|DHE_RSA)|RSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?:(?P<gcm>GCM)|CBC)_(?P<hash>SHA(?:256|384)?)|(?P<chacha>CHACHA20_POLY1305)_SHA256)"
)


def openssl_cipher(suite: str) -> str:
    """OpenSSL's name of a cipher suite of TLS 1.2. Errors: UsageError for one that it lacks, or that no client should use."""
    match = _SUITE.fullmatch(suite)
    if match:
        exchange = [match["exchange"].replace("_", "-")] if match["exchange"] else []
        cipher = match["chacha"] and match["chacha"].replace("_", "-")
        parts = [cipher] if cipher else [f"AES{match['bits']}", *filter(None, [match["gcm"]]), match["hash"]]
        name = "-".join([*exchange, *parts])
        if name in _known_ciphers():
            return name
    raise UsageError(f"{suite!r} is a cipher suite that rackspan does not use; leave it out, or leave out the line")


def _known_ciphers() -> set[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL")
    return {cipher["name"] for cipher in context.get_ciphers()}


def tls_context(
    *,
    ca_file: str | None = None,
    ca_pem: str | None = None,
    key_file: str | None = None,
    key_pem: str | None = None,
    chain_pem: str | None = None,
    key_password: str | None = None,
    check_hostname: bool = True,
    limits: TlsLimits | None = None,
) -> ssl.SSLContext:
    """The SSLContext of a Kafka client: trusted authorities (by default the system's) and, if given, a client certificate.

    Errors: UsageError for a file or a text that is no valid PEM of its kind.
    """
    with _naming("ssl.truststore", ca_file, "it holds no PEM certificate"):
        context = _trusting_the_system() if ca_file is None and ca_pem is None else _trusting(_text(ca_file, ca_pem))
    context.check_hostname = check_hostname
    _limit(context, limits or TlsLimits())
    with _naming("ssl.keystore", key_file, _NO_IDENTITY):
        if key_file is not None and is_plain(key_file):
            context.load_cert_chain(key_file, password=_password(key_password))
        elif key_file is not None or key_pem is not None:
            _load_in_place(context, f"{_text(key_file, key_pem)}\n{pem_lines(chain_pem or '')}", key_password)
    return context


_BLOCK: Final = re.compile(r"-----BEGIN\s+([^-]+?)\s*-----(.*?)-----END\s+\1\s*-----", re.S)
_LINE_LENGTH: Final = 64


def pem_lines(text: str) -> str:
    """PEM with its base64 in lines, as OpenSSL needs it. White space between the markers has no meaning, as in Java.

    Text without a PEM block stays as it is, and so does an old key with headers in its block.
    """
    blocks = [_lined(match) for match in _BLOCK.finditer(text)]
    return "\n".join(blocks) if blocks else text


def _lined(match: re.Match[str]) -> str:
    label, body = match[1], match[2]
    if ":" in body:
        return match[0]
    base64 = "".join(body.split())
    lines = (base64[start : start + _LINE_LENGTH] for start in range(0, len(base64), _LINE_LENGTH))
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"])


def is_plain(file: str) -> bool:
    """Whether OpenSSL can read a PEM file as it is; a file that is not there is left to it as well."""
    try:
        text = Path(file).read_text(encoding="latin-1")
    except OSError:
        return True
    return pem_lines(text) == text or all(_lined(match) in text for match in _BLOCK.finditer(text))


def pem_file(file: str) -> str:
    """The PEM of a file, its base64 in lines. Errors: OSError."""
    return pem_lines(Path(file).read_text(encoding="latin-1"))


def _text(file: str | None, text: str | None) -> str:
    return pem_lines(text or "") if file is None else pem_file(file)


_NO_IDENTITY: Final = "it holds no PEM private key and its certificate, or ssl.key.password is wrong"


@contextmanager
def _naming(store: str, file: str | None, otherwise: str) -> Iterator[None]:
    """Raise UsageError for a store that cannot be used; `otherwise` replaces OpenSSL messages that explain nothing."""
    try:
        yield
    except (OSError, ValueError) as error:
        # A wrong PEM is an ssl.SSLError, which is an OSError too.
        named = "the PEM given in place" if file is None else file
        raise UsageError(
            f"{store} in --command-config: {named} cannot be used: {_reason(error, otherwise)}; name a file that can"
        ) from None


def _trusting_the_system() -> ssl.SSLContext:
    return ssl.create_default_context(ssl.Purpose.SERVER_AUTH)


def _trusting(ca_pem: str) -> ssl.SSLContext:
    """A truststore replaces the system's authorities, and each of its certificates is trusted, self-signed or not, as in Java."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=ca_pem.encode("ascii", "replace").decode())
    return context


def _limit(context: ssl.SSLContext, limits: TlsLimits) -> None:
    versions = [TLS_VERSIONS[version] for version in limits.versions]
    context.minimum_version, context.maximum_version = max(context.minimum_version, versions[0]), versions[-1]
    if limits.ciphers is not None:
        context.set_ciphers(":".join(limits.ciphers))


def _load_in_place(context: ssl.SSLContext, pem: str, password: str | None) -> None:
    """Load PEM text through a file, since Python's ssl reads only files: readable by us alone, and removed at once."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{pem}\n")
        context.load_cert_chain(path, password=_password(password))
    finally:
        Path(path).unlink()


def _password(given: str | None) -> Callable[[], str]:
    """OpenSSL calls it for an encrypted key. Without a callback it would prompt on the terminal and wait without end."""

    def password() -> str:
        if given is None:
            raise ValueError("the private key is encrypted, and ssl.key.password is missing")
        return given

    return password


def _reason(error: Exception, otherwise: str) -> str:
    if isinstance(error, ssl.SSLError):
        mismatch = error.reason == "KEY_VALUES_MISMATCH"
        return "its private key does not belong to its first certificate" if mismatch else otherwise
    return getattr(error, "strerror", None) or str(error)
