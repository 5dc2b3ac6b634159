"""The base class of requests, responses and their structs: fields are declared once, as annotations with defaults."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, dataclass_transform, get_args


@dataclass_transform(kw_only_default=True)
class _DeclaredFields(type):
    """Turns the annotations of a class into its `__slots__`, and their values into the defaults of its constructor."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> "_DeclaredFields":
        fields = namespace.get("__annotations__", {}) if bases else {}
        defaults = {field: namespace.pop(field) for field in fields}
        return super().__new__(cls, name, bases, {**namespace, "__slots__": tuple(fields), "DEFAULTS": defaults})


class WireStruct(metaclass=_DeclaredFields):
    """A request, a response or a struct inside one. The constructor takes fields by keyword."""

    DEFAULTS: ClassVar[Mapping[str, Any]]

    def __init__(self, **fields: Any) -> None:
        # Compiled for the first value of each class: two hundred constructors would triple the time of the import, and a loop
        # over the fields takes four times as long.
        cls = type(self)
        parameters = "".join(f", {name}=defaults[{name!r}]" for name in cls.DEFAULTS)
        body = "; ".join(f"self.{name} = {name}" for name in cls.DEFAULTS) or "pass"
        namespace: dict[str, Any] = {"defaults": cls.DEFAULTS}
        exec(f"def __init__(self{', *' if parameters else ''}{parameters}): {body}", namespace)  # noqa: S102  # Field names alone.
        cls.__init__ = namespace["__init__"]  # type: ignore[method-assign]  # Compiled from the fields.
        self.__init__(**fields)  # type: ignore[misc]  # The constructor that was just made.

    @classmethod
    def struct_class(cls, field: str) -> type["WireStruct"]:
        """The class of a field that holds a struct or an array of structs."""
        return next(
            found
            for found in _types(cls.__annotations__[field])
            if isinstance(found, type) and issubclass(found, WireStruct)
        )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.DEFAULTS)

    __hash__ = None  # type: ignore[assignment]  # Fields can be set.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.DEFAULTS)})"


def _types(annotation: Any) -> Iterator[Any]:
    """The annotation and every type inside it."""
    yield annotation
    for inner in get_args(annotation):
        yield from _types(inner)
