"""The order of advice."""

from dataclasses import replace
from random import Random

from rackspan.advice import Advice, ranked
from rackspan.advice.advice import Concern


def test_advice_is_ranked_by_concern_place_money_bytes_kind_topic_and_group() -> None:
    """Names of capitals come before all others, so that one that is absent has to come first."""
    money = Advice(Concern.MONEY, "A", "", "", "", "", money_a_month=5.0, bytes_a_month=7)
    free = replace(money, money_a_month=0.0)
    unpriced = replace(money, money_a_month=None)
    ordered = [
        Advice(Concern.RISK, "z", "", "", "", "", place=1),
        Advice(Concern.RISK, "a", "", "", "", "", place=2),
        Advice(Concern.WARNING, "a", "", "", "", "", place=0),
        replace(money, money_a_month=6.0, bytes_a_month=1),
        replace(money, bytes_a_month=8, kind="z"),
        money,
        replace(money, group="A"),
        replace(money, group="b"),
        replace(money, topic="A"),
        replace(money, topic="b"),
        replace(money, kind="b"),
        replace(money, bytes_a_month=-1),
        free,
        replace(unpriced, bytes_a_month=8, kind="z"),
        unpriced,
        replace(unpriced, bytes_a_month=None),
        replace(unpriced, bytes_a_month=-1),
        replace(money, money_a_month=99.0, place=1),
    ]
    for rng in map(Random, range(10)):
        assert ranked(rng.sample(ordered, len(ordered))) == ordered


def test_concerns_are_named_as_in_documents_the_most_urgent_first() -> None:
    assert [*Concern] == ["risk", "warning", "money"]
