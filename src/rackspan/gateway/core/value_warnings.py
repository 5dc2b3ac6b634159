"""Warnings about racks, and about values of min.insync.racks in force, by the rule by which they are judged when set."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rackspan.acks.config import judge_topic_config
from rackspan.gateway.core.policies import Policies
from rackspan.model import MIN_INSYNC_RACKS, Broker
from rackspan.model.rack_names import racks_alike
from rackspan.text import count_noun

_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class ConfigTopicState:
    """Facts about the config topic. `racks` have a replica of it. `confirmed`: somebody has confirmed that it has every value."""

    topic: str
    racks: int
    log_start_offset: int
    confirmed: bool


def values_warnings(policies: Policies, brokers: Sequence[Broker], topic: ConfigTopicState | None) -> list[str]:
    """One sentence for each; empty if nothing is amiss."""
    return [*_override(policies), *_values(policies, brokers, topic), *_records(policies, topic)]


def rack_warnings(brokers: Sequence[Broker]) -> Iterator[str]:
    """A sentence about brokers without a rack, and one about each rack that seems to have several names."""
    rackless = [str(broker.id) for broker in brokers if broker.rack is None]
    if rackless:
        verb = "has" if len(rackless) == 1 else "have"
        subject = "broker" if len(rackless) == 1 else "brokers"
        yield f"{subject} {', '.join(rackless)} {verb} no rack; brokers without one count as one unnamed rack; set broker.rack"
    for group in racks_alike(broker.rack for broker in brokers):
        one = "one of them" if group.same else "names of one kind"
        yield (
            f"{group}, and {group.difference}: if they are one, what is acknowledged may be in one rack; set broker.rack to {one}"
        )


def _override(policies: Policies) -> Iterator[str]:
    if policies.override is not None:
        yield (
            f"acknowledgements.override.{MIN_INSYNC_RACKS} is {policies.override}: values above it are not enforced; "
            "remove it from the gateway's file when the racks are back"
        )


def _values(policies: Policies, brokers: Sequence[Broker], topic: ConfigTopicState | None) -> Iterator[str]:
    values = policies.values
    for value in sorted(set(values.values())):
        places = sorted(place for place, known in values.items() if known == value)
        named = ", ".join(places[:_MOST_NAMED]) + (" and others" if len(places) > _MOST_NAMED else "")
        for warning in judge_topic_config(str(value), brokers).warnings:
            yield f"{named}: {warning}"
        if topic is not None and value > topic.racks:
            yield (
                f"{named}: {MIN_INSYNC_RACKS} {value}: the config topic {topic.topic} has replicas in "
                f"{count_noun(topic.racks, 'rack')}, so that the value may be lost with them; reassign that topic to more racks"
            )


def _records(policies: Policies, topic: ConfigTopicState | None) -> Iterator[str]:
    if policies.unreadable:
        named = ", ".join(f"{scope.value} {name or '(default)'}" for scope, name in policies.unreadable[:_MOST_NAMED])
        yield (
            f"records of {named} in the config topic cannot be read, so that acks=all is refused there; a later "
            "version of the gateway reads them if it wrote them, else set the values again"
        )
    if topic is not None and topic.log_start_offset > 0:
        yield (
            f"the config topic {topic.topic} begins at offset {topic.log_start_offset}: records were deleted, and with them maybe "
            f"values of {MIN_INSYNC_RACKS}; compare the topics' values and set those again that are missing"
        )
    if topic is not None and not topic.confirmed:
        yield (
            f"the config topic {topic.topic} was created, and its values of {MIN_INSYNC_RACKS} are not confirmed: if there were values before, "
            "they are lost; set them again, then run rackspan gateway confirm --config FILE --apply"
        )
