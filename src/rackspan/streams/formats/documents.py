"""The keys and types of a problem document, and the refusals of what types cannot say. Described in docs/formats.md."""

from typing import Annotated, ClassVar, NoReturn, TypeVar

from msgspec import Meta, Struct

from rackspan import documents
from rackspan.documents import InvalidDocument
from rackspan.errors import InvalidProblem
from rackspan.model.ids import INT32_MAX

T = TypeVar("T")


class ClientDocument(Struct):
    """A process of the application. `rack` is that of all its consumers, `consumers` gives each one's own."""

    SHOWN: ClassVar[str] = "client {process_id}"

    process_id: str
    threads: Annotated[int, Meta(ge=1, le=INT32_MAX)]
    rack: str | None = None
    consumers: dict[str, str | None] | None = None
    tags: dict[str, str] | None = None
    prev_active: list[str] | None = None
    prev_standby: list[str] | None = None
    lags: dict[str, int] | None = None


class TaskDocument(Struct, forbid_unknown_fields=True):
    """A task. Unknown keys are refused: what a mistyped key was to say would be missing."""

    SHOWN: ClassVar[str] = "task {id}"

    id: str
    source: list[str]
    stateful: bool = False
    changelog: list[str] | None = None


class ProblemDocument(Struct):
    """The whole document. `partitions` gives the racks of each partition's replicas, null for a broker without one."""

    tasks: list[TaskDocument]
    clients: list[ClientDocument]
    partitions: dict[str, list[str | None] | None]
    config: dict[str, object] | None = None
    initial_active: dict[str, list[str]] | None = None
    initial_standby: dict[str, list[str]] | None = None
    partition_weights: dict[str, int] | None = None
    name: object = None
    seed: object = None


def convert(document: object, declared: type[T], name: str) -> T:
    """Errors: InvalidProblem."""
    try:
        return documents.convert(document, declared, name)
    except InvalidDocument as error:
        raise InvalidProblem(str(error)) from None


def refuse(path: str, why: str) -> NoReturn:
    """Errors: InvalidProblem, always."""
    raise InvalidProblem(f"{path}: {why}")


def without_duplicates(items: list[str] | None, path: str) -> list[str]:
    """`items`, refused when one is listed twice; null is an empty list."""
    items = items or []
    if len(set(items)) < len(items):
        duplicate = next(item for index, item in enumerate(items) if item in items[:index])
        refuse(path, f"names {duplicate} twice; leave one of them out")
    return items
