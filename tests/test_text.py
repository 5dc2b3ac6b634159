import pytest

from rackspan.text import count_noun


@pytest.mark.parametrize(
    ("number", "layout", "text"),
    [(0, "", "0 racks"), (1, "", "1 rack"), (2, "", "2 racks"), (1000, "", "1000 racks"), (1000, ",", "1,000 racks")],
)
def test_a_noun_has_a_plural_but_for_one(number: int, layout: str, text: str) -> None:
    assert count_noun(number, "rack", layout) == text
