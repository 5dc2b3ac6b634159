"""The flags of rackspan gateway, beside its command check."""

from collections.abc import Callable, Sequence

import pytest

from rackspan.gateway import check as checks
from rackspan.gateway import config as gateway_config
from rackspan.gateway.check import CheckLevel, Result
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


@pytest.mark.parametrize(
    ("levels", "code"),
    [
        ([CheckLevel.OK, CheckLevel.OK], 0),
        ([CheckLevel.OK, CheckLevel.WARNING], 2),
        ([CheckLevel.WARNING, CheckLevel.FAILURE], 1),
    ],
)
def test_check_shows_each_result_and_ends_by_the_gravest(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, levels: Sequence[CheckLevel], code: int
) -> None:
    async def results(_config: object) -> list[Result]:
        return [Result(f"part {at}", level, f"reason {at}") for at, level in enumerate(levels)]

    monkeypatch.setattr(gateway_config, "read_config", lambda file: file)
    monkeypatch.setattr(checks, "check_cluster", results)
    ran = cli("gateway", "check", "--config", "a.toml")
    assert ran.code == code
    assert [line.split(None, 2)[:1] + line.split()[1:] for line in ran.out.splitlines()] == [
        ["result", "check", "reason"],
        *([level.value, "part", str(at), "reason", str(at)] for at, level in enumerate(levels)),
    ]
    rows = cli("gateway", "check", "--config", "a.toml", "-o", "csv")
    assert (rows.code, rows.out.splitlines()[0]) == (code, "check,level,reason")
