"""Java's hash of a string, by values that Java gives."""

import pytest

from rackspan.kafka_bytes.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("Aa", 2112),
        ("BB", 2112),
        ("rack1", 108269626),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("😀", 1772899),
        ("𝄞", 1772394),
    ],
)
def test_a_string_has_javas_hash(text: str, code: int) -> None:
    assert java_hash(text) == code
