"""Java's hash, by values that Java gives."""

import pytest

from rackspan.cluster.core.coordination.partitions import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("😀", 1772899),
    ],
)
def test_a_string_has_javas_hash(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_the_least_hash_lives_in_partition_0() -> None:
    assert partition_for("polygenelubricants", 50) == 0
