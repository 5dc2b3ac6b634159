"""Java's hash of a string, which Kafka uses to choose partitions of its own topics and orders of its hash maps."""


def java_hash(text: str) -> int:
    """String.hashCode as a signed int32: s[0]*31^(n-1) + … + s[n-1] over UTF-16 code units, so that an emoji counts twice."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8) + units[at + 1]) & 0xFFFFFFFF
    return code - 2**32 if code >= 2**31 else code
