"""The format of the lines of a log, which an option gives and output/messages.py writes. Imports nothing heavy."""

from enum import StrEnum


class LogFormat(StrEnum):
    """Text, or a JSON object for each line."""

    TEXT = "text"
    JSON = "json"
