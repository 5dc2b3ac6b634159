"""Properties are read as Java reads them. Expected values: what java.util.Properties.load gives for the same text."""

from pathlib import Path

import pytest

from rackspan.client.config.properties_file import Property, load_properties, parse_properties
from rackspan.errors import UsageError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb:2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("  a  =  1  ", {"a": "1  "}),
        ("# no\n! no\n\n  # no\na=1", {"a": "1"}),
        ("a=1 \\\n    2 \\\r\n  3", {"a": "1 2 3"}),
        ("a=x\\\\\nb=y", {"a": "x\\", "b": "y"}),
        ("a\\=b=c\\:d", {"a=b": "c:d"}),
        ("tab=\\t\nnew=\\n\nu=\\u00e9\\u20ac", {"tab": "\t", "new": "\n", "u": "é€"}),
        ("alone\nempty=", {"alone": "", "empty": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b=c d # e", {"a": "b=c d # e"}),
        ("a=1\\", {"a": "1"}),
        ("url=C:\\temp", {"url": "C:\temp"}),
        ("a=\\\n# value", {"a": "# value"}),
    ],
)
def test_text_becomes_keys_and_values(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_file_is_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("client.id=é\n".encode("latin-1"))
    assert load_properties(path) == [Property(1, "client.id", "é")]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--command-config .*absent\.properties: No such file"):
        load_properties(tmp_path / "absent.properties")


def test_a_property_has_the_number_of_the_line_where_it_begins(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# a comment\na=1 \\\n  2\n\nb=3\n\\\nc=4\n")
    assert load_properties(path) == [Property(2, "a", "1 2"), Property(5, "b", "3"), Property(6, "c", "4")]


def test_an_escape_that_is_none_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("a=1\nb=C:\\users\n")
    with pytest.raises(UsageError, match=r"client\.properties: line 2: \\u needs four hexadecimal digits"):
        load_properties(path)
