"""Tokens for SASL OAUTHBEARER: from an OAuth 2.0 token endpoint by client credentials (RFC 6749, 4.4), or from a file.

kafka-python calls `token` for every connection. One is requested and reused until most of its lifetime has passed.
"""

import base64
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from kafka.net.sasl.oauth import AbstractTokenProvider

from rackspan.errors import ClusterUnauthorized, ClusterUnreachable, UsageError

REQUEST_SECONDS: Final = 10.0
"""For one request of a token, as Java's sasl.login.read.timeout.ms."""

_REUSED_FOR: Final = 0.8
"""Of a token's lifetime, as Java's sasl.login.refresh.window.factor."""


class BearerTokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    """The tokens of one connection. `urlencode` encodes client id and secret first (KIP-1025). The client secret and the tokens are in no message and not in `repr`.

    Errors of `token`: UsageError for a file without a token, ClusterUnauthorized where the endpoint refuses the client,
    ClusterUnreachable where it does not respond.
    """

    def __init__(
        self,
        token_url: str,
        client_id: str | None = None,
        client_secret: str | None = None,
        scope: str | None = None,
        *,
        urlencode: bool = False,
        extensions: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url, self._client_id, self._client_secret, self._scope = token_url, client_id, client_secret, scope
        self._urlencode, self._extensions, self._now = urlencode, dict(extensions or {}), now
        self._token, self._until = "", -1.0

    def token(self) -> str:
        if self._now() >= self._until:
            if self._url.lower().startswith("file:"):
                # Another process may replace the file: it is read for every connection.
                self._token = _from_file(self._url)
            else:
                self._token, lifetime = self._requested()
                self._until = self._now() + lifetime * _REUSED_FOR
        return self._token

    def extensions(self) -> dict[str, str]:
        """The SASL extensions that brokers get beside the token (KIP-342)."""
        return self._extensions

    def _requested(self) -> tuple[str, float]:
        """A token and its lifetime in seconds."""
        form = {"grant_type": "client_credentials", **({} if self._scope is None else {"scope": self._scope})}
        client = [str(self._client_id), str(self._client_secret)]
        if self._urlencode:
            client = [urllib.parse.quote_plus(part, safe="*").replace("~", "%7E") for part in client]
        login = base64.b64encode(":".join(client).encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked where the URL is translated
            self._url,
            data=urllib.parse.urlencode(form).encode(),
            headers={"Authorization": f"Basic {login}", "Accept": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:  # noqa: S310 - as above
                return _from_response(self._url, response.read())
        except urllib.error.HTTPError as error:
            raise ClusterUnauthorized(
                f"the token endpoint {self._url} refused the client: HTTP {error.code} {error.reason}; check the client id, "
                "the client secret and the scope in --command-config"
            ) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ClusterUnreachable(
                f"the token endpoint {self._url} cannot be used: {reason}; check "
                "sasl.oauthbearer.token.endpoint.url in --command-config"
            ) from None


def _from_file(url: str) -> str:
    path = Path(urllib.request.url2pathname(urllib.parse.urlparse(url).path))
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: the token cannot be read: {getattr(error, 'strerror', None) or 'it is not text'}; check "
            "sasl.oauthbearer.token.endpoint.url in --command-config"
        ) from None
    if not token:
        raise UsageError(f"{path}: it holds no token; write one there, in one line")
    return token


def _from_response(url: str, content: bytes) -> tuple[str, float]:
    try:
        document = json.loads(content)
        token, lifetime = document["access_token"], float(document.get("expires_in", 0))
    except (ValueError, KeyError, TypeError):
        raise ClusterUnauthorized(
            f"the token endpoint {url} responded without an access_token; check sasl.oauthbearer.token.endpoint.url in "
            "--command-config"
        ) from None
    return str(token), lifetime
