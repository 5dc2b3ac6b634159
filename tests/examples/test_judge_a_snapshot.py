from pathlib import Path

import pytest

from examples.judge_a_snapshot import main

RECORDED = Path(__file__).parent.parent / "vectors" / "snapshots" / "kafka_4_1_all_racks_up.json"


def test_the_example_judges_as_the_command_line_does(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RECORDED) == 2
    output = capsys.readouterr().out.splitlines()
    assert output[0].startswith("violation survives-rack-loss payments: the loss of rack r1 takes it offline (r1: 1,4)")
    assert output[-3:] == [
        "without r1: does not survive",
        "without r2: does not survive",
        "without r3: does not survive",
    ]
