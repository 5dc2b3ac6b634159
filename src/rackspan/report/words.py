"""The sentences of the report: the same words as in the CLI, in the same order; the first is for newcomers."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from rackspan.advice.advice import Concern
from rackspan.audit.drift.causes import SEVERAL
from rackspan.audit.outage import LOST, LOST_IN_PART, LostRack, RackLoss, already_harmed_heading
from rackspan.model.ids import shown
from rackspan.report.data import (
    AT_RISK,
    ClusterReport,
    DriftGroup,
    DurabilityState,
    History,
    LossHistory,
    RackSafety,
    ReportData,
    StateCounts,
    severity_of,
)
from rackspan.report.traffic import HOURS_MAX, AdvisedStep, BilledPart, TrafficReport
from rackspan.text import human_bytes
from rackspan.traffic.bill import MONTH_DAYS

NAMES_SHOWN: Final = 4
"""Racks named in a sentence before "and N more"; the pictures name them all."""

MEANING: Final[Mapping[DurabilityState, str]] = {
    DurabilityState.OFFLINE: "no leader: it can be neither written nor read",
    DurabilityState.UNDER_MIN_ISR: "fewer replicas in sync than min.insync.replicas: acks=all is refused",
    DurabilityState.UNDER_MIN_RACKS: "in-sync replicas in fewer racks than min.insync.racks requires",
    DurabilityState.ONE_RACK: "every in-sync replica is in one rack, though the cluster has more",
    DurabilityState.OK: "none of these",
}

BASIS_MEANING: Final[Mapping[str, str]] = {
    "measured": "counted by gateways",
    "derived": "it follows from bytes in and the racks of both sides",
    "derived-lower-bound": "brokers counted it: at least as much passed",
    "estimated": "by an assumption, which is named below",
}

_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def fleet_headline(data: ReportData) -> str:
    """The result for several clusters."""
    unsafe = sum(cluster.verdict is RackSafety.NOT_SAFE for cluster in data.clusters)
    unjudged = sum(cluster.verdict is RackSafety.NOT_JUDGED for cluster in data.clusters)
    clusters = len(data.clusters)
    uncertain = sum(cluster.verdict is RackSafety.NOT_CERTAIN for cluster in data.clusters)
    rest = f" {uncertain} {'is' if uncertain == 1 else 'are'} not certain to." if uncertain else ""
    rest += f" {unjudged} could not be judged." if unjudged else ""
    if unsafe:
        verb = "does" if unsafe == 1 else "do"
        return f"{unsafe} of {clusters} clusters {verb} not survive the loss of a rack.{rest}"
    safe = clusters - unjudged - uncertain
    return f"{'All' if safe == clusters else safe} of {clusters} clusters survive the loss of any one rack.{rest}"


def headline(cluster: ClusterReport) -> str:
    """The result for one cluster, in one sentence."""
    if not cluster.losses:
        return "Whether this cluster survives the loss of a rack is not known: no broker has a rack."
    fatal = [loss for loss in cluster.losses if not loss.survived and not loss.happened]
    worst = max(fatal, key=severity_of, default=None)
    if worst is not None:
        losing = f"losing rack {_rack(worst)} would {listed(effects(worst))}"
        if len(cluster.losses) == 1 and len(cluster.racks[0].brokers) == cluster.brokers:
            return f"All of this cluster is in one rack: {losing}."
        if len(fatal) == 1:
            return f"{losing[0].upper()}{losing[1:]}.{_survivable(len(cluster.losses) - 1 - len(cluster.lost_racks))}"
        return f"This cluster does not survive the loss of {named(fatal, 'or')}: {losing}."
    if any(not loss.survived for loss in cluster.losses):
        return "No other rack would take more partitions along; what its loss has done is not repaired."
    if not cluster.complete:
        return "In what could be read no loss of one rack does harm. What is missing stands below."
    if not cluster.partitions:
        return "There are no partitions yet, so there is nothing that the loss of a rack could harm."
    if cluster.left_open:
        return "No loss of one rack does harm by these racks and controllers, but a violation below leaves it open."
    more = " more" if cluster.lost_racks else ""
    return f"This cluster survives the loss of any one{more} rack: {listed(_kept(cluster))}."


def down(lost: LostRack) -> str:
    """`Rack b is down: brokers 2,5, controller 2; 21 partitions lack a replica.`"""
    return f"{lost.reason[0].upper()}{lost.reason[1:]}."


def outcome(loss: RackLoss) -> str:
    """What a loss comes to, in a word or two. A rack that is down is lost, whatever its controllers that are left do."""
    if loss.lost:
        return LOST if loss.happened and not loss.controllers_left else LOST_IN_PART
    return "can be lost" if loss.survived else "cannot be lost"


def outcome_sign(loss: RackLoss) -> str:
    """The mark of `outcome`: no green for what is lost already."""
    if loss.survived:
        return "unknown" if loss.lost else "ok"
    return "offline"


def effect(loss: RackLoss) -> str:
    """What a loss does, in one sentence."""
    if loss.happened:
        of_what = "The loss of its brokers" if loss.controllers_left else "Its loss"
        return f"{of_what} has happened: the numbers are those of now."
    if loss.survived:
        return "Nothing goes offline, nothing refuses acks=all."
    return f"Its loss would {listed(effects(loss))}."


def already_harmed(cluster: ClusterReport) -> str | None:
    """The harm in the latest snapshot, with no rack lost."""
    harmed = [
        f"{count(cluster.now.total(field), 'partition')} {words}"
        for field, words in (
            ("offline", "offline"),
            ("under_min_isr", "under min ISR"),
            ("under_min_racks", "under min racks"),
        )
        if cluster.now.total(field)
    ]
    if cluster.now.quorum_lost:
        harmed.append("no majority of controllers")
    return f"{already_harmed_heading(cluster.lost_racks)}: {listed(harmed)}." if harmed else None


def caveats(cluster: ClusterReport) -> list[str]:
    """What the result does not take into account."""
    sentences = [f"Could not be read: {words}" for words in cluster.partial]
    quorum = cluster.now.quorum
    if quorum is None:
        sentences.append("The snapshots hold no controllers, so the controller quorum is not part of the verdict.")
    elif quorum.unknown_rack:
        unknown = ", ".join(map(str, quorum.unknown_rack))
        one = len(quorum.unknown_rack) == 1
        whose = f"The rack of controller {unknown} is" if one else f"The racks of controllers {unknown} are"
        sentences.append(f"{whose} not known; name {'it' if one else 'them'} in rackspan.toml under [controllers].")
    return [*sentences, *(f"Assumed: {words}." for words in cluster.assumed)]


def effects(loss: RackLoss) -> list[str]:
    """The effects of a loss, each as a verb phrase; empty if it is survived."""
    done = []
    if offline := loss.total("offline"):
        done.append(f"take {count(offline, 'partition')} offline")
    if under_min_isr := loss.total("under_min_isr"):
        done.append(f"leave {count(under_min_isr, 'partition')} under min ISR")
    if under_min_racks := loss.total("under_min_racks"):
        done.append(f"leave {count(under_min_racks, 'partition')} under min racks")
    if loss.quorum_lost:
        done.append("stop the controllers")
    elif loss.quorum is None and not loss.quorum_certain:
        done.append("leave it open whether the controllers go on: none is known")
    elif loss.quorum is not None and not loss.quorum_certain:
        unknown = ", ".join(map(str, loss.quorum.unknown_rack))
        done.append(f"stop the controllers if too many of {unknown} are there, whose racks are not known")
    return done


def quorum(loss: RackLoss) -> str:
    """Controllers left, as `rackspan audit` prints them."""
    if loss.quorum is None:
        return "not known"
    left = f"{loss.quorum.surviving} of {loss.quorum.voters}"
    if loss.quorum.holds:
        return left if loss.quorum_certain else f"{left}, or fewer"
    return f"{left}: no majority"


def risk(history: History) -> str:
    """How long partitions were at risk, in one sentence."""
    if history.snapshots == 1:
        return "One snapshot so far: this is a moment, not yet a history. Collect again to see how it changes."
    over = f"{count(history.snapshots, 'snapshot')} over {span(history.seconds)}"
    unknown = f" Of {span(history.seconds_unknown)} nothing is known." if history.seconds_unknown else ""
    if not history.states:
        return f"Every partition was ok in all {over}.{unknown}"
    return f"{over}: for {span(history.seconds_at_risk)} of it at least one partition was not ok.{unknown}"


def losses_over_time(losses: Sequence[LossHistory], history: History) -> str:
    """Whether the cluster ever would not have survived a rack, in one sentence."""
    failed = [loss for loss in losses if loss.not_survived]
    if not failed:
        return f"Every rack could have been lost at any time in {count(history.snapshots, 'snapshot')}."
    worst = failed[0]
    sentence = f"Rack {shown(worst.rack)} could not have been lost for {span(worst.seconds_not_survived)} of {span(history.seconds)}"
    return f"{sentence}, in {worst.not_survived:,} of {count(worst.snapshots, 'snapshot')}{_nor(failed[1:])}."


def what_changed(group: DriftGroup) -> str:
    """`4 partitions of 2 topics lost safety`; `broker gone`."""
    if not group.change.startswith("safety-"):
        return spelled(group.change)
    of_topics = f" of {count(group.topics, 'topic')}" if group.topics > 1 else ""
    return f"{count(group.changes, 'partition')}{of_topics} {group.change.removeprefix('safety-')} safety"


def spelled(change: str) -> str:
    """A change of the table drift in words."""
    return change.replace("-", " ").replace("isr", "ISR")


def where_changed(group: DriftGroup) -> str:
    """`orders-3`; `orders-3 and 11 more`; `broker 3`."""
    noun = "controller" if group.change.startswith("voter-") else "broker"
    first = f"{noun} {group.broker}" if group.topic is None else group.topic
    if group.partition is not None:
        first = f"{first}-{group.partition}"
    return first if group.changes == 1 else f"{first} and {group.changes - 1:,} more"


def from_to(group: DriftGroup) -> str:
    """`ok → under-min-isr`. A rack without a name, a state of nothing and an empty ISR are a dash."""
    if group.before is None and group.after is None:
        return ""
    return f"{group.before or '–'} → {group.after or '–'}"


def caused_by(group: DriftGroup) -> str:
    """`broker gone: 3`; `several changes together`; empty for a change without a cause."""
    if group.cause is None:
        return ""
    if group.cause == SEVERAL:
        return "several changes together"
    cause = spelled(group.cause)
    return cause if group.cause_broker is None else f"{cause}: {group.cause_broker}"


def traffic_span(traffic: TrafficReport) -> str:
    """What the figures of traffic cover, in one sentence."""
    first, end = traffic.first_hour, traffic.last_hour + timedelta(hours=1)
    covered = (
        ""
        if traffic.hours == HOURS_MAX
        else f", of which {count(traffic.hours, 'hour')} {_have(traffic.hours)} readings"
    )
    return f"Sums of the {HOURS_MAX} hours from {first:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC{covered}."


def no_bytes(traffic: TrafficReport) -> str:
    """Why no bytes are shown, in one sentence."""
    if traffic.readings < 2:
        return "No bytes yet: they are known from the second reading on, once a run has judged it."
    return f"No bytes: between the {count(traffic.readings, 'reading')} nothing that is known of was written or read in these {HOURS_MAX} hours."


def crossed(traffic: TrafficReport) -> str:
    """What crossed racks, of what passed: one sentence."""
    passed = sum(flow.size_bytes for flow in traffic.flows)
    if not passed:
        return "No bytes passed that are known."
    unknown = sum(flow.size_bytes for flow in traffic.flows if flow.crosses is None)
    more = f", and of {human_bytes(unknown)} a rack is not known" if unknown else ""
    return f"{human_bytes(traffic.across)} crossed racks, {_share(traffic.across, passed)} of what passed{more}."


def incomplete(topics: Sequence[str]) -> str:
    """`Of 3 topics a part of the bytes is not known, and in no sum: orders, clicks and pay.`"""
    return (
        f"Of {count(len(topics), 'topic')} a part of the bytes is not known, and in no sum: {listed(_first(topics))}."
    )


def unread(lines: Sequence[str]) -> str:
    """`Readings of these hours could not read all, and what they lack is in no sum: group shop: not authorized.`"""
    return f"Readings of these hours could not read all, and what they lack is in no sum: {'; '.join(_first(lines))}."


def _first(names: Sequence[str]) -> list[str]:
    """The first NAMES_SHOWN, and how many more there are."""
    left = len(names) - NAMES_SHOWN
    return [*names[:NAMES_SHOWN], *([f"{left:,} more"] if left > 0 else [])]


def billed(traffic: TrafficReport) -> str:
    """The sum of the bill, and what it covers."""
    unknown = f" ({unpriced(traffic.bill)})" if traffic.bill.reasons else ""
    hours = (
        ""
        if traffic.hours_billed == traffic.hours
        else f" The bill has {traffic.hours_billed} of the {count(traffic.hours, 'hour')}."
    )
    return f"In these hours, by the price file of the run: {money(traffic.bill)}{unknown}.{hours}"


def money(billed: BilledPart) -> str:
    """`12.30 USD`; `12.30 USD, and more that is not known`; `not known`."""
    known = " + ".join(amount(value, currency) for currency, value in billed.money.items())
    if not billed.reasons:
        return known
    return f"{known}, and more that is not known" if known else "not known"


def amount(value: float, currency: str | None) -> str:
    """`1,234.50 USD`; `under 0.01 USD` for less, since 0.00 would be free."""
    return f"under 0.01 {currency}" if 0 < value < 0.005 else f"{value:,.2f} {currency}"


def unpriced(billed: BilledPart) -> str:
    """`1.2 GiB: the price of replicate is not known`; empty where all is known."""
    return "; ".join(
        f"{'some bytes' if size is None else human_bytes(size)}: {reason}" for reason, size in billed.reasons.items()
    )


def saved(step: AdvisedStep) -> str:
    """`12.3 GiB less across racks and 4.50 USD less in 30 days`; empty of risks."""
    if step.bytes_a_month is None:
        return ""
    size = f"{human_bytes(abs(step.bytes_a_month))} {'less' if step.bytes_a_month >= 0 else 'more'} across racks"
    priced = "" if step.money_a_month is None else f" and {amount(step.money_a_month, step.currency)} less"
    return f"{size}{priced} in {MONTH_DAYS} days"


def advice_left(traffic: TrafficReport) -> str:
    """`Of 12 savings these are the first ten.` Empty where all are shown."""
    every = traffic.advice_counts.get(Concern.MONEY, 0)
    if every <= len(traffic.savings):
        return ""
    return f"Of {count(every, 'saving')} these are the first {len(traffic.savings)}; rackspan advise prints the others."


def states(counts: StateCounts) -> str:
    """`18 offline, 4 under-min-isr`; `all ok`."""
    present = [f"{counts.of(state):,} {state.value}" for state in AT_RISK if counts.of(state)]
    return ", ".join(present) or "all ok"


def named(losses: Sequence[RackLoss], joined_by: str) -> str:
    names = [_rack(loss) for loss in losses]
    if len(names) > NAMES_SHOWN + 1:
        names = [*names[:NAMES_SHOWN], f"{len(names) - NAMES_SHOWN} more racks"]
    return listed(names, joined_by)


def utc(time: datetime | None) -> str:
    if time is None:
        return "an unknown time"
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """`6 min 20 s`: the two largest units, whole seconds; below a second one decimal."""
    if 0 < seconds < 1:
        return f"{seconds:.1f} s"
    rest, parts = round(seconds), []
    for size, unit in _UNITS:
        if rest >= size:
            parts.append(f"{rest // size:,} {unit}")
            rest %= size
        elif parts:
            break
    return " ".join(parts[:2]) or "0 s"


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(items: Sequence[str], joined_by: str = "and") -> str:
    """`a, b and c`."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joined_by} {items[-1]}"


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _share(part: int, whole: int) -> str:
    """`12 %`; nothing is rounded to none or all."""
    share = 100 * part / whole
    if 0 < share < 1:
        return "under 1 %"
    return "over 99 %" if 99 < share < 100 else f"{share:.0f} %"


def _rack(loss: RackLoss) -> str:
    return " and ".join(shown(rack) for rack in loss.racks)


def _nor(others: Sequence[LossHistory]) -> str:
    """The racks beside the worst: `; 2 other racks could not at any time either, 1 more at times`."""
    never = sum(other.not_survived == other.snapshots for other in others)
    counted = [share for share in ((never, "at any time"), (len(others) - never, "at times")) if share[0]]
    if not counted:
        return ""
    first, when = counted[0]
    more = "".join(f", {number:,} more {when}" for number, when in counted[1:])
    return f"; {count(first, 'other rack')} could not {when} either{more}"


def _survivable(others: int) -> str:
    if not others:
        return ""
    return " The other rack can be lost." if others == 1 else f" Each of the other {others} racks can be lost."


def _kept(cluster: ClusterReport) -> list[str]:
    kept = ["no partition goes offline", "none refuses acks=all"]
    quorum = cluster.now.quorum
    if quorum is not None and not quorum.unknown_rack:
        kept.append("the controllers keep their majority")
    return kept
