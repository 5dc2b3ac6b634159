"""Configs of Kafka's type LIST as Python values."""


def parse_config_list(text: str) -> tuple[str, ...]:
    """The items of a config such as `delete, compact`; no items where the text is blank.

    As Kafka's ConfigDef.parseType: blanks around an item do not count, and a comma too many makes an empty item, which
    keys with a fixed choice of items refuse.
    """
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()
