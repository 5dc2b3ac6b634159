"""The batches of a restart plan, from the plan or from the document that `rackspan restart plan -o json` prints."""

import re
from typing import Annotated, Final

import msgspec

from rackspan import json_text
from rackspan.documents import Count, InvalidDocument, convert
from rackspan.errors import UsageError
from rackspan.restart.planner import RestartPlan
from rackspan.restart.stopping import BlockOn, StopPolicy

_ANEW = "make the plan again with rackspan restart plan -o json"


BROKERS: Final = "{brokers}"
"""What the ids of a batch replace in a command."""


class PlannedBatch(msgspec.Struct, frozen=True):
    """Brokers that stop together."""

    brokers: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)]


class RestartBatches(msgspec.Struct, frozen=True):
    """The batches in order, the cluster that they are for, and what a stop may cost."""

    cluster_id: str | None
    as_of: str | None
    margin: Count
    block_on: tuple[BlockOn, ...]
    accept: str | None
    batches: tuple[PlannedBatch, ...]

    @property
    def stop(self) -> StopPolicy:
        accepted = None if self.accept is None else re.compile(self.accept)
        return StopPolicy(self.margin, frozenset(self.block_on), accepted)


def command_for(command: str, brokers: tuple[int, ...]) -> str:
    """A command of the shell for these brokers. Errors: UsageError if it does not say where their ids belong."""
    if BROKERS not in command:
        raise UsageError(f"--exec {command!r}: names no brokers; write {BROKERS} where their ids belong")
    return command.replace(BROKERS, ",".join(map(str, brokers)))


def batches_of(plan: RestartPlan) -> RestartBatches:
    """What of a plan is carried out."""
    from rackspan.restart.json_format import restart_plan_document

    return _checked(restart_plan_document(plan))


def read_restart_plan(content: bytes) -> RestartBatches:
    """Errors: UsageError, NotJson."""
    return _checked(json_text.parse(content))


def _checked(document: object) -> RestartBatches:
    try:
        plan = convert(document, RestartBatches, "plan", _ANEW)
        _ = plan.stop
    except InvalidDocument as error:
        raise UsageError(str(error)) from None
    except re.error as error:
        raise UsageError(f"accept {plan.accept!r}: not a regular expression: {error}; {_ANEW}") from None
    earlier: set[int] = set()
    for batch in plan.batches:
        for broker in batch.brokers:
            if broker in earlier:
                raise UsageError(f"broker {broker}: in the batches twice; {_ANEW}")
            earlier.add(broker)
    return plan
