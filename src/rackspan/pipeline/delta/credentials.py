"""Keeps credentials of object stores out of messages: delta-rs and Hadoop put whole requests into theirs."""

import os
import re
from collections.abc import Mapping
from typing import Final

SECRET_NAME: Final = re.compile(r"SECRET|TOKEN|PASSWORD|SAS|ACCOUNT_KEY|ACCESS_KEY|CLIENT_ID|CREDENTIAL", re.IGNORECASE)
"""Environment variables whose value is a secret, or leads to one."""
SIGNED: Final = re.compile(
    r"(?i)((?:[?&;]|\b)(?:sig|signature|x-amz-(?:signature|credential|security-token)|token)=)[^&\s\"']+"
)
"""The signature in the URL of a request, such as a shared access signature of Azure."""
LENGTH_MIN: Final = 6
"""Shorter values are no secrets, and would blot out words."""
COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")
REPLACED: Final = "(hidden)"


def redacted(text: str, environ: Mapping[str, str] | None = None) -> str:
    """The text without colours of a terminal, signatures, and values of variables such as AWS_SECRET_ACCESS_KEY."""
    secrets = {
        value
        for name, value in (os.environ if environ is None else environ).items()
        if SECRET_NAME.search(name) and len(value) >= LENGTH_MIN
    }
    text = SIGNED.sub(rf"\1{REPLACED}", COLOURS.sub("", text))
    # The longest first: one may be the beginning of another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, REPLACED)
    return text


def has_credentials(url: str) -> bool:
    """Whether the URL of an object store names a user with a password, an access key, or a signature."""
    scheme, _, rest = url.partition("://")
    user, at, _ = rest.partition("/")[0].rpartition("@")
    # abfss://CONTAINER@ACCOUNT… has no credentials.
    return "?" in rest or ":" in user or (bool(at) and not scheme.startswith("abfs"))
