"""What each command says of a random cluster, held against plain.py: each fault is a line of text."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Final

from rackspan import api
from rackspan.acks import HardenOutcome, wording
from rackspan.audit import Finding, Severity
from rackspan.errors import UsageError
from rackspan.reassign import ListedPartition, ReassignmentDocument, ReassignmentRequest
from tests.audit.repairs import alternatives
from tests.random_clusters import plain
from tests.random_clusters.carried_out import Place, carried_out
from tests.random_clusters.plain import Impossible
from tests.random_clusters.states import Document, RandomCluster
from tests.random_clusters.values import policy_of

FOLLOWED_MAX: Final = 80
"""Far more remedies than any such cluster needs: remedies that undo each other never end."""

CONCEDES: Final = ("survive = ", "lower min", "acks harden", "broker.rack", "the rack of", "name them")
"""Words of remedies that change what is required, or where brokers are known to be: before and after cannot be compared."""


def verdicts(cluster: RandomCluster) -> Iterator[str]:
    """Audit and outage: a green verdict beside a loss that harms, and what is called offline though that is not known."""
    snapshot, policy = cluster.snapshot(), policy_of(cluster)
    judged, (now, losses) = api.audit(snapshot, policy), api.outage(snapshot, policy)
    if not snapshot.unread:
        if judged.clean:
            yield from (f"audit ends with 0: {harm}" for harm in plain.harm_of_losses(cluster))
        if judged.survives_any_rack:
            yield from (
                f"audit says that any rack may be lost: {harm}"
                for rack in plain.losses(cluster, "rack")
                for harm in plain.harm_of_loss(cluster, rack)
            )
        if cluster.two_schemes and (judged.clean or judged.survives_any_rack):
            yield "a green verdict on racks in two naming schemes"
        for loss in losses:
            harm = plain.harm_of_loss(cluster, loss.racks[0] or plain.UNRACKED)
            if loss.survived and harm:
                yield f"outage says that {loss.racks[0]} may be lost: {harm}"
            required = plain.harm_of_loss(cluster, loss.racks[0] or plain.UNRACKED, "rack")
            if loss.as_required and [one for one in required if loss.quorum_required or "quorum" not in one]:
                yield f"outage says that the policy survives {loss.racks[0]}: {required}"
    offline = Counter(
        topic["name"]
        for topic, row in cluster.partitions()
        if row["leader"] == -1
        or (row["leader"] >= 0 and (not set(row["isr"]) & cluster.up or _cannot_elect(cluster, row)))
    )
    called = Counter(one.topic for one in judged.findings if one.constraint == "offline")
    counted = Counter({one.topic: one.offline for one in now.topics})
    for name, by in (("audit", called), ("outage", counted)):
        yield from (f"{name} calls {topic} offline, which is not known" for topic in by - offline)
    diskless = {topic["name"] for topic in cluster.document["topics"] if plain.is_diskless(topic)}
    in_place = {topic for topic, survive in cluster.policy["topic_survive"].items() if survive == "none"}
    yield from (
        f"{one.topic} accepts every loss, and its placement is a violation"
        for one in judged.findings
        if one.constraint == "rack-spread" and one.topic in in_place and one.severity is Severity.VIOLATION
    )
    yield from (f"diskless {one.topic} is judged: {one.constraint}" for one in judged.findings if one.topic in diskless)


def _cannot_elect(cluster: RandomCluster, row: Document) -> bool:
    """A leader that is down is replaced only with a majority of the controllers."""
    return row["leader"] not in cluster.up and plain.majority_may_fall(cluster, None)


def stops(cluster: RandomCluster) -> Iterator[str]:
    """Restart safe: what may stop, and stops something."""
    snapshot, policy, ids = cluster.snapshot(), policy_of(cluster), sorted(one["id"] for one in cluster.brokers)
    racks = [{one["id"] for one in cluster.brokers if one["rack"] == rack} for rack in cluster.racks]
    pair = set(cluster.rng.sample(ids, min(2, len(ids))))
    for stopped in [*({one} for one in ids), *racks, pair]:
        if api.judge_stop(snapshot, stopped, policy).safe and (harm := plain.harm_of_stop(cluster, stopped)):
            yield f"restart safe lets {sorted(stopped)} stop: {harm}"


def orders(cluster: RandomCluster) -> Iterator[str]:
    """Restart plan: each batch in the printed order, once replicas have caught up."""
    planned = api.plan_restart(cluster.snapshot(), policy_of(cluster))
    state = plain.settled(cluster)
    for at, batch in enumerate(() if planned.partial else planned.batches, 1):
        if harm := plain.harm_of_stop(state, set(batch.brokers)):
            yield f"restart plan: batch {at} of {[one.brokers for one in planned.batches]} cannot begin: {harm}"
            break
        state = plain.restarted(state, set(batch.brokers))
    gain = planned.forcing and planned.forcing.gain
    remedies_of: list[tuple[int | None, str]] = [(None, gain.command)] if gain else []
    remedies_of += [(one.broker, words) for one in planned.blocked for words in re.split(r"; (?!then )", one.remedy)]
    for broker, way in ((broker, way) for broker, words in remedies_of for way in alternatives(words)):
        try:
            carried_out(cluster, way, Place())
        except Impossible as error:
            yield f"restart plan of blocked broker {broker}: {way!r}: {error}"


def plans(cluster: RandomCluster) -> Iterator[str]:
    """Plans and lint: what cannot be carried out, takes away what held, or is not found in a file."""
    rng, snapshot, policy = cluster.rng, cluster.snapshot(), policy_of(cluster)
    ids = sorted(one["id"] for one in cluster.brokers)
    repairs = rng.random() < 0.5
    request = ReassignmentRequest(
        drain=frozenset(rng.sample(ids, 1)) if not repairs and rng.random() < 0.5 else frozenset(),
        replication_factor=rng.randint(1, 4) if not repairs and rng.random() < 0.4 else None,
        balance=rng.random() < 0.3,
        replace_missing=rng.random() < 0.2,
    )
    try:
        planned = api.plan_reassignment(snapshot, policy, request)
    except UsageError:
        return
    found = api.lint_reassignment(snapshot, policy, planned, request)
    yield from (f"lint of the own plan: {one.reason}" for one in found if is_of_plan(one))
    state = cluster
    try:
        for step in planned.steps:
            state = plain.reassigned(state, {(one.topic, one.partition): list(one.replicas) for one in step.partitions})
    except Impossible as error:
        yield f"{request}: {error}"
    else:
        touched = {one.name for one in planned.partitions()}
        lost = {one for one in plain.writable(cluster) - plain.writable(state) if one.split(" ")[0] in touched}
        if lost and request.replication_factor is None:
            yield f"{request}: the plan takes away {sorted(lost)}"
    if request == ReassignmentRequest():
        in_place = {topic for topic, survive in cluster.policy["topic_survive"].items() if survive == "none"}
        moved = {
            one.name for one in planned.partitions() if one.topic in in_place and set(one.replicas) - set(one.undo)
        }
        yield from (f"the plan moves {name}, whose topic accepts every loss" for name in moved)
    yield from _linted(cluster)


def is_of_plan(finding: Finding) -> bool:
    """Whether it is a violation that a plan could repair: no plan changes how racks are written."""
    return finding.severity is Severity.VIOLATION and finding.constraint != "rack-names-alike"


def _linted(cluster: RandomCluster) -> Iterator[str]:
    """A file of another tool: what lint finds nothing in survives as required, and can be carried out."""
    rng, up = cluster.rng, sorted(cluster.up)
    targets: dict[tuple[str, int], list[int]] = {}
    for topic, row in cluster.some(0.4):
        chosen = rng.sample(up, min(len(up), len(row["replicas"])))
        if not plain.is_diskless(topic) and chosen:
            targets[topic["name"], row["partition"]] = chosen
    document = ReassignmentDocument(tuple(ListedPartition(*key, tuple(to)) for key, to in targets.items()))
    found = api.lint_reassignment(cluster.snapshot(), policy_of(cluster), document)
    named = {(one.topic, one.partition) for one in found}
    for topic, row in cluster.partitions():
        key = topic["name"], row["partition"]
        # In one rack nothing survives its loss: that is a finding about the cluster.
        if key not in targets or key in named or len(set(plain.rack_of(cluster).values())) < 2:
            continue
        try:
            plain.reassigned(cluster, {key: targets[key]})
        except Impossible as error:
            yield f"lint finds nothing in {key} to {targets[key]}: {error}"
        for name, lost in plain.losses(cluster, plain.survive_of(cluster, topic)).items():
            if not plain.takes_writes(cluster, topic, set(targets[key]) - lost, len(targets[key])):
                yield f"lint finds nothing in {key} to {targets[key]}: harmed by the loss of {name}"
                break


def remedies(cluster: RandomCluster) -> Iterator[str]:
    """Each way out of each finding: it can be carried out, and stops nothing that went on."""
    findings = api.audit(cluster.snapshot(), policy_of(cluster)).findings
    judged_remedies = set[tuple[str, str | None]]()
    for finding in findings:
        if (finding.remedy, finding.topic) in judged_remedies:
            continue
        judged_remedies.add((finding.remedy, finding.topic))
        refused = []
        for way in alternatives(finding.remedy):
            try:
                yield from _of_way(cluster, finding, way)
            except Impossible as error:
                refused.append((way, error))
        # Of the ways of an operator one is enough, as to bring back a broker or to unregister it. A command has to be possible.
        none_left = len(refused) == len(alternatives(finding.remedy))
        for way, reason in refused:
            if none_left or way.startswith(("rackspan ", "kafka-")):
                yield f"{finding.constraint} of {finding.topic}-{finding.partition}: {way!r}: {reason}"


def _of_way(cluster: RandomCluster, finding: Finding, way: str) -> Iterator[str]:
    what = f"{finding.constraint} of {finding.topic}-{finding.partition}: {way!r}"
    if "--election-type unclean" in way and not re.search(r"\blos(t|es)\b", way):
        yield f"{what}: loses records without saying so"
    after = carried_out(cluster, way, Place(finding.topic, finding.partition))
    if after is None:
        return
    # The end of a reassignment, which comes by itself, is not the remedy's work.
    lost = plain.writable(cluster) & plain.writable(plain.settled(cluster)) - plain.writable(after)
    if " cancel " in way:
        # The replicas of before may survive less than those of the target: that is what was requested.
        lost = {one for one in lost if one.endswith(" now")}
    if lost and not any(words in way for words in CONCEDES):
        yield f"{what}: stops {sorted(lost)}"


def ends(cluster: RandomCluster) -> Iterator[str]:
    """The first finding that has a way out, followed again and again: all come to an end, the warnings too."""
    state, steps = cluster, []
    rng = Random(len(cluster.document["brokers"]))
    for _ in range(FOLLOWED_MAX):
        left = api.audit(state.snapshot(), policy_of(state)).findings
        followed = (_followed(state, one, rng) for one in left)
        one, after = next(((one, after) for one, after in zip(left, followed, strict=True) if after), (None, None))
        if one is None or after is None:
            break
        steps.append(f"{one.constraint}: {one.remedy}")
        state = after
    else:
        yield f"remedies that do not end: {steps[-4:]}"
        return
    by_name = {topic["name"]: topic for topic in state.document["topics"]}
    for one in left:
        what = f"after {len(steps)} remedies: {one.constraint} of {one.topic}-{one.partition}: {one.remedy!r}"
        if not _has_way_out(state, one):
            yield f"{what} has no effect; {one.reason}"
        elif one.severity is Severity.VIOLATION and one.topic and plain.can_be_met(state, by_name[one.topic]):
            yield f"{what}, and some placement would do; {one.reason}"
    yield from verdicts(state)


def _followed(cluster: RandomCluster, finding: Finding, rng: Random) -> RandomCluster | None:
    """The cluster after any way out of a finding that changes it."""
    possible = alternatives(finding.remedy)
    for way in rng.sample(possible, len(possible)):
        try:
            after = carried_out(cluster, way, Place(finding.topic, finding.partition))
        except Impossible:
            continue
        if after is not None and (after.document, after.policy) != (cluster.document, cluster.policy):
            return after
    return None


def _has_way_out(cluster: RandomCluster, finding: Finding) -> bool:
    """Whether a way out is open that the model does not follow: the cluster gets another shape."""
    for way in alternatives(finding.remedy):
        try:
            if carried_out(cluster, way, Place(finding.topic, finding.partition)) is None:
                return True
        except Impossible:
            continue
    return False


def advice(cluster: RandomCluster) -> Iterator[str]:
    """Advise: each command in the printed order, on what those before it leave, changes nothing for the worse."""
    state = cluster
    for line in api.advise(cluster.snapshot(), policy_of(cluster)):
        way = alternatives(line.command)[0]
        if not way.startswith(("rackspan reassign plan", "kafka-")):
            continue
        try:
            after = carried_out(state, way, Place(line.topic))
        except Impossible:
            continue
        lost = plain.writable(state) - plain.writable(after) if after is not None else set()
        if lost and not any(words in way for words in CONCEDES):
            yield f"advise: {line.kind}: {way}: stops {sorted(lost)}"
        state = after or state


def values(cluster: RandomCluster) -> Iterator[str]:
    """Harden: a value that is to be set stops nothing that goes on, and what comes first makes it possible."""
    after, advised = cluster.copy(), api.harden(cluster.snapshot(), policy_of(cluster))
    to_set = {str(one.topic): str(one.least) for one in advised if one.to_set}
    for topic in after.document["topics"]:
        if topic["name"] in to_set:
            topic["config"]["min.insync.replicas"] = to_set[topic["name"]]
    if lost := plain.writable(cluster) - plain.writable(after):
        yield f"harden sets {to_set} and stops {sorted(lost)}"
    up = cluster.up
    whole = {
        topic["name"]
        for topic in cluster.document["topics"]
        if all(
            row["leader"] in up and set(row["replicas"]) <= up and not row["adding_replicas"] + row["removing_replicas"]
            for row in topic["partitions"]
        )
    }
    for one in advised if len(up) == len(cluster.brokers) else ():
        for way in re.findall(r"rackspan reassign plan [^;\n]*", "\n".join(wording.remedies(one))):
            try:
                then = carried_out(cluster, way, Place(one.topic)) if one.topic in whole else None
            except Impossible as error:
                yield f"harden of {one.topic}: {way}: {error}"
                continue
            if then is not None:
                (next_,) = api.harden(then.snapshot(), policy_of(then), re.compile(re.escape(one.topic)))
                if next_.outcome in (HardenOutcome.UNSAFE, HardenOutcome.IMPOSSIBLE):
                    yield f"harden of {one.topic}: {way}: {next_.outcome} afterwards"


Judge = Callable[[RandomCluster], Iterator[str]]

JUDGES: Final[Mapping[str, Judge]] = {
    "audit and outage": verdicts,
    "restart safe": stops,
    "restart plan": orders,
    "reassign plan and lint": plans,
    "remedies": remedies,
    "remedies to their end": ends,
    "advise": advice,
    "acks harden": values,
}
"""A judge for each command."""
