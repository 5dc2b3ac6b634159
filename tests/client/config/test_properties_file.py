"""Properties are read as Java reads them. Expected values: what java.util.Properties.load gives for the same text."""

from pathlib import Path

import pytest

from rackspan.client.config.properties_file import parse_properties, read_properties
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
    assert read_properties(path) == {"client.id": "é"}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--command-config .*absent\.properties: No such file"):
        read_properties(tmp_path / "absent.properties")
