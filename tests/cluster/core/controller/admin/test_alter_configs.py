"""IncrementalAlterConfigs at the controller: which resources and keys there are, the words of refusals, and warnings."""

import pytest

from rackspan.cluster.core.admin_messages import AlterConfigResponse, AlterConfigs, AlterResource, ConfigOp
from rackspan.cluster.core.configs import ConfigSource, group_values
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.controller.admin.alter_configs import NOT_THROTTLED, THROTTLES
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.metadata import ConfigResource
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId
from tests.cluster.core.controller.requests import controller_with, responses, state_of, warnings

SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, GROUP = 2, 4, 32
RACKS = {1: "a", 2: "b", 3: "c"}
THROTTLED = "leader.replication.throttled.replicas"


def alteration(kind: int, name: str, *ops: ConfigOp) -> AlterResource:
    return AlterResource(kind, name, ops)


def alter(controller: ControllerCore, kind: int, name: str, *ops: ConfigOp, **more: bool) -> AlterConfigResponse:
    (response,) = responses(controller, AlterConfigs(1, (alteration(kind, name, *ops),), **more))
    assert isinstance(response, AlterConfigResponse)
    return response


def configs(controller: ControllerCore, kind: ConfigResourceType, name: str) -> dict[str, str]:
    return dict(controller.image.config_of(ConfigResource(kind, name)))


@pytest.mark.parametrize("key", ["leader.replication.throttled.rate", "follower.replication.throttled.rate"])
def test_a_throttle_is_kept_and_the_first_that_is_set_is_warned_of(key: str) -> None:
    assert key in THROTTLES
    controller = controller_with(RACKS)

    def warned(*ops: ConfigOp, validate_only: bool = False) -> list[str]:
        request = AlterConfigs(1, (alteration(BROKER, "1", *ops),), validate_only)
        return warnings(controller.on_message(0, CLIENT, request))

    throttle = ConfigOp(key, SET, "1000")
    assert warned(ConfigOp("log.retention.ms", SET, "5"), ConfigOp(key, DELETE, None)) == []
    assert warned(throttle, validate_only=True) == []
    assert key not in configs(controller, ConfigResourceType.BROKER, "1")
    assert warned(throttle) == [NOT_THROTTLED]
    assert configs(controller, ConfigResourceType.BROKER, "1")[key] == "1000"
    assert warned(ConfigOp(key, SET, "2000")) == [], "once a run"


def test_a_throttle_beside_another_config_is_warned_of_too() -> None:
    ops = (ConfigOp("log.retention.ms", SET, "5"), ConfigOp(THROTTLES[1], SET, "9"))
    request = AlterConfigs(1, (alteration(BROKER, "", *ops),))
    assert warnings(controller_with(RACKS).on_message(0, CLIENT, request)) == [NOT_THROTTLED]
    assert NOT_THROTTLED.startswith("replication throttles are kept")


@pytest.mark.parametrize(
    ("kind", "name", "op", "error", "message"),
    [
        (
            *(TOPIC, "nobody", ConfigOp("retention.ms", SET, "1")),
            *(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nobody' does not exist."),
        ),
        (
            *(TOPIC, "orders", ConfigOp("no.such", SET, "1")),
            *(ErrorCode.INVALID_CONFIG, "Unknown topic config name: no.such"),
        ),
        (
            *(TOPIC, "orders", ConfigOp("retention.ms", SET, None)),
            *(ErrorCode.INVALID_REQUEST, "Null value not supported for : retention.ms"),
        ),
        (
            *(TOPIC, "orders", ConfigOp("retention.ms", APPEND, "1")),
            *(ErrorCode.INVALID_CONFIG, "Can't append to key retention.ms: it is no list"),
        ),
        (
            *(TOPIC, "orders", ConfigOp("retention.ms", SUBTRACT, "1")),
            *(ErrorCode.INVALID_CONFIG, "Can't subtract to key retention.ms: it is no list"),
        ),
        (
            *(TOPIC, "orders", ConfigOp(THROTTLED, 4, "0:1")),
            *(ErrorCode.INVALID_CONFIG, f"Can't alter to key {THROTTLED}: it is no list"),
        ),
        (
            *(TOPIC, "orders", ConfigOp("segment.ms", SET, "10")),
            *(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys: segment.ms"),
        ),
        (
            *(TOPIC, "orders", ConfigOp("retention.ms", SET, "soon")),
            *(
                ErrorCode.INVALID_CONFIG,
                "Invalid value soon for configuration retention.ms: Not a number of type LONG",
            ),
        ),
        (
            *(BROKER, "9", ConfigOp("log.retention.ms", SET, "1")),
            *(ErrorCode.INVALID_REQUEST, "No broker 9 is registered."),
        ),
        (
            *(BROKER, "one", ConfigOp("log.retention.ms", SET, "1")),
            *(ErrorCode.INVALID_REQUEST, "No broker one is registered."),
        ),
        (
            *(BROKER, "1", ConfigOp("broker.rack", SET, "z")),
            *(ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: broker.rack"),
        ),
        (
            *(BROKER, "1", ConfigOp("no.such", SET, "z")),
            *(ErrorCode.INVALID_REQUEST, "Cannot update these configs dynamically: no.such"),
        ),
        (
            *(BROKER, "", ConfigOp("sasl.kerberos.service.name", SET, "z")),
            *(
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs at default cluster level, per-broker configs must be specified: "
                "sasl.kerberos.service.name",
            ),
        ),
        (
            *(GROUP, "", ConfigOp("share.session.timeout.ms", SET, "50000")),
            *(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        ),
        (
            *(GROUP, "g", ConfigOp("retention.ms", SET, "1")),
            *(ErrorCode.INVALID_CONFIG, "Unknown group config name: retention.ms"),
        ),
        (8, "1", ConfigOp("x", SET, "z"), ErrorCode.INVALID_REQUEST, "Unsupported resource type 8."),
    ],
)
def test_a_refused_alteration_says_why_and_no_config_of_its_resource_changes(
    kind: int, name: str, op: ConfigOp, error: ErrorCode, message: str
) -> None:
    controller = controller_with(RACKS, [1, 2, 3])
    before = controller.image
    good = {TOPIC: ConfigOp("segment.ms", SET, "9"), BROKER: ConfigOp("log.flush.interval.ms", SET, "9")}.get(kind)
    ops = (op,) if good is None else (good, op)
    requested = alteration(kind, name, *ops)
    assert alter(controller, kind, name, *ops) == AlterConfigResponse(requested, error, message)
    assert controller.image is before


def test_a_config_that_only_a_broker_may_have_is_set_on_one_and_each_resource_has_its_own_response() -> None:
    controller = controller_with(RACKS, [1, 2, 3])
    own = alteration(BROKER, "1", ConfigOp("sasl.kerberos.service.name", SET, "z"))
    lost = alteration(TOPIC, "nobody", ConfigOp("retention.ms", SET, "1"))
    kept = alteration(TOPIC, "orders", ConfigOp("retention.ms", SET, "1"))
    done = responses(controller, AlterConfigs(1, (own, lost, kept)))
    assert [(one.key, one.error) for one in done] == [
        (own, ErrorCode.NONE),
        (lost, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (kept, ErrorCode.NONE),
    ]
    assert done[0] == AlterConfigResponse(own, ErrorCode.NONE, None, ())
    assert configs(controller, ConfigResourceType.BROKER, "1") == {"sasl.kerberos.service.name": "z"}
    assert configs(controller, ConfigResourceType.TOPIC, "orders") == {"retention.ms": "1"}


def test_a_groups_configs_are_its_own_over_the_defaults_and_need_no_group() -> None:
    controller = controller_with(RACKS)
    assert alter(controller, GROUP, "g", ConfigOp("share.session.timeout.ms", SET, "50000")).error is ErrorCode.NONE
    by_key = {one.key: one for one in group_values(controller.image, "g")}
    own, other = by_key["share.session.timeout.ms"], by_key["share.heartbeat.interval.ms"]
    assert (own.value, own.source) == ("50000", ConfigSource.GROUP)
    assert own.synonyms == (
        ("share.session.timeout.ms", "50000", ConfigSource.GROUP),
        ("share.session.timeout.ms", "45000", ConfigSource.DEFAULT),
    )
    assert (other.value, other.source) == ("5000", ConfigSource.DEFAULT)
    assert other.synonyms == (("share.heartbeat.interval.ms", "5000", ConfigSource.DEFAULT),)
    assert {one.source for one in group_values(controller.image, "h")} == {ConfigSource.DEFAULT}
    alter(controller, GROUP, "g", ConfigOp("share.session.timeout.ms", DELETE, None))
    assert group_values(controller.image, "g") == group_values(controller.image, "h")


def test_lists_are_appended_to_and_subtracted_from_item_by_item() -> None:
    controller = controller_with(RACKS, [1, 2, 3])
    for op, given, after in [
        (APPEND, "0:1", "0:1"),
        (APPEND, "0:2,0:1,,0:3", "0:1,0:2,0:3"),
        (SUBTRACT, "0:1,0:9", "0:2,0:3"),
        (SUBTRACT, " 0:2", "0:2,0:3"),
        (SUBTRACT, "0:2,0:3", ""),
    ]:
        assert alter(controller, TOPIC, "orders", ConfigOp(THROTTLED, op, given)).error is ErrorCode.NONE
        assert configs(controller, ConfigResourceType.TOPIC, "orders")[THROTTLED] == after
    alter(controller, TOPIC, "orders", ConfigOp("cleanup.policy", APPEND, "compact"))
    assert configs(controller, ConfigResourceType.TOPIC, "orders")["cleanup.policy"] == "delete,compact", (
        "onto the default"
    )


def test_what_is_set_already_writes_no_record() -> None:
    controller = controller_with(RACKS, [1, 2, 3])
    alter(controller, TOPIC, "orders", ConfigOp("retention.ms", SET, "5"), ConfigOp("segment.ms", SET, "6"))
    before = controller.image.offset
    alter(controller, TOPIC, "orders", ConfigOp("retention.ms", SET, "5"), ConfigOp("segment.ms", SET, "7"))
    assert controller.image.offset == before + 1
    alter(controller, TOPIC, "orders", ConfigOp("flush.ms", DELETE, None))
    assert controller.image.offset == before + 1


@pytest.mark.parametrize(
    ("racks", "warned"),
    [
        ({1: "a", 2: "a"}, ["1 rack"]),
        ({1: "a", 2: "b"}, []),
        ({1: "a", 2: None}, []),
    ],
)
def test_a_brokers_own_rack_counts_among_the_racks_that_its_value_requires(
    racks: dict[int, str | None], warned: list[str]
) -> None:
    """A broker without a rack counts as in the unnamed one."""
    controller = controller_with(racks)
    response = alter(controller, BROKER, "1", ConfigOp("min.insync.racks", SET, "2"))
    lines = tuple(
        f"min.insync.racks 2: the cluster has {count}; acks=all is refused until it has more" for count in warned
    )
    assert (response.error, response.warnings) == (ErrorCode.NONE, lines)
    before = controller.image
    request = AlterConfigs(1, (alteration(BROKER, "1", ConfigOp("min.insync.racks", SET, "3")),), validate_only=True)
    assert warnings(controller.on_message(0, CLIENT, request)) == []
    assert controller.image is before


def test_a_default_of_all_brokers_is_judged_for_each_and_warned_of_once() -> None:
    controller = controller_with({1: "a", 2: "a", 3: "b"})
    op = ConfigOp("min.insync.racks", SET, "3")
    effects = controller.on_message(0, CLIENT, AlterConfigs(1, (alteration(BROKER, "", op),)))
    assert warnings(effects) == ["min.insync.racks 3: the cluster has 2 racks; acks=all is refused until it has more"]


def test_lowered_thresholds_end_the_elr_at_once_and_other_configs_do_not_touch_it() -> None:
    controller = controller_with(RACKS, [1, 2])
    alter(controller, TOPIC, "orders", ConfigOp("min.insync.replicas", SET, "2"))
    controller.fence(0, BrokerId(2))
    assert state_of(controller).elr == (2,)
    alter(controller, TOPIC, "orders", ConfigOp("retention.ms", SET, "5"))
    assert state_of(controller).elr == (2,)
    alter(controller, TOPIC, "orders", ConfigOp("min.insync.replicas", SET, "1"))
    assert state_of(controller).elr == ()
