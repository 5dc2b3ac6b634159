"""Reads a `sasl.jaas.config` line: the login module, and its user and password or its other options."""

import re
from dataclasses import dataclass, field
from typing import Final

from rackspan.errors import UsageError

_PASSWORD_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
OAUTHBEARER_MODULE: Final = "OAuthBearerLoginModule"
KERBEROS_MODULE: Final = "Krb5LoginModule"
_MODULES: Final = (*_PASSWORD_MODULES, OAUTHBEARER_MODULE, KERBEROS_MODULE)

_LINE: Final = re.compile(
    r"\s*(?P<module>[\w.]+)\s+(?:required|requisite|sufficient|optional)\s*(?P<options>.*);\s*", re.S
)
_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^\s;"']+))\s*""", re.S)


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A user name and a password. The password is in no message and not in `repr`."""

    username: str
    password: str = field(repr=False)


def entry(line: str) -> tuple[str, dict[str, str]]:
    """The module, without its package, and the options of one JAAS entry.

    Errors: UsageError, never with the line itself, which holds a secret.
    """
    match = _LINE.fullmatch(line)
    if not match:
        raise UsageError(f'it is not of the form MODULE required username="…" password="…"; (with {_MODULES[0]})')
    module = match["module"].rsplit(".", 1)[-1]
    if module not in _MODULES:
        raise UsageError(f"login module {module} is none of {', '.join(_MODULES)}, which are what rackspan can do")
    return module, _options(match["options"])


def login(options: dict[str, str]) -> JaasLogin:
    """The user name and password among the options of an entry. Errors: UsageError where one is missing."""
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise UsageError(f"it gives no {' and no '.join(missing)}")
    return JaasLogin(options["username"], options["password"])


def _options(text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _OPTION.match(text, position)
        if not match:
            raise UsageError('an option in it is not of the form name="value"')
        name, double, single, bare = match.groups()
        quoted = double if double is not None else single
        options[name] = re.sub(r"\\(.)", r"\1", quoted, flags=re.S) if quoted is not None else bare
        position = match.end()
    return options
