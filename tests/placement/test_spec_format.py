from typing import Any

import pytest

from rackspan.errors import UsageError
from rackspan.placement.rack_modes import RackAwareMode
from rackspan.placement.spec_format import PlacementSpec, read

MINIMAL: dict[str, Any] = {"brokers": [{"id": 0}], "partitions": 1, "replication_factor": 1}
KEYS = "brokers, partitions, replication_factor, placer, start_index, start_partition, rack_aware, seed, rng, configs"


def changed(**changes: Any) -> dict[str, Any]:
    return {**MINIMAL, **changes}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in MINIMAL.items() if name != key}


def with_broker(**broker: Any) -> dict[str, Any]:
    return changed(brokers=[broker])


def test_what_may_be_absent_has_its_default() -> None:
    spec = read(MINIMAL)
    assert spec == PlacementSpec(brokers=spec.brokers, partitions=1, replication_factor=1)
    assert (spec.placer, spec.start_index, spec.start_partition, spec.seed, spec.rng) == (
        "balanced",
        None,
        0,
        None,
        "java",
    )
    assert (spec.brokers[0].rack, spec.brokers[0].fenced) == (None, False)


def test_null_is_absent_and_so_is_minus_one_where_kafka_has_it_so() -> None:
    nulls = dict.fromkeys(("placer", "start_index", "start_partition", "rack_aware", "seed", "rng", "configs"))
    assert read(changed(**nulls)) == read(MINIMAL)
    assert read(changed(start_index=-1, start_partition=-1)) == read(MINIMAL)


def test_an_empty_rack_is_no_rack() -> None:
    assert read(with_broker(id=0, rack="")).brokers[0].rack is None


def test_brokers_may_be_copied_from_a_snapshot() -> None:
    assert read(with_broker(id=0, host="h", port=9092, rack="a", fenced=True)).brokers[0].fenced


def test_a_rack_mode_is_one_of_kafkas_three() -> None:
    assert read(changed(rack_aware="safe")).rack_aware is RackAwareMode.SAFE


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "spec: is [], not an object; fix it in the file"),
        (None, "spec: is null, not an object; fix it in the file"),
        (without("brokers"), "spec: brokers is missing; add it and run again"),
        (without("partitions"), "spec: partitions is missing; add it and run again"),
        (without("replication_factor"), "spec: replication_factor is missing; add it and run again"),
        (changed(replicas=3), f'spec: there is no key "replicas"; there are {KEYS}'),
        (changed(brokers={"id": 0}), 'spec: brokers is {"id": 0}, not a list; fix it in the file'),
        (changed(brokers=[]), "spec: brokers is empty; list at least one"),
        (changed(brokers=[0]), "spec: brokers[0] is 0, not an object; fix it in the file"),
        (with_broker(rack="a"), "brokers[0]: id is missing; add it and run again"),
        (with_broker(id="0"), 'brokers[0]: id is "0", not a whole number; fix it in the file'),
        (with_broker(id=True), "brokers[0]: id is true, not a whole number; fix it in the file"),
        (with_broker(id=None), "brokers[0]: id is null, not a whole number; fix it in the file"),
        (with_broker(id=-1), "brokers[0]: id is -1, outside 0 to 2147483647; fix it in the file"),
        (with_broker(id=2**31), "brokers[0]: id is 2147483648, outside 0 to 2147483647; fix it in the file"),
        (with_broker(id=0, rack=1), "brokers[0]: rack is 1, not a string; fix it in the file"),
        (with_broker(id=0, fenced="no"), 'brokers[0]: fenced is "no", not true or false; fix it in the file'),
        (with_broker(id=0, zone="a"), 'brokers[0]: there is no key "zone"; there are id, rack, fenced, host, port'),
        (changed(brokers=[{"id": 4}, {"id": 4}]), "broker 4: listed twice; leave one of them out"),
        (changed(partitions="6"), 'spec: partitions is "6", not a whole number; fix it in the file'),
        (changed(partitions=1.5), "spec: partitions is 1.5, not a whole number; fix it in the file"),
        (
            changed(partitions=10**9),
            "spec: partitions is 1000000000, outside -2147483647 to 10000000; fix it in the file",
        ),
        (
            changed(replication_factor=None),
            "spec: replication_factor is null, not a whole number; fix it in the file",
        ),
        (changed(placer=1), "spec: placer is 1, not a string; fix it in the file"),
        (changed(start_index=-2), "spec: start_index is -2, outside -1 to 2147483647; fix it in the file"),
        (
            changed(start_partition=2**31 - 1),
            "spec: start_partition is 2147483647, outside -1 to 2137483647; fix it in the file",
        ),
        (
            changed(rack_aware="yes"),
            'spec: rack_aware is "yes", expected enforced or safe or disabled; fix it in the file',
        ),
        (
            changed(rack_aware=True),
            "spec: rack_aware is true, expected enforced or safe or disabled; fix it in the file",
        ),
        (changed(seed="x"), 'spec: seed is "x", not a whole number; fix it in the file'),
        (
            changed(seed=2**63),
            "spec: seed is 9223372036854775808, outside -9223372036854775808 to 9223372036854775807; fix it in the file",
        ),
        (changed(rng="python"), 'spec: rng is "python", expected java or lcg64; fix it in the file'),
        (changed(rng=[]), "spec: rng is [], expected java or lcg64; fix it in the file"),
        (
            changed(configs={"a": 1}),
            "spec: configs: a is 1, not a string; fix it in the file",
        ),
    ],
)
def test_what_is_no_spec_is_refused_in_one_line(document: object, line: str) -> None:
    with pytest.raises(UsageError) as refusal:
        read(document)
    assert str(refusal.value) == line
