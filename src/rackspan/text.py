"""Numbers and nouns in messages."""


def count_noun(number: int, noun: str, layout: str = "") -> str:
    """`1 partition`, `2 partitions`; `layout` is the number's format specification."""
    return f"{number:{layout}} {noun}" if number == 1 else f"{number:{layout}} {noun}s"
