"""rackspan traffic on the embedded cluster: its document, its page, and price files."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from rackspan import api
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.sources.live.traffic import read_traffic
from rackspan.traffic import ClusterReading, Interval, PriceFile, TrafficPath
from tests.cli.conftest import Ran
from tests.sources.test_broker_counters import STRIMZI, serving
from tests.waiting import WITHIN_SECONDS

PRICES = Path(__file__).parents[2] / "deploy" / "prices"
T0 = datetime(2026, 11, 24, tzinfo=UTC)


@pytest.fixture(scope="module")
def reading() -> Interval:
    """900,000 bytes in a topic of three partitions, three replicas each, as if in 30 seconds."""
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", partitions=3)

        def produce(_seconds: float) -> None:
            producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
            for number in range(900):
                producer.produce("orders", bytes(1000), partition=number % 3)
                if number % 100 == 99:
                    producer.flush(WITHIN_SECONDS)
            assert producer.flush(WITHIN_SECONDS) == 0
            cluster.wait_for_isr()

        return read_traffic(ConnectionSettings(cluster.bootstrap_servers), 30.0, produce)


def at(reading: ClusterReading, time: datetime) -> ClusterReading:
    return replace(reading, logs=replace(reading.logs, read_at=time))


@pytest.fixture
def traffic(reading: Interval, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    timed = replace(
        reading,
        before=at(reading.before, T0),
        after=at(reading.after, T0 + timedelta(seconds=30)),
    )
    monkeypatch.setattr(api, "measure_traffic", lambda _cluster, _seconds, _counters, **_: timed)
    return lambda *words: cli("traffic", "--bootstrap-server", "here:9092", *words)


def test_the_document_has_every_flow_with_its_basis(traffic: Callable[..., Ran]) -> None:
    document = traffic("-o", "json").document
    assert document["summary"]["seconds"] == 30
    assert document["summary"]["unread"] == []
    assert document["bill"] is None
    paths = {path["path"]: path for path in document["paths"]}
    produced, replicated = paths["produce"], paths["replicate"]
    assert produced["bytes"] == pytest.approx(900_000, rel=0.05)
    assert produced["cross_rack_bytes"] == pytest.approx(produced["bytes"] * 2 / 3, abs=9)
    assert produced["estimated_cross_rack_bytes"] == produced["cross_rack_bytes"]
    assert replicated["cross_rack_bytes"] == replicated["bytes"] == 2 * produced["bytes"]
    assert replicated["estimated_cross_rack_bytes"] == 0
    assert {flow["topic"] for flow in document["flows"]} == {"orders"}
    assert {flow["path"] for flow in document["flows"]} == {TrafficPath.PRODUCE, TrafficPath.REPLICATE}


def bill(traffic: Callable[..., Ran], name: str) -> dict[str, Any]:
    found: dict[str, Any] = traffic("-o", "json", "--prices", str(PRICES / f"{name}.json")).document["bill"]
    return found


def test_a_bill_is_of_thirty_days_at_this_rate(traffic: Callable[..., Ran]) -> None:
    paths = {path["path"]: path["cross_rack_bytes"] for path in traffic("-o", "json").document["paths"]}
    across = sum(paths.values()) / 30 * 86_400 * 30
    assert bill(traffic, "aws")["money_a_month"] == pytest.approx(across / 1e9 * 0.02, abs=0.01)
    assert bill(traffic, "gcp")["money_a_month"] == pytest.approx(across / 2**30 * 0.01, abs=0.01)
    assert bill(traffic, "azure")["money_a_month"] == 0
    produced = paths["produce"] / 30 * 86_400 * 30
    assert bill(traffic, "aws-msk")["money_a_month"] == pytest.approx(produced / 1e9 * 0.02, abs=0.01)


def test_a_path_without_a_price_is_not_in_the_bill(traffic: Callable[..., Ran], tmp_path: Path) -> None:
    price = {"paths": ["produce"], "sides": ["source", "destination"], "amount": 0.01, "unit": "GB", "source": "x", "read_on": "2026-11-24"}  # fmt: skip
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"currency": "EUR", "prices": [price]}))
    found = traffic("-o", "json", "--prices", str(file)).document["bill"]
    assert {row["path"] for row in found["rows"]} == {"produce"}
    assert [row["reason"] for row in found["unpriced"]] == ["the price of replicate is not known"]
    page = traffic("--prices", str(file)).out
    assert "not in the bill: 1 row: the price of replicate is not known" in page
    assert "EUR in 30 days at this rate, without 1 row of unknown price" in page


@pytest.mark.usefixtures("traffic")
def test_advice_is_by_the_prices_and_the_least_size_that_are_named(
    cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[PriceFile, int]] = []

    def advise(*arguments: Any) -> list[Any]:
        given.append(arguments[-2:])
        return []

    monkeypatch.setattr(api, "advise", advise)
    words = ("advise", "--bootstrap-server", "here:9092", "--least", "2KiB")
    assert cli(*words, "--prices", str(PRICES / "aws.json")).code == 0
    assert [(prices.currency, least) for prices, least in given] == [("USD", 2048)]


def test_the_page_names_basis_assumption_and_unread_prices(traffic: Callable[..., Ran]) -> None:
    ran = traffic("--prices", str(PRICES / "aws.json"))
    assert ran.code == 0
    # Every rack has a replica: what is replicated crosses racks.
    assert re.search(r"^ *replicate +(\S+ KiB/s) +\1 +0 +0$", ran.out, re.MULTILINE)
    assert "produce estimated: producers are spread uniformly over the racks of brokers" in ran.out
    assert "replicate derived: the replica's log grew by as much" in ran.out
    assert "price not compared with its source: https://aws.amazon.com/ec2/pricing/on-demand/" in ran.out
    assert ran.out.splitlines()[-1].endswith("in 30 days at this rate")


@pytest.mark.parametrize("command", ["traffic", "advise"])
def test_a_command_that_watches_prints_first_for_how_long(
    command: str, reading: Interval, cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(_cluster: object, _seconds: float, _counters: object, *, sleep: Callable[[float], None], **_: object) -> Interval:  # fmt: skip
        sleep(0.0)
        return reading

    monkeypatch.setattr(api, "measure_traffic", measured)
    assert "watching for 0 s; --seconds changes it" in cli(command, "--bootstrap-server", "here:9092").err


def test_what_could_not_be_read_is_named_and_ends_with_1(
    traffic: Callable[..., Ran], reading: Interval, monkeypatch: pytest.MonkeyPatch
) -> None:
    less = replace(
        reading,
        before=replace(reading.before, partial=("groups: not authorized",)),
        after=replace(reading.after, partial=("offsets of 3 partitions: unknown, no leader",)),
    )
    monkeypatch.setattr(api, "measure_traffic", lambda _cluster, _seconds, _counters, **_: less)
    ran = traffic()
    assert ran.code == 1
    assert "could not be read: groups: not authorized" in ran.out
    assert "could not be read: offsets of 3 partitions: unknown, no leader" in ran.out


def test_counters_of_brokers_are_refused_for_advice_before_the_cluster_is_read(cli: Callable[..., Ran]) -> None:
    with serving({"/metrics": STRIMZI}) as url:
        ran = cli("advise", "--bootstrap-server", "127.0.0.1:1", "--counters", f"1={url}/metrics")
    assert (ran.code, ran.out) == (1, "")
    assert "advice does not depend on what brokers count" in ran.err


def test_a_wrong_price_file_is_one_line(traffic: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text('{"currency": "USD"}')
    ran = traffic("--prices", str(file))
    assert (ran.code, ran.out) == (1, "")
    assert f"{file}: " in ran.err
    assert "prices is missing" in ran.err
