import re
from pathlib import Path

import pytest

from tools import tidy


def test_the_tree_is_tidy() -> None:
    assert tidy.complaints() == []


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("src/rackspan/a.py", "x = 1\n" * 601, tidy.too_long),
        ("src/rackspan/a.py", "# TO" + "DO: later\n", tidy.unfinished),
        ("docs/a.md", "see /wo" + "rk/here\n", tidy.elsewhere),
        ("src/rackspan/model/a.py", '"""A node."""\n', tidy.other_words),
        ("src/rackspan/new/__init__.py", "x = 1\n", tidy.unclear_packages),
        ("src/rackspan/new/__init__.py", '"""Sorts topics."""\n', tidy.unclear_packages),
        ("src/rackspan/new/__init__.py", '"""Never reads a file. Begin with gone.py."""\n', tidy.unclear_packages),
        ("src/rackspan/new/__init__.py", '"""Never reads a file; gone/ does."""\n', tidy.unclear_packages),
        ("src/rackspan/a.py", "x = 1  # noqa: E402\n", tidy.unexplained_ignores),
        ("src/rackspan/a.py", "x = 1  # type: ignore[misc]\n", tidy.unexplained_ignores),
        (
            "src/rackspan/a.py",
            'def a() -> None:\n    """Sorts. Method: merge. Bound: n log n."""\n',
            tidy.unproven_methods,
        ),
        ("src/rackspan/a.py", '"""Sorts. Method: merge. Test: tests/test_a.py."""\n', tidy.unproven_methods),
        ("src/rackspan/a.py", '"""Sorts. Test: tests/test_none.py."""\n', tidy.missing_modules),
        ("src/rackspan/a.py", "x = 1  # as in gone.py\n", tidy.missing_modules),
        ("src/rackspan/a.py", "x = [one for one in ()]\n", tidy.loops_over_one),
        ("src/rackspan/a.py", '"""What is read."""\n', tidy.headless_docstrings),
        ("src/rackspan/a.py", 'def a() -> None:\n    """Of one cluster."""\n', tidy.headless_docstrings),
        ("src/rackspan/a.py", "def a(delay: float) -> None: ...\n", tidy.without_unit),
        ("src/rackspan/a.py", "class A:\n    size: int\n", tidy.without_unit),
        ("tests/test_a.py", "created.result(20)\n", tidy.short_limits),
        ("tests/test_a.py", "admin.list_topics(timeout=10)\n", tidy.short_limits),
        ("tests/test_a.py", "create_connection(address, 5.0)\n", tidy.short_limits),
        ("tests/test_a.py", "SECONDS = 30\ngateway.process.wait(SECONDS)\n", tidy.short_limits),
        ("tests/test_a.py", "until = time.monotonic() + 60\n", tidy.short_limits),
        ("src/rackspan/a.py", "for number, one in enumerate(()):\n", tidy.loops_over_one),
    ],
)
def test_each_rule_finds_what_it_is_for(name: str, text: str, rule: tidy.Rule) -> None:
    assert list(rule(name, text))


def test_an_extra_that_nothing_imports_is_found() -> None:
    project = '[project.optional-dependencies]\nweb = ["starlette>=0.45"]\nclients = ["confluent-kafka>=2.6"]\n'
    found = list(tidy.unused_extras(project, "    from confluent_kafka import Producer\n"))
    assert found == ["extra web: no module of src imports starlette; remove it"]


def test_a_class_name_that_is_given_twice_is_found() -> None:
    sources = {"src/rackspan/a.py": "class Level:\n", "src/rackspan/b.py": "class Level(Enum):\nclass _Level:\n"}
    assert list(tidy.names_given_twice(sources)) == [
        "class Level: in src/rackspan/a.py and in src/rackspan/b.py; name each by what it is"
    ]
    assert not list(tidy.names_given_twice({"src/rackspan/a.py": "class Level:\nclass Source:\n"}))


def test_a_private_name_that_nothing_reads_is_found() -> None:
    texts = {
        "src/a.py": "_UNREAD: Final = 1\n_READ = 2\ndef _dead() -> int:\n    return _READ\n@app.command\ndef _registered() -> None: ...\n",
        "tests/b.py": "_SHARED = 1\nclass _Alone: ...\n",
        "tests/c.py": "from tests.b import _SHARED\n",
        "docs/d.md": "`_Alone`\n",
    }
    assert list(tidy.unread_private_names(texts)) == [
        "src/a.py: nothing reads _UNREAD; delete it",
        "src/a.py: nothing reads _dead; delete it",
        "tests/b.py: nothing reads _Alone; delete it",
    ]


def test_a_package_whose_docstring_lacks_what_it_imports_is_found() -> None:
    begin = '"""Never reads. Depends on: {}."""\n'
    sources = {
        "src/rackspan/a/__init__.py": begin.format("b, c"),
        "src/rackspan/a/module.py": "from rackspan import b\ndef late():\n    from rackspan.c import x\nfrom rackspan.a import y\n",
        "src/rackspan/b/__init__.py": begin.format("a, c"),
        "src/rackspan/c/__init__.py": '"""Never reads. Depends on no other package."""\n',
    }
    assert list(tidy.undeclared_dependencies(sources)) == [
        "src/rackspan/b/__init__.py: end the docstring with: Depends on no other package."
    ]


def test_a_package_with_more_modules_than_fit_into_one_look_is_found() -> None:
    names = ["src/rackspan/new/__init__.py", *(f"src/rackspan/new/m{number}.py" for number in range(13))]
    assert list(tidy.packages_to_split(names))
    assert not list(tidy.packages_to_split(names[:-1]))


def test_the_picture_and_the_table_of_architecture_have_every_package() -> None:
    page = Path("ARCHITECTURE.md").read_text()
    picture = re.findall(r"\w+", page.split("```")[1])
    packages = {folder.parent.name for folder in Path("src/rackspan").glob("*/__init__.py")}
    assert packages - set(picture) == set()
    assert [package for package in packages if f"`{package}/" not in page] == []


def test_what_architecture_names_to_begin_with_exists() -> None:
    """`ARCHITECTURE.md`: | `package/` | what it does | `file.py` |."""
    rows = re.findall(r"^\| (`[^|]*`) \|.*\| ([^|]+) \|$", Path("ARCHITECTURE.md").read_text(), re.MULTILINE)
    code = Path("src/rackspan")
    missing = [
        file
        for packages, files in rows
        for file in re.findall(r"`([^`]+\.py)`", files)
        if not any((code / package / file).exists() for package in re.findall(r"`([^`]+)`", packages))
        and not Path(file).exists()
    ]
    assert rows
    assert missing == []
