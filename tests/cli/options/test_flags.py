"""Options that belong together reach a command as one value, and Typer one by one."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from rackspan.cli.options.flags import with_option_groups

Rack = Annotated[str | None, typer.Option("--rack", metavar="RACK", help="The rack of the broker.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    rack: Rack = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationOnFloor(Location):
    rack: Rack = "r1"
    floor: Annotated[int, typer.Option("--floor", min=0)] = 0


def run(*words: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @with_option_groups
    def move(
        broker: Annotated[int, typer.Argument()],
        location: LocationOnFloor,
        up: Annotated[bool, typer.Option("--up")] = False,
    ) -> None:
        typer.echo(f"{broker} {location} {up}")

    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output.strip()


def test_defaults_are_those_of_the_value() -> None:
    assert run("7") == (0, "7 LocationOnFloor(rack='r1', floor=0) False")


def test_options_of_the_command_and_of_the_value_stand_side_by_side() -> None:
    assert run("--floor", "3", "--up", "7", "--rack", "r2") == (0, "7 LocationOnFloor(rack='r2', floor=3) True")


def test_a_bound_of_an_option_holds() -> None:
    code, output = run("7", "--floor", "-1")
    assert code == 2
    assert "--floor" in output


def test_help_has_them_in_order() -> None:
    _, output = run("--help")
    assert sorted(("--rack", "--floor", "--up"), key=output.index) == ["--rack", "--floor", "--up"]
