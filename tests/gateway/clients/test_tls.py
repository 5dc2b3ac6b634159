"""The TLS contexts of clients when the config is read again: all of them or none, and no principal that was taken out."""

from dataclasses import replace
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.gateway.clients.tls import ClientTls, server_context
from rackspan.gateway.config import GatewayConfig, PrincipalTable
from tests.certificates import Identity, authority

COMMAND = {"security.protocol": "SSL"}


@pytest.fixture
def identity(tmp_path: Path) -> Identity:
    return authority(tmp_path, "gateways").identity("gateway")


def config_of(identity: Identity, *principals: str) -> GatewayConfig:
    files = identity.certificate, identity.key
    shown = {name: PrincipalTable(*files) for name in principals}
    return GatewayConfig(bootstrap_servers="127.0.0.1:1", tls_certificate=files[0], tls_key=files[1], principals=shown)


def test_a_principal_that_was_taken_out_is_not_known_any_more(identity: Identity) -> None:
    loaded = ClientTls(config_of(identity, "alice", "bob"), COMMAND)
    loaded.load(config_of(identity, "bob").tls, COMMAND)
    assert set(loaded._principals) == {"bob"}
    assert [loaded.is_removed(principal) for principal in ("alice", "bob", None)] == [True, False, False]


def test_contexts_are_kept_if_one_certificate_cannot_be_used(identity: Identity, tmp_path: Path) -> None:
    config = config_of(identity, "alice")
    tls = config.tls
    assert tls is not None
    loaded = ClientTls(config, COMMAND)
    before = loaded._listeners, loaded._principals
    missing = tmp_path / "missing.pem"
    with pytest.raises(UsageError, match="bob"):
        loaded.load(replace(tls, principals={**tls.principals, "bob": (missing, missing)}), COMMAND)
    assert (loaded._listeners, loaded._principals) == before


@pytest.mark.parametrize(
    ("name", "reason"),
    [("missing.pem", "No such file"), ("no-certificate.pem", r"\[SSL\]"), ("null\0.pem", "embedded null byte")],
)
def test_a_certificate_that_cannot_be_used_is_named(identity: Identity, tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "no-certificate.pem").write_text("text")
    tls = config_of(identity).tls
    assert tls is not None
    with pytest.raises(UsageError, match=rf"listen\.tls: .*{name}.* cannot be used: {reason}"):
        server_context(replace(tls, certificate=tmp_path / name))
