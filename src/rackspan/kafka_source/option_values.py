"""Values of options, read from text. Each function raises UsageError, one line that names the option.

`values` holds options by their names in lower case.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from rackspan.errors import UsageError

SECONDS_OF: Final[Mapping[str, float]] = {
    **dict.fromkeys(("", "ms"), 1e-3),
    "us": 1e-6,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86_400.0,
}
"""The units of Spark's durations, whose default is the one of the option: milliseconds."""


def json_object(name: str, text: str, wanted: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        raise UsageError(f"option {name}: {text!r} is not {wanted}") from None
    if not isinstance(document, dict):
        raise UsageError(f"option {name}: {text!r} is not {wanted}")
    return document


def string_map(name: str, text: str) -> dict[str, str]:
    document = json_object(name, text, 'JSON such as {"worker-1": "r1"}')
    if not all(isinstance(value, str) for value in document.values()):
        raise UsageError(f"option {name}: every rack is a string")
    return {host: str(rack) for host, rack in document.items()}


def costs(name: str, text: str) -> dict[str, dict[str, float]]:
    """The cost of reading in one rack from another."""
    example = '{"r1": {"r2": 1, "r3": 5}}'
    document = json_object(name, text, f"JSON such as {example}")
    for row in document.values():
        if not isinstance(row, dict) or not all(_is_cost(value) for value in row.values()):
            raise UsageError(f"option {name}: {text!r} is not of the form {example}")
    return document


def _is_cost(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def flag(values: Mapping[str, str], name: str, *, default: bool) -> bool:
    return boolean(name, values.get(name.lower(), str(default)))


def boolean(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise UsageError(f"option {name}: {value!r} is neither true nor false")
    return value.lower() == "true"


def choice(values: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = values.get(name.lower(), choices[0])
    if value not in choices:
        raise UsageError(f"option {name}: {value!r} is not one of {', '.join(choices)}")
    return value


def positive(values: Mapping[str, str], name: str) -> int | None:
    return count(name, values[name.lower()]) if name.lower() in values else None


def count(name: str, value: str) -> int:
    parse: Callable[[str], int] = int
    try:
        number = parse(value)
    except ValueError:
        number = 0
    if number <= 0:
        raise UsageError(f"option {name}: {value!r} is not a positive whole number")
    return number


def duration_seconds(values: Mapping[str, str], name: str, default: str) -> float:
    """A duration as Spark writes it: `15m`, `30s`, `500ms`; a number by itself is milliseconds."""
    text = values.get(name.lower(), default)
    found = re.fullmatch(r"([0-9]+)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in SECONDS_OF:
        raise UsageError(f"option {name}: {text!r} is not a duration as 15m, 30s or 500ms")
    return int(found[1]) * SECONDS_OF[found[2]]
