"""Registrations of gateways in the config topic: which of them another gateway names, and why."""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.config_records import ConfigRecords
from rackspan.gateway.core.gateways.differences import Difference, Reason, differences
from rackspan.gateway.core.gateways.registrations import (
    HEARTBEAT_SECONDS,
    GatewayRecords,
    GatewayRegistration,
    confirmation_record,
    registration_record,
)
from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.kafka_bytes.record_batch import stamp, write_batch
from tests.gateway.core.test_config_records import at

Record = tuple[bytes | None, bytes | None]
OFF, ADVISORY, PRE, VERIFIED, STRICT = AcknowledgementMode


def written(name: str, seconds: float, **fields: Any) -> Record:
    """A registration as it stands in the topic: the keys are those of the format, not of the code."""
    value = {
        "version": 1,
        "incarnation_id": f"{name}-1",
        "uptime_seconds": seconds,
        "release": "0.2.0",
        "mode": "verified",
        "lease_seconds": 3.0,
        **fields,
    }
    return key_of(name), json.dumps(value).encode()


def key_of(name: str) -> bytes:
    return json.dumps({"optional": True, "type": "gateway", "name": name}).encode()


def read(*records: Record) -> GatewayRecords:
    """As a gateway has them that reads the topic from its beginning."""
    topic = ConfigRecords(lambda _key, _value: None)
    topic.replay_batches(b"".join(at(offset, record) for offset, record in enumerate(records)))
    topic.end()
    return topic.gateways


def named(gateways: GatewayRecords, mode: AcknowledgementMode = VERIFIED, own: str = "a") -> list[Difference]:
    return differences(gateways.gateways, own, "0.2.0", mode, 3.0)


def reasons(gateways: GatewayRecords, mode: AcknowledgementMode = VERIFIED, own: str = "a") -> list[tuple[str, str]]:
    return [(difference.gateway, difference.reason.value) for difference in named(gateways, mode, own)]


def beats(name: str, times: Iterable[float], **fields: Any) -> list[Record]:
    return [written(name, seconds, **fields) for seconds in times]


def test_a_registration_has_these_bytes() -> None:
    """They are read by every later release."""
    key, value = registration_record("gw-1:19092", GatewayRegistration("i", 12.34567, "0.2.0", STRICT, 3.0))
    assert key == b'{"name": "gw-1:19092", "optional": true, "type": "gateway"}'
    assert json.loads(value or b"") == {
        "version": 1,
        "incarnation_id": "i",
        "uptime_seconds": 12.346,
        "release": "0.2.0",
        "mode": "strict",
        "lease_seconds": 3.0,
    }
    assert registration_record("a", None) == (b'{"name": "a", "optional": true, "type": "gateway"}', None)
    assert confirmation_record() == (b'{"optional": true, "type": "confirmation"}', b'{"version": 1}')


def test_gateways_that_are_alike_are_not_named() -> None:
    gateways = read(written("a", 0), written("b", 0), written("c", 5, mode="strict"))
    assert sorted(gateways.gateways) == ["a", "b", "c"]
    assert named(gateways) == []
    assert named(gateways, STRICT) == []


@pytest.mark.parametrize(
    ("other", "own", "is_named"),
    [
        ("off", VERIFIED, True),
        ("off", ADVISORY, True),
        ("advisory", PRE, True),
        ("pre", STRICT, True),
        ("advisory", ADVISORY, False),
        ("pre", ADVISORY, False),
        ("strict", PRE, False),
        ("off", OFF, False),
    ],
)
def test_a_gateway_whose_mode_promises_less_is_named(other: str, own: AcknowledgementMode, is_named: bool) -> None:
    assert reasons(read(written("b", 0, mode=other)), own) == ([("b", "mode")] if is_named else [])


@pytest.mark.parametrize(
    ("release", "is_older"),
    [
        ("0.1.0", True),
        ("0.2.0.dev0", True),
        ("0.2.0rc1", True),
        ("", True),
        ("0.2.0", False),
        ("0.2", False),
        ("0.2.0.post1", False),
        ("0.10.0", False),
        ("0.10.0.dev0", False),
        ("1", False),
    ],
)
def test_an_older_release_is_named(release: str, is_older: bool) -> None:
    assert reasons(read(written("b", 0, release=release))) == ([("b", "older")] if is_older else [])


def test_another_lease_is_named_unless_the_gateway_acknowledges_without_one() -> None:
    assert reasons(read(written("b", 0, lease_seconds=5))) == [("b", "lease")]
    assert reasons(read(written("b", 0, lease_seconds=5, mode="off"))) == [("b", "mode")]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        json.dumps({"version": 1}).encode(),
        written("b", 0, version=2)[1],
        written("b", 0, mode="newer")[1],
        written("b", 0, mode=[])[1],
        written("b", 0, incarnation_id=7)[1],
        written("b", 0, release=None)[1],
        written("b", 0, uptime_seconds="x")[1],
        written("b", float("nan"))[1],
        written("b", 0, lease_seconds=float("inf"))[1],
    ],
)
def test_a_registration_that_cannot_be_read_is_named_and_is_no_value_that_cannot_be_read(value: bytes) -> None:
    policies = Policies(FilePolicies())
    topic = ConfigRecords(policies.replay)
    topic.replay_batches(at(0, (key_of("b"), value)))
    topic.end()
    assert reasons(topic.gateways) == [("b", "unreadable")]
    assert (policies.unreadable_keys, policies.unreadable, policies.changes) == (0, [], 0)


def test_optional_records_of_another_kind_are_ignored_and_others_are_counted() -> None:
    """What a later release writes and an older one may ignore is optional. A key that is not is never guessed at."""
    policies = Policies(FilePolicies())
    topic = ConfigRecords(policies.replay)
    later: Mapping[str, Any] = {"type": "later", "name": "x"}
    optional = [{**later, "optional": True}, {"type": "gateway", "name": 7, "optional": True}, {"optional": True}]
    keys = [*optional, {**later, "optional": 1}, later]
    topic.replay_batches(at(0, *((json.dumps(key).encode(), b"?") for key in keys)))
    topic.end()
    assert (topic.gateways.gateways, policies.unreadable_keys) == ({}, 2)


def test_a_name_that_no_gateway_can_have_is_ignored() -> None:
    """It would stand in a printed command and in the log."""
    assert read(*(written(name, 0) for name in ("a b", "", "$(x)", "a\n", "x" * 201))).gateways == {}


def test_a_gateway_is_silent_once_another_one_has_registered_for_three_periods_after_it() -> None:
    before = [*beats("a", (0,)), written("b", 0)]
    assert reasons(read(*before, *beats("a", (30, 60, 90)))) == []
    # From 30 to 120 s: the time from b's last registration to 30 s may be none.
    assert reasons(read(*before, *beats("a", (30, 60, 90, 120)))) == [("b", "silent")]
    assert reasons(read(*before, *beats("a", (30, 60, 90, 119.9)))) == []


def test_a_silent_gateway_that_registers_again_is_not_named_any_more() -> None:
    silent = [written("a", 0), written("b", 0), *beats("a", (30, 60, 90, 120))]
    assert reasons(read(*silent, written("b", 200))) == []
    assert reasons(read(*silent, written("b", 200), *beats("a", (150, 180, 210, 240)))) == [("b", "silent")]


def test_a_gateway_that_ended_in_order_is_not_named() -> None:
    assert reasons(read(written("b", 0, mode="off"), (key_of("b"), None), *beats("a", (0, 30, 60, 90, 120)))) == []


def test_no_gateway_is_silent_while_none_registers() -> None:
    """The topic takes no records: nobody can register, and everybody may be serving."""
    assert reasons(read(written("b", 0), written("a", 0))) == []


def test_a_gateway_that_was_suspended_or_cut_off_does_not_name_the_others() -> None:
    """It registers once after an hour, while the others have done so all the time."""
    assert reasons(read(written("a", 0), *beats("b", (0, 30, 3600)), written("a", 3600), written("b", 3630))) == []
    assert reasons(read(written("a", 0), *beats("b", (0, 30, 3600)), written("a", 3600), written("a", 3630))) == []


def test_time_of_two_processes_is_not_compared() -> None:
    """The gateway that observes is restarted again and again, and its uptime begins anew."""
    restarts = [
        written("a", seconds, incarnation_id=f"a-{number}") for number in range(5) for seconds in (1000.0 * number, 30)
    ]
    assert reasons(read(written("b", 0), *restarts)) == []


def test_no_wall_clock_counts() -> None:
    """Timestamps of records are of their writers' clocks, or of brokers'."""
    topic = ConfigRecords(lambda _key, _value: None)
    rng = random.Random(7)
    records = [written("a", 0), written("b", 0), *beats("a", (30, 60)), written("b", 60), written("a", 90)]
    for offset, record_ in enumerate(records):
        batch = bytearray(write_batch([record_], rng.randrange(2**42)))
        stamp(batch, base_offset=offset, leader_epoch=1)
        topic.replay_batches(bytes(batch))
    topic.end()
    assert reasons(topic.gateways) == []


def test_two_gateways_of_one_name_are_named_until_one_of_them_is_silent() -> None:
    one, other = [{"incarnation_id": f"b-{number}"} for number in (1, 2)]
    restarted = [written("b", 0, **one), written("b", 0, **other)]
    assert reasons(read(*restarted)) == []
    twice = [*restarted, written("b", 30, **one)]
    assert reasons(read(*twice)) == [("b", "duplicate")]
    assert reasons(read(*twice), own="b") == [("b", "duplicate")], "the gateway itself names it too"
    assert reasons(read(*twice, *beats("b", (60, 90, 120), **one))) == [("b", "duplicate")]
    assert reasons(read(*twice, *beats("b", (60, 90, 120, 150), **one))) == []
    assert "gateway.id" in named(read(*twice))[0].warning


def test_a_gateway_does_not_name_itself() -> None:
    """Its last registration may be of before a restart, in another mode and release."""
    assert reasons(read(written("a", 0, mode="off", release="0.1", lease_seconds=9))) == []


def test_what_is_read_again_keeps_the_silence_of_who_has_not_registered_meanwhile() -> None:
    """After a change of leader the topic is read from its beginning, where compaction has left the last record of each key."""
    topic = ConfigRecords(lambda _key, _value: None)
    records = [written("a", 0), written("b", 0), written("c", 0), *beats("a", (30, 60, 90, 120))]
    topic.replay_batches(b"".join(at(offset, record) for offset, record in enumerate(records)))
    topic.end()
    assert reasons(topic.gateways) == [("b", "silent"), ("c", "silent")]
    topic.read_again(0)
    topic.replay_batches(at(0, records[1], records[-1], written("c", 130)))
    assert reasons(topic.gateways) == [("b", "silent"), ("c", "silent")], "what was read counts until the end is"
    topic.end()
    assert reasons(topic.gateways) == [("b", "silent")]
    topic.replay_batches(at(3, (key_of("b"), None)))
    assert reasons(topic.gateways) == []


def test_registrations_are_no_values_that_a_topic_can_lose() -> None:
    topic = ConfigRecords(lambda _key, _value: None)
    topic.replay_batches(at(0, record(Scope.TOPIC, "t", Entry(2)), written("b", 0), confirmation_record()))
    topic.end()
    topic.read_again(0)
    topic.replay_batches(at(0, record(Scope.TOPIC, "t", Entry(2))))
    assert topic.end() == set()
    assert topic.lost == set()


def test_a_topic_is_confirmed_as_long_as_it_has_that_record() -> None:
    assert not read(written("a", 0), record(Scope.TOPIC, "t", Entry(2))).confirmed
    key, value = confirmation_record()
    assert read((key, value)).confirmed
    assert not read((key, value), (key, None)).confirmed
    # Created anew.
    topic = ConfigRecords(lambda _key, _value: None)
    topic.replay_batches(at(0, (key, value)))
    topic.end()
    topic.read_again(0)
    assert topic.gateways.confirmed
    topic.end()
    assert not topic.gateways.confirmed


def test_silence_is_what_a_plain_count_over_the_whole_topic_gives() -> None:
    """Gateways that register, end, are killed and suspended at random. The judge walks over all records again for each pair."""
    found = set()
    for seed in range(200):
        rng = random.Random(seed)
        records: list[Record] = []
        log: list[tuple[str, int, float]] = []
        incarnation, uptime = dict.fromkeys("abc", 0), dict.fromkeys("abc", 0.0)
        for _ in range(rng.randrange(4, 40)):
            name = rng.choice("aaabbc")
            if rng.random() < 0.05:
                incarnation[name], uptime[name] = incarnation[name] + 1, 0.0
            uptime[name] += rng.choice((HEARTBEAT_SECONDS, HEARTBEAT_SECONDS, 5, 600))
            log.append((name, incarnation[name], uptime[name]))
            records.append(written(name, uptime[name], incarnation_id=f"{name}-{incarnation[name]}"))
        silent = {gateway for gateway, reason in reasons(read(*records), own="z") if reason == Reason.SILENT}
        assert silent == _judged(log), f"seed {seed}"
        found.add(len(silent))
    assert len(found) > 1


def _judged(log: list[tuple[str, int, float]]) -> set[str]:
    silent = set()
    for name in {name for name, _, _ in log}:
        last = max(at for at, (other, _, _) in enumerate(log) if other == name)
        later = log[last + 1 :]
        for begun, (other, incarnation, since) in enumerate(later):
            run = []
            # The registrations of that process, until another process has its name.
            for next_other, next_incarnation, seconds in later[begun:]:
                if next_other == other:
                    if next_incarnation != incarnation:
                        break
                    run.append(seconds)
            if max(run) - since >= 3 * 30:
                silent.add(name)
    return silent
