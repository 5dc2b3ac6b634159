"""The JSON Schemas of -o json. tests/json_schemas.py validates the documents of every other test of a command too."""

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from rackspan import api
from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands
from rackspan.cli.schemas import DECLARED, OF_THE_PIPELINE, json_schema
from rackspan.model import ClusterSnapshot
from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING
from rackspan.pipeline.schemas import NAMES as TABLES_OF_NAMES
from tests.cli.conftest import GOOD, Ran
from tests.cli.test_streams import PROBLEM
from tests.json_schemas import validator, violations
from tests.strategies import snapshots

Cli = Callable[..., Ran]

SPEC = {"brokers": [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}], "partitions": 2, "replication_factor": 2}
MOVED = {"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}
PLAN = {
    "version": 1,
    "partitions": [MOVED],
    "cluster_id": GOOD["cluster_id"],
    "steps": [{"step": 1, "reason": "by hand", "partitions": [{**MOVED, "undo": [1, 2, 3]}]}],
}
TO_MOVE = {"version": 1, "topics": [{"topic": "orders"}]}
NAMES = (*DECLARED, *OF_THE_PIPELINE)
AT = ("--snapshot", "moment.json")
COMMANDS: dict[str, tuple[str, ...]] = {
    "audit": AT,
    "outage": (*AT, "--pairs"),
    "place plan": ("--spec", "spec.json"),
    "place create": (*AT, "--topic", "new", "--partitions", "2", "--replication-factor", "2"),
    "place extend": (*AT, "--topic", "orders", "--partitions", "4"),
    "reassign generate": (*AT, "--topics-to-move-json-file", "to-move.json", "--broker-list", "1,2,3"),
    "reassign plan": (*AT, "--drain", "1", "--details"),
    "reassign lint": (*AT, "--plan", "plan.json", "--details"),
    "reassign apply": (*AT, "--plan", "plan.json", "--details"),
    "reassign undo": (*AT, "--plan", "plan.json", "--details"),
    "reassign verify": (*AT, "--plan", "plan.json"),
    "restart safe": (*AT, "--broker", "1,2"),
    "restart plan": AT,
    "acks harden": (*AT, "--min-insync-racks", "3"),
    "streams assign": ("--problem", "problem.json"),
    "streams lab": ("--problem", "problem.json"),
    "config show": (),
    "config check": ("--offline",),
}
"""Commands that need no cluster. Those that need one are validated in the tests that start it."""


@pytest.fixture
def documents(cli: Cli, tmp_path: Path) -> Callable[[str], Any]:
    """The document that a command prints."""
    files = {"moment": GOOD, "spec": SPEC, "plan": PLAN, "to-move": TO_MOVE, "problem": PROBLEM}
    for name, document in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    (tmp_path / "rackspan.toml").write_text(
        'survive = "broker"\n[brokers]\nexcluded = [4]\n[clusters.eu]\nbootstrap-server = "127.0.0.1:1"\n'
    )

    def printed(words: str) -> Any:
        ran = cli(*words.split(), *COMMANDS[words], "-o", "json")
        assert ran.out, ran.err
        return ran.document

    return printed


@pytest.mark.parametrize("words", COMMANDS)
def test_a_document_is_valid_and_one_more_key_anywhere_is_not(documents: Callable[[str], Any], words: str) -> None:
    document = documents(words)
    assert violations(words, document) == []
    for path in described_objects(document):
        changed = copy.deepcopy(document)
        at(changed, path)["a-new-key"] = 1
        assert violations(words, changed) != [], path


@pytest.mark.parametrize("words", COMMANDS)
def test_a_document_without_one_of_its_keys_is_not_valid(documents: Callable[[str], Any], words: str) -> None:
    document = documents(words)
    for key in set(document) - {"details"}:
        assert violations(words, {other: document[other] for other in document if other != key}) != [], key


def test_every_command_with_a_document_has_a_schema_and_every_schema_a_command() -> None:
    with_output = {
        words
        for words, command in leaf_commands(command_tree())
        if any("--output" in parameter.opts for parameter in command.params)
    }
    assert set(NAMES) == with_output | {"snapshot"}


@pytest.mark.parametrize("words", NAMES)
def test_a_schema_is_one_by_the_schema_of_schemas(words: str) -> None:
    Draft202012Validator.check_schema(json_schema(words))


@pytest.mark.parametrize("words", NAMES)
def test_a_schema_says_of_every_object_which_keys_it_has(words: str) -> None:
    schema = validator(words).schema
    assert schema["$id"] == f"urn:rackspan:schema:{words.replace(' ', '-')}:v1"
    open_objects = [
        path for path, part in parts(schema) if part.get("type") == "object" and "additionalProperties" not in part
    ]
    assert open_objects == []


@pytest.mark.slow
@given(snapshots())
def test_every_snapshot_is_valid(snapshot: ClusterSnapshot) -> None:
    assert violations("snapshot", json.loads(api.snapshot_json(snapshot))) == []


def test_the_command_prints_the_schema_and_refuses_a_name_that_it_does_not_have(cli: Cli) -> None:
    assert cli("schema", "reassign-plan").document == validator("reassign plan").schema
    ran = cli("schema", "reassign-pla")
    assert ran.code == 1
    assert ran.err.startswith("rackspan: reassign-pla: no such schema; name one of snapshot, audit, ")


def test_the_title_is_the_command_that_writes_the_document() -> None:
    assert json_schema("snapshot")["title"] == "rackspan snapshot"
    assert json_schema("reassign plan")["title"] == "rackspan reassign plan -o json"


def test_what_is_always_written_is_required() -> None:
    """The default of a dataclass is no key left out, and a dictionary by strategy has them all and no other."""
    problem = json_schema("pipeline check")["$defs"]["WarehouseProblem"]
    assert (
        set(problem["required"])
        == set(problem["properties"])
        == {*("kind", "problem", "remedy", "table", "cluster", "name")}
    )
    strategies = Draft202012Validator(
        json_schema("streams audit")["properties"]["strategies"] | {"additionalProperties": True}
    )
    names: dict[str, object] = {"none": 1, "min_traffic": 1, "balance_subtopology": 1}
    assert strategies.is_valid(names)
    assert not any(strategies.is_valid(other) for other in ({**names, "other": 1}, {"none": 1}))


def test_the_page_lists_every_schema() -> None:
    page = (Path(__file__).parents[2] / "docs" / "schemas.md").read_text(encoding="utf-8")
    assert [words for words in NAMES if f"`rackspan schema {words.replace(' ', '-')}`" not in page] == []


def parts(schema: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of a schema, with its path."""
    if isinstance(schema, dict):
        yield path, schema
        for key, value in schema.items():
            yield from parts(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, value in enumerate(schema):
            yield from parts(value, f"{path}/{number}")


def described_objects(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of the objects in a document that have fixed keys."""
    match document:
        case dict():
            if not OPEN & set(path):
                yield path
            for key, value in document.items():
                yield from described_objects(value, (*path, key))
        case list():
            for number, value in enumerate(document):
                yield from described_objects(value, (*path, number))


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


OPEN = {"by_constraint", "outcomes", "values"}
"""Counts by any name, and settings."""


def test_rows_of_every_table_have_a_schema_and_those_of_changes_one_as_they_are_stored() -> None:
    rows = {one["items"]["$ref"].rpartition("/")[2] for one in json_schema("pipeline table")["anyOf"]}
    tables = {**DERIVED, **LANDING, **HISTORY, **TABLES_OF_NAMES}
    assert rows == {*tables, *(f"{name}_changes" for name, table in tables.items() if table.as_changes)}
    assert "findings_changes" in rows
