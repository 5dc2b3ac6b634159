"""Tokens by client credentials and from a file; every failure is one line without a secret."""

from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.request import Request

import pytest
from kafka.net.sasl.oauth import SaslMechanismOAuth

from rackspan.client.config.oauthbearer import BearerTokens, _from_response
from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, UsageError
from tests.raw_server import CUT_SHORT, NOT_HTTP, responding
from tests.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with TokenServer("admin").running() as running:
        yield running


def test_a_token_is_requested_once_and_again_when_most_of_its_life_has_passed(server: TokenServer) -> None:
    now = 0.0
    tokens = BearerTokens(server.url, CLIENT_ID, CLIENT_SECRET, "kafka", now=lambda: now)
    assert tokens.token() == tokens.token()
    assert server.requests == ["grant_type=client_credentials&scope=kafka"]
    now = 2_879.0
    tokens.token()
    assert len(server.requests) == 1
    now = 2_881.0
    tokens.token()
    assert len(server.requests) == 2


def test_a_wrong_client_is_refused_in_one_line(server: TokenServer) -> None:
    with pytest.raises(ClusterUnauthorized) as refused:
        BearerTokens(server.url, CLIENT_ID, "topsecret").token()
    assert str(refused.value) == (
        f"the token endpoint {server.url} refused the client: HTTP 401 Unauthorized; check the client id, the client "
        "secret and the scope in --command-config"
    )
    assert "topsecret" not in repr(BearerTokens(server.url, CLIENT_ID, "topsecret"))


def test_an_endpoint_that_is_not_there_is_named(server: TokenServer) -> None:
    with pytest.raises(
        ClusterUnreachable, match=r"the token endpoint http://127\.0\.0\.1:1/ cannot be used: .*refused"
    ):
        BearerTokens("http://127.0.0.1:1/", "a", "b").token()


def test_a_token_is_requested_as_by_java_and_waited_for_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[tuple[Request, float]] = []

    def urlopen(request: Request, timeout: float) -> BytesIO:
        requests.append((request, timeout))
        return BytesIO(b'{"access_token": "t"}')

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    assert BearerTokens("http://id/token", "me", "s").token() == "t"
    [(request, timeout)] = requests
    assert (request.full_url, request.get_method(), request.data) == (
        "http://id/token",
        "POST",
        b"grant_type=client_credentials",
    )
    assert dict(request.header_items()) == {"Authorization": "Basic bWU6cw==", "Accept": "application/json"}
    assert timeout == 10.0


def test_a_file_is_read_for_every_connection(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = BearerTokens(file.as_uri())
    file.write_text("first\n")
    assert tokens.token() == "first"
    file.write_text("second")
    assert tokens.token() == "second"


def test_a_file_without_a_token_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(UsageError, match="the token cannot be read: No such file"):
        BearerTokens(file.as_uri()).token()
    file.write_text("\n")
    with pytest.raises(UsageError, match="it holds no token"):
        BearerTokens(file.as_uri()).token()


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[]", b"{}", b'{"access_token": "t", "expires_in": "soon"}'])
def test_a_response_without_a_token_is_named(content: bytes) -> None:
    with pytest.raises(
        ClusterUnauthorized, match=r"the token endpoint http://id responded without an access_token; check sasl\.oauth"
    ):
        _from_response("http://id", content)


def test_a_token_without_a_lifetime_is_used_once() -> None:
    assert _from_response("http://id", b'{"access_token": "t", "expires_in": 60}') == ("t", 60.0)
    assert _from_response("http://id", b'{"access_token": "t"}') == ("t", 0.0)


def test_a_token_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="the token cannot be read: it is not text"):
        BearerTokens(file.as_uri()).token()


def test_a_url_that_cannot_be_requested_is_named() -> None:
    with pytest.raises(ClusterUnreachable, match="the token endpoint http:// cannot be used: "):
        BearerTokens("http://", "a", "b").token()


@pytest.mark.parametrize("content", [NOT_HTTP, CUT_SHORT], ids=["https", "ended"])
def test_an_endpoint_that_responds_with_something_else_is_named(content: bytes) -> None:
    with (
        responding(content) as url,
        pytest.raises(ClusterUnreachable, match=f"the token endpoint {url} cannot be used: "),
    ):
        BearerTokens(url, "a", "b").token()


def test_client_id_and_secret_are_encoded_as_by_java_where_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def urlopen(request: Request, timeout: float) -> BytesIO:
        sent.append(str(request.get_header("Authorization")))
        return BytesIO(b'{"access_token": "t"}')

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    BearerTokens("http://id/token", "me:a", "s ~*-._/").token()
    BearerTokens("http://id/token", "me:a", "s ~*-._/", urlencode=True).token()
    # java.net.URLEncoder keeps letters, digits and .-*_ and makes a blank a plus.
    assert [b64decode(header.removeprefix("Basic ")) for header in sent] == [b"me:a:s ~*-._/", b"me%3Aa:s+%7E*-._%2F"]


def test_extensions_reach_the_mechanism_of_kafka_python() -> None:
    class Token(BearerTokens):
        def token(self) -> str:
            return "t"

    tokens = Token("http://id", extensions={"logicalCluster": "lkc-1", "identityPoolId": "pool-1"})
    first = SaslMechanismOAuth(sasl_oauth_token_provider=tokens).auth_bytes()
    # RFC 7628, 3.1: each pair ends with ^A.
    assert first == b"n,,\x01auth=Bearer t\x01logicalCluster=lkc-1\x01identityPoolId=pool-1\x01\x01"
