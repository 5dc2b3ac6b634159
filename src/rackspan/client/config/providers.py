"""Variables `${provider:path:key}` in properties, resolved by Kafka's own config providers: file, directory and environment.

Source: Kafka's ConfigTransformer (KIP-297), FileConfigProvider, DirectoryConfigProvider (KIP-632) and EnvVarConfigProvider (KIP-887).
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rackspan.client.config.properties_file import parse_properties
from rackspan.errors import UsageError

PROVIDERS: Final = "config.providers"

_VARIABLE: Final = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
_PACKAGE: Final = "org.apache.kafka.common.config.provider."

Provider = Callable[[str, str], str | None]
"""The value of a path and a key; None if there is none. Errors: UsageError, for what cannot be read."""


def is_of_providers(name: str) -> bool:
    """Whether a key declares config providers."""
    return name == PROVIDERS or name.startswith(f"{PROVIDERS}.")


def resolved(properties: Mapping[str, str]) -> dict[str, str]:
    """The properties with every variable replaced, without those that declare the providers.

    Without `config.providers` a value such as `${a:b}` stays as it is, as in Kafka. Errors: UsageError, naming the key.
    """
    providers = dict(_providers(properties))
    return {name: _resolved(name, value, providers) for name, value in properties.items() if not is_of_providers(name)}


def _providers(properties: Mapping[str, str]) -> Iterator[tuple[str, Provider]]:
    for name in filter(None, map(str.strip, properties.get(PROVIDERS, "").split(","))):
        prefix = f"{PROVIDERS}.{name}."
        kind = properties.get(f"{prefix}class", "").strip()
        if not kind:
            raise UsageError(f"{prefix}class is missing in --command-config; name the class of the provider {name}")
        if kind not in _KINDS:
            raise UsageError(
                f"{prefix}class in --command-config: {kind!r} is a class that only Java can load; use one of {', '.join(_KINDS)}"
            )
        allowed = {key: value for key, value in properties.items() if key.startswith(f"{prefix}param.")}
        yield name, _KINDS[kind](f"{prefix}param.", allowed)


def _resolved(name: str, value: str, providers: Mapping[str, Provider]) -> str:
    def replace(match: re.Match[str]) -> str:
        provider, path, key = match[1], match[2] or "", match[3]
        if provider not in providers:
            return match[0]
        found = providers[provider](path, key)
        if found is None:
            raise UsageError(
                f"{name} in --command-config: {match[0]} has no value: {provider} finds no {key}{f' in {path}' if path else ''}; "
                "check the variable and the allowed.paths or allowlist.pattern of its provider"
            )
        return found

    return _VARIABLE.sub(replace, value)


def _file(prefix: str, parameters: Mapping[str, str]) -> Provider:
    def value(path: str, key: str) -> str | None:
        if not path or not is_allowed(path):
            return None
        try:
            return parse_properties(_content(Path(path))).get(key)
        except ValueError as error:
            raise UsageError(f"{path}, which --command-config names by a config provider: {error}") from None

    is_allowed = _allowed_paths(prefix, parameters)
    return value


def _directory(prefix: str, parameters: Mapping[str, str]) -> Provider:
    def value(path: str, key: str) -> str | None:
        file = Path(path, key)
        # A key is the name of a file, and leads to no other folder.
        is_found = path and is_allowed(path) and file.parent == Path(path) and file.is_file()
        return _content(file) if is_found else None

    is_allowed = _allowed_paths(prefix, parameters)
    return value


def _environment(prefix: str, parameters: Mapping[str, str]) -> Provider:
    pattern = parameters.get(f"{prefix}allowlist.pattern", ".*")
    try:
        allowed = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"{prefix}allowlist.pattern in --command-config: {pattern!r} is not a regular expression: {error}"
        ) from None

    def value(path: str, key: str) -> str | None:
        if path:
            raise UsageError(f"${{…:{path}:{key}}} in --command-config: an environment variable has no path; remove it")
        return os.environ.get(key) if allowed.fullmatch(key) else None

    return value


_KINDS: Final[Mapping[str, Callable[[str, Mapping[str, str]], Provider]]] = {
    f"{_PACKAGE}FileConfigProvider": _file,
    f"{_PACKAGE}DirectoryConfigProvider": _directory,
    f"{_PACKAGE}EnvVarConfigProvider": _environment,
}


def _allowed_paths(prefix: str, parameters: Mapping[str, str]) -> Callable[[str], bool]:
    """Whether a path is under one of `allowed.paths`, which are absolute and exist; every path is, without them."""
    key = f"{prefix}allowed.paths"
    given = parameters.get(key, "")
    allowed = [Path(os.path.normpath(path)) for path in given.split(",")] if given else None
    for path in allowed or ():
        if not path.is_absolute() or not path.exists():
            raise UsageError(
                f"{key} in --command-config: {path} is not an absolute path of what exists; name one that is"
            )
    return lambda path: (
        allowed is None or any(Path(os.path.normpath(path)).is_relative_to(folder) for folder in allowed)
    )


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file}, which --command-config names by a config provider, cannot be read: "
            f"{getattr(error, 'strerror', None) or 'it is not UTF-8'}; name a file that can"
        ) from None
