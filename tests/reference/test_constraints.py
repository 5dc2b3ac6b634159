"""docs/constraints.md has an example of every finding that the code can print, and the example is true."""

import ast
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import rackspan
from rackspan.audit import Finding, RackPolicy
from rackspan.audit.constraints.cluster import RACK_NAMES_ALIKE
from rackspan.audit.constraints.survival import SURVIVAL_CONSTRAINTS
from rackspan.plan.reassignment_file import read_reassignment
from rackspan.reassign import ReassignmentRequest, lint
from tests.reference.pages import DOCS, text
from tests.scenarios.commands import World, cluster, partition, run, topic

PAGE = "constraints.md"
RULE = "----\n"
SECTIONS = dict(re.findall(r"^### (\S+)\n(.*?)(?=^#|\Z)", text(PAGE), re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("name", SECTIONS)
def test_the_example_is_true_and_has_the_finding(name: str) -> None:
    (block,) = re.findall(r"```text\n(.*?)```", SECTIONS[name], re.DOTALL)
    story, _, expected = block.rpartition(RULE)
    found = run(story.splitlines()) if story else of_file(SECTIONS[name])
    if os.environ.get("RACKSPAN_REWRITE"):
        page = (DOCS / PAGE).read_text(encoding="utf-8")
        (DOCS / PAGE).write_text(
            page.replace(f"```text\n{block}```", f"```text\n{story}{story and RULE}{found}```"), "utf-8"
        )
    else:
        assert found == expected
    assert re.search(rf"^(violation|warning) {name}, .*\n  fix with: .", found, re.MULTILINE)


@pytest.mark.slow
def test_the_page_has_a_section_for_every_finding_that_the_code_can_print() -> None:
    assert set(SECTIONS) == set(printed())


@pytest.mark.parametrize("name", [name for name in SECTIONS if not name.startswith("plan-")])
def test_the_tables_have_every_constraint_and_goal(name: str) -> None:
    assert f"| `{name}` | " in text(PAGE)


def of_file(section: str) -> str:
    """What lint finds in the file of a section, on the cluster of the examples."""
    (file,) = re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    world = World()
    for _ in (
        *cluster(world, racks="r1,r2,r3", brokers_per_rack="2"),
        *topic(world, "orders", min_insync_replicas="2"),
        *partition(world, replicas="1,2,3"),
    ):
        pass
    found = lint(world.snapshot(), RackPolicy(), read_reassignment(file), ReassignmentRequest())
    return "".join(
        f"{one.severity} {one.constraint}, {where(one)}: {one.reason}\n  fix with: {one.remedy}\n" for one in found
    )


def where(one: Finding) -> str:
    if one.topic is None:
        return "the plan"
    return one.topic if one.partition is None else f"{one.topic}-{one.partition}"


def printed() -> Iterator[str]:
    """The names that stand in the source where a finding, or what makes one, is made."""
    yield from (one.name for one in SURVIVAL_CONSTRAINTS)  # Their names are composed.
    yield RACK_NAMES_ALIKE
    for path in Path(rackspan.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                named = [one.value for one in node.keywords if one.arg == "constraint"]
                named += node.args[:1] if called(node) in MAKERS else []
                yield from (one.value for one in named if isinstance(one, ast.Constant) and isinstance(one.value, str))


def called(node: ast.Call) -> str:
    match node.func:
        case ast.Name(name):
            return name
        case ast.Attribute(attr=name):
            return name
        case _:
            return ""


MAKERS = {"Finding", "finding", "PartitionConstraint", "Goal", "Fault"}
