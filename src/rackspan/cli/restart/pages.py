"""Tables of rackspan restart, from the same documents as -o json; the verdict is last."""

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table, unread_lines
from rackspan.restart.json_format import BlockedDocument, RestartPlanDocument, StopDocument, SufferingDocument
from rackspan.text import count_noun, noun_and_ids

PARTITIONS_SHOWN: Final = 20
"""Partitions of each list; -o json has them all."""

List: TypeAlias = Literal[
    "loses_leader",
    "refuses_writes",
    "below_margin",
    "one_copy",
    "single_replica",
    "without_margin",
    "accepted",
    "already",
]

LISTS: Final[dict[List, str]] = {
    "loses_leader": "No leader is left",
    "refuses_writes": "acks=all is refused",
    "below_margin": "Below the margin",
    "one_copy": "One copy is left in sync",
    "single_replica": "The only replica stops",
    "without_margin": "No margin is possible",
    "accepted": "Accepted by --accept",
    "already": "Harmed already, and not worse",
}
"""Heading by the document's key, the gravest first."""


def stop_page(document: StopDocument) -> RenderableType:
    parts: list[RenderableType] = [*unread_lines(document["partial"])]
    for name, heading in LISTS.items():
        parts += _list(heading, document[name])
    return page(*parts, *_controllers(document), _stop_verdict(document))


def restart_plan_page(document: RestartPlanDocument) -> RenderableType:
    return page(
        Text(f"as of {document['as_of'] or 'an unknown time'}{_most(document)}", style="bold"),
        *_margin(document),
        *unread_lines(document["partial"]),
        Text(),
        *_batches(document),
        *_blocked(document["blocked"]),
        *_forcing(document),
        _plan_verdict(document),
    )


def _list(heading: str, partitions: Sequence[SufferingDocument]) -> Iterator[RenderableType]:
    if not partitions:
        return
    yield Text(f"{heading}: {count_noun(len(partitions), 'partition', ',')}", style="bold")
    yield table(
        ("  topic", "partition", "reason"),
        (
            ("  " + partition["topic"], partition["partition"], partition["reason"])
            for partition in partitions[:PARTITIONS_SHOWN]
        ),
    )
    if len(partitions) > PARTITIONS_SHOWN:
        yield Text(f"  and {len(partitions) - PARTITIONS_SHOWN:,} more: -o json lists them", style="dim")
    yield Text()


def _controllers(document: StopDocument) -> Iterator[Text]:
    voters = document["controllers"]
    if voters is None:
        yield Text("controllers not judged: none is in the snapshot", style="yellow")
    elif voters["left"] < voters["majority"]:
        yield Text(f"{voters['left']} of {voters['voters']} controllers left is no majority", style="bold red")


def _stop_verdict(document: StopDocument) -> Text:
    which = noun_and_ids("broker", document["brokers"])
    may = f"{which} may{' not' * (not document['safe'])} stop{' together' * (len(document['brokers']) > 1)}"
    style = "bold green" if document["safe"] and document["controllers"] is not None else "bold yellow"
    return Text(f"{may}, as of {document['as_of'] or 'an unknown time'}", style if document["safe"] else "bold red")


def _most(document: RestartPlanDocument) -> str:
    """The brokers of the largest batch, if there is one."""
    sizes = [len(batch["brokers"]) for batch in document["batches"]]
    if not sizes:
        return ""
    allowed = "" if document["max_batch"] is None else f" (--max-batch {document['max_batch']})"
    return f", at most {count_noun(max(sizes), 'broker')}{allowed} in a batch"


def _margin(document: RestartPlanDocument) -> Iterator[Text]:
    if document["without_margin"]:
        count = count_noun(document["without_margin"], "partition", ",")
        yield Text(f"margin {document['margin']}: the replication factor of {count} allows none", style="yellow")


def _batches(document: RestartPlanDocument) -> Iterator[RenderableType]:
    if not document["batches"]:
        return
    yield table(
        ("batch", "brokers", "of", "leaders moved", "most leaders", "most bytes", "at minimum"),
        (
            (
                number,
                ",".join(map(str, batch["brokers"])),
                batch["reason"],
                batch["leaders_moved"],
                f"{batch['most_leaders']:g} × now",
                "not known" if batch["most_bytes"] is None else f"{batch['most_bytes']:g} × now",
                batch["at_minimum"],
            )
            for number, batch in enumerate(document["batches"], 1)
        ),
    )
    yield Text()
    for number, batch in enumerate(document["batches"], 1):
        if batch["waits_for"]:
            first, more = batch["waits_for"][0], len(batch["waits_for"]) > 1
            yield Text(
                f"batch {number} may stop once {first}{' and others' * more} {'have' if more else 'has'} every replica "
                "in sync that is on a broker that is up",
                style="yellow",
            )


def _blocked(blocked: Sequence[BlockedDocument]) -> Iterator[RenderableType]:
    if not blocked:
        return
    yield Text(f"{count_noun(len(blocked), 'broker')} can never be stopped safely", style="bold red")
    yield table(
        ("broker", "partitions", "first", "fix with"),
        (
            (
                broker["broker"],
                broker["partition_count"],
                ", ".join(f"{partition['topic']}-{partition['partition']}" for partition in broker["partitions"][:1]),
                broker["remedy"],
            )
            for broker in blocked
        ),
    )
    yield Text()


def _forcing(document: RestartPlanDocument) -> Iterator[Text]:
    forcing = document["forcing"]
    if forcing is None:
        return
    more = ", …" if forcing["partition_count"] > len(forcing["partitions"]) else ""
    yield Text(
        f"more batches than the {forcing['racks']} racks: a rack may not stop whole because of "
        f"{count_noun(forcing['partition_count'], 'partition', ',')} ({', '.join(forcing['partitions'])}{more})"
    )
    gain = forcing["gain"]
    if gain is not None:
        then = count_noun(gain["batches"], "batch", plural="batches")
        yield Text(f"{then} after {gain['command']}, which moves {count_noun(gain['moves'], 'replica', ',')}")


def _plan_verdict(document: RestartPlanDocument) -> Text:
    batches, bound = len(document["batches"]), document["lower_bound"]
    if not batches:
        return Text("no batch: nothing can be restarted" if document["blocked"] else "no batch: nothing to restart")
    words, state = count_noun(batches, "batch", plural="batches"), ""
    down, if_up = document["down"], document["batches_if_up"]
    if down:
        which, are = noun_and_ids("broker", down), "is" if len(down) == 1 else "are"
        words, state = f"{words}, {which} first, which {are} down", " from this state"
        if if_up is not None and if_up < batches:
            words += f" (with {which} up, {count_noun(if_up, 'batch', plural='batches')} would do)"
    if batches == bound:
        return Text(f"{words}; no plan needs fewer{state}: {document['bound_reason']}", style="bold green")
    return Text(f"{words}; fewer than {bound} are impossible{state}: {document['bound_reason']}", style="bold yellow")
