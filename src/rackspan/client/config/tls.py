"""Makes an SSLContext from PEM files or PEM text, as Kafka's clients accept them."""

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rackspan.errors import UsageError


def tls_context(
    *,
    ca_file: str | None = None,
    ca_pem: str | None = None,
    key_file: str | None = None,
    key_pem: str | None = None,
    chain_pem: str | None = None,
    key_password: str | None = None,
    check_hostname: bool = True,
) -> ssl.SSLContext:
    """The SSLContext of a Kafka client: trusted authorities (by default the system's) and, if given, a client certificate.

    Errors: UsageError for a file or a text that is no valid PEM of its kind.
    """
    with _naming("ssl.truststore", ca_file, "it holds no PEM certificate"):
        context = _trusting(ca_file, ca_pem) if ca_file is not None or ca_pem is not None else _trusting_the_system()
    context.check_hostname = check_hostname
    with _naming("ssl.keystore", key_file, _NO_IDENTITY):
        if key_file is not None:
            context.load_cert_chain(key_file, password=_password(key_password))
        elif key_pem is not None:
            _load_in_place(context, key_pem, chain_pem or "", key_password)
    return context


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


def _trusting(ca_file: str | None, ca_pem: str | None) -> ssl.SSLContext:
    """A truststore replaces the system's authorities, as it does in Java."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cafile=ca_file, cadata=ca_pem)
    return context


def _load_in_place(context: ssl.SSLContext, key_pem: str, chain_pem: str, password: str | None) -> None:
    """Load PEM text through a file, since Python's ssl reads only files: readable by us alone, and removed at once."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key_pem}\n{chain_pem}\n")
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
