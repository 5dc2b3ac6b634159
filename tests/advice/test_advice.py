"""The order of advice."""

from dataclasses import replace
from random import Random

from rackspan.advice import Advice, ranked
from rackspan.advice.advice import Concern


def test_advice_is_ranked_by_concern_and_place() -> None:
    money = Advice(Concern.MONEY, "A", "", "", "", "", money_a_month=5.0, bytes_a_month=7)
    ordered = [
        Advice(Concern.RISK, "z", "", "", "", "", place=1),
        Advice(Concern.RISK, "a", "", "", "", "", place=2),
        Advice(Concern.WARNING, "a", "", "", "", "", place=0),
        money,
        # What rests on another is worth more than that.
        replace(money, money_a_month=99.0, place=1),
        replace(money, money_a_month=None, place=2),
        replace(money, money_a_month=6.0, place=3),
    ]
    for rng in map(Random, range(10)):
        assert ranked(rng.sample(ordered, len(ordered))) == ordered


def test_concerns_are_named_as_in_documents_the_most_urgent_first() -> None:
    assert [*Concern] == ["risk", "warning", "money"]
