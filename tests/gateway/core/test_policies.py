"""Values of min.insync.racks: topics created anew, records that cannot be read, and the override."""

import json
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from rackspan.gateway.core import policies as policies_module
from rackspan.gateway.core.policies import (
    GONE_SECONDS,
    Entry,
    FilePolicies,
    Policies,
    Scope,
    TopicPolicy,
    ValueSource,
    parse_record,
    record,
)
from rackspan.model import INT32_MAX

IDS = [UUID(int=number) for number in range(1, 9)]


def with_entry(topic_id: UUID, value: int = 2) -> Policies:
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.TOPIC, "t", Entry(value, topic_id)))
    return policies


def test_a_late_report_of_an_earlier_topic_does_not_unguard() -> None:
    policies = Policies(FilePolicies())
    policies.record_topic("t", IDS[0], 0)
    policies.record_topic("t", IDS[1], 0)
    policies.replay(*record(Scope.TOPIC, "t", Entry(2, IDS[1])))
    policies.record_topic("t", IDS[0], 0)
    assert policies.requirement("t", 1) is not None


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, pytest.param(6, marks=pytest.mark.soak)])
def test_the_value_of_the_topic_that_there_is_applies_whatever_is_reported_late(length: int) -> None:
    """Every sequence of so many events. A report may be as old as GONE_SECONDS, less one."""
    for events in product(("create", "alter", "fresh", "late", "wait"), repeat=length):
        policies = Policies(FilePolicies())
        now, altered = 0.0, False
        created = [(-1e9, IDS[0])]
        for event in events:
            if event == "create":
                created.append((now, IDS[len(created)]))
                altered = False
            elif event == "alter":
                policies.replay(*record(Scope.TOPIC, "t", Entry(2, created[-1][1])))
                altered = True
            elif event == "wait":
                now += GONE_SECONDS / 2
            else:
                at = now - (GONE_SECONDS - 1 if event == "late" else 0)
                policies.record_topic("t", [topic_id for since, topic_id in created if since <= at][-1], now)
            assert not altered or policies.requirement("t", 1) is not None, events


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, pytest.param(6, marks=pytest.mark.soak)])
def test_a_value_below_the_default_is_never_that_of_a_topic_created_anew(length: int) -> None:
    """Every sequence of so many events, where the present topic's id was reported once. Reports may be as old as GONE_SECONDS, less one."""
    for events in product(("create", "lower", "fresh", "late", "wait"), repeat=length):
        policies = Policies(FilePolicies(min_insync_racks=2))
        now, lowered, reported = 0.0, False, False
        created = [(-1e9, IDS[0])]
        for event in events:
            if event == "create":
                created.append((now, IDS[len(created)]))
                lowered = reported = False
            elif event == "lower":
                policies.replay(*record(Scope.TOPIC, "t", Entry(1, created[-1][1])))
                lowered = True
            elif event == "wait":
                now += GONE_SECONDS / 2
            else:
                at = now - (GONE_SECONDS - 1 if event == "late" else 0)
                topic_id = [topic_id for since, topic_id in created if since <= at][-1]
                policies.record_topic("t", topic_id, now)
                reported = reported or topic_id == created[-1][1]
            assert not reported or lowered or policies.requirement("t", 1) is not None, events


def test_a_value_below_the_default_counts_once_the_topic_is_known_to_be_its_own() -> None:
    policies = Policies(FilePolicies(min_insync_racks=2))
    policies.replay(*record(Scope.TOPIC, "t", Entry(1, IDS[0])))
    assert policies.requirement("t", 1) is not None
    assert policies.lowering_topics() == ["t"]
    policies.record_topic("t", IDS[0], 0)
    assert policies.requirement("t", 1) is None
    policies.record_topic("t", IDS[1], 1)
    assert policies.requirement("t", 1) is not None
    # A broker whose metadata is behind reports either of them for a while: the other one is gone when it was not reported for a minute.
    policies.record_topic("t", IDS[0], GONE_SECONDS)
    assert policies.requirement("t", 1) is not None
    policies.record_topic("t", IDS[0], 1 + GONE_SECONDS)
    assert policies.requirement("t", 1) is None


def test_a_name_that_no_topic_can_have_requires_nothing_and_is_not_kept() -> None:
    policies = Policies(FilePolicies(min_insync_racks=2))
    assert policies.requirement("t" * 249, 1) is not None
    assert policies.requirement("t" * 250, 1) is None
    assert len(policies._cache) == 1


def test_values_that_lower_nothing_need_no_report_of_ids() -> None:
    policies = with_entry(IDS[0])
    assert policies.lowering_topics() == []
    assert policies.requirement("t", 1) is not None
    # Without topic ids there is nothing to compare.
    policies = Policies(FilePolicies(min_insync_racks=2))
    policies.replay(*record(Scope.TOPIC, "t", Entry(1)))
    assert policies.requirement("t", 1) is None
    # The default of one broker alone is lowered too.
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.BROKER, "7", Entry(2)))
    policies.replay(*record(Scope.TOPIC, "t", Entry(1, IDS[0])))
    assert policies.lowering_topics() == ["t"]
    assert (policies.requirement("t", 7) is None, policies.requirement("t", 1) is None) == (False, True)


def test_a_value_is_gone_when_only_another_id_was_reported_for_a_minute() -> None:
    policies = with_entry(IDS[0])
    policies.record_topic("t", IDS[1], 100)
    policies.record_topic("t", IDS[1], 100 + GONE_SECONDS - 1)
    assert policies.requirement("t", 1) is not None
    policies.record_topic("t", IDS[0], 100 + GONE_SECONDS)
    policies.record_topic("t", IDS[1], 100 + GONE_SECONDS)
    assert policies.requirement("t", 1) is not None
    policies.record_topic("t", IDS[1], 100 + 2 * GONE_SECONDS)
    assert policies.requirement("t", 1) is None
    # The topic is read again, which is no news; a report of the entry's own id is.
    policies.replay(*record(Scope.TOPIC, "t", Entry(2, IDS[0])))
    assert policies.requirement("t", 1) is None
    policies.record_topic("t", IDS[0], 100 + 3 * GONE_SECONDS)
    assert policies.requirement("t", 1) is not None


def test_a_value_is_gone_at_once_when_create_topics_reported_a_new_id() -> None:
    policies = with_entry(IDS[0])
    policies.record_created("t", policies.entry_id("t"), IDS[1], 0)
    policies.record_topic("t", IDS[0], 1)
    assert policies.requirement("t", 1) is None
    policies.replay(*record(Scope.TOPIC, "t", Entry(3, IDS[1])))
    assert policies.topic_value("t", 1) == (3, ValueSource.TOPIC)


def test_a_late_response_of_create_topics_does_not_unguard_a_later_topic() -> None:
    policies = with_entry(IDS[0])
    earlier = policies.entry_id("t")
    policies.replay(*record(Scope.TOPIC, "t", Entry(2, IDS[2])))
    policies.record_created("t", earlier, IDS[1], 0)
    assert policies.requirement("t", 1) is not None


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 100_000,
        json.dumps({"version": 2, "min.insync.racks": 2}).encode(),
        json.dumps({"version": 1, "min.insync.racks": 0}).encode(),
        json.dumps({"version": 1, "min.insync.racks": "2"}).encode(),
        json.dumps({"version": 1, "min.insync.racks": 2, "topic_id": "x"}).encode(),
    ],
)
def test_a_record_that_cannot_be_read_refuses_and_never_unguards(
    value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    key, _ = record(Scope.TOPIC, "t", None)
    policies = with_entry(IDS[0])
    policies.record_topic("t", IDS[1], 0)
    policies.replay(key, value)
    requirement = policies.requirement("t", 1)
    assert requirement is not None
    assert requirement.thresholds.min_insync_racks == INT32_MAX
    assert policies.unreadable == [(Scope.TOPIC, "t")]
    assert caplog.messages == [
        "topic t: its record in the config topic cannot be read, so that acks=all is refused there; update this gateway "
        "if a later version wrote the record, else set min.insync.racks again"
    ]
    # It is repaired by setting the value again, which no number of racks could hold otherwise.
    assert policies.largest == 1
    policies.replay(*record(Scope.TOPIC, "t", Entry(2, IDS[1])))
    assert (policies.unreadable, policies.topic_value("t", 1)) == ([], (2, ValueSource.TOPIC))


@pytest.mark.parametrize(
    "key", [None, b"", b"{}", b"[]", b'{"type": "group", "name": "g"}', b'{"type": "topic", "name": 1}']
)
def test_a_record_without_a_readable_key_is_counted(key: bytes | None) -> None:
    policies = with_entry(IDS[0])
    policies.replay(key, b"{}")
    assert parse_record(key, b"{}") is None
    assert (policies.unreadable_keys, policies.topic_value("t", 1)[0]) == (1, 2)


def test_the_override_lowers_every_value_and_raises_none() -> None:
    policies = with_entry(IDS[0], 3)
    policies.replay(*record(Scope.BROKER, "1", Entry(2)))
    written = FilePolicies(2, {"written": TopicPolicy(3), "one": TopicPolicy(1)})
    policies.replace_file(written)
    assert [policies.topic_value(topic, 1)[0] for topic in ("t", "written", "one", "other")] == [3, 3, 1, 2]
    assert (policies.largest, sorted(policies.guarded_topics())) == (3, ["t", "written"])
    policies.replace_file(FilePolicies(2, written.topics, override=2))
    assert [policies.topic_value(topic, 1) for topic in ("t", "one")] == [
        (2, ValueSource.OVERRIDE),
        (1, ValueSource.FILE_TOPIC),
    ]
    assert policies.largest == 2
    policies.replace_file(FilePolicies(2, written.topics, override=1))
    assert policies.guarded_topics() == []
    assert all(policies.requirement(topic, 1) is None for topic in ("t", "written", "one", "other"))


@pytest.mark.parametrize(
    ("scope", "name", "value", "racks"),
    [
        (Scope.TOPIC, "two", 3, 3),  # A raise.
        (Scope.TOPIC, "new", 2, 2),  # The default of all brokers, which is in force if the record is lost.
        (Scope.TOPIC, "one", 2, 3),  # A raise, held as safely as the value 3 that is in force elsewhere.
        (Scope.TOPIC, "three", 2, 2),  # Lowered while a rack is down.
        (Scope.TOPIC, "three", 1, 1),
        (Scope.TOPIC, "two", 2, 2),
        (Scope.TOPIC, "three", None, 2),  # Removed: the default of all brokers is in force again, which is lower.
        (Scope.TOPIC, "one", None, 3),  # Removed, which raises it to that default.
        (Scope.BROKER, "", 1, 1),
        (Scope.BROKER, "", 3, 3),
    ],
)
def test_a_raise_is_held_in_as_many_racks_as_any_value_requires_and_a_lowering_as_the_new_one(
    scope: Scope, name: str, value: int | None, racks: int
) -> None:
    policies = Policies(FilePolicies())
    for topic, known in (("one", 1), ("two", 2), ("three", 3)):
        policies.replay(*record(Scope.TOPIC, topic, Entry(known)))
    policies.replay(*record(Scope.BROKER, "", Entry(2)))
    assert policies.racks_to_hold(scope, name, value) == racks


@pytest.mark.parametrize(
    ("entries", "change", "expected"),
    [
        ({(Scope.BROKER, "1"): 3, (Scope.BROKER, "2"): 3}, (Scope.BROKER, "1", None), (3, 1)),
        ({(Scope.BROKER, "1"): 3, (Scope.BROKER, ""): 2}, (Scope.BROKER, "1", None), (3, 2)),
        ({(Scope.BROKER, ""): 3}, (Scope.BROKER, "1", 2), (3, 2)),
        ({(Scope.BROKER, ""): 2, (Scope.BROKER, "1"): 2}, (Scope.BROKER, "", None), (2, 1)),
        ({(Scope.TOPIC, "t"): 2, (Scope.BROKER, "1"): 2}, (Scope.TOPIC, "t", None), (2, 1)),
        ({(Scope.BROKER, "1"): 3}, (Scope.TOPIC, "t", 2), (3, 2)),
        ({(Scope.TOPIC, "filed"): 5, (Scope.BROKER, "1"): 2}, (Scope.TOPIC, "filed", None), (5, 4)),
        ({(Scope.BROKER, "2"): 2}, (Scope.BROKER, "1", 1), (1, 1)),
    ],
)
def test_what_a_change_lowers_is_compared_for_each_broker(
    entries: dict[tuple[Scope, str], int], change: tuple[Scope, str, int | None], expected: tuple[int, int]
) -> None:
    policies = Policies(FilePolicies(topics={"filed": TopicPolicy(4)}))
    for (scope, name), value in entries.items():
        policies.replay(*record(scope, name, Entry(value)))
    assert policies.largest_change(*change) == expected


def test_a_topics_value_in_the_file_is_compared_with_what_it_precedes() -> None:
    policies = Policies(FilePolicies(3))
    policies.replay(*record(Scope.BROKER, "1", Entry(5)))
    for topics, lowered in (({"t": 5}, 0), ({"t": 4}, 1), ({}, 2), ({"t": 6}, 2), ({"t": 1}, 3), ({}, 3)):
        policies.replace_file(FilePolicies(3, {topic: TopicPolicy(value) for topic, value in topics.items()}))
        assert policies.lowered == lowered, topics


def test_a_file_that_lowers_values_is_a_warning_for_each(caplog: pytest.LogCaptureFixture) -> None:
    policies = Policies(FilePolicies(2, {"a": TopicPolicy(3), "b": TopicPolicy(2)}))
    policies.replay(*record(Scope.TOPIC, "c", Entry(3)))
    policies.replace_file(FilePolicies(2, {"a": TopicPolicy(3), "b": TopicPolicy(3)}))
    assert policies.lowered == 0
    policies.replace_file(FilePolicies(1, {"b": TopicPolicy(3)}, override=2))
    lowered = [message.partition(", so that")[0] for message in caplog.messages]
    assert lowered == [
        f"{place}: min.insync.racks is lowered from {before} to {after}"
        for place, before, after in (
            ("the file's acknowledgements.min.insync.racks", 2, 1),
            ("the file's topic a", 3, 1),
            ("the file's topic b", 3, 2),
            ("topic c", 3, 2),
        )
    ]
    assert policies.lowered == 4


def test_a_value_that_cannot_be_read_is_replaced_as_by_a_raise() -> None:
    policies = Policies(FilePolicies())
    policies.replay(*record(Scope.TOPIC, "three", Entry(3)))
    key, _ = record(Scope.TOPIC, "odd", Entry(2))
    policies.replay(key, b"{")
    assert policies.racks_to_hold(Scope.TOPIC, "odd", 1) == 3


def test_requirements_of_ever_new_topics_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies_module, "_MOST_CACHED", 3)
    policies = Policies(FilePolicies(2))
    for number in range(20):
        requirement = policies.requirement(f"topic-{number}", 1)
        assert requirement is not None
        assert requirement.thresholds.min_insync_racks == 2
        assert len(policies._cache) <= 3


def test_a_topic_without_a_value_has_that_of_its_leader_then_of_all_brokers_then_of_the_file() -> None:
    policies = Policies(FilePolicies(4))
    assert policies.topic_value("t", 1) == (4, ValueSource.FILE)
    policies.replay(*record(Scope.BROKER, "", Entry(3)))
    assert policies.topic_value("t", 1) == (3, ValueSource.CLUSTER)
    policies.replay(*record(Scope.BROKER, "1", Entry(2)))
    assert policies.topic_value("t", 1) == (2, ValueSource.BROKER)
    assert policies.topic_value("t", 2) == policies.topic_value("t", None) == (3, ValueSource.CLUSTER)
    assert Policies(FilePolicies()).topic_value("t", 1) == (1, ValueSource.DEFAULT)


def test_records_that_cannot_be_read_are_named_those_of_brokers_before_those_of_topics() -> None:
    policies = Policies(FilePolicies())
    for scope, name in ((Scope.TOPIC, "pay"), (Scope.BROKER, "1"), (Scope.TOPIC, "orders"), (Scope.BROKER, "")):
        policies.replay(record(scope, name, None)[0], b"{")
    policies.replay(*record(Scope.TOPIC, "logs", Entry(2)))
    brokers, topics = [(Scope.BROKER, ""), (Scope.BROKER, "1")], [(Scope.TOPIC, "orders"), (Scope.TOPIC, "pay")]
    assert policies.unreadable == [*brokers, *topics]


def test_what_a_value_that_is_not_known_could_not_raise_needs_no_lease() -> None:
    def raisable(**config: Any) -> list[bool]:
        policies = Policies(FilePolicies(**{"topics": {"guarded": TopicPolicy(2)}, **config}))
        return [policies.is_raisable(topic, 1) for topic in ("guarded", "plain")]

    assert raisable() == [True, True]
    assert raisable(override=1) == [False, False]
    assert raisable(override=2) == [False, True]
    assert raisable(override=3) == [True, True]
    assert raisable(fail_open=True) == [False, False]
    assert raisable(topics={"guarded": TopicPolicy(2), "plain": TopicPolicy(fail_open=True)}) == [True, False]
