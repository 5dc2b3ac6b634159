"""The embedded cluster: what min.insync.racks costs where nobody asks for it, and what the pytest plug-in costs likewise."""

from benchmarks import _produce_with_value_1, _pytest_start


def main() -> None:
    _produce_with_value_1.main()
    _pytest_start.main()
