"""tools/librdkafka_closes.py on the version of librdkafka that is installed here: its cycle still comes to the closes that it counts."""

import re
import shutil
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import confluent_kafka
import pytest

from tests.waiting import WITHIN_SECONDS

CONSUMERS = 2


@pytest.mark.rest
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("pauses", [True, False])
def test_the_closes_of_the_installed_version_are_counted(tmp_path: Path, pauses: bool) -> None:
    for folder in {path.parts[0] for path in files("confluent-kafka") or () if path.parts[0] != ".."}:
        (tmp_path / folder).symlink_to(Path(confluent_kafka.__file__).parents[1] / folder)
    options = ("--cycles", "1", "--consumers", str(CONSUMERS), *(() if pauses else ("--no-pauses",)))
    ran = subprocess.run(
        [sys.executable, "-m", "tools.librdkafka_closes", str(tmp_path), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=WITHIN_SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    version, closes, hung = ran.stdout.splitlines()[-1].split()
    assert version == confluent_kafka.libversion()[0]
    assert int(closes) == CONSUMERS
    assert re.fullmatch(rf"cycle 1, .*: {hung} of {CONSUMERS} hung", ran.stdout.splitlines()[0])
    assert 0 <= int(hung) <= CONSUMERS
