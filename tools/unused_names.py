"""Public names of the package that nothing in the package uses: dead code, or an interface that lacks its documentation.

python tools/unused_names.py

A function, class, constant, method or field is *live* if it can be reached from a root by reading names: a field that is only
written is not. Roots are: statements
that run when a module is imported; decorated functions that are registered somewhere (a CLI command, a fixture); entry
points and the plug-in module; names that a package exports in its `__init__.py`; names in code of README.md, docs/ and
examples/; templates; methods that override those of a library's class. Tests are no root. What is used by dead code only
is dead too.

Limits: a method or a field is live if its class is live and live code reads an attribute of its name, of whatever object.
"""

import ast
import builtins
import importlib
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent

ALLOWED: Mapping[str, str] = {
    "rackspan.cluster.zookeeper_era.protocol_version.ProtocolFeature.era": "a column of docs/protocol-versions.md",
    "rackspan.errors.ReplicaPlacementException.retriable": "KIP-660 says it, for who writes a placer",
    "rackspan.producers.confluent.UnsentMessage.latency": "confluent-kafka's Message has it",
    "rackspan.streams.user_data.SubscriptionInfo.latest_supported_version": "Kafka Streams' own, read whole",
    "rackspan.streams.user_data.SubscriptionInfo.end_point": "Kafka Streams' own, read whole",
    "rackspan.streams.user_data.AssignmentInfo.next_rebalance_ms": "Kafka Streams' own, read whole",
}
"""Dotted name to the reason why it stays although nothing uses it."""

HARMLESS_DECORATORS = frozenset(
    {
        *("abstractmethod", "cache", "cached_property", "classmethod", "contextmanager", "dataclass", "final"),
        *("lru_cache", "overload", "property", "setter", "staticmethod", "total_ordering", "unique", "wraps"),
    }
)
"""Decorators that do not hand the function to anyone else; under any other one it is registered somewhere."""

DOCUMENTS = ("README.md", "docs/*.md", "docs/how-to/*.md")
NOT_FOR_USERS = ("docs/kips.md",)
"""An index of the code: being listed there does not make a name an interface."""

INTERFACES = frozenset({"rackspan.api"})
"""Modules whose `__all__` is for users, as a package's is."""

FIELDS_OF_OTHERS = ("rackspan.wire.messages.",)
"""Classes whose fields are not ours to choose: Kafka's messages."""
UNPACKED = ("NamedTuple", "TypedDict")
"""Classes whose fields are read without their names."""

LOADED_BY_NAME: Mapping[str, str] = {"rackspan.cluster.handlers": "handle"}
"""A package whose modules are imported by their names, and what is read from each."""

Name = tuple[str, str]
"""Module and name in it; a method's name is `Class.method`."""


@dataclass(slots=True)
class Definition:
    """One function, class, constant, method or field: where it stands and what its body reads.

    `names` are the module-level names it reads, `attributes` those read from objects whose type is not followed.
    """

    line: int
    names: set[Name] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    owner: Name | None = None
    root: bool = False


@dataclass(slots=True)
class Module:
    """One parsed source file; `bound` maps a local name to (module, name), the name "" for a module itself."""

    name: str
    tree: ast.Module
    package: str
    bound: dict[str, Name] = field(default_factory=dict)


def unused(root: Path = ROOT, package: str = "rackspan") -> dict[str, str]:
    """Dotted names of public definitions that are not live, each with `path:line`."""
    modules = {module.name: module for module in _modules(root / "src", package)}
    definitions = dict(_definitions(modules))
    live = _live(definitions, modules, _outside_words(root, package), _outside_names(root, modules))
    return {
        ".".join(name): f"{_path(modules[name[0]], root)}:{definition.line}"
        for name, definition in definitions.items()
        if name not in live and _public(name) and (definition.owner is None or definition.owner in live)
    }


def _public(name: Name) -> bool:
    return not any(part.startswith("_") for part in name[1].split("."))


def _path(module: Module, root: Path) -> str:
    base = Path("src", *module.name.split("."))
    return str(base / "__init__.py" if (root / base).is_dir() else base.with_suffix(".py"))


def _modules(src: Path, package: str) -> Iterator[Module]:
    for path in sorted((src / package).rglob("*.py")):
        parts = path.relative_to(src).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        module = Module(
            name, ast.parse(path.read_text(encoding="utf-8")), name if is_package else name.rpartition(".")[0]
        )
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                source = _absolute(module, node)
                module.bound |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                module.bound |= {
                    alias.asname or alias.name.split(".")[0]: (
                        alias.name if alias.asname else alias.name.split(".")[0],
                        "",
                    )
                    for alias in node.names
                }
        yield module


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    base = parts[: len(parts) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _definitions(modules: Mapping[str, Module]) -> Iterator[tuple[Name, Definition]]:
    for module in modules.values():
        exported = _exports(module) if module.name == module.package or module.name in INTERFACES else set()
        # A statement that defines nothing runs when the module is imported: all that it reads is live.
        running = Definition(1, root=True)
        for target in exported:
            running.names |= {(module.name, target), (f"{module.name}.{target}", "")}
        for name, statement in _top_level(module.tree.body):
            if name is None:
                _read(statement, module, modules, running)
                continue
            definition = Definition(statement.lineno, root=_registered(statement) or name == "__getattr__")
            if isinstance(statement, ast.ClassDef):
                yield from _methods(statement, module, modules, definition)
            else:
                _read(statement, module, modules, definition)
            yield (module.name, name), definition
        yield (module.name, "<import>"), running


def _top_level(body: Iterable[ast.stmt]) -> Iterator[tuple[str | None, ast.stmt]]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, statement
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name, statement
            case ast.Assign(targets=[ast.Tuple(elts=elements)]):
                for element in elements:
                    if isinstance(element, ast.Name):
                        yield element.id, statement
            case ast.If():
                yield from _top_level(statement.body)
                yield from _top_level(statement.orelse)
                yield None, ast.Expr(statement.test, lineno=statement.lineno)
            case ast.Import() | ast.ImportFrom():
                pass
            case _:
                yield None, statement


def _methods(
    cls: ast.ClassDef, module: Module, modules: Mapping[str, Module], definition: Definition
) -> Iterator[tuple[Name, Definition]]:
    """A class' own statements are read with the class; its public methods and fields stand for themselves."""
    inherited = _library_attributes(cls, module)
    for part in [*cls.bases, *cls.keywords, *cls.decorator_list]:
        _read(part, module, modules, definition)
    for statement in cls.body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) or statement.name.startswith("_"):
            _read(statement, module, modules, definition)
            if not _is_read_whole(cls, module):
                for name in _fields(statement):
                    yield (
                        (module.name, f"{cls.name}.{name}"),
                        Definition(statement.lineno, owner=(module.name, cls.name)),
                    )
            continue
        method = Definition(statement.lineno, owner=(module.name, cls.name))
        method.root = _registered(statement) or statement.name in inherited
        _read(statement, module, modules, method)
        yield (module.name, f"{cls.name}.{statement.name}"), method


def _fields(statement: ast.stmt) -> Iterator[str]:
    """What a statement of a class declares: `name: type`, and `self.name = …` in `__init__`."""
    match statement:
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.FunctionDef(name="__init__"):
            for part in ast.walk(statement):
                match part:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                        yield name
                    case _:
                        pass
        case _:
            pass


def _is_read_whole(cls: ast.ClassDef, module: Module) -> bool:
    return module.name.startswith(FIELDS_OF_OTHERS) or any(ast.unparse(base) in UNPACKED for base in cls.bases)


def _library_attributes(cls: ast.ClassDef, module: Module) -> set[str]:
    """What a class inherits from classes outside the package: a library calls these by name."""
    inherited: set[str] = set()
    for base in cls.bases:
        parts = ast.unparse(base).split("[")[0].split(".")
        source, name = module.bound.get(parts[0], ("builtins", parts[0]))
        if source.split(".")[0] == module.name.split(".")[0]:
            continue
        path = [name, *parts[1:]] if name else parts[1:]
        try:
            found: object = builtins if source == "builtins" else importlib.import_module(source)
            for part in path:
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        inherited |= set(dir(found))
    return inherited


def _registered(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    names = [ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in statement.decorator_list]
    return any(name not in HARMLESS_DECORATORS for name in names)


def _exports(module: Module) -> set[str]:
    for statement in module.tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return set(ast.literal_eval(statement.value))
    return set()


def _read(node: ast.AST, module: Module, modules: Mapping[str, Module], into: Definition) -> None:
    """Record every name and attribute that is read below a node."""
    for part in ast.walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Load()):
                into.names.add(module.bound.get(name, (module.name, name)))
            case ast.Attribute(attr=attribute, value=ast.Name(id=base)) if base in module.bound:
                source, name = module.bound[base]
                inner = f"{source}.{name}" if name else source
                if inner in modules or f"{source}.{name}" in modules:
                    into.names.add((inner, attribute))
                into.attributes.add(attribute)
            case ast.Attribute(attr=attribute, ctx=ast.Load()):
                into.attributes.add(attribute)
            case ast.MatchClass(kwd_attrs=attributes):
                into.attributes |= set(attributes)
            case ast.Constant(value=str(text)) if text.isidentifier() or "[" in text or "|" in text:
                _read_quoted(text, module, into)
            case ast.ImportFrom():
                into.names |= {(_absolute(module, part), alias.name) for alias in part.names}
            case _:
                pass


def _read_quoted(text: str, module: Module, into: Definition) -> None:
    """A quoted annotation, or a name given to getattr."""
    into.attributes.add(text)
    for word in re.findall(r"\w+", text):
        into.names.add(module.bound.get(word, (module.name, word)))


def _outside_names(root: Path, modules: Mapping[str, Module]) -> set[Name]:
    """Entry points, every name of a module that is a plug-in itself, and what is loaded by its module's name."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tables = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    names = {(module, name) for module in modules if (name := LOADED_BY_NAME.get(module.rpartition(".")[0]))}
    for target in (target for table in tables for target in table.values()):
        source, _, name = target.partition(":")
        names.add((source, name))
        if not name and source in modules:
            names |= {(source, defined) for defined, _ in _top_level(modules[source].tree.body) if defined}
    return names


def _outside_words(root: Path, package: str) -> set[str]:
    """Every word that stands in code of the documents, in an example or in a template."""
    words: set[str] = set()
    for pattern in DOCUMENTS:
        for path in root.glob(pattern):
            if str(path.relative_to(root)) not in NOT_FOR_USERS:
                for fenced, inline in re.findall(
                    r"```(.*?)```|`([^`\n]+)`", path.read_text(encoding="utf-8"), re.DOTALL
                ):
                    words |= set(re.findall(r"\w+", fenced or inline))
    for path in [*root.glob("examples/*.py"), *(root / "src" / package).rglob("*.j2")]:
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def _live(
    definitions: Mapping[Name, Definition], modules: Mapping[str, Module], words: set[str], names: set[Name]
) -> set[Name]:
    by_attribute: dict[str, list[Name]] = defaultdict(list)
    by_owner: dict[Name, list[Name]] = defaultdict(list)
    for name, definition in definitions.items():
        if definition.owner is not None:
            by_attribute[name[1].rpartition(".")[2]].append(name)
            by_owner[definition.owner].append(name)
    waiting = [*names, *(method for word in words for method in by_attribute[word])]
    for name, definition in definitions.items():
        if definition.owner is None and (definition.root or name[1] in words):
            waiting.append(name)
    live: set[Name] = set()
    attributes = set(words)
    while waiting:
        name = _defined(waiting.pop(), definitions, modules)
        found = definitions.get(name)
        if found is None or name in live or (found.owner is not None and found.owner not in live):
            continue
        live.add(name)
        waiting += found.names
        waiting += [method for attribute in found.attributes - attributes for method in by_attribute[attribute]]
        attributes |= found.attributes
        # A class that is live now: methods whose names were read before, and those that a library calls.
        waiting += [
            method
            for method in by_owner[name]
            if definitions[method].root or method[1].rpartition(".")[2] in attributes
        ]
    return live


def _defined(name: Name, definitions: Mapping[Name, Definition], modules: Mapping[str, Module]) -> Name:
    """Where a name is defined that a package only imports."""
    passed: set[Name] = set()
    # A package may import its own module, which is bound to itself.
    while name not in definitions and name not in passed and name[0] in modules and name[1] in modules[name[0]].bound:
        passed.add(name)
        name = modules[name[0]].bound[name[1]]
    return name


def complaints(found: Mapping[str, str]) -> list[str]:
    return [f"{place}: {name} is used by nothing in src" for name, place in found.items() if name not in ALLOWED]


if __name__ == "__main__":
    found = complaints(unused())
    print(*found, sep="\n")
    sys.exit(bool(found))
