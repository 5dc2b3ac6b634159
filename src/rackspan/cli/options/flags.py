"""Flags that belong together, told to a verb as one value.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Judging:
        unracked: Annotated[UnrackedPolicy, typer.Option("--unracked")] = UnrackedPolicy.SHARED

    @app.command()
    @with_groups
    def audit(judging: Judging) -> None: ...

Typer makes flags of a function's parameters; `with_groups` shows it the fields of such a value instead, in its place.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """The same verb, called with every flag by its own name."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(function)
    def called(**flags: Any) -> None:
        gathered = {name: group(**{key: flags.pop(key) for key in _names(group)}) for name, group in groups.items()}
        function(**flags, **gathered)

    shown = [
        flag
        for parameter in signature(function).parameters.values()
        for flag in (
            _fields_as_flags(groups[parameter.name])
            if parameter.name in groups
            else [_flag(parameter.name, hints[parameter.name], parameter.default)]
        )
    ]
    called.__annotations__ = {flag.name: flag.annotation for flag in shown}
    vars(called)["__signature__"] = Signature(shown)
    return called


def _fields_as_flags(group: Any) -> list[Parameter]:
    hints, told = get_type_hints(group, include_extras=True), signature(group).parameters
    return [_flag(name, hints[name], told[name].default) for name in _names(group)]


def _names(group: Any) -> list[str]:
    return [field.name for field in fields(group)]


def _flag(name: str, hint: Any, default: Any) -> Parameter:
    # By keyword only: a flag that must be given may stand behind one that need not.
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
