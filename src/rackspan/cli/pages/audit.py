"""Tables of rackspan audit and outage, from the same documents as -o json; the summary is last."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from rackspan.audit.constraints.cluster import RACK_NAMES_ALIKE
from rackspan.audit.outage import AFTER_REASSIGNMENT, LOST, LOST_IN_PART, STATES, already_harmed_heading
from rackspan.cli.output import page, table, unread_lines
from rackspan.model import UNNAMED_RACK, shown
from rackspan.text import count_noun, noun_and_ids

GROUPS_SHOWN: Final = 40
"""Finding groups on one screen's worth of scrolling; -o json has them all."""

TOPICS_APART: Final = 3
"""So many topics with the same finding have a row each; more are joined."""

NAMES_IN_A_COMMAND: Final = 10

TOPICS_SHOWN: Final = 40

AFTER_COLUMN: Final = "after reassignment"
"""The column of partitions that a loss harms once their reassignment has ended."""

NOTHING_TO_JUDGE: Final = "nothing to judge: the cluster has no topics"
ONLY_DISKLESS: Final = "nothing to judge: every topic is diskless, and no data of it is on brokers"


def audit_page(document: Mapping[str, Any]) -> RenderableType:
    summary, findings = document["summary"], document["findings"]
    return page(
        *_lost_racks(summary),
        _head(summary, racks=summary["racks"]),
        *unread_lines(summary["partial"]),
        Text(),
        _losses_table(summary["losses"], summary["left_open_by"]),
        Text(),
        *finding_groups(findings),
        *_audit_verdict(summary),
    )


def outage_page(document: Mapping[str, Any]) -> RenderableType:
    parts: list[RenderableType] = [*_lost_racks(document), _head(document), *unread_lines(document["partial"])]
    if document["now"]["topics"]:
        parts += [
            Text(f"\n{already_harmed_heading(document['lost_racks'])}", style="bold"),
            _topics_table(document["now"]["topics"]),
        ]
    for loss in document["losses"] if document["partitions"] > document["diskless"] else ():
        parts += [
            Text(f"\nWithout {_racks(loss['racks'])}", style="bold"),
            *_loss_parts(loss, document["left_open_by"]),
        ]
    return page(*parts, Text(), *_outage_verdict(document))


def visible(rack: str) -> str:
    """The name, quoted and escaped where it would look like another: for blanks around it, or another form of its letters."""
    plain = rack.isprintable() and rack == unicodedata.normalize("NFKC", rack).strip()
    return rack if plain else ascii(rack)


def partition_ranges(partitions: Sequence[int]) -> str:
    """`0-4,7`: ranges of ids."""
    runs = [
        [partition for _, partition in run]
        for _, run in groupby(enumerate(sorted(partitions)), key=lambda pair: pair[1] - pair[0])
    ]
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _lost_racks(document: Mapping[str, Any]) -> Iterator[Text]:
    """A line for each rack that is down: whatever stands below follows from it."""
    for lost in document["lost_racks"]:
        yield Text(lost["reason"], style="bold red")


def _head(summary: Mapping[str, Any], racks: Sequence[str] | None = None) -> Text:
    counts = f"{count_noun(summary['brokers'], 'broker', ',')}"
    if racks is not None:
        counts += f" in {count_noun(len(racks), 'rack', ',')} ({', '.join(map(visible, racks)) or 'none'})"
    if racks == [shown(UNNAMED_RACK)]:
        counts = f"{count_noun(summary['brokers'], 'broker', ',')} (no rack is set on any broker)"
    cluster_id, name = summary["cluster_id"] or "without an id", summary["cluster_name"]
    return Text.assemble(
        ("cluster ", "bold"),
        (cluster_id if name is None else f"{name} ({cluster_id})", "bold"),
        f" at {summary['taken_at'] or 'an unknown time'}: {counts}, {count_noun(summary['topics'], 'topic', ',')}, "
        f"{count_noun(summary['partitions'], 'partition', ',')}",
    )


def _losses_table(losses: Sequence[Mapping[str, Any]], left_open_by: Sequence[str]) -> RenderableType:
    moving = any(loss[AFTER_REASSIGNMENT] for loss in losses)
    return table(
        (
            *("without rack", "offline", "under min ISR", "under min racks"),
            *([AFTER_COLUMN] if moving else []),
            *("controllers left", "survives"),
        ),
        (
            (
                _racks(loss["racks"], noun=False),
                loss["offline"],
                loss["under_min_isr"],
                loss["under_min_racks"],
                *([loss[AFTER_REASSIGNMENT]] if moving else []),
                _quorum(loss["controller_quorum"]),
                _survives(loss, RACK_NAMES_ALIKE in left_open_by),
            )
            for loss in losses
        ),
    )


def finding_groups(findings: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """A row for the findings of one constraint about one topic with one remedy: no remedy is left out.

    Findings about many topics, whose remedies differ by the topic only, have one row, with one remedy for all of them.
    """
    alike: dict[tuple[str, ...], dict[tuple[str, str], list[Mapping[str, Any]]]] = {}
    for finding in findings:
        topics = alike.setdefault((finding["severity"], finding["constraint"], _of_any_topic(finding)), {})
        topics.setdefault((finding["topic"] or "", finding["remedy"]), []).append(finding)
    groups: list[list[Mapping[str, Any]]] = []
    for topics in alike.values():
        joined = len({topic for topic, _ in topics}) > TOPICS_APART
        groups += [[row for rows in topics.values() for row in rows]] if joined else topics.values()
    if not groups:
        return
    yield table(
        ("severity", "constraint", "topic", "partitions", "reason", "fix with"),
        (_finding_row(group) for group in groups[:GROUPS_SHOWN]),
    )
    if len(groups) > GROUPS_SHOWN:
        yield Text(
            f"and {count_noun(len(groups) - GROUPS_SHOWN, 'more line')}: -o json lists every finding", style="dim"
        )
    yield Text()


def _finding_row(group: Sequence[Mapping[str, Any]]) -> Sequence[object]:
    first = group[0]
    topics = list(dict.fromkeys(finding["topic"] or "" for finding in group))
    partitions = [finding["partition"] for finding in group if finding["partition"] is not None]
    reasons = len({finding["reason"] for finding in group})
    more = f" ({reasons - 1} more in -o json)" if reasons > 1 else ""
    return (
        Text(first["severity"], style="bold red" if first["severity"] == "violation" else "yellow"),
        first["constraint"],
        topics[0] if len(topics) == 1 else f"{topics[0]} and {count_noun(len(topics) - 1, 'more topic', ',')}",
        partition_ranges(partitions) if len(topics) == 1 else f"{len(group):,} in all",
        first["reason"] + more,
        first["remedy"] if len(topics) == 1 else _remedy_of_many(first, topics),
    )


def _of_any_topic(finding: Mapping[str, Any]) -> str:
    """The remedy without the name of the topic."""
    words = finding["remedy"].split(" ")
    return " ".join("TOPIC" if word == finding["topic"] else word for word in words)


def _remedy_of_many(first: Mapping[str, Any], topics: Sequence[str]) -> str:
    """One plan of all topics repairs what a plan of each does; any other command takes their names, or is run for each."""
    remedy = _of_any_topic(first)
    if "TOPIC" not in remedy.split(" "):
        return remedy
    if "--topic TOPIC" not in remedy:
        return f"for each topic: {remedy}"
    if "rackspan reassign plan --topic TOPIC" in remedy and "--replication-factor" not in remedy:
        return remedy.replace(" --topic TOPIC", "")
    if len(topics) <= NAMES_IN_A_COMMAND:
        names = "|".join(re.escape(topic) for topic in topics)
        return remedy.replace("--topic TOPIC", f"--topic '{names}'")
    return f"for each topic, or with a pattern of them: {remedy}"


def _audit_verdict(summary: Mapping[str, Any]) -> Iterator[Text]:
    broken, partitions = summary["violations"], summary["violated_partitions"]
    if broken:
        where = f" on {count_noun(partitions, 'partition', ',')}" if partitions else ""
        yield Text(
            f"{count_noun(broken, 'violation', ',')}{where}, {count_noun(summary['warnings'], 'warning', ',')}",
            style="bold red",
        )
    else:
        found = "no violations" if summary["complete"] else "no violations in what could be read"
        warnings = count_noun(summary["warnings"], "warning", ",")
        yield Text(f"{found}, {warnings}", style="bold green" if summary["complete"] else "bold yellow")
    yield _survival(summary)


def _nothing_to_judge(document: Mapping[str, Any]) -> Text:
    return Text(ONLY_DISKLESS if document["diskless"] else NOTHING_TO_JUDGE, style="bold yellow")


def _survival(summary: Mapping[str, Any]) -> Text:
    losses = summary["losses"]
    unsurvived = [loss for loss in losses if not loss["survived"]]
    fatal = [_racks(loss["racks"], noun=False) for loss in unsurvived if not loss["happened"]]
    if summary["survives_any_rack"] is None:
        return _nothing_to_judge(summary)
    if not losses:
        return Text("no racks to lose: no broker has one", style="bold yellow")
    if unsurvived and not fatal:
        return _present_harm(unsurvived, "rackspan outage shows what has stopped")
    if not fatal and summary["left_open_by"]:
        return Text(
            f"not certain to survive the loss of a rack: {', '.join(summary['left_open_by'])} above", style="bold red"
        )
    if not fatal:
        return _survived("survives the loss of any one rack", summary)
    if not any(_known_harm(loss) for loss in losses):
        return _doubtful(fatal, losses)
    if all(loss["as_required"] for loss in losses):
        return Text(f"does not survive the loss of {' or '.join(fatal)}, as the policy accepts", style="bold yellow")
    return Text(
        f"does not survive the loss of {' or '.join(fatal)}: rackspan outage shows what stops", style="bold red"
    )


NO_CONTROLLERS = "no controller is in the snapshot, and they are required"


def _survived(words: str, document: Mapping[str, Any]) -> Text:
    """Green only where everything was read, nothing was assumed and the controllers are judged too."""
    down = [f"rack {visible(lost['rack'])} is lost already" for lost in document["lost_racks"]]
    words = "; ".join([words, *down, *document["assumed"]])
    if not document["complete"]:
        return Text(f"{words}, as far as it could be read", style="bold yellow")
    quorums = [loss["controller_quorum"] for loss in document["losses"]]
    if None in quorums:
        return Text(f"{words}; controllers not judged: none is in the snapshot", style="bold yellow")
    unknown = quorums[0]["unknown_rack"]
    if unknown and not _certain_without(quorums):
        are, their_racks = ("is", "its rack is") if len(unknown) == 1 else ("are", "their racks are")
        which = noun_and_ids("controller", unknown)
        return Text(f"{words}, if {which} {are} not in it: {their_racks} not known", style="bold yellow")
    return Text(words, style="bold yellow" if down or document["assumed"] else "bold green")


def _certain_without(quorums: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a majority is left even if the voters of unknown rack are all lost with any rack."""
    return all(2 * (quorum["surviving"] - len(quorum["unknown_rack"])) > quorum["voters"] for quorum in quorums)


def _known_harm(loss: Mapping[str, Any]) -> bool:
    """Whether a loss does harm, as against that the controllers' racks are not known."""
    quorum = loss["controller_quorum"]
    harmed = bool(loss["topics"]) if "topics" in loss else any(loss[state] for state in (*STATES, AFTER_REASSIGNMENT))
    return harmed or (quorum is not None and not quorum["holds"])


def _survives(loss: Mapping[str, Any], alike: bool = False) -> Text:
    """`alike`: the rack may have another name too, so that more is lost with it."""
    if loss["lost"]:
        quorum = loss["controller_quorum"]
        left = quorum is not None and set(quorum["lost"]) != set(quorum["dead"])
        return Text(
            LOST if loss["happened"] and not left else LOST_IN_PART,
            style="bold yellow" if loss["survived"] else "bold red",
        )
    if loss["survived"]:
        return Text("not certain", style="bold yellow") if alike else Text("yes", style="green")
    return Text("no", style="bold red") if _known_harm(loss) else Text("not known", style="bold yellow")


def _present_harm(losses: Sequence[Mapping[str, Any]], more: str) -> Text:
    """The last line where the only losses that are not survived have happened."""
    racks = " or ".join(_racks(loss["racks"]) for loss in losses)
    return Text(f"did not survive the loss of {racks}: {more}", style="bold red")


def _doubtful(racks: Sequence[str], losses: Sequence[Mapping[str, Any]]) -> Text:
    quorum = losses[0]["controller_quorum"]
    reason = NO_CONTROLLERS
    if quorum is not None:
        racks_of, are = ("rack of", "is") if len(quorum["unknown_rack"]) == 1 else ("racks of", "are")
        reason = f"the {racks_of} {noun_and_ids('controller', quorum['unknown_rack'])} {are} not known"
    return Text(f"not known whether it survives the loss of {' or '.join(racks)}: {reason}", style="bold red")


def _loss_parts(loss: Mapping[str, Any], left_open_by: Sequence[str] = ()) -> Iterator[RenderableType]:
    quorum = loss["controller_quorum"]
    if quorum is not None and not quorum["holds"]:
        yield Text(
            f"  without {noun_and_ids('controller', quorum['lost'])} {quorum['surviving']} of {quorum['voters']} left "
            "is no majority: no leader is elected, no ISR changes, no topic can be altered",
            style="bold red",
        )
    if loss["topics"]:
        yield _topics_table(loss["topics"])
    if loss["happened"]:
        yield Text("  lost already: what it does to partitions is the present", style="bold yellow")
    elif loss["survived"]:
        open_ = f", unless the rack has another name too: {', '.join(left_open_by)}" if left_open_by else ""
        yield Text(f"  nothing goes offline, nothing refuses acks=all{open_}", style="yellow" if open_ else "green")
    elif not _known_harm(loss):
        reason = NO_CONTROLLERS
        if quorum is not None:
            reason = f"no rack is known of {noun_and_ids('controller', quorum['unknown_rack'])}"
        yield Text(
            "  nothing goes offline, nothing refuses acks=all, unless the majority of controllers is lost with it: "
            f"{reason}",
            style="bold yellow",
        )
    if loss["leader_surge"]:
        surge = ", ".join(f"broker {broker} +{gained}" for broker, gained in loss["leader_surge"].items())
        yield Text(f"  leaders move: {surge}")


def _topics_table(topics: Sequence[Mapping[str, Any]]) -> RenderableType:
    moving = any(topic[AFTER_REASSIGNMENT] for topic in topics)

    def row(topic: Mapping[str, Any]) -> Sequence[object]:
        return (
            "  " + topic["topic"] + (" (internal)" if topic["internal"] else ""),
            topic["offline"],
            topic["needs_unclean_election"],
            topic["under_min_isr"],
            topic["under_min_racks"],
            *([topic[AFTER_REASSIGNMENT]] if moving else []),
        )

    worst = sorted(
        topics, key=lambda one: (-one["offline"], -one["under_min_isr"], -one["under_min_racks"], one["topic"])
    )
    drawn = table(
        (
            *("  topic", "offline", "unclean election only", "under min ISR", "under min racks"),
            *([AFTER_COLUMN] if moving else []),
        ),
        map(row, worst[:TOPICS_SHOWN]),
    )
    if len(worst) <= TOPICS_SHOWN:
        return drawn
    return page(
        drawn, Text(f"  and {count_noun(len(worst) - TOPICS_SHOWN, 'more topic')}: -o json lists them", style="dim")
    )


def _outage_verdict(document: Mapping[str, Any]) -> Iterable[Text]:
    losses = document["losses"]
    unsurvived = [loss for loss in losses if not loss["survived"]]
    fatal = [_racks(loss["racks"]) for loss in unsurvived if not loss["happened"]]
    if document["partitions"] == document["diskless"]:
        return [_nothing_to_judge(document)]
    if not losses:
        return [Text("no such loss: the cluster has too few racks; rackspan audit says what to do", style="bold red")]
    if unsurvived and not fatal:
        return [_present_harm(unsurvived, "rackspan audit says what repairs it")]
    if not fatal and document["left_open_by"]:
        return [
            Text(
                f"not certain that no loss stops anything: {', '.join(document['left_open_by'])}; rackspan audit says what repairs it",
                style="bold red",
            )
        ]
    if not fatal:
        return [_survived("no loss listed above stops anything", document)]
    if not any(_known_harm(loss) for loss in losses):
        return [_doubtful(fatal, losses)]
    if all(loss["as_required"] for loss in losses):
        return [Text(f"does not survive losing {' or '.join(fatal)}, as the policy accepts", style="bold yellow")]
    return [
        Text(f"does not survive losing {' or '.join(fatal)}; rackspan audit says what repairs it", style="bold red")
    ]


def _quorum(quorum: Mapping[str, Any] | None) -> Text:
    if quorum is None:
        return Text("not known", style="dim")
    words = f"{quorum['surviving']} of {quorum['voters']}"
    if quorum["holds"] and not quorum["certain"]:
        return Text(f"{words}, or fewer", style="bold yellow")
    return Text(words) if quorum["holds"] else Text(f"{words}: no majority", style="bold red")


def _racks(racks: Sequence[str], *, noun: bool = True) -> str:
    names = " and ".join(map(visible, racks))
    return names if not noun else f"{'rack' if len(racks) == 1 else 'racks'} {names}"
