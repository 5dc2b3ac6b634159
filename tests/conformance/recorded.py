"""What Apache Kafka responded, kept so that the embedded cluster is held to it on machines without Java.

    python -m tests.conformance.recorded [AREA ...]

starts Kafka, looks at every behaviour (of some areas) and writes tests/vectors/conformance.json. The tests marked kafka
hold the file to Kafka again.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.conformance.behaviour import BEHAVIOURS, Outcome, looked_at
from tests.conformance.behaviours import AREAS
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


def main(areas: list[str]) -> None:
    wanted = [name for name, one in BEHAVIOURS.items() if one.area in (areas or AREAS)]
    with kafka_cluster() as cluster:
        outcomes = looked_at(kafka_subject(cluster), wanted)
    failed = {name: one for name, one in outcomes.items() if isinstance(one, Exception)}
    for name, cause in failed.items():
        print(f"FAILED {name}: {cause!r}")
    before = read() if FILE.exists() else {}
    found = {name: one for name, one in {**before, **outcomes}.items() if name in BEHAVIOURS and name not in failed}
    write(found, str(cluster.version))


if __name__ == "__main__":
    main(sys.argv[1:])
