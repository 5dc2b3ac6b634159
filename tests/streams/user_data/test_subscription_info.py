from collections.abc import Callable
from random import Random
from struct import pack

import pytest

from rackspan.errors import InvalidGroup
from rackspan.streams.problem import LATEST, UNKNOWN
from rackspan.streams.user_data import LATEST_VERSION, decode_subscription
from tests.streams.user_data_bytes import USER_DATA, recorded_values, subscription_values

BYTES = [bytes.fromhex(recorded["subscription"]["bytes"]) for recorded in USER_DATA]


def test_every_version_of_a_subscription_has_the_fields_kafka_streams_encoded() -> None:
    assert {recorded["version"] for recorded in USER_DATA} == set(range(1, LATEST_VERSION + 1))
    for recorded, data in zip(USER_DATA, BYTES, strict=True):
        decoded = decode_subscription(data)
        assert decoded.version == recorded["version"]
        assert decoded.latest_supported_version == (11 if recorded["version"] >= 3 else None)
        assert subscription_values(decoded) == recorded_values(recorded["subscription"])


def test_a_later_version_is_refused_by_number() -> None:
    with pytest.raises(InvalidGroup, match="member m1, byte 4: version 12 is not among 1 to 11"):
        decode_subscription(b"\0\0\0\x0c" + BYTES[-1][4:], "member m1")


def test_a_cut_message_is_refused_wherever_it_is_cut() -> None:
    for data in BYTES:
        for length in range(len(data)):
            with pytest.raises(InvalidGroup):
                decode_subscription(data[:length])


def test_a_message_may_be_tasks_to_its_end_and_no_more() -> None:
    start, one, twenty, tasks = pack(">i16x", 1), pack(">iii", 1, 0, 1), pack(">i", 20), bytes(20 * 8)
    assert decode_subscription(start + one + twenty + tasks).offset_sums == {"0_1": LATEST, "0_0": UNKNOWN}
    for first, announced in ((pack(">i", 22), 22), (one + pack(">i", 21), 21)):
        with pytest.raises(InvalidGroup, match=f"{announced} elements are announced where 1"):
            decode_subscription(start + first + tasks)


def test_bytes_left_over_are_refused() -> None:
    for data in BYTES:
        with pytest.raises(InvalidGroup, match="1 bytes are left over"):
            decode_subscription(data + b"\0")


@pytest.mark.slow
def test_10000_corrupted_messages_are_read_or_refused_in_one_line() -> None:
    rng = Random(925)
    lines = [refusal(decode_subscription, mutated(rng.choice(BYTES), rng)) for _ in range(10_000)]
    refused = [line for line in lines if line is not None]
    assert 1_000 < len(refused) < 10_000
    assert not any("\n" in line for line in refused)


def refusal(decode: Callable[[bytes], object], data: bytes) -> str | None:
    """The error of data that cannot be decoded; any other exception fails the test."""
    try:
        decode(data)
    except InvalidGroup as error:
        return str(error)
    return None


def mutated(data: bytes, rng: Random) -> bytes:
    """A few bytes changed, lost or added."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                changed[at] ^= 1 << rng.randrange(8)
            case 2 if len(changed) > 1:
                del changed[at]
            case _:
                changed[at:at] = rng.randbytes(rng.randint(1, 8))
    return bytes(changed)
