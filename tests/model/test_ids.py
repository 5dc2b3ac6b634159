"""How partitions and racks are written in messages, and which names of racks read alike."""

from rackspan.model import RackId, TopicPartition, shown
from rackspan.model.ids import racks_alike


def racks(*names: str) -> list[RackId]:
    return [RackId(name) for name in names]


def test_a_partition_is_written_as_kafka_names_its_folder() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_the_rack_without_a_name_is_shown_in_words() -> None:
    assert [shown(rack) for rack in racks("", "eu-1")] == ["(no rack)", "eu-1"]


def test_names_that_differ_by_case_blanks_or_unicode_form_only_are_alike() -> None:
    alike = racks_alike([*racks("ｒ２", "R1", " r1", "r2", "r3", "r1", "r1"), None, None])
    assert alike == (("r1", " r1", "R1"), ("r2", "ｒ２"))


def test_letters_that_are_two_in_the_other_case_are_alike_too() -> None:
    assert racks_alike(racks("STRASSE", "straße")) == (("STRASSE", "straße"),)


def test_the_most_frequent_name_comes_first_and_of_equals_the_plain_one() -> None:
    assert racks_alike(racks("a", "A", "A")) == (("A", "a"),)
    assert racks_alike(racks("A", "a")) == (("a", "A"),)


def test_racks_of_other_names_and_none_at_all_are_not_alike() -> None:
    assert racks_alike([*racks("r1", "r1", "r2", "r-1"), None]) == ()
