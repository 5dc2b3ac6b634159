"""Which version brought what: the table, and the numbers taken from it."""

from pathlib import Path

import pytest

from rackspan.cluster.zookeeper_era.protocol_version import (
    FEATURES,
    at_least,
    registration_version,
    update_metadata_version,
    version_error,
    version_numbers,
)

VERSIONS = (
    "0.8.0",
    "0.8.2",
    "0.9.0",
    "0.9.0.X",
    "0.10.0",
    "0.10.0-IV1",
    "0.10.2",
    "1.0",
    "2.7-IV2",
    "3.9",
    "4.0",
    "4.1",
)


@pytest.mark.parametrize(
    ("version", "json_version", "request_version"),
    [
        ("0.8.0", 1, 0),
        ("0.8.2", 2, 0),
        ("0.9.0.X", 2, 1),
        ("0.10.0", 3, 2),
        ("0.10.2", 4, 2),
        ("2.7", 5, 2),
        ("4.1", 5, 2),
    ],
)
def test_what_a_version_writes(version: str, json_version: int, request_version: int) -> None:
    assert (registration_version(version), update_metadata_version(version)) == (json_version, request_version)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_table_and_the_numbers_agree(version: str) -> None:
    written = [
        one.name
        for one in FEATURES
        if one.name.startswith("registration JSON")
        and at_least(version, one.since)
        and not (one.until and at_least(version, one.until))
    ]
    assert [name.split(":")[0] for name in written] == (
        [] if version_numbers(version) >= (4, 0) else [f"registration JSON {registration_version(version)}"]
    )


def test_versions_are_compared_by_their_numbers() -> None:
    assert sorted(VERSIONS, key=version_numbers)[-1] == "4.1"
    assert (
        version_numbers("0.9.0.X")
        == version_numbers("0.9.0.1")
        < version_numbers("0.10.0-IV1")
        == version_numbers("0.10.0")
        < version_numbers("2.7")
    )
    assert version_error("0.10.0") is None
    assert "no version" in (version_error("soon") or "")


def test_the_page_has_the_table() -> None:
    page = (Path(__file__).parents[3] / "docs" / "protocol-versions.md").read_text(encoding="utf-8")
    rows = [f"| {one.name} | {one.since} | {one.until or 'today'} | {one.era} |" for one in FEATURES]
    table = page[page.index("| feature |") :].partition("\n\n")[0]
    assert table.splitlines()[2:] == rows
