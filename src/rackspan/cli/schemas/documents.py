"""rackspan schema, and the table of the documents by the words of their commands."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import typer

from rackspan.acks.json_format import HardenDocument, ServedWatchDocument
from rackspan.advice.json_format import AdvisedDocument
from rackspan.audit.json_format import AuditDocument, OutageDocument
from rackspan.cli import output
from rackspan.cli.cluster import StartedCluster
from rackspan.cli.commands import LazyCommands, leaf_commands
from rackspan.cli.gateway import GatewayChecks, GatewayConfirmation
from rackspan.cli.options.flags import JUDGES
from rackspan.cli.pages.config import CheckedSettings, ShownSettings
from rackspan.cli.pages.in_flight import InFlightDocument
from rackspan.cli.pages.run import OutcomeDocument, PreviewDocument, VerdictDocument
from rackspan.cli.reassign.plan import GeneratedDocument, LintDocument, NewPlanDocument
from rackspan.cli.schemas.pipeline import OF_THE_PIPELINE, pipeline_documents
from rackspan.clients.json_format import ClientsDocument
from rackspan.errors import UsageError
from rackspan.model.json_format import SnapshotDocument
from rackspan.placement.proposal_format import NewTopicDocument, ProposalDocument
from rackspan.placement.spec import PlacementDocument
from rackspan.practice.control import FAULTS, ControlledCluster
from rackspan.restart.execution.json_format import RestartEventDocument
from rackspan.restart.json_format import RestartPlanDocument, StopDocument
from rackspan.streams.assignment import AssignmentDocument
from rackspan.streams.lab.replay import LabDocument
from rackspan.streams.live.group_audit import StreamsAuditDocument
from rackspan.traffic.json_format import TrafficDocument

DECLARED: Final[Mapping[str, Sequence[Any]]] = {
    "snapshot": [SnapshotDocument],
    "audit": [AuditDocument],
    "outage": [OutageDocument],
    "clients": [ClientsDocument],
    "traffic": [TrafficDocument],
    "advise": [AdvisedDocument],
    "place plan": [PlacementDocument],
    "place create": [NewTopicDocument],
    "place extend": [ProposalDocument],
    "reassign generate": [GeneratedDocument],
    "reassign plan": [NewPlanDocument],
    "reassign lint": [LintDocument],
    "reassign apply": [PreviewDocument, OutcomeDocument],
    "reassign verify": [VerdictDocument],
    "reassign cancel": [VerdictDocument, InFlightDocument, OutcomeDocument],
    "reassign undo": [PreviewDocument, OutcomeDocument],
    "restart safe": [StopDocument],
    "restart plan": [RestartPlanDocument],
    "restart watch": [RestartEventDocument],
    "acks harden": [HardenDocument],
    "acks watch": [ServedWatchDocument],
    "streams assign": [AssignmentDocument],
    "streams audit": [StreamsAuditDocument],
    "streams lab": [LabDocument],
    "cluster up": [StartedCluster],
    **{f"cluster {name}": [ControlledCluster] for name in (*FAULTS, "status")},
    "gateway check": [GatewayChecks],
    "gateway confirm": [GatewayConfirmation],
    "config show": [ShownSettings],
    "config check": [CheckedSettings],
}
"""One document, or those of a dry run and of a run."""

_EVENTS: Final = frozenset({"restart watch"})
"""Commands that print a series of documents."""


def schema_command(
    command: Annotated[str, typer.Argument(metavar="COMMAND", help="A command, its words joined: reassign-plan.")],
) -> None:
    """Print the JSON Schema of what a command prints with -o json."""
    output.write_text(output.as_json(json_schema(command.replace("-", " ")), indent=1) + "\n")


def json_schema(words: str) -> dict[str, Any]:
    """The schema of a command's document. Errors: UsageError for a command without one."""
    declared = pipeline_documents(words) if words in OF_THE_PIPELINE else DECLARED.get(words)
    if declared is None:
        names = ", ".join(known.replace(" ", "-") for known in (*DECLARED, *OF_THE_PIPELINE))
        raise UsageError(f"{words.replace(' ', '-')}: no such schema; name one of {names}")
    all_of_them = [*declared, output.SettingsInForce] if _judges(words) else declared
    references, parts = msgspec.json.schema_components(all_of_them, ref_template="#/$defs/{name}")
    parts = {name: _as_written(part) for name, part in parts.items()}
    references, in_force = references[: len(declared)], references[len(declared) :]
    for document in references if in_force else ():
        part = parts[_name(document)]
        part["properties"]["settings"], part["required"] = in_force[0], [*part["required"], "settings"]
    top = (
        parts.pop(_name(references[0]))
        if len(declared) == 1 and "$ref" in references[0]
        else {"anyOf": list(references)}
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:rackspan:schema:{words.replace(' ', '-')}:v1",
        **top,
        "title": f"rackspan {words}" + ("" if words == "snapshot" else " -o json"),
        "$defs": parts,
    }


def _judges(words: str) -> bool:
    """Whether the documents of a command say by which settings they were made. The events of a restart do not."""
    name = words.partition(" ")[0]
    command = LazyCommands()[name]
    leaves = dict(leaf_commands(command, name)) if hasattr(command, "commands") else {name: command}
    return words not in _EVENTS and getattr(leaves[words].callback, JUDGES, False)


def _name(reference: Mapping[str, str]) -> str:
    return reference["$ref"].removeprefix("#/$defs/")


def _as_written(part: dict[str, Any]) -> dict[str, Any]:
    """No other keys than the declared ones, and those with a default too: a dataclass is written whole."""
    if "properties" not in part:
        return part
    written = {key: value for key, value in part["properties"].items() if "default" in value}
    properties = {
        key: {name: value for name, value in of_key.items() if name != "default"}
        for key, of_key in part["properties"].items()
    }
    return {
        **part,
        "properties": properties,
        "required": [*part.get("required", ()), *written],
        "additionalProperties": False,
    }
