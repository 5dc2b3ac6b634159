"""The embedded cluster behaves as Apache Kafka does: every behaviour looked at in both, the outcomes compared as values."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import recorded
from tests.conformance.behaviour import BEHAVIOURS, Outcome
from tests.conformance.behaviours import AREAS
from tests.conformance.differences import AT_MOST, DIFFERENCES, OF_OLDER_KAFKA
from tests.conformance.subject import Subject
from tests.kafka_versions import KAFKA

KAFKAS = recorded.read()
ROOT = Path(__file__).resolve().parents[2]


def of(outcome: Outcome) -> Outcome:
    """As it is compared; what was raised is raised again."""
    if isinstance(outcome, Exception):
        raise outcome
    return recorded.plain(outcome)


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_the_embedded_cluster_does_as_kafka_did(
    name: str, embedded_subject: Subject, embedded_loss: dict[str, Outcome]
) -> None:
    difference = DIFFERENCES.get(name)
    wanted = difference.outcome if difference else KAFKAS[name]
    one = BEHAVIOURS[name]
    assert of(embedded_loss[name] if one.loses_a_broker else one.look(embedded_subject)) == wanted


@pytest.mark.kafka
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_kafka_does_as_it_did(name: str, kafka_outcomes: dict[str, Outcome]) -> None:
    older = OF_OLDER_KAFKA.get(KAFKA, {}).get(name)
    assert of(kafka_outcomes[name]) == (older.outcome if older else KAFKAS[name])


def test_a_listed_difference_is_one() -> None:
    assert {name for name, one in DIFFERENCES.items() if one.outcome == KAFKAS[name]} == set()
    assert len(DIFFERENCES) <= AT_MOST
    assert all(one.reason for one in DIFFERENCES.values())
    older = [(name, one) for found in OF_OLDER_KAFKA.values() for name, one in found.items()]
    assert [name for name, one in older if one.outcome == KAFKAS[name] or not one.reason] == []


def test_there_are_behaviours_enough_of_every_area() -> None:
    count = Counter(one.area for one in BEHAVIOURS.values())
    assert sum(count.values()) > 220, "README.md and docs/conformance.md say over 220"
    assert {area: number for area, number in count.items() if number < 10} == {}
    assert set(count) == set(AREAS)


def test_what_is_recorded_is_what_is_looked_at() -> None:
    assert set(KAFKAS) == set(BEHAVIOURS)


def test_the_pages_count_the_behaviours_of_each_area() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+)[^|]*\| (\d+) \|$", page, re.MULTILINE)
    areas = Counter(one.area for one in BEHAVIOURS.values())
    assert {area: int(count) for area, count in rows} == areas
    assert f"| **all** | {len(BEHAVIOURS)} |" in page
    front = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"by {len(BEHAVIOURS)} behaviours" in front


def test_what_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/(?:cluster|conformance)/[^`]+)`", page)
    assert len(named) > 4
    for name in named:
        path, _, function = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), name
