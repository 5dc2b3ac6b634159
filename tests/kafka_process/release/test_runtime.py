"""Command lines of Kafka's classes, and what a tool that fails says."""

from pathlib import Path

import pytest

from rackspan.child_process.kept_process import ProcessExit
from rackspan.errors import KafkaProcessFailed
from rackspan.java import Java
from rackspan.kafka_process.release import runtime as module
from rackspan.kafka_process.release.runtime import KafkaRuntime, random_uuid


def runtime(folder: Path, script: str) -> KafkaRuntime:
    executable = folder / "java"
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return KafkaRuntime(Java(executable, 17), Path("/lib"))


def test_a_tool_gives_what_it_prints(tmp_path: Path) -> None:
    assert runtime(tmp_path, 'for last; do :; done; echo "$last"').run_tool("a.Tool", "--describe") == "--describe\n"


def test_kafka_logs_to_its_output_with_the_time_and_in_as_much_memory_as_is_given(tmp_path: Path) -> None:
    made = KafkaRuntime(Java(tmp_path / "java", 17), tmp_path / "lib", heap="99m", java_options=("-Dmine",))
    java, *words, main_class, argument = made.command("a.Main", "more", log_level="error")
    assert (java, main_class, argument) == (str(tmp_path / "java"), "a.Main", "more")
    lean = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.awt.headless=true")
    assert words[:5] == ["-Xmx99m", *lean]
    assert words[-2:] == ["-cp", f"{tmp_path / 'lib'}/*"]
    assert {
        "-Dmine",
        *(
            f"-Dorg.slf4j.simpleLogger.{setting}"
            for setting in ("defaultLogLevel=error", "showDateTime=true", "dateTimeFormat=HH:mm:ss.SSS")
        ),
    } <= {*words}


def test_a_failed_tool_is_reported_with_its_exception(tmp_path: Path) -> None:
    failing = runtime(tmp_path, "echo begun; echo 'x.SomeException: no such topic'; echo '  at x.y(Z.java)'; exit 1")
    with pytest.raises(
        KafkaProcessFailed, match=r"a\.Tool ended with status 1: x\.SomeException: no such topic"
    ) as failure:
        failing.run_tool("a.Tool")
    assert failure.value.log_tail.startswith("begun")


@pytest.mark.parametrize(
    ("script", "cause"),
    [
        ("echo; echo '  the cause'; exit 2", "the cause"),
        ("echo ' '; exit 2", "it said nothing"),
        ("exit 2", "it said nothing"),
    ],
)
def test_a_failed_tool_without_an_exception_is_reported_with_its_first_line(
    script: str, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(KafkaProcessFailed) as failure:
        runtime(tmp_path, script).run_tool("a.Tool")
    assert str(failure.value).splitlines()[0] == f"a.Tool ended with status 2: {cause}"


def test_a_tool_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(KafkaProcessFailed, match="did not end within 1 s"):
        runtime(tmp_path, "exec sleep 1000").run_tool("a.Tool", seconds=1.0)


def test_a_tool_has_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def run_kept(_command: list[str], seconds: float) -> ProcessExit:
        waited.append(seconds)
        return ProcessExit(0, "output")

    monkeypatch.setattr(module, "run_kept", run_kept)
    assert runtime(tmp_path, "").run_tool("a.Tool") == "output"
    assert waited == [60]


def test_a_cluster_id_never_looks_like_an_option() -> None:
    ids = {random_uuid() for _ in range(2_000)}
    assert len(ids) == 2_000
    assert all(len(one) == 22 and not one.startswith("-") for one in ids)


def test_a_cluster_id_that_would_look_like_an_option_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([b"\xf8" + bytes(15), bytes(16)])
    monkeypatch.setattr("secrets.token_bytes", lambda size: next(drawn)[:size])
    assert random_uuid() == "A" * 22
