"""The TLS contexts of clients when the config is read again: all of them or none, and no principal that was taken out."""

from dataclasses import replace
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.gateway.clients.tls import ClientTls
from rackspan.gateway.config import GatewayConfig, TlsConfig
from tests.certificates import Identity, authority

COMMAND = {"security.protocol": "SSL"}


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return authority(tmp_path, "gateways").identity("gateway")


def test_a_principal_that_was_taken_out_is_not_known_any_more(identity: Identity) -> None:
    files = identity.certificate, identity.key
    tls = TlsConfig(*files, principals={"alice": files, "bob": files})
    loaded = ClientTls(GatewayConfig("127.0.0.1:1", tls=tls), COMMAND)
    loaded.load(replace(tls, principals={"bob": files}), COMMAND)
    assert set(loaded._principals) == {"bob"}


def test_contexts_are_kept_if_one_certificate_cannot_be_used(identity: Identity, tmp_path: Path) -> None:
    files = identity.certificate, identity.key
    tls = TlsConfig(*files, principals={"alice": files})
    loaded = ClientTls(GatewayConfig("127.0.0.1:1", tls=tls), COMMAND)
    before = loaded._listeners, loaded._principals
    missing = tmp_path / "missing.pem"
    with pytest.raises(UsageError, match="bob"):
        loaded.load(replace(tls, principals={"alice": files, "bob": (missing, missing)}), COMMAND)
    assert (loaded._listeners, loaded._principals) == before
