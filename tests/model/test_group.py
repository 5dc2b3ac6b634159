"""What a description of a group or of a member says where its coordinator left something out."""

from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember


def test_kinds_of_groups_have_the_names_that_kafka_lists_them_by() -> None:
    assert [kind.value for kind in GroupKind] == ["classic", "consumer", "share", "streams"]


def test_a_member_that_is_only_named_has_nothing_but_could_declare_a_rack() -> None:
    assert MemberDescription("m", "app") == MemberDescription(
        "m", "app", metadata=b"", assignment=b"", host="", rack=None, declares_rack=True, topics=None, partitions=(),
        streams=None,
    )  # fmt: skip


def test_a_streams_member_without_positions_has_not_none_of_them_but_unknown_ones() -> None:
    assert StreamsMember("p", {}, active={}, standby={}, warmup={}).offsets is None


def test_a_group_that_is_only_named_is_a_classic_one_without_members_topology_or_error() -> None:
    assert GroupDescription("g", "Stable", "consumer", "range") == GroupDescription(
        "g", "Stable", "consumer", "range", members=(), error_message=None, kind=GroupKind.CLASSIC, topology={}
    )
