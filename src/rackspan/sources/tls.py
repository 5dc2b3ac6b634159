"""TLS from PEM, in files or in place, as Kafka's clients take it."""

import os
import ssl
import tempfile
from pathlib import Path

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
    """What a client of Kafka needs: whom to trust (by default the system's authorities) and who we are, if anyone.

    Errors: UsageError for a file or a text that is not what it should be.
    """
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = check_hostname
    try:
        if ca_file is not None or ca_pem is not None:
            context = _trusting(ca_file, ca_pem, check_hostname)
        if key_file is not None:
            context.load_cert_chain(key_file, password=key_password)
        elif key_pem is not None:
            _load_in_place(context, key_pem, chain_pem or "", key_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        # A wrong PEM is an ssl.SSLError, which is an OSError too.
        named = key_file or ca_file or "the PEM given in place"
        raise UsageError(
            f"TLS in --command-config: {named} cannot be used ({_reason(error)}); check the file, its PEM and its password"
        ) from None
    return context


def _trusting(ca_file: str | None, ca_pem: str | None, check_hostname: bool) -> ssl.SSLContext:
    """A truststore replaces the system's authorities, as it does in Java."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = check_hostname
    context.load_verify_locations(cafile=ca_file, cadata=ca_pem)
    return context


def _load_in_place(context: ssl.SSLContext, key_pem: str, chain_pem: str, password: str | None) -> None:
    """Python's ssl reads keys from files only: one that others cannot read, and that is gone at once."""
    descriptor, path = tempfile.mkstemp(suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{key_pem}\n{chain_pem}\n")
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or getattr(error, "reason", None) or str(error)
