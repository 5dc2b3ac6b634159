"""A failing run says how to see it again, with the fewest faults that suffice."""

from pathlib import Path
from typing import Final

import pytest

from tests.simulation import __main__ as command
from tests.simulation.judges.evidence import Violation
from tests.simulation.kinds import KINDS
from tests.simulation.mistakes.planted import PLANTED
from tests.simulation.runs.replay import explained, run, traced
from tests.simulation.world import World

CLEAN: Final = KINDS["clean"]
PROPOSAL: Final = PLANTED["the proposal as written"].build


def first_failure() -> tuple[int, Violation]:
    for seed in range(30):
        found = run(CLEAN, seed, PROPOSAL)
        if isinstance(found, Violation):
            return seed, found
    raise AssertionError("the proposal as written broke nothing in thirty seeds")


@pytest.mark.slow
def test_a_failure_names_the_line_that_replays_it_and_the_faults_that_suffice() -> None:
    seed, violation = first_failure()
    broken = explained(CLEAN, seed, violation, PROPOSAL)
    assert str(broken).startswith(f"make sim SEED={seed} WORLD=clean\n{violation.rule} broken at event")
    assert len(broken.faults) <= 2
    again = run(CLEAN, seed, PROPOSAL)
    assert isinstance(again, Violation)
    assert str(again) == str(violation)


def test_its_trace_ends_with_the_violation() -> None:
    seed, violation = first_failure()
    lines = traced(CLEAN, seed, None, PROPOSAL)
    assert violation.rule in lines[-1]
    assert violation.text in lines[-1]


def test_a_shorter_list_of_faults_leaves_the_rest_of_the_run_as_it_was() -> None:
    calm = World(CLEAN, 5, faults=()).run()
    assert calm.faults == 0
    assert calm.acknowledged > 0


@pytest.mark.slow
def test_the_command_runs_one_seed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["sim", "7", "--world", "lossy"])
    assert command.main() == 0
    assert capsys.readouterr().out.startswith("1 seeds of world lossy: no rule broken; ")


@pytest.mark.slow
def test_the_command_ends_in_an_error_where_a_rule_breaks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.jsonl"
    monkeypatch.setattr("sys.argv", ["sim", "13", "--world", "lossy-undetected", "--trace", str(trace)])
    assert command.main() == 1
    assert "WORLD=lossy-undetected\nI" in capsys.readouterr().err
    assert '"from":"judge"' in trace.read_text().splitlines()[-1]
