"""What Apache Kafka answered, kept so that the embedded cluster is held to it on machines without Java.

    python -m tests.conformance.recorded [AREA ...]

starts Kafka, looks at every behaviour (of some areas) and writes tests/vectors/conformance.json. The tests marked kafka
hold the file to Kafka again.
"""

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.conformance.behaviour import BEHAVIOURS, Outcome, through_a_loss
from tests.conformance.behaviours import AREAS
from tests.conformance.subject import Subject
from tests.conformance.subjects import kafka_cluster, kafka_subject

FILE: Final = Path(__file__).parents[1] / "vectors" / "conformance.json"


def read() -> dict[str, Outcome]:
    """Outcome by behaviour."""
    outcomes: dict[str, Outcome] = json.loads(FILE.read_text(encoding="utf-8"))["outcomes"]
    return outcomes


def write(outcomes: Mapping[str, Outcome], version: str) -> None:
    lines = [f"  {json.dumps(name)}: {json.dumps(outcomes[name])}" for name in sorted(outcomes)]
    head = f'{{"kafka": "{version}",\n "outcomes": {{\n'
    FILE.write_text(head + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


def plain(outcome: Outcome) -> Outcome:
    """As JSON gives it back: tuples are lists."""
    return json.loads(json.dumps(outcome))


def looked_at(subject: Subject, areas: frozenset[str]) -> dict[str, Outcome]:
    """Every behaviour of some areas; what raised is told and left out."""
    outcomes = {}
    for one in BEHAVIOURS.values():
        if one.area in areas and not one.loses_a_broker:
            began = time.monotonic()
            try:
                outcomes[one.name] = one.look(subject)
            except Exception as error:
                outcomes[one.name] = error
            print(f"{time.monotonic() - began:5.1f} s  {one.name}", flush=True)
    outcomes |= {name: one for name, one in through_a_loss(subject).items() if BEHAVIOURS[name].area in areas}
    failed = {name: one for name, one in outcomes.items() if isinstance(one, Exception)}
    for name, cause in failed.items():
        print(f"FAILED {name}: {cause!r}")
    return {name: one for name, one in outcomes.items() if name not in failed}


def main(areas: list[str]) -> None:
    with kafka_cluster() as cluster:
        found = looked_at(kafka_subject(cluster), frozenset(areas or AREAS))
        before = read() if FILE.exists() else {}
        kept = {name: one for name, one in {**before, **found}.items() if name in BEHAVIOURS}
        write(kept, str(cluster.version))


if __name__ == "__main__":
    main(sys.argv[1:])
