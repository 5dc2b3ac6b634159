"""Options that belong together reach a command as one value.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class PolicyOptions:
        unracked: Annotated[UnrackedPolicy, typer.Option("--unracked")] = UnrackedPolicy.SHARED

    @app.command()
    @with_option_groups
    def audit(policy_options: PolicyOptions) -> None: ...

Typer makes options of a function's parameters; `with_option_groups` replaces such a parameter by the fields of its class.
A field `given: Given` is no option: it receives where the values of the options come from.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, Final, get_type_hints

import typer

from rackspan.cli.options.given import Given
from rackspan.cli.options.settings import IN_FORCE
from rackspan.cli.options.settings_table import EXCLUDE_BROKERS, UNRACKED

_CONTEXT = "command_context"
_GIVEN = "given"

_JUDGING: Final = frozenset({UNRACKED.parameter, EXCLUDE_BROKERS.parameter})
"""A group with one of these options judges a cluster by rackspan.toml."""

JUDGES: Final = "judges"
"""The attribute of a command's function: whether it judges a cluster by rackspan.toml, and says by which."""


def with_option_groups(function: Callable[..., None]) -> Callable[..., None]:
    """The same command, called with every option by its own name."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    judges = any(_JUDGING & set(_names(group)) for group in groups.values())

    @wraps(function)
    def called(*, command_context: typer.Context, **flags: Any) -> None:
        given = Given.of(command_context)
        values = {name: _value(group, flags, given) for name, group in groups.items()}
        in_force = IN_FORCE.set(given.settings if judges else None)
        try:
            function(**flags, **values)
        finally:
            IN_FORCE.reset(in_force)

    shown = [
        flag
        for parameter in signature(function).parameters.values()
        for flag in (
            _fields_as_flags(groups[parameter.name])
            if parameter.name in groups
            else [_flag(parameter.name, hints[parameter.name], parameter.default)]
        )
    ]
    shown.append(Parameter(_CONTEXT, Parameter.KEYWORD_ONLY, annotation=typer.Context))
    called.__annotations__ = {flag.name: flag.annotation for flag in shown}
    vars(called)["__signature__"] = Signature(shown)
    vars(called)[JUDGES] = judges
    return called


def _fields_as_flags(group: Any) -> list[Parameter]:
    hints, parameters = get_type_hints(group, include_extras=True), signature(group).parameters
    return [_flag(name, hints[name], parameters[name].default) for name in _names(group)]


def _value(group: Any, flags: dict[str, Any], given: Given) -> Any:
    values = {name: flags.pop(name) for name in _names(group)}
    return group(**values, **({_GIVEN: given} if _GIVEN in {field.name for field in fields(group)} else {}))


def _names(group: Any) -> list[str]:
    return [field.name for field in fields(group) if field.name != _GIVEN]


def _flag(name: str, hint: Any, default: Any) -> Parameter:
    # By keyword only: a flag that must be given may stand behind one that need not.
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)
