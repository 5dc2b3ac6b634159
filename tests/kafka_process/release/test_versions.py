"""A Kafka version is three numbers, and not an ancient one."""

import re
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.kafka_process.release.versions import DEFAULT_VERSION, TESTED_VERSIONS, KafkaVersion


def test_a_release_reads_as_it_prints() -> None:
    assert KafkaVersion.parse("3.9.1") == KafkaVersion(3, 9, 1)
    assert str(KafkaVersion.parse(DEFAULT_VERSION)) == DEFAULT_VERSION
    assert KafkaVersion.parse("3.10.0") > KafkaVersion.parse("3.9.1")


@pytest.mark.parametrize("text", ["4.1", "latest", "", "4.1.0-rc1", "2.8.2"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=DEFAULT_VERSION):
        KafkaVersion.parse(text)


def test_the_soak_runs_real_kafka_of_every_tested_release() -> None:
    makefile = (Path(__file__).parents[3] / "Makefile").read_text(encoding="utf-8")
    # Tests of both runs start the oldest one beside the chosen one.
    assert re.findall(r"RACKSPAN_KAFKA=(\S+)", makefile) == list(TESTED_VERSIONS[1:-1])
