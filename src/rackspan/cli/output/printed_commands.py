"""Commands of rackspan in printed text: each repeats the flags of this command line that name the settings, the cluster and the policy.

A command that is run as printed then reads the same cluster by the same settings. What variables and files say is in force for it anyway.
"""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, Final

from rich.text import Text

from rackspan.cli.commands import COMMANDS, LazyCommands, leaf_commands, reads_settings
from rackspan.cli.help import REPEATED, SETTINGS
from rackspan.cli.options.settings_table import SNAPSHOT, SOURCES

_GROUPS: Final = "|".join(name for name, entry in COMMANDS.items() if entry.attribute == "app")
_OTHERS: Final = "|".join(name for name, entry in COMMANDS.items() if entry.attribute != "app")

WORDS: Final = rf"(?:(?:{_GROUPS}) [a-z-]+|(?:{_OTHERS})\b)"
"""The words of a command after `rackspan`."""

_QUOTED: Final = r"""(?<=[ =])(?:'[^'\n]*'|"[^"\n]*"|&#(?:39|x27);.*?&#(?:39|x27);|&(?:quot|#34);.*?&(?:quot|#34);)+"""
"""A value in quotes of the shell, on a page for a browser too."""

OPTIONS: Final = rf"(?: -[-\w]+(?:[ =](?:{_QUOTED}\S*|[^-\s]\S*))?)*"
"""The options that follow the words of a command at once."""

_REST: Final = rf"(?P<rest>(?:{_QUOTED}|&#?\w+;|(?![.,:)](?:\s|$)| rackspan | or | and )[^`;<(\n])*)"
"""What may be of a command: it ends with the line, the sentence, or a part of it."""

_COMMAND: Final = re.compile(rf"(?<![\w/.-])rackspan (?P<words>{WORDS}){_REST}")

_NAMES: Final = re.compile(r"\b(?:of|another) \Z")
"""What stands before a command that is named, and not to be run."""

_FIELDS: Final = frozenset(
    [
        "remedy",
        "remedies",
        "command",
        "commands",
        "undo",
        "reason",
        "bound_reason",
        "gap_reason",
        "note",
        "partial",
        "unread",
        "warnings",
        "problem",
        "quarantined",
        "assumption",
        "assumed",
        "cost",
        "message",
        "hint",
    ]
)
"""Fields of documents that have sentences of rackspan."""

_commands: Final = LazyCommands()


def insertions(text: str) -> Iterator[tuple[int, str]]:
    """Where flags are missing in the commands of a text, and the flags, with a space before them."""
    if not REPEATED or "rackspan " not in text:
        return
    for found in _COMMAND.finditer(text):
        accepted = _accepted(found["words"])
        if "--help" in found["rest"] or _NAMES.search(text, 0, found.start()):
            continue
        present = set(re.findall(r"--[-\w]+", found["rest"]))
        missing = [
            words
            for flag, words in REPEATED.items()
            if flag in accepted and flag not in present and not (flag in SOURCES and SOURCES & present)
        ]
        if missing:
            yield found.end("words"), "".join(f" {words}" for words in missing)


def runnable(text: str, quoted: Callable[[str], str] = str) -> str:
    """The text with those flags, escaped by `quoted`."""
    parts, start = [], 0
    for at, flags in insertions(text):
        parts += [text[start:at], quoted(flags)]
        start = at
    return "".join([*parts, text[start:]])


def runnable_text(text: Text) -> Text:
    """The styled text with those flags."""
    parts, start = text.blank_copy(), 0
    for at, flags in insertions(text.plain):
        parts.append_text(text[start:at]).append(flags)
        start = at
    return parts.append_text(text[start:]) if start else text


def runnable_document(document: Any, *, words: bool = False) -> Any:
    """The document with those flags in its sentences. `words`: whether it is of a field that has them: a rack may be named like a command."""
    if not REPEATED:
        return document
    match document:
        case StrEnum():
            return document
        case str():
            return runnable(document) if words else document
        case dict():
            return {key: runnable_document(value, words=words or key in _FIELDS) for key, value in document.items()}
        case list() | tuple():
            return [runnable_document(value, words=words) for value in document]
        case _:
            return document


@cache
def _accepted(words: str) -> frozenset[str]:
    """The flags that a command takes, of those that are repeated. None for words that are no command's."""
    name = words.partition(" ")[0]
    command = _commands[name]
    leaf = dict(leaf_commands(command, name)).get(words) if hasattr(command, "commands") else command
    if leaf is None:
        return frozenset()
    flags = {parameter.opts[0] for parameter in leaf.params}
    if reads_settings(command):
        flags.add(SETTINGS)
    # A snapshot can be planned on, but neither changed nor taken again.
    of_cluster = words == "snapshot" or "--apply" in flags
    return frozenset(flags - {f"--{SNAPSHOT.key}"} if of_cluster else flags)
