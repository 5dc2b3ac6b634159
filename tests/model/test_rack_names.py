"""Which names of racks may be fewer racks than they count as: on lists of one naming scheme none, on lists of two those of both."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from rackspan.model import RackId
from rackspan.model.rack_names import racks_alike, region_of_zone_id, region_of_zone_name, shared_places

LISTS = Path(__file__).parent / "rack_lists"

DIFFERENCES = {
    "written": "only",
    "zones": "some are names of zones, others ids of zones",
    "forms": "some are short forms, others long ones",
    "paths": "some are paths, others",
}


def racks(*names: str) -> list[RackId]:
    return [RackId(name) for name in names]


def lines(file: str) -> list[str]:
    return [
        line for line in (LISTS / file).read_text(encoding="utf-8").splitlines() if line and not line.startswith("# ")
    ]


def listed(text: str) -> list[RackId]:
    names = text.replace("\u2423", " ").split(" | ")
    return racks(*(name.encode().decode("unicode_escape") if "\\u" in name else name for name in names))


def groups(*names: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    return [(group.kept, group.others) for group in racks_alike(racks(*names))]


def one_scheme(rng: Random) -> Iterator[str]:
    """Racks by one template: words and numbers that are equal or count."""
    separators = rng.choices(["-", "_", "/", ".", ":", " ", ""], k=3)
    width, letters = rng.choice([1, 2, 3]), rng.random() < 0.3
    words = rng.sample(["dc", "rack", "row", "zone", "az", "hall", "eu", "us", "pod", "room", "r", "north", "x"], 3)
    depth = rng.randint(1, 3)
    for _ in range(rng.randint(2, 30)):
        name = ""
        for word, separator in zip(words[:depth], separators, strict=False):
            number = chr(ord("a") + rng.randrange(26)) if letters else f"{rng.randrange(60):0{width}}"
            # A separator stands between a letter and the word before it.
            name += (
                f"{word}{separator or '-' * letters}{number}{'' if word == words[depth - 1] else separators[2] or '-'}"
            )
        yield name


def test_no_name_of_one_scheme_is_alike() -> None:
    lists = lines("one_scheme.txt")
    assert len(set(lists)) >= 200
    assert {line: found for line in lists if (found := racks_alike(listed(line)))} == {}


@pytest.mark.parametrize("seed", range(300))
def test_no_name_of_one_template_is_alike(seed: int) -> None:
    names = sorted(set(one_scheme(Random(seed))))
    assert racks_alike(racks(*names)) == (), names


@pytest.mark.parametrize("line", lines("two_schemes.txt"))
def test_two_schemes_are_found_once_by_what_they_differ_in(line: str) -> None:
    kind, _, names = line.partition(": ")
    (found,) = racks_alike(listed(names))
    assert DIFFERENCES[kind] in found.difference
    assert found.same is (kind == "written")
    assert set(found.names) <= set(listed(names))
    assert found.kept
    assert found.others


def test_zone_names_and_zone_ids_are_found_whichever_of_them_are_one_zone() -> None:
    names, ids = ("us-east-1a", "us-east-1b", "us-east-1c"), ("use1-az1", "use1-az2", "use1-az4")
    assert groups(*ids, *names) == [(names, ids)]


def test_the_scheme_of_more_members_is_kept() -> None:
    found = racks_alike(racks("us-east-1a", "use1-az1", "use1-az1", "use1-az2"))
    assert [(group.kept, group.others) for group in found] == [(("use1-az1", "use1-az2"), ("us-east-1a",))]


def test_names_that_differ_by_case_blanks_or_unicode_form_only_are_alike() -> None:
    alike = racks_alike([*racks("\uff52\uff12", "R1", " r1", "r2", "r3", "r1", "r1"), None, None])
    assert [group.names for group in alike] == [("r1", " r1", "R1"), ("r2", "\uff52\uff12")]
    assert {group.difference for group in alike} == {"their names differ by case, blanks or Unicode form only"}


def test_letters_that_are_two_in_the_other_case_are_alike_too() -> None:
    assert groups("STRASSE", "straße") == [(("STRASSE",), ("straße",))]


def test_the_most_frequent_name_comes_first_and_of_equals_the_plain_one() -> None:
    assert groups("a", "A", "A") == [(("A",), ("a",))]
    assert groups("A", "a") == [(("a",), ("A",))]


def test_racks_are_alike_whose_names_differ_by_separators_or_leading_zeros() -> None:
    (found,) = racks_alike(racks("r1", "r1", "r-1", "R 01", "r2"))
    assert (found.kept, sorted(found.others)) == (("r1",), ["R 01", "r-1"])
    assert "separators, leading zeros" in found.difference
    assert groups("a-bc", "ab-c") == []
    assert groups("a-bc", "ab-c", "abc") == [(("a-bc",), ("ab-c", "abc"))]


def test_names_of_one_number_of_digits_are_other_racks_than_those_of_another() -> None:
    assert groups("1-11", "11-1") == []


def test_racks_of_other_names_and_none_at_all_are_not_alike() -> None:
    assert racks_alike([*racks("r1", "r1", "r2"), None]) == ()


def test_a_long_list_is_shown_with_names_of_both_schemes_and_the_rest_counted() -> None:
    (found,) = racks_alike(racks(*(f"dc1-r{number}" for number in range(30)), "r40", "r41"))
    assert str(found).endswith("'r40', 'r41' and 20 more count as 32")
    assert str(found).count("'dc1-r") == 10


def test_racks_of_one_place_are_found_where_names_are_paths() -> None:
    assert shared_places(racks("eu-1a/r1", "eu-1a/r2", "eu-1b/r1")) == {"eu-1a": ("eu-1a/r1", "eu-1a/r2")}
    assert shared_places(racks("eu-1a/r1", "eu-1a/r2")) == {"eu-1a": ("eu-1a/r1", "eu-1a/r2")}
    assert shared_places(racks("/dc/a/r1", "/dc/a/r2", "/dc/b/r1")) == {"dc/a": ("/dc/a/r1", "/dc/a/r2")}


@pytest.mark.parametrize(
    "names",
    [
        ["eu-1a/r1", "eu-1b/r1"],
        ["r1", "r2"],
        ["10.0.1.0/24", "10.0.1.128/25"],
        ["projects/p/zones/us-central1-a", "projects/p/zones/us-central1-b"],
        ["zones/1", "zones/2"],
    ],
)
def test_names_that_share_no_place_are_not_of_one(names: list[str]) -> None:
    assert shared_places(racks(*names)) == {}


def test_a_region_is_shortened_as_zone_ids_have_it() -> None:
    regions = {"us-east-1a": "use1", "ap-northeast-1c": "apne1", "us-gov-west-1a": "usgw1", "cn-northwest-1b": "cnnw1"}
    assert {zone: region_of_zone_name(zone) for zone in regions} == regions
    assert [region_of_zone_id(zone) for zone in ("use1-az1", "apse2-az12", "use1")] == ["use1", "apse2", None]
