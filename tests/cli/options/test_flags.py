"""Flags that belong together reach a with_groups as one value, and Typer one by one."""

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from rackspan.cli.options.flags import with_groups

Rack = Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Where it stands.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentStatus:
    rack: Rack = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingHere(ReassignmentStatus):
    rack: Rack = "r1"
    floor: Annotated[int, typer.Option("--floor", min=0)] = 0


def one_verb(*words: str) -> tuple[int, str]:
    app = typer.Typer()

    @app.command()
    @with_groups
    def stand(
        broker: Annotated[int, typer.Argument()], here: StandingHere, up: Annotated[bool, typer.Option("--up")] = False
    ) -> None:
        typer.echo(f"{broker} {here} {up}")

    answer = CliRunner().invoke(app, words)
    return answer.exit_code, answer.output.strip()


def test_defaults_are_those_of_the_value() -> None:
    assert one_verb("7") == (0, "7 StandingHere(rack='r1', floor=0) False")


def test_flags_of_the_verb_and_of_the_value_stand_side_by_side() -> None:
    assert one_verb("--floor", "3", "--up", "7", "--rack", "r2") == (0, "7 StandingHere(rack='r2', floor=3) True")


def test_a_bound_of_a_flag_holds() -> None:
    code, said = one_verb("7", "--floor", "-1")
    assert code == 2
    assert "--floor" in said


def test_help_has_them_in_order() -> None:
    _, said = one_verb("--help")
    assert sorted(("--rack", "--floor", "--up"), key=said.index) == ["--rack", "--floor", "--up"]
