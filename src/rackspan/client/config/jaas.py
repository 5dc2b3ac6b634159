"""Reads a `sasl.jaas.config` line: the login module, and its user and password or its other options.

Source: Kafka's JaasConfig, which reads by java.io.StreamTokenizer: flags in any case, comments, escapes in quotes; a value that
begins like a number, or holds any other sign than letters, digits and `._$-`, needs quotes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rackspan.errors import UsageError

PASSWORD_MODULES: Final = ("PlainLoginModule", "ScramLoginModule")
OAUTHBEARER_MODULE: Final = "OAuthBearerLoginModule"
KERBEROS_MODULE: Final = "Krb5LoginModule"
_MODULES: Final = (*PASSWORD_MODULES, OAUTHBEARER_MODULE, KERBEROS_MODULE)
MODULES_OF: Final = {"GSSAPI": (KERBEROS_MODULE,), "OAUTHBEARER": (OAUTHBEARER_MODULE,)}
"""The login modules of a mechanism; all others take a password."""

_FLAGS: Final = ("required", "requisite", "sufficient", "optional")

_TOKEN: Final = re.compile(
    r"""(?P<skipped>[\x00-\x20]+|/\*.*?(?:\*/|\Z)|/[^\r\n]*)
    |(?P<number>-?(?:[0-9]+\.?[0-9]*|\.[0-9]*)|-)
    |(?P<word>[A-Za-z_$\xa0-\U0010ffff][\w.$\-\xa0-\U0010ffff]*)
    |(?P<quote>["'])(?P<content>(?:\\.|(?!(?P=quote))[^\\\r\n])*)(?:(?P=quote)|(?=[\r\n])|\\?\Z)
    |(?P<sign>.)""",
    re.S | re.X | re.A,
)
"""A single slash begins a comment too. Quotes end with their line. A number has no text, so that it can be no value."""

_ESCAPE: Final = re.compile(r"\\([0-3][0-7]{0,2}|[4-7][0-7]?|.)", re.S)
_MEANINGS: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A user name and a password. The password is in no message and not in `repr`."""

    username: str
    password: str = field(repr=False)


def entry(line: str) -> tuple[str, dict[str, str]]:
    """The module, without its package, and the options of one JAAS entry.

    Errors: UsageError, never with the line itself, which holds a secret.
    """
    entries = list(_entries(list(_tokens(line))))
    if not entries:
        raise UsageError(f"it names no login module; {_FORM}")
    if len(entries) > 1:
        raise UsageError(f"it holds {len(entries)} login modules, and a client has one; leave the others out")
    name, options = entries[0]
    module = name.rsplit(".", 1)[-1]
    if module not in _MODULES:
        shown = f"login module {module}" if _CLASS_NAME.fullmatch(name) else "its login module"
        raise UsageError(f"{shown} is none of {', '.join(_MODULES)}, which are what rackspan can do{instead_of(name)}")
    return module, options


def login(options: dict[str, str]) -> JaasLogin:
    """The user name and password among the options of an entry. Errors: UsageError where one is missing, and for a delegation token."""
    if options.get("tokenauth", "").lower() == "true":
        raise UsageError(
            "tokenauth=true is a login by a delegation token, which rackspan cannot do; use a user name and its password"
        )
    missing = [name for name in ("username", "password") if name not in options]
    if missing:
        raise UsageError(f"it gives no {' and no '.join(missing)}")
    return JaasLogin(options["username"], options["password"])


_CLASS_NAME: Final = re.compile(r"[\w.$]+")

_INSTEAD: Final = {
    "aws": "use SCRAM or TLS, or OAUTHBEARER with a token from a file or URL",
    "msk": "use SCRAM or TLS, or OAUTHBEARER with a token from a file or URL",
    "strimzi": "use Kafka's OAuthBearerLoginCallbackHandler with sasl.oauthbearer.token.endpoint.url",
    "azure": "use Kafka's OAuthBearerLoginCallbackHandler with sasl.oauthbearer.token.endpoint.url",
    "microsoft": "use Kafka's OAuthBearerLoginCallbackHandler with sasl.oauthbearer.token.endpoint.url",
    "google": "use OAUTHBEARER with a token from a file",
}


def instead_of(name: str) -> str:
    """What to use instead of a class or mechanism of one vendor, by its name, as the end of a message."""
    return next((f"; {advice}" for vendor, advice in _INSTEAD.items() if vendor in name.lower()), "")


_FORM: Final = f'the form is MODULE required username="…" password="…"; (with {PASSWORD_MODULES[0]})'

_NO_OPTION: Final = (
    'an option in it is not of the form name="value"; put the value in double quotes, with a backslash before a double quote or '
    "backslash in it"
)

_Token = tuple[str, str | None]
"""A sign, or "" and the text of a word or of quotes, which a number lacks."""


def _tokens(line: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(line):
        match match.lastgroup:
            case "sign":
                yield match[0], None
            case "number":
                yield "", None
            case "word":
                yield "", match[0]
            case "content":
                yield "", _ESCAPE.sub(_meaning, match["content"])


def _meaning(escape: re.Match[str]) -> str:
    sign = escape[1]
    return chr(int(sign, 8)) if sign[0] in "01234567" else _MEANINGS.get(sign, sign)


def _entries(tokens: list[_Token]) -> Iterator[tuple[str, dict[str, str]]]:
    position = 0
    while position < len(tokens):
        if len(tokens) < position + 2 or tokens[position][1] is None:
            raise UsageError(f"it is not of the form that Kafka reads; {_FORM}")
        module, flag = tokens[position][1], tokens[position + 1][1]
        if flag is None or flag.lower() not in _FLAGS:
            raise UsageError(f"its login module is not followed by {', '.join(_FLAGS[:-1])} or {_FLAGS[-1]}; {_FORM}")
        position += 2
        options: dict[str, str] = {}
        while position < len(tokens) and tokens[position][0] != ";":
            match tokens[position : position + 3]:
                case [("", str(name)), ("=", None), ("", str(value))]:
                    options[name] = value
                    position += 3
                case _:
                    raise UsageError(_NO_OPTION)
        if position == len(tokens):
            raise UsageError("it does not end with a semicolon; add one")
        position += 1
        yield str(module), options
