"""Configs of topics and brokers: what is in effect, where it comes from, and how it changes."""

from typing import Any

from tests.conformance.behaviour import Outcome, behaviour
from tests.conformance.subject import Subject, fresh, new_topic
from tests.conformance.wire import Body, batch
from tests.waiting import eventually

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def described(subject: Subject, kind: int, name: str, *keys: str, broker: int = 1, synonyms: bool = False) -> list[Any]:
    """[error] or, by key: value, source, type, read-only, and the synonyms' sources."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    body = {"resources": [resource], "include_synonyms": synonyms, "include_documentation": False}
    (response,) = subject.request("DescribeConfigs", 4, broker=broker, **body)["results"]
    if response["error_code"]:
        return [response["error_code"]]
    found = {one["name"]: one for one in response["configs"]}
    return [
        [found[key]["value"], found[key]["config_source"], found[key]["config_type"], found[key]["read_only"]]
        + ([[one["source"] for one in found[key]["synonyms"]]] if synonyms else [])
        for key in keys
        if key in found
    ]


def altered(subject: Subject, kind: int, name: str, *ops: tuple[str, int, str | None], validate_only: bool = False, broker: int = 1) -> int:  # fmt: skip
    configs = [{"name": key, "config_operation": op, "value": value} for key, op, value in ops]
    resources = [{"resource_type": kind, "resource_name": name, "configs": configs}]
    body = {"resources": resources, "validate_only": validate_only}
    (response,) = subject.request("IncrementalAlterConfigs", 1, broker=broker, **body)["responses"]
    subject.settle()
    return int(response["error_code"])


def replaced(subject: Subject, name: str, **configs: str) -> int:
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    resources = [{"resource_type": TOPIC, "resource_name": name, "configs": given}]
    (response,) = subject.request("AlterConfigs", 1, resources=resources, validate_only=False)["responses"]
    subject.settle()
    return int(response["error_code"])


@behaviour("configs")
def what_a_topic_was_created_with_is_its_own(subject: Subject) -> Outcome:
    topic = subject.topic(retention_ms=12_345)
    return described(subject, TOPIC, topic, "retention.ms")


@behaviour("configs")
def no_keys_are_all_keys(subject: Subject) -> Outcome:
    resource = {"resource_type": 2, "resource_name": subject.topic(), "configuration_keys": []}
    (result,) = subject.request("DescribeConfigs", 4, resources=[resource])["results"]
    return [result["error_code"], len(result["configs"]) > 20]


@behaviour("configs")
def the_rest_is_default(subject: Subject) -> Outcome:
    keys = (
        "cleanup.policy", "compression.type", "delete.retention.ms", "file.delete.delay.ms", "flush.messages", "flush.ms",
        "index.interval.bytes", "max.compaction.lag.ms", "message.timestamp.type", "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms", "preallocate", "retention.bytes", "segment.bytes", "segment.index.bytes",
        "segment.jitter.ms", "unclean.leader.election.enable", "message.timestamp.after.max.ms",
    )  # fmt: skip
    topic = subject.topic()
    return {key: described(subject, TOPIC, topic, key) for key in keys}


@behaviour("configs")
def a_config_is_set_and_taken_away(subject: Subject) -> Outcome:
    topic, key = subject.topic(), "retention.ms"
    observed = []
    for op in ((key, SET, "777"), (key, DELETE, None)):
        code = altered(subject, TOPIC, topic, op)
        observed.append([code, described(subject, TOPIC, topic, key)])
    return observed


@behaviour("configs")
def a_list_is_added_to_and_taken_from(subject: Subject) -> Outcome:
    topic, key = subject.topic(), "cleanup.policy"
    observed = []
    for op, value in ((SET, "delete"), (APPEND, "compact"), (APPEND, "compact"), (SUBTRACT, "delete")):
        code = altered(subject, TOPIC, topic, (key, op, value))
        observed.append([code, described(subject, TOPIC, topic, key)[0][0]])
    return observed


@behaviour("configs")
def a_number_is_not_added_to(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [altered(subject, TOPIC, topic, ("retention.ms", op, "1")) for op in (APPEND, SUBTRACT)]


@behaviour("configs")
def a_value_that_is_none_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic()
    tries = (
        ("retention.ms", "soon"), ("retention.ms", "-7"), ("cleanup.policy", "burn"), ("compression.type", "rar"),
        ("min.insync.replicas", "0"), ("preallocate", "maybe"), ("max.message.bytes", "-1"),
        ("min.cleanable.dirty.ratio", "2"), ("segment.bytes", "1"), ("message.timestamp.type", "Never"),
    )  # fmt: skip
    return [altered(subject, TOPIC, topic, (key, SET, value)) for key, value in tries]


@behaviour("configs")
def a_key_that_is_none_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [altered(subject, TOPIC, topic, ("no.such.key", SET, "1")), replaced(subject, topic, no_such_key="1")]


@behaviour("configs")
def a_set_without_a_value_is_refused(subject: Subject) -> Outcome:
    return altered(subject, TOPIC, subject.topic(), ("retention.ms", SET, None))


@behaviour("configs")
def a_key_twice_is_refused(subject: Subject) -> Outcome:
    return altered(subject, TOPIC, subject.topic(), ("retention.ms", SET, "1000"), ("retention.ms", SET, "2000"))


@behaviour("configs")
def a_resource_twice_in_a_request_is_refused_and_described_twice(subject: Subject) -> Outcome:
    topic, other = subject.topic(), subject.topic()
    names = {topic: "twice", other: "other"}

    def resources(**more: object) -> list[dict[str, object]]:
        return [{"resource_type": TOPIC, "resource_name": name, **more} for name in (topic, other, topic)]

    configs = [{"name": "retention.ms", "value": "1000", "config_operation": SET}]
    altered = subject.request("IncrementalAlterConfigs", 1, resources=resources(configs=configs), validate_only=False)
    codes = sorted([one["error_code"], names[one["resource_name"]]] for one in altered["responses"])
    # To AlterConfigs of one resource twice Kafka never responds.
    shown = subject.request("DescribeConfigs", 4, resources=resources(configuration_keys=["retention.ms"]))
    results = [[one["error_code"], names[one["resource_name"]]] for one in shown["results"]]
    return [codes, sorted(results), described(subject, TOPIC, topic, "retention.ms")]


@behaviour("configs")
def one_wrong_value_keeps_the_right_ones_out(subject: Subject) -> Outcome:
    topic = subject.topic()
    code = altered(subject, TOPIC, topic, ("retention.ms", SET, "1000"), ("segment.ms", SET, "never"))
    return [code, described(subject, TOPIC, topic, "retention.ms")]


@behaviour("configs")
def trying_changes_nothing(subject: Subject) -> Outcome:
    topic = subject.topic()
    good = altered(subject, TOPIC, topic, ("retention.ms", SET, "1000"), validate_only=True)
    bad = altered(subject, TOPIC, topic, ("retention.ms", SET, "x"), validate_only=True)
    return [good, bad, described(subject, TOPIC, topic, "retention.ms")]


@behaviour("configs")
def the_old_way_replaces_everything(subject: Subject) -> Outcome:
    topic = subject.topic(retention_ms=1000, flush_ms=2000)
    code = replaced(subject, topic, retention_ms="3000")
    return [code, described(subject, TOPIC, topic, "retention.ms", "flush.ms")]


@behaviour("configs")
def a_topic_that_is_not_there_has_no_configs(subject: Subject) -> Outcome:
    name = fresh("absent")
    return [described(subject, TOPIC, name), altered(subject, TOPIC, name, ("retention.ms", SET, "1000"))]


@behaviour("configs")
def an_unknown_kind_of_resource_is_refused(subject: Subject) -> Outcome:
    return [described(subject, 77, "x"), altered(subject, 77, "x", ("retention.ms", SET, "1000"))]


@behaviour("configs", alone=True)
def a_default_of_all_brokers_holds_for_topics(subject: Subject) -> Outcome:
    topic, key = subject.topic(), "log.cleaner.delete.retention.ms"
    code = altered(subject, BROKER, "", (key, SET, "86400001"))
    during = described(subject, TOPIC, topic, "delete.retention.ms", synonyms=True)
    deleted = altered(subject, BROKER, "", (key, DELETE, None))
    after = described(subject, TOPIC, topic, "delete.retention.ms", synonyms=True)
    return [code, during, deleted, after]


@behaviour("configs", alone=True)
def a_brokers_own_value_goes_over_the_default_of_all(subject: Subject) -> Outcome:
    key = "log.cleaner.min.compaction.lag.ms"
    codes = [altered(subject, BROKER, "", (key, SET, "11")), altered(subject, BROKER, "2", (key, SET, "22"), broker=2)]
    observed = [described(subject, BROKER, str(one), key, broker=one, synonyms=True) for one in (1, 2)]
    codes += [altered(subject, BROKER, name, (key, DELETE, None), broker=2) for name in ("", "2")]
    eventually(
        lambda: described(subject, BROKER, "2", key, broker=2, synonyms=True)[0][4] == [5], "both are taken away"
    )
    return [codes, observed]


@behaviour("configs")
def a_broker_describes_itself_alone(subject: Subject) -> Outcome:
    return [described(subject, BROKER, name, "broker.rack") for name in ("1", "2", "99", "x")]


@behaviour("configs")
def what_needs_a_restart_is_read_only(subject: Subject) -> Outcome:
    keys = ("broker.rack", "num.partitions", "default.replication.factor", "auto.create.topics.enable")
    return [
        [one[3] for one in described(subject, BROKER, "1", *keys)],
        [altered(subject, BROKER, "1", (key, SET, "2")) for key in keys],
    ]


@behaviour("configs")
def only_the_requested_keys_are_returned(subject: Subject) -> Outcome:
    topic = subject.topic()
    return described(subject, TOPIC, topic, "segment.ms", "no.such.key")


@behaviour("configs")
def a_new_topics_response_has_its_configs(subject: Subject) -> Outcome:
    (response,) = subject.create(new_topic(fresh("topic"), flush_ms=5))
    return [
        [one["value"], one["config_source"], one["read_only"], one["is_sensitive"]]
        for one in response["configs"]
        if one["name"] in ("flush.ms", "cleanup.policy")
    ]


@behaviour("configs")
def a_smaller_limit_holds_at_once(subject: Subject) -> Outcome:
    topic = subject.topic()
    code = altered(subject, TOPIC, topic, ("max.message.bytes", SET, "200"))
    eventually(lambda: subject.produce(topic, batch(b"x" * 500))["error_code"] == 10, "the leader has heard of it")
    return [code, subject.produce(topic, batch(b"x"))["error_code"]]


def listed(subject: Subject, *kinds: int) -> Body:
    return subject.request("ListConfigResources", 1, resource_types=list(kinds))


@behaviour("configs")
def what_has_configs_is_listed_by_kind(subject: Subject) -> Outcome:
    topic = subject.topic()
    response = listed(subject)
    found = sorted([one["resource_type"], one["resource_name"]] for one in response["config_resources"])
    mine = [one for one in found if one[0] not in (TOPIC, GROUP) or one[1] == topic]
    brokers = listed(subject, BROKER)["config_resources"]
    return [response["error_code"], [[kind, name == topic or name] for kind, name in mine], len(brokers)]


@behaviour("configs")
def a_kind_of_resource_that_is_none_is_not_listed(subject: Subject) -> Outcome:
    response = listed(subject, 77)
    oldest = subject.request("ListConfigResources", 0)
    return [response["error_code"], response["config_resources"], oldest["error_code"], oldest["config_resources"]]


@behaviour("configs")
def a_groups_configs_need_no_group(subject: Subject) -> Outcome:
    keys = (
        "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms", "share.auto.offset.reset",
        "share.heartbeat.interval.ms", "share.isolation.level", "share.record.lock.duration.ms",
        "share.session.timeout.ms", "streams.heartbeat.interval.ms", "streams.num.standby.replicas",
        "streams.session.timeout.ms",
    )  # fmt: skip
    return [described(subject, GROUP, fresh("group"), *keys, synonyms=True), described(subject, GROUP, "")]


@behaviour("configs")
def a_groups_config_is_set_listed_and_taken_away(subject: Subject) -> Outcome:
    group, key = fresh("group"), "consumer.session.timeout.ms"
    observed: list[Any] = []
    for op, value in ((SET, "50000"), (DELETE, None)):
        code = altered(subject, GROUP, group, (key, op, value))
        names = [one["resource_name"] for one in listed(subject, GROUP)["config_resources"]]
        observed.append([code, described(subject, GROUP, group, key, synonyms=True), group in names])
    return observed


@behaviour("configs")
def a_groups_config_that_is_none_is_refused(subject: Subject) -> Outcome:
    group = fresh("group")
    tries = (
        ("no.such.key", "1"), ("consumer.session.timeout.ms", "soon"), ("consumer.session.timeout.ms", "44999"),
        ("consumer.session.timeout.ms", "60001"), ("consumer.heartbeat.interval.ms", "4999"),
        ("consumer.heartbeat.interval.ms", "15001"), ("share.isolation.level", "never"),
        ("share.auto.offset.reset", "never"), ("share.auto.offset.reset", "by_duration:soon"),
        ("share.auto.offset.reset", "by_duration:P1DT2H"), ("share.record.lock.duration.ms", "14999"),
        ("share.record.lock.duration.ms", "60001"), ("streams.num.standby.replicas", "3"),
        ("streams.session.timeout.ms", "44999"),
    )  # fmt: skip
    codes = [altered(subject, GROUP, group, (key, SET, value)) for key, value in tries]
    return [codes, altered(subject, GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))]


@behaviour("configs", alone=True)
def kerberos_is_configured_broker_by_broker(subject: Subject) -> Outcome:
    key = "sasl.kerberos.min.time.before.relogin"
    rest = (
        "kinit.cmd",
        "principal.to.local.rules",
        "service.name",
        "ticket.renew.jitter",
        "ticket.renew.window.factor",
    )
    before = described(subject, BROKER, "1", key, *(f"sasl.kerberos.{one}" for one in rest))
    codes = [altered(subject, BROKER, name, (key, SET, "58000")) for name in ("1", "")]
    during = described(subject, BROKER, "1", key, synonyms=True)
    codes.append(altered(subject, BROKER, "1", (key, DELETE, None)))
    return [before, codes, during]
