"""Style rules that linters do not have, run as an ordinary test. Each message says what to write instead.

python -m tools.tidy
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain
from pathlib import Path

from tests.waiting import WITHIN_SECONDS
from tools import plain_words

ROOT = Path(__file__).parent.parent

LINES_MAX = 600
"""Past this a file is two things. A solver or state machine that reads as one may be named here, with its reason."""
LONG_FOR_A_REASON: dict[str, str] = {
    "src/rackspan/api.py": "one page on purpose: every operation as one function",
    "tests/cli/test_every_flag.py": "a table: a case for each flag of each command",
    "tests/gateway/core/acknowledgement/test_guard.py": "one guard by its simulation and by hand, with one set of helpers",
    "tests/gateway/handlers/test_produce_rules.py": "a request from its bytes to its response, with one set of doubles",
    "tests/gateway/test_process.py": "gateways as processes and what they are made of, with one set of helpers",
    "tests/pipeline/test_follow.py": "batches and streams of one loop, with one set of doubles",
}

SYNONYMS = {
    r"(?<![.-])\bnodes?\b": "broker (or controller)",
    r"\bavailability zones?\b": "rack",
    r"\bmigrations?\b": "reassignment",
}
"""One word, one thing, and it is Kafka's."""
SYNONYM_PACKAGES = tuple(
    f"src/rackspan/{package}/"
    for package in (
        *("model", "audit", "placement", "acks", "plan", "restart", "clients", "traffic", "advice", "apply", "client"),
        *("gateway", "producers", "kafka_source", "assignor", "cli"),
    )
)

Rule = Callable[[str, str], Iterator[str]]


@cache
def _tree(text: str) -> ast.Module:
    """Parsing is most of the time; several rules read the same file."""
    return ast.parse(text)


def too_long(name: str, text: str) -> Iterator[str]:
    lines = text.count("\n")
    if name.endswith(".py") and lines > LINES_MAX and name not in LONG_FOR_A_REASON:
        yield f"{lines} lines: find the second thing in it, or give its reason in tools/tidy.py"


def unfinished(_name: str, text: str) -> Iterator[str]:
    for mark in ("FIX" + "ME", "TO" + "DO", "XX" + "X"):
        if re.search(rf"\b{mark}\b", text):
            yield f"{mark}: finish it, or write it down where work is planned"


def elsewhere(_name: str, text: str) -> Iterator[str]:
    """Paths of one machine, and addresses of package registries."""
    for trace in (r"(?<![\w}])/wo" + "rk/", r"pypi\.o" + "rg", r"repo1\.mav" + "en", r"files\.pythonho" + "sted"):
        for found in re.findall(trace, text):
            yield f"{found!r}: this belongs to one machine or registry; say it without the address"


def other_words(name: str, text: str) -> Iterator[str]:
    if name.startswith(SYNONYM_PACKAGES):
        for pattern, word in SYNONYMS.items():
            for found in re.findall(pattern, text, flags=re.IGNORECASE):
                yield f"{found!r}: Kafka's word is {word}"


def unclear_packages(name: str, text: str) -> Iterator[str]:
    """Packages of `src` whose docstring lacks a part, or names a file or folder that does not exist."""
    if not name.startswith("src/") or not name.endswith("/__init__.py"):
        return
    docstring = ast.get_docstring(_tree(text)) or ""
    if not re.search(r"(?i)\b(?:never|nothing|no|none|not|neither|pure|without|independent)\b", docstring):
        yield "a package opens with its docstring: what it does, where to begin, what it never does"
    package = ROOT / Path(name).parent
    for named in re.findall(r"(?<![\w/.])[\w/]+(?:\.py\b|/(?=[\s,.;:)]))", docstring):
        if not any((home / named).exists() for home in (package, package.parent, ROOT / "src/rackspan", ROOT)):
            yield f"{named}: there is no such file or folder; name one that exists"


def words_to_avoid(name: str, text: str) -> Iterator[str]:
    if name.endswith((".py", ".md")) and name not in plain_words.OWN_FILES:
        yield from plain_words.complaints(name, text)


def unexplained_ignores(name: str, text: str) -> Iterator[str]:
    """Checks that are switched off in `src` without the reason behind it."""
    if name.startswith("src/"):
        for found in re.findall(r"# (?:noqa: [A-Z0-9, ]*\d|type: ignore\[[^]]*\])(?=\s*(?:\n|$))", text):
            yield f"{found}: give the reason behind it"


def unproven_methods(name: str, text: str) -> Iterator[str]:
    """Docstrings of `src` that state the method of an algorithm, but not its bound or the test that judges it."""
    if name.startswith("src/") and "Method:" in text:
        for part in ast.walk(_tree(text)):
            if isinstance(part, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(part) or ""
                lacking = [what for what, mark in (("bound", "Bound:"), ("test", "tests/")) if mark not in docstring]
                if "Method:" in docstring and lacking:
                    yield f"Method: of {getattr(part, 'name', 'the module')}: state its {' and its '.join(lacking)} too"


def missing_modules(name: str, text: str) -> Iterator[str]:
    """Modules and tests that a file of `src` names, by the end of their path, and that are not there."""
    if name.startswith("src/"):
        for named in re.findall(r"(?<![\w/.])[\w/]+\.py\b", text):
            if not any(f"/{path}".endswith(f"/{named}") for path in modules()):
                yield f"{named}: there is no such file; name the one that took its place"


@cache
def modules() -> frozenset[str]:
    """The Python files of the repository, by path."""
    return frozenset(name for name in files() if name.endswith(".py"))


def loops_over_one(name: str, text: str) -> Iterator[str]:
    """Loops and comprehensions of `src` whose variable is `one`."""
    if name.startswith("src/"):
        for found in re.findall(r"\bfor \(?(?:\w+, )*\(?one\b(?:, \w+|\))* in\b.*", text):
            yield f"{found!r}: name the variable by what it is: topic, broker, row"


def headless_docstrings(name: str, text: str) -> Iterator[str]:
    """Docstrings of modules, classes and functions of `src` that begin with a clause without a head."""
    if name.startswith("src/"):
        for found in re.findall(r'(?:\A|:\n +)"""((?:Of|As|What is|Behind)\b.*)', text):
            yield f"{found!r}: begin with a noun or a verb"


def without_unit(name: str, text: str) -> Iterator[str]:
    """Durations of `src`, and sizes that are fields, whose names lack their unit. The fields of Kafka's messages are Kafka's."""
    if name.startswith("src/") and "/wire/messages/" not in name:
        durations = r"\b\w*(?:timeout|interval|duration|delay|patience|lifetime): (?:int|float)\b"
        for found in re.findall(rf"{durations}|(?m:^    \w*size: int\b)", text):
            if found.strip() not in COUNTS:
                yield f"{found.strip()!r}: end the name with its unit: _ms, _seconds, _bytes"


LIMITS: Mapping[str, int] = {
    **dict.fromkeys((".result", ".exception", ".flush", ".join", ".wait", ".list_topics", ".get", ".settimeout"), 0),
    **dict.fromkeys((".timeout", ".communicate", ".urlopen", ".wait_for_isr", "gone_within"), 0),
    ".run": 99,
    **dict.fromkeys((".create_connection", "create_connection", ".wait_for"), 1),
}
"""Functions, and methods with a dot, that wait, and the position of their limit in seconds. A child process has it by name alone."""

PAUSE_SECONDS = 0.2
"""What is shorter is a pause between two looks."""


def short_limits(name: str, text: str) -> Iterator[str]:
    """Limits of tests that a busy machine may reach: numbers of seconds below WITHIN_SECONDS, without the reason in the line."""
    if not name.startswith("tests/") or name.startswith("tests/simulation/") or not name.endswith(".py"):
        return
    tree, lines = _tree(text), text.splitlines()
    constants = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        for limit in _limits(call):
            number = constants.get(limit.id) if isinstance(limit, ast.Name) else limit
            seconds = number.value if isinstance(number, ast.Constant) else None
            is_short = type(seconds) in (int, float) and PAUSE_SECONDS < float(str(seconds)) < WITHIN_SECONDS
            if is_short and "# short: " not in lines[limit.lineno - 1]:
                yield f"line {limit.lineno}: {seconds!r} s: WITHIN_SECONDS of tests/waiting.py, or `# short: ` and why"


UNLIMITED = (".join", ".wait", ".result", ".acquire", ".communicate")
"""Methods without arguments that wait for a thread, a process or a future, for ever if that never ends."""


def unlimited_waits(name: str, text: str) -> Iterator[str]:
    """Waits without a limit in `src`, the examples and Python on pages. Coroutines, and results of tasks that are done, have none."""
    lines = text.splitlines()
    if name.startswith(("src/", "examples/")) and name.endswith(".py"):
        trees = [(0, _tree(text))]
    elif name.startswith("docs/") and name.endswith(".md"):
        snippets = re.finditer(r"(?ms)^```python[^\n]*\n(.*?)^```", text)
        trees = [(text[: found.start(1)].count("\n"), ast.parse(found[1].replace("…", "..."))) for found in snippets]
    else:
        return
    for before, tree in trees:
        for line, called in _unlimited(tree):
            if "# unlimited: " not in lines[before + line - 1]:
                yield f"line {before + line}: {called}() has no limit: rackspan.ends, or `# unlimited: ` and why"


def _unlimited(tree: ast.Module) -> Iterator[tuple[int, str]]:
    awaited = {id(part.value) for part in ast.walk(tree) if isinstance(part, ast.Await)}
    # A coroutine that something else awaits: wait_for(event.wait(), seconds).
    awaited |= {id(argument) for part in ast.walk(tree) if isinstance(part, ast.Call) for argument in part.args}
    for part in ast.walk(tree):
        match part:
            case ast.Call(func=ast.Attribute(attr=attr, value=of), args=[], keywords=[]) if id(part) not in awaited:
                # The result of a name is that of a task which is done.
                if f".{attr}" in UNLIMITED and (attr != "result" or isinstance(of, ast.Call)):
                    yield part.lineno, f".{attr}"


def _limits(call: ast.AST) -> Iterator[ast.expr]:
    """The limits of a call that waits, and of a loop until a time."""
    match call:
        case ast.Call(func=ast.Attribute(attr=called) | ast.Name(id=called), args=arguments, keywords=keywords):
            called = f".{called}" if isinstance(call.func, ast.Attribute) else called
            if called in LIMITS:
                yield from arguments[LIMITS[called] :][:1]
                yield from (keyword.value for keyword in keywords if keyword.arg in ("timeout", "seconds"))
        case ast.BinOp(left=ast.Call(func=ast.Attribute(attr="monotonic")), op=ast.Add(), right=limit):
            yield limit


COUNTS: dict[str, str] = {"group_max_size: int": "members of a group, Kafka's group.max.size"}


def unused_extras(pyproject: str, source: str) -> Iterator[str]:
    """Extras of the package that nothing in `src` imports."""
    for extra, listed in tomllib.loads(pyproject)["project"]["optional-dependencies"].items():
        names = [re.split(r"[\[>=<]", one)[0] for one in listed if not one.startswith("rackspan[")]
        if extra not in EXTRAS_FOR_A_REASON and not any(_is_imported(name, source) for name in names):
            yield f"extra {extra}: no module of src imports {', '.join(names)}; remove it"


EXTRAS_FOR_A_REASON: dict[str, str] = {"bench": "benchmarks/ compares with them", "all": "of the others"}


def _is_imported(distribution: str, source: str) -> bool:
    module = distribution.replace("-", "_")
    imports = rf'^\s*(?:from|import) {module}\b|required_module\(\s*"{module}\b'
    return re.search(imports, source, re.MULTILINE) is not None


FLAT_FILES_MAX = 12
UNIFORM_SERIES: dict[str, str] = {
    "src/rackspan": "single modules that every package may import",
    "src/rackspan/cluster/handlers": "one file a request",
    "src/rackspan/wire/messages": "one file a subject, generated",
}
"""Packages of like files, each found by the name of what it is for."""


def packages_to_split(names: list[str]) -> Iterator[str]:
    """Packages of `src` with more modules side by side than fit into one look."""
    packages = Counter(str(Path(name).parent) for name in names if name.startswith("src/") and name.endswith(".py"))
    for package, files in packages.items():
        if files - 1 > FLAT_FILES_MAX and package not in UNIFORM_SERIES:
            yield f"{package}: {files - 1} modules side by side; give it sub-packages"


def undeclared_dependencies(sources: Mapping[str, str]) -> Iterator[str]:
    """Packages of `src/rackspan` whose docstring does not end with the packages that they import."""
    files = {tuple(Path(name).parts[2:]): _tree(text) for name, text in sources.items()}
    packages = {parts[0] for parts in files if parts[1:] == ("__init__.py",)}
    for package in sorted(packages):
        trees = [tree for parts, tree in files.items() if parts[0] == package]
        imported = sorted(packages & {name for tree in trees for name in _imported(tree)} - {package})
        line = f"Depends on: {', '.join(imported)}." if imported else "Depends on no other package."
        docstring = ast.get_docstring(files[package, "__init__.py"]) or ""
        if not " ".join(docstring.split()).endswith(line):
            yield f"src/rackspan/{package}/__init__.py: end the docstring with: {line}"


def _imported(tree: ast.Module) -> Iterator[str]:
    """The packages of rackspan that a module imports anywhere."""
    for part in _statements(tree):
        if isinstance(part, ast.ImportFrom) and part.module == "rackspan":
            yield from (alias.name for alias in part.names)
        elif isinstance(part, ast.ImportFrom) and (part.module or "").startswith("rackspan."):
            yield str(part.module).split(".")[1]
        elif isinstance(part, ast.Import):
            yield from (alias.name.split(".")[1] for alias in part.names if alias.name.startswith("rackspan."))


def _statements(part: ast.AST) -> Iterator[ast.AST]:
    """Every statement within, at a tenth of the nodes: an expression has none."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for statement in getattr(part, block, ()):
            yield statement
            yield from _statements(statement)


def names_given_twice(sources: Mapping[str, str]) -> Iterator[str]:
    """Public classes of `src` that share a name: who searches for one would find the other."""
    homes: dict[str, list[str]] = {}
    for name, text in sources.items():
        for found in re.findall(r"^class ([A-Z]\w*)", text, re.MULTILINE):
            homes.setdefault(found, []).append(name)
    for found, names in homes.items():
        if len(names) > 1:
            yield f"class {found}: in {' and in '.join(sorted(names))}; name each by what it is"


RULES: tuple[Rule, ...] = (
    too_long,
    unfinished,
    elsewhere,
    other_words,
    unclear_packages,
    words_to_avoid,
    unexplained_ignores,
    unproven_methods,
    missing_modules,
    loops_over_one,
    headless_docstrings,
    without_unit,
    short_limits,
    unlimited_waits,
)


def unread_private_names(texts: Mapping[str, str]) -> Iterator[str]:
    """Private functions, classes and constants of Python modules that nothing reads. Public ones: tools/unused_names.py."""
    python = {name: text for name, text in texts.items() if name.endswith(".py")}
    found = {name: re.findall(r"\b_[A-Za-z]\w*", text) for name, text in python.items()}
    words = Counter(chain.from_iterable(found.values()))
    suspects = [name for name, here in found.items() if any(words[word] == 1 for word in here)]
    for name in suspects:
        for statement in _tree(python[name]).body:
            for private in _private_names(statement):
                if words[private] == 1:
                    yield f"{name}: nothing reads {private}; delete it"


def _private_names(statement: ast.stmt) -> Iterator[str]:
    """Those that a statement of a module defines; not of decorated functions, which are registered somewhere."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if not statement.decorator_list:
            names = [statement.name]
        case ast.Assign():
            names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=found)):
            names = [found]
        case _:
            names = []
    yield from (found for found in names if re.fullmatch(r"_[A-Za-z]\w*", found))


def files() -> list[str]:
    """What git tracks or would: text of our own."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    texts = (".py", ".md", ".toml", ".sh", ".txt", ".j2", ".java", "Makefile", "run")
    return [name for name in listed if name.endswith(texts) and (ROOT / name).is_file()]


def complaints() -> list[str]:
    sources = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in files()}
    return [
        *packages_to_split([*texts]),
        *unread_private_names(texts),
        *names_given_twice(sources),
        *undeclared_dependencies(sources),
        *unused_extras((ROOT / "pyproject.toml").read_text(encoding="utf-8"), "\n".join(sources.values())),
        *_complaints_by_file(texts),
    ]


def _complaints_by_file(texts: Mapping[str, str]) -> Iterator[str]:
    yield from (
        f"{name}: {complaint}"
        for name, text in texts.items()
        if name != "tools/tidy.py"
        for rule in RULES
        for complaint in rule(name, text)
    )


if __name__ == "__main__":
    found = complaints()
    sys.exit("\n".join(found) or 0)
