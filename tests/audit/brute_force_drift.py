"""A second differ: two snapshots' JSON compared key by key in plain loops, sharing nothing with the columns."""

from typing import Any

from rackspan.audit import RackPolicy
from tests.audit import brute_force
from tests.audit.brute_force import Document

Row = dict[str, Any]
BADNESS = ["ok", "one-rack", "under-min-racks", "under-min-isr", "offline"]
ABSENT = "ok"
"""A partition that is not there is not at risk."""


def drift(before: Document, after: Document, policy: RackPolicy) -> list[Row]:
    """Every change, with the columns of the table `drift` that are its own, in order of nothing."""
    before, after = without_hidden(before, after), without_hidden(after, before)
    return [*broker_rows(before, after), *voter_rows(before, after, policy), *all_topic_rows(before, after, policy)]


def without_hidden(one: Document, other: Document) -> Document:
    """A snapshot without what the other one says it could not read: topics and the quorum."""
    notes = other.get("partial") or []
    if any(note.startswith("topic") for note in notes):
        shown = {topic["name"] for topic in other["topics"]}
        one = {**one, "topics": [topic for topic in one["topics"] if topic["name"] in shown]}
    if any(note.startswith("the controller quorum") for note in notes):
        one = {**one, "controllers": other["controllers"]}
    return one


def row(change: str, **fields_of_row: Any) -> Row:
    nothing = dict.fromkeys(("topic", "partition", "broker", "before", "after", "cause", "cause_broker"))
    return {"change": change, **nothing, **fields_of_row}


def broker_rows(before: Document, after: Document) -> list[Row]:
    was, now = ({one["id"]: one for one in side["brokers"]} for side in (before, after))
    rows = [row("broker-gone", broker=one, before=was[one]["rack"]) for one in was if one not in now]
    rows += [row("broker-appeared", broker=one, after=now[one]["rack"]) for one in now if one not in was]
    for one in set(was) & set(now):
        if was[one]["rack"] != now[one]["rack"]:
            rows.append(row("broker-rack-changed", broker=one, before=was[one]["rack"], after=now[one]["rack"]))
        if was[one]["fenced"] != now[one]["fenced"]:
            rows.append(row("broker-fenced" if now[one]["fenced"] else "broker-unfenced", broker=one))
    return rows


def voter_rows(before: Document, after: Document, policy: RackPolicy) -> list[Row]:
    was, now = brute_force.voters(before, policy), brute_force.voters(after, policy)
    rows = []
    for one in {**was, **now}:
        if one not in was or one not in now:
            rows.append(
                row(
                    "voter-gone" if one in was else "voter-appeared",
                    broker=one,
                    before=was.get(one),
                    after=now.get(one),
                )
            )
        elif was[one] != now[one]:
            rows.append(row("voter-rack-changed", broker=one, before=was[one], after=now[one]))
    return rows


def all_topic_rows(before: Document, after: Document, policy: RackPolicy) -> list[Row]:
    was, now = ({one["name"]: one for one in side["topics"]} for side in (before, after))
    rows = []
    for name in {**was, **now}:
        rows += topic_rows(name, was.get(name), now.get(name), policy)
        rows += all_partition_rows(before, after, was.get(name), now.get(name), name, policy)
    return rows


def topic_rows(name: str, was: Document | None, now: Document | None, policy: RackPolicy) -> list[Row]:
    if was is None and now is not None:
        return [row("topic-created", topic=name, after=str(len(now["partitions"])))]
    if now is None or was is None:
        return [row("topic-deleted", topic=name, before=str(len(was["partitions"])))] if was else []
    rows = []
    if made_anew(was, now):
        rows.append(row("topic-recreated", topic=name, before=was["topic_id"], after=now["topic_id"]))
    ids = [{one["partition"] for one in side["partitions"]} for side in (was, now)]
    counts = {"topic": name, "before": str(len(ids[0])), "after": str(len(ids[1]))}
    rows += [row("partitions-added", **counts)] if ids[1] - ids[0] else []
    rows += [row("partitions-removed", **counts)] if ids[0] - ids[1] else []
    for change, required in (
        ("replicas", brute_force.min_replicas),
        ("racks", lambda one: brute_force.min_racks(one, policy)),
    ):
        if required(was) != required(now):
            rows.append(
                row(f"min-insync-{change}-changed", topic=name, before=str(required(was)), after=str(required(now)))
            )
    return rows


def made_anew(was: Document, now: Document) -> bool:
    return bool(was["topic_id"] and now["topic_id"] and was["topic_id"] != now["topic_id"])


def all_partition_rows(
    before: Document, after: Document, was: Document | None, now: Document | None, name: str, policy: RackPolicy
) -> list[Row]:
    rows = []
    held = [{one["partition"]: one for one in side["partitions"]} if side else {} for side in (was, now)]
    for number in {**held[0], **held[1]}:
        old, new = held[0].get(number), held[1].get(number)
        key = {"topic": name, "partition": number}
        if old and new:
            rows += [{**one, **key} for one in what_moved(old, new)]
        rows += [{**one, **key} for one in safety(before, after, was, now, old, new, policy)]
    return rows


def what_moved(old: Document, new: Document) -> list[Row]:
    def listed(brokers: list[int]) -> str:
        return ",".join(str(one) for one in brokers)

    rows = []
    if old["replicas"] != new["replicas"]:
        change = "reordered" if sorted(old["replicas"]) == sorted(new["replicas"]) else "moved"
        rows.append(row(f"replicas-{change}", before=listed(old["replicas"]), after=listed(new["replicas"])))
    if isr_word(old, new):
        rows.append(row(isr_word(old, new), before=listed(sorted(old["isr"])), after=listed(sorted(new["isr"]))))
    if leader_word(old, new):
        fields_of_row = {
            side: None if one["leader"] == -1 else str(one["leader"]) for side, one in (("before", old), ("after", new))
        }
        rows.append(row(leader_word(old, new), **fields_of_row))
    return rows


def isr_word(old: Document, new: Document) -> str:
    left, joined = set(old["isr"]) - set(new["isr"]), set(new["isr"]) - set(old["isr"])
    if left and joined:
        return "isr-changed"
    return "isr-shrunk" if left else "isr-expanded" if joined else ""


def leader_word(old: Document, new: Document) -> str:
    if old["leader"] == new["leader"] or -2 in (old["leader"], new["leader"]):
        return ""
    if new["leader"] == -1:
        return "leader-lost"
    return "leader-elected" if old["leader"] == -1 else "leader-moved"


def state(isr_and_leader: Document, replicas_required: int, racks_required: int, racks: dict[int, str]) -> str:
    isr = isr_and_leader["isr"]
    isr_racks = {racks[one] for one in isr if one in racks}
    if isr_and_leader["leader"] == -1:
        return "offline"
    if len(isr) < min(replicas_required, len(isr_and_leader["replicas"])):
        return "under-min-isr"
    if racks_required > 1 and len(isr_racks) < racks_required:
        return "under-min-racks"
    return "one-rack" if len(isr_racks) < 2 and len(set(racks.values())) > 1 else "ok"


def safety(
    before: Document,
    after: Document,
    was: Document | None,
    now: Document | None,
    old: Document | None,
    new: Document | None,
    policy: RackPolicy,
) -> list[Row]:
    racks = [brute_force.rack_of(side, policy) for side in (before, after)]
    inputs = [
        None
        if not (topic and one)
        else (one, brute_force.min_replicas(topic), brute_force.min_racks(topic, policy), rack)
        for topic, one, rack in ((was, old, racks[0]), (now, new, racks[1]))
    ]
    first, second = (state(*one) if one else None for one in inputs)
    bad = [BADNESS.index(one or ABSENT) for one in (first, second)]
    if bad[0] == bad[1]:
        return []
    change = "safety-lost" if bad[1] > bad[0] else "safety-gained"
    if inputs[0] is None or inputs[1] is None:
        if was is None or now is None:
            why = "topic-deleted" if now is None else "topic-created"
        elif made_anew(was, now):
            why = "topic-recreated"
        else:
            why = "partitions-removed" if new is None else "partitions-added"
        return [row(change, before=first, after=second, cause=why)]
    assert was
    assert now
    why, broker = cause(before, after, *inputs[0], *inputs[1], worse=change == "safety-lost")
    if made_anew(was, now):
        why, broker = "topic-recreated", None
    return [row(change, before=first, after=second, cause=why, cause_broker=broker)]


def cause(
    before: Document,
    after: Document,
    old: Document,
    replicas: int,
    k: int,
    racks: dict[int, str],
    new: Document,
    new_replicas: int,
    new_k: int,
    new_racks: dict[int, str],
    *,
    worse: bool,
) -> tuple[str, int | None]:
    wanted = state(new, new_replicas, new_k, new_racks)
    if state(new, replicas, k, racks) == wanted:
        return behind(before, after, old, new) if worse else behind(after, before, new, old, "appeared", "unfenced")
    if state(old, new_replicas, k, racks) == wanted:
        return "min-insync-replicas-changed", None
    if state(old, replicas, new_k, racks) == wanted:
        return "min-insync-racks-changed", None
    if state(old, replicas, k, new_racks) == wanted:
        other = [
            one
            for one in sorted({*racks, *new_racks, *all_ids(before), *all_ids(after)})
            if racks.get(one) != new_racks.get(one)
        ]
        own = [one for one in other if one in old["isr"] or one in new["isr"]]
        return relabel(before, after, (own or other)[0])
    return "several", None


def all_ids(cluster: Document) -> list[int]:
    return [one["id"] for one in cluster["brokers"]]


def relabel(before: Document, after: Document, broker: int) -> tuple[str, int]:
    if broker not in all_ids(before):
        return "broker-appeared", broker
    return ("broker-rack-changed" if broker in all_ids(after) else "broker-gone"), broker


def behind(
    whole: Document, less: Document, held: Document, fewer: Document, absent: str = "gone", fenced: str = "fenced"
) -> tuple[str, int | None]:
    """`whole` and `held` are of the snapshot with more safety, whether it is the earlier one or the later."""
    out = sorted(one for one in held["isr"] if one not in fewer["isr"])
    first = [held["leader"]] if held["leader"] not in (-2, -1, fewer["leader"]) else []
    was_fenced, is_fenced = ({one["id"]: one["fenced"] for one in side["brokers"]} for side in (whole, less))
    for broker in first + out:
        if broker in was_fenced and broker not in is_fenced:
            return f"broker-{absent}", broker
        if broker in was_fenced and is_fenced[broker] and not was_fenced[broker]:
            return f"broker-{fenced}", broker
    old, new = (held, fewer) if absent == "gone" else (fewer, held)
    if not out:
        return leader_word(old, new) or "replicas-moved", None
    if any(one not in fewer["replicas"] for one in out):
        return "replicas-moved", None
    return isr_word(old, new), None
