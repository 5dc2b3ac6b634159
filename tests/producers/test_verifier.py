"""The guard's own connections: rounds, pauses, brokers that do not respond, and the end of its thread."""

import asyncio
from typing import Any

import pytest

from rackspan.acks.verification import RecordVerification
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, NotEnoughRacksAfterAppend
from rackspan.producers import logins, verifier
from rackspan.producers.verifier import RecordVerifier, VerifierThread, _responses

ORDERS = ("orders", 0)


def made(**options: Any) -> RecordVerifier:
    return RecordVerifier("127.0.0.1:1", Login(), {"orders": 2}, **options)


def test_rounds_are_repeated_at_longer_pauses_until_the_time_is_over() -> None:
    pauses: list[float] = []

    async def work() -> dict[Any, Exception]:
        records, loop, clock = made(), asyncio.get_running_loop(), [100.0]

        async def observed(*_: object) -> None:
            """No broker reports anything."""

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            clock[0] += seconds

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_observe_isr", observed)
            patch.setattr(records, "_observe_logs", observed)
            patch.setattr(asyncio, "sleep", sleep)
            patch.setattr(loop, "time", lambda: clock[0])
            return dict(await records.verify({ORDERS: 1}))

    errors = asyncio.run(work())
    assert isinstance(errors[ORDERS], NotEnoughRacksAfterAppend)
    assert pauses[:7] == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.2]
    assert set(pauses[7:]) == {0.2}
    assert 10 <= sum(pauses) < 10.2


def test_a_record_after_the_verification_of_others_is_verified_too() -> None:
    async def work() -> list[Any]:
        records, verified = made(), list[Any]()

        async def verify(ends: Any) -> dict[Any, Any]:
            verified.append(dict(ends))
            await asyncio.sleep(0)
            return {}

        setattr(records, "verify", verify)  # noqa: B010 - its type has another name of an argument
        await asyncio.wait_for(asyncio.gather(*(records.verified("orders", 0, offset) for offset in (4, 9, 7))), 10)
        await asyncio.wait_for(records.verified("orders", 0, 11), 10)
        await asyncio.wait_for(asyncio.gather(records.verified("orders", 0, 12), records.verified("orders", 0, -1)), 10)
        return verified

    assert asyncio.run(work()) == [{ORDERS: 10}, {ORDERS: 12}, {ORDERS: None}]


def test_responses_are_those_that_come_in_time_and_a_fault_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_RESPONSE_SECONDS", 0.05)

    async def responds(value: int) -> int:
        return value

    async def fails(error: Exception) -> int:
        raise error

    async def work() -> dict[int, int]:
        down = {2: fails(ConnectionResetError()), 3: fails(TimeoutError()), 4: fails(ClusterUnreachable("down"))}
        found = await _responses({1: responds(7), **down, 5: asyncio.sleep(60, 8)})
        with pytest.raises(ZeroDivisionError):
            await _responses({1: responds(7), 2: fails(ZeroDivisionError())})
        assert await _responses({}) == {}
        assert len(asyncio.all_tasks()) == 1
        return found

    assert asyncio.run(work()) == {1: 7}


def test_when_no_replica_responds_the_cluster_is_looked_for_again() -> None:
    async def work() -> dict[Any, str]:
        records, failures = made(), dict[Any, str]()
        pending = [RecordVerification(ORDERS, records._requirement("orders"), 1, 0.0)]
        records._cluster.record(1, "127.0.0.1", 1)
        records._replicas[ORDERS] = frozenset({1})

        async def sample(*_: object) -> None:
            raise ConnectionResetError

        records._sample = sample  # type: ignore[assignment, method-assign]
        await records._observe_isr(pending, failures)
        assert (failures, records._replicas, records._cluster.by_id) == ({}, {}, {})
        await records._observe_isr(pending, failures)
        return failures

    assert asyncio.run(work())[ORDERS].startswith("no broker responds: ")


def test_closing_the_thread_ends_what_is_verified_and_the_connections() -> None:
    records, reported, closed = made(), list[object](), list[bool]()
    close = records.close

    def close_and_record() -> None:
        closed.append(True)
        close()

    records.close = close_and_record  # type: ignore[method-assign]
    thread = VerifierThread(records)

    async def never(_: object) -> dict[Any, Any]:
        await asyncio.sleep(3600)
        return {}

    setattr(records, "verify", never)  # noqa: B010 - as above
    thread.when_verified("orders", 0, 1, reported.append)
    thread.close()
    assert (reported, closed, thread._thread.is_alive(), thread._loop.is_closed()) == ([], [True], False, True)


@pytest.mark.parametrize(("value", "checked"), [("none", False), ("https", True), ("HTTPS", True)])
def test_the_guard_checks_host_names_as_librdkafka_is_set_to(
    monkeypatch: pytest.MonkeyPatch, value: str, checked: bool
) -> None:
    settings: list[dict[str, Any]] = []
    monkeypatch.setattr(logins, "login_of", settings.append)
    logins.librdkafka_login({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": value})
    assert settings[0]["security_protocol"] == "SSL"
    assert settings[0]["ssl_context"].check_hostname is checked


def test_every_setting_of_a_login_has_its_name_of_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[str, Any]] = []
    monkeypatch.setattr(logins, "login_of", settings.append)
    given = {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p", "client.id": "x"}
    logins.librdkafka_login({"security.protocol": "sasl_plaintext", **given})
    assert settings == [
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "u",
            "sasl_plain_password": "p",
        }
    ]
