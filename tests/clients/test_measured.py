"""What gateways counted, beside Kafka's rules: bytes decide, and only where they are one member's."""

from rackspan.clients import ClientFinding, Measured, ReadBytes, find_causes, group_reads, measured_reads
from rackspan.model.group import GroupKind
from tests.clients.test_causes import sound
from tests.clients.worlds import World

NEAR, FAR = {("r2", "r2"): 900}, {("r2", "r2"): 900, ("r1", "r2"): 100}


def judged(world: World, counted: ReadBytes) -> tuple[Measured, list[ClientFinding]]:
    snapshot, group = world.snapshot(), world.group()
    reads = group_reads(group, snapshot, world.selectors)
    measured = measured_reads(reads, [group], counted)
    return measured, find_causes(reads, snapshot, measured)


def test_a_member_whose_bytes_came_from_its_rack_has_nothing_to_do_whatever_it_declares() -> None:
    world = sound()
    world.declared["m1"] = None
    assert [finding.cause for finding in judged(world, {})[1]] == ["no-client-rack"]
    measured, findings = judged(world, {("client-m1", "orders"): NEAR})
    assert findings == []
    assert measured["m1", "orders"].in_rack == 900


def test_a_cause_stays_if_a_byte_crossed_or_its_rack_is_not_known() -> None:
    world = sound()
    world.declared["m1"] = None
    for counted in (FAR, {**NEAR, ("", "r2"): 1}, {("r2", ""): 5}):
        assert [finding.cause for finding in judged(world, {("client-m1", "orders"): counted})[1]] == ["no-client-rack"]


def test_bytes_from_other_racks_are_found_though_every_setting_is_right() -> None:
    measured, (finding,) = judged(sound(), {("client-m1", "orders"): FAR})
    assert (finding.cause, finding.members, finding.partitions) == ("measured-across-racks", ("m1",), 2)
    across = "bytes came from other racks, though by Kafka's rules every replica read is in the reader's"
    assert finding.reason == f"100 of 1,000 {across}"
    _, (in_part,) = judged(sound(), {("client-m1", "orders"): {**FAR, ("", "r2"): 50}})
    assert in_part.reason == f"100 of 1,050 {across}"
    assert (measured["m1", "orders"].in_rack, measured["m1", "orders"].across) == (900, 100)


def test_what_is_explained_is_not_found_again() -> None:
    world = sound()
    world.placed["orders", 0] = (3, [1, 3], [1, 3])
    causes = [finding.cause for finding in judged(world, {("client-m1", "orders"): FAR})[1]]
    assert "no-replica-in-rack" in causes
    assert "measured-across-racks" not in causes


def test_a_client_id_of_two_members_proves_nothing() -> None:
    world = sound()
    world.declared["m1"] = None
    group = world.group()
    reads = group_reads(group, world.snapshot(), world.selectors)
    other = sound().group()
    assert measured_reads(reads, [group, other], {("client-m1", "orders"): NEAR}) == {}


def test_a_share_group_is_not_measured_since_its_fetches_are_not_counted() -> None:
    world = sound()
    world.kind = GroupKind.SHARE
    assert judged(world, {("client-m1", "orders"): NEAR})[0] == {}
