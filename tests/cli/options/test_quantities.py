"""Sizes and rates as people write them."""

import pytest
import typer

from rackspan.cli.options.quantities import byte_count, throttle_rate


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("7B", 7),
        ("50000000", 50_000_000),
        ("50MB", 50_000_000),
        ("50 mb", 50_000_000),
        ("50MiB", 52_428_800),
        ("1.5GB", 1_500_000_000),
        ("8KiB", 8_192),
        ("8kB", 8_000),
        ("2TiB", 2_199_023_255_552),
        ("0.5KiB", 512),
    ],
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert byte_count(text) == size
    assert throttle_rate(text) == throttle_rate(f"{text}/s") == size


@pytest.mark.parametrize(
    "text", ["0", "-1", "", "MB", "50Mbit", "50M", "1e9", "0.1", "50MB/m", "50MB/s/s", "9999999TiB", "٣"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        byte_count(text)
    with pytest.raises(typer.BadParameter):
        throttle_rate(text)


def test_a_size_has_no_time() -> None:
    with pytest.raises(typer.BadParameter):
        byte_count("50MB/s")
