import pytest

from rackspan.model.topic import parse_config_list


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", ()),
        ("  ", ()),
        ("delete", ("delete",)),
        (" delete ,\tcompact ", ("delete", "compact")),
        ("a,a", ("a", "a")),
        ("compact,", ("compact", "")),
        (",", ("", "")),
    ],
)
def test_a_config_list_is_split_as_kafkas_config_def_does(text: str, items: tuple[str, ...]) -> None:
    assert parse_config_list(text) == items
