"""The next effect of a rolling restart, decision by decision."""

from dataclasses import replace
from random import Random

import msgspec
import pytest

from rackspan.audit import RackPolicy
from rackspan.model import BrokerId, ClusterSnapshot, Controller, TopicPartition
from rackspan.model.json_format import from_document
from rackspan.restart import plan_restart
from rackspan.restart.execution.decision import (
    AwaitBrokers,
    CommandStatus,
    Effect,
    ElectLeadersOfBatch,
    EndRestart,
    RecordEvent,
    RestartFinished,
    RunCommand,
    decide,
)
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    BrokersStopped,
    CommandStarted,
    LeadersElected,
    RestartEvent,
    RestartStarted,
    RestartState,
    after,
    replay,
)
from rackspan.restart.execution.plan_file import batches_of
from tests.audit.brute_force import document
from tests.depth import at_depth
from tests.restart.brute_force import caught_up, may_stop, with_restarted
from tests.restart.clusters import random_cluster, random_policies
from tests.restart.execution.snapshots import BATCHES, cluster
from tests.restart.test_planner import all_read


def state_after(*events: RestartEvent) -> RestartState:
    return replay([RestartStarted(BATCHES), *events])


FIRST = BatchStarted(1, {1: {"logs": (0,), "orders": (0, 2)}, 4: {"orders": (1, 3)}})
STARTED = state_after(FIRST)
STOPPED = state_after(FIRST, BrokersStopped((1, 4)))
RUNNING, ENDED = CommandStatus(running=True), CommandStatus(exit_status=0)


def effect(state: RestartState, snapshot: ClusterSnapshot, command: CommandStatus | None = None) -> Effect:
    return decide(state, snapshot, RackPolicy(), command)


def waits(state: RestartState, snapshot: ClusterSnapshot, command: CommandStatus | None = None) -> AwaitBrokers:
    found = effect(state, snapshot, command)
    assert isinstance(found, AwaitBrokers), found
    return found


def test_a_safe_batch_is_started_with_the_places_of_its_brokers() -> None:
    assert effect(state_after(), cluster()) == RecordEvent(FIRST)


def test_a_batch_that_is_not_safe_waits() -> None:
    lagging = cluster(isr={("orders", 0): (1, 3)})
    why = "batch 1 of 3 (brokers 1,4) may not stop yet: orders-0: broker 3 left in sync, min.insync.replicas requires 2"
    assert waits(state_after(), lagging) == AwaitBrokers(why, 1)
    remedy = "see rackspan restart safe --broker 1,4; run the same command again to resume"
    assert waits(state_after(), lagging, CommandStatus()) == AwaitBrokers(why, 1, remedy)


def test_what_could_not_be_read_is_a_reason_to_wait() -> None:
    unread = replace(cluster(), partial=("which brokers are fenced: unknown",))
    assert "may not stop yet: which brokers are fenced: unknown" in waits(state_after(), unread).why


@pytest.mark.parametrize("down", [cluster(gone=(4,)), cluster(fenced=(4,))], ids=["gone", "fenced"])
def test_a_broker_that_the_cluster_does_not_show_as_up_has_stopped(down: ClusterSnapshot) -> None:
    assert effect(STARTED, down) == RecordEvent(BrokersStopped((4,)))


def test_a_batch_of_brokers_that_are_down_already_is_started() -> None:
    assert effect(state_after(), cluster(gone=(1, 4))) == RecordEvent(BatchStarted(1, {1: {}, 4: {}}))


def test_a_broker_that_was_never_shown_stopped_is_not_back() -> None:
    assert waits(STARTED, cluster()) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): brokers 1,4 may stop now, and did not yet", 2
    )


def test_a_broker_that_is_down_is_waited_for() -> None:
    state = state_after(FIRST, BrokersStopped((4,)))
    remedy = "start broker 4, and run the same command again to resume"
    assert waits(state, cluster(fenced=(4,))) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): broker 4 has not come back", 3, remedy
    )


def test_a_broker_that_has_started_and_is_not_in_sync_is_waited_for() -> None:
    found = waits(STOPPED, cluster(isr={("orders", 3): (5, 6)}))
    why = "batch 1 of 3 (brokers 1,4): 1 of 5 places in ISRs are not regained, orders-3 is the first"
    assert (found.why, found.missing) == (why, 1)


def test_a_place_that_the_broker_did_not_have_at_the_start_is_not_required() -> None:
    state = state_after(BatchStarted(1, {1: {"orders": (0,)}, 4: {}}), BrokersStopped((1, 4)))
    assert effect(state, cluster(isr={("orders", 3): (5, 6)})) == RecordEvent(BatchCompleted())


def test_a_partition_that_was_deleted_or_moved_away_is_not_required() -> None:
    moved = {"orders": ((1, 2, 3), (4, 5, 6), (2, 3, 1), (5, 6, 2))}
    assert effect(STOPPED, cluster(replicas=moved)) == RecordEvent(BatchCompleted())


def test_a_batch_whose_brokers_are_back_is_done() -> None:
    assert effect(STOPPED, cluster()) == RecordEvent(BatchCompleted())


def test_after_the_last_batch_nothing_is_left() -> None:
    batches = [event for number in (1, 2, 3) for event in (BatchStarted(number, {}), BatchCompleted())]
    assert effect(state_after(*batches), cluster()) == RestartFinished()


def test_the_command_is_run_for_the_batch_that_has_started() -> None:
    assert effect(STARTED, cluster(), CommandStatus()) == RunCommand((1, 4))


def test_the_command_is_given_the_brokers_that_are_down_too() -> None:
    """They come first in a plan, and nobody else starts them; one that somebody has started meanwhile was restarted."""
    down = state_after(FIRST, BrokersStopped((1, 4)))
    assert effect(down, cluster(gone=(1, 4)), CommandStatus()) == RunCommand((1, 4))
    assert effect(down, cluster(fenced=(4,)), CommandStatus()) == RunCommand((4,))
    assert effect(state_after(FIRST, BrokersStopped((4,))), cluster(gone=(4,)), CommandStatus()) == RunCommand((1, 4))
    assert "have not come back" in waits(down, cluster(gone=(1, 4))).why, "without a command somebody else starts them"
    begun = state_after(FIRST, BrokersStopped((1, 4)), CommandStarted((1, 4), 99))
    assert "have not come back" in waits(begun, cluster(gone=(1, 4)), RUNNING).why


def test_a_resumed_run_repeats_the_command_for_brokers_that_were_not_shown_stopped() -> None:
    state = state_after(FIRST, CommandStarted((1, 4), 99), BrokersStopped((1,)))
    assert effect(state, cluster(), CommandStatus()) == RunCommand((4,))


def test_the_command_is_not_repeated_while_the_brokers_may_not_stop() -> None:
    lagging = cluster(isr={("orders", 1): (4, 6)})
    assert "may not stop yet: orders-1" in waits(STARTED, lagging, CommandStatus()).why


def test_a_command_that_runs_is_waited_for_even_if_the_brokers_are_back() -> None:
    state = state_after(FIRST, CommandStarted((1, 4), 99), BrokersStopped((1, 4)))
    assert "its command, process 99, has not ended" in waits(state, cluster(), RUNNING).why


def test_a_command_that_has_ended_and_stopped_nothing_is_no_restart() -> None:
    assert "brokers 1,4 did not stop, and the command has ended" in waits(STARTED, cluster(), ENDED).why


def test_a_command_that_failed_ends_the_run() -> None:
    assert effect(STOPPED, cluster(gone=(4,)), CommandStatus(exit_status=3)) == EndRestart(
        "batch 1 of 3 (brokers 1,4): the command ended with status 3; look at its output, "
        "then run the same command again to resume"
    )


def test_preferred_leaders_of_the_batch_are_elected_once() -> None:
    led = cluster(leaders={("orders", 0): 2, ("orders", 2): 3})
    assert effect(STOPPED, led, ENDED) == ElectLeadersOfBatch((TopicPartition("orders", 0),))
    elected = state_after(FIRST, BrokersStopped((1, 4)), LeadersElected())
    assert effect(elected, led, ENDED) == RecordEvent(BatchCompleted())
    assert effect(STOPPED, led) == RecordEvent(BatchCompleted())


def test_a_preferred_leader_that_is_not_in_sync_is_not_elected() -> None:
    state = state_after(BatchStarted(1, {1: {}, 4: {}}), BrokersStopped((1, 4)))
    lagging = cluster(isr={("orders", 0): (2, 3)})
    assert effect(state, lagging, ENDED) == RecordEvent(BatchCompleted())


def test_a_command_that_was_not_started_does_not_run_and_has_no_status() -> None:
    assert CommandStatus() == CommandStatus(running=False, exit_status=None)


def test_further_reasons_are_counted() -> None:
    found = waits(state_after(), cluster(isr={("orders", 0): (1, 3), ("orders", 1): (4, 6), ("orders", 3): (4, 5)}))
    reason = "orders-0: broker 3 left in sync, min.insync.replicas requires 2 (2 more in rackspan restart safe)"
    assert found == AwaitBrokers(f"batch 1 of 3 (brokers 1,4) may not stop yet: {reason}", 3)
    found = waits(state_after(), cluster(isr={("orders", 0): (1, 3), ("orders", 1): (4, 6)}))
    assert found.why.endswith(" (1 more in rackspan restart safe)")
    assert found.missing == 2


def test_a_majority_that_would_be_lost_comes_before_the_partitions() -> None:
    controllers = tuple(Controller(BrokerId(voter), alive=True) for voter in (1, 2, 4))
    found = waits(state_after(), replace(cluster(isr={("orders", 0): (1, 3)}), controllers=controllers))
    assert found == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4) may not stop yet: 1 of 3 controllers left is no majority (1 more in rackspan restart safe)",
        2,
    )
    observed = (*controllers[:1], *(replace(one, voter=False) for one in controllers[1:]))
    assert (
        "0 of 1 controllers left is no majority" in waits(state_after(), replace(cluster(), controllers=observed)).why
    )


def test_only_the_brokers_that_are_up_need_leave() -> None:
    """Broker 4 is down already: it takes nothing away that is there."""
    state = state_after()
    down = cluster(fenced=(4,))
    assert effect(state, down) == RecordEvent(BatchStarted(1, {1: {"logs": (0,), "orders": (0, 2)}, 4: {}}))


def test_what_a_broker_that_has_not_stopped_lacks_is_not_waited_for() -> None:
    state = state_after(FIRST, BrokersStopped((1,)))
    lagging = cluster(isr={("orders", 1): (5, 6)})
    assert waits(state, lagging) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): broker 4 may stop now, and did not yet", 1
    )


def test_brokers_that_are_down_are_waited_for_with_the_places_that_they_lack() -> None:
    state = state_after(FIRST, BrokersStopped((1, 4)))
    assert waits(state, cluster(gone=(1,), fenced=(4,))) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): brokers 1,4 have not come back",
        7,
        "start brokers 1,4, and run the same command again to resume",
    )


def test_places_that_are_not_regained_are_counted_with_the_logs_to_look_at() -> None:
    lagging = cluster(isr={("orders", 3): (5, 6), ("orders", 0): (2, 3)})
    assert waits(STOPPED, lagging) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): 2 of 5 places in ISRs are not regained, orders-0 is the first",
        2,
        "look at the logs of brokers 1,4, and run the same command again to resume",
    )


def test_a_command_that_is_waited_for_is_named_with_what_to_do_about_it() -> None:
    begun = state_after(FIRST, CommandStarted((1, 4), 99), BrokersStopped((1,)))
    assert waits(begun, cluster(), RUNNING) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): its command, process 99, has not ended",
        1,
        "see what the command waits for, end it, and run the same command again to resume",
    )
    assert waits(begun, cluster(), ENDED) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4): broker 4 did not stop, and the command has ended",
        1,
        "let the command restart every broker that it is given, and run the same command again to resume",
    )


def test_a_command_is_not_repeated_while_its_pending_brokers_may_not_stop() -> None:
    begun = state_after(FIRST, CommandStarted((1, 4), 99), BrokersStopped((1,)))
    lagging = cluster(isr={("orders", 1): (4, 6), ("orders", 0): (1, 2)})
    assert waits(begun, lagging, CommandStatus()) == AwaitBrokers(
        "batch 1 of 3 (brokers 1,4) may not stop yet: orders-1: broker 6 left in sync, min.insync.replicas requires 2",
        1,
        "see rackspan restart safe --broker 4; run the same command again to resume",
    )


def test_a_command_that_has_ended_is_not_judged_again_once_all_have_stopped() -> None:
    begun = state_after(FIRST, CommandStarted((1, 4), 99), BrokersStopped((1, 4)))
    for command in (ENDED, CommandStatus()):
        assert effect(begun, cluster(), command) == RecordEvent(BatchCompleted())


def test_the_next_batch_is_named_by_its_number() -> None:
    state = state_after(FIRST, BatchCompleted())
    assert waits(state, cluster(isr={("orders", 2): (2, 1)})).why.startswith("batch 2 of 3 (brokers 2,5) may not stop")


def test_a_batch_is_judged_by_what_its_plan_lets_a_stop_cost() -> None:
    lagging = cluster(isr={("orders", 0): (1, 3)})
    accepting = msgspec.structs.replace(BATCHES, accept="orders")
    assert isinstance(effect(RestartState(accepting), lagging), RecordEvent)
    wide = cluster(replicas={"orders": ((1, 2, 3, 5),)}, isr={("orders", 0): (1, 2, 3)})
    with_margin = msgspec.structs.replace(BATCHES, margin=1)
    reason = "orders-0: brokers 2,3 left in sync, the minimum is 2 and the margin 1"
    assert waits(RestartState(with_margin), wide).why.endswith(reason)
    assert isinstance(effect(state_after(), wide), RecordEvent)


def test_a_batch_that_needs_a_broker_of_a_later_one_does_not_wait_for_ever() -> None:
    """Broker 5 went down after the plan was made: nobody restarts it before its batch."""
    down = cluster(fenced=(5,))
    reason = "logs-0: broker 2 left in sync, min.insync.replicas requires 2"
    for command in (None, CommandStatus()):
        assert waits(state_after(), cluster(fenced=(2,)), command) == AwaitBrokers(
            f"batch 1 of 3 (brokers 1,4) may not stop yet: {reason.replace('2 left', '3 left')}"
            " (2 more in rackspan restart safe); broker 2 of a later batch is down",
            3,
            "start broker 2, and run the same command again to resume, or make the plan again: what is down comes first in it",
        )
    assert waits(state_after(), down).remedy is not None
    dead = tuple(Controller(BrokerId(voter), alive=voter != 2) for voter in (1, 2, 3))
    assert "; broker 2 of a later batch is down" in waits(state_after(), replace(cluster(), controllers=dead)).why


def test_a_batch_that_is_down_is_started_without_a_majority() -> None:
    """It takes nothing away, and brings voters back."""
    dead = tuple(Controller(BrokerId(voter), alive=voter == 2) for voter in (1, 2, 4))
    assert effect(state_after(), replace(cluster(fenced=(1, 4)), controllers=dead)) == RecordEvent(
        BatchStarted(1, {1: {}, 4: {}})
    )


class Fleet:
    """A cluster of plain documents that is read once a second, and whose replicas on brokers that are up get in sync in time."""

    def __init__(self, found: ClusterSnapshot) -> None:
        self.cluster = document(found)
        self.back_in: dict[frozenset[int], int] = {}

    def read(self) -> ClusterSnapshot:
        for batch, seconds in list(self.back_in.items()):
            self.back_in[batch] = seconds - 1
            if seconds == 1:
                self.cluster = with_restarted(self.cluster, batch)
                del self.back_in[batch]
        return from_document({"version": 1, **self.cluster}).snapshot

    def restart(self, batch: frozenset[int]) -> None:
        self.cluster = {
            **self.cluster,
            "brokers": [
                {**broker, "fenced": broker["fenced"] or broker["id"] in batch} for broker in self.cluster["brokers"]
            ],
            "controllers": [
                {**controller, "alive": False if controller["id"] in batch else controller["alive"]}
                for controller in self.cluster["controllers"]
            ],
        }
        self.back_in[batch] = 3


@pytest.mark.slow
@pytest.mark.parametrize("execute", [False, True], ids=["watch", "exec"])
def test_a_plan_of_a_cluster_that_is_partly_down_is_followed_to_its_end(execute: bool) -> None:
    followed = 0
    for seed in range(at_depth(test=150, check=40, soak=1_000)):
        rng = Random(seed)
        snapshot, (policy, stop) = random_cluster(rng, 7), random_policies(rng)
        snapshot, policy = all_read(snapshot, policy)
        fleet = Fleet(snapshot)
        # A replica that lags gets in sync by itself.
        fleet.cluster = caught_up(fleet.cluster)
        plan = plan_restart(fleet.read(), policy, stop)
        state = replay([RestartStarted(batches_of(plan))])
        for _second in range(40 * (len(plan.batches) + 1)):
            command = CommandStatus(exit_status=0 if state.command_pid else None) if execute else None
            effect = decide(state, fleet.read(), policy, command)
            if isinstance(effect, RestartFinished):
                break
            if isinstance(effect, RunCommand):
                state = after(state, CommandStarted(effect.brokers, 7))
                fleet.restart(frozenset(effect.brokers))
            if isinstance(effect, ElectLeadersOfBatch):
                state = after(state, LeadersElected())
            if isinstance(effect, RecordEvent):
                if isinstance(effect.event, BatchStarted):
                    assert may_stop(fleet.cluster, frozenset(state.brokers), policy, stop), seed
                    if not execute:
                        fleet.restart(frozenset(state.brokers))
                state = after(state, effect.event)
        assert isinstance(effect, RestartFinished), (seed, effect)
        followed += bool(plan.down)
    assert followed > 10
