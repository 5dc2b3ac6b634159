"""The flags of rackspan gateway, beside its command check."""

from collections.abc import Callable

import pytest

from tests.cli.conftest import Ran

Cli = Callable[..., Ran]


@pytest.mark.parametrize("words", [("--config", "gone.toml", "check"), ("check", "--config", "gone.toml")])
def test_check_reads_the_config_that_is_named_before_or_after_it(cli: Cli, words: tuple[str, ...]) -> None:
    ran = cli("gateway", *words)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "gone.toml" in ran.err


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--config", "a.toml", "check", "--config", "b.toml"), "--config is given twice; leave one of them out"),
        (("check",), "--config FILE is missing"),
        (("--workers", "2"), "--config FILE is missing"),
        (("--workers", "3", "check", "--config", "a.toml"), "--workers: only a gateway that runs has workers"),
    ],
)
def test_no_flag_of_the_gateway_is_ignored_by_check(cli: Cli, words: tuple[str, ...], reported: str) -> None:
    ran = cli("gateway", *words)
    assert ran.code == 1
    assert reported in ran.err
