from pathlib import Path

import pytest

from tools import unused_names

PROJECT = """
[project.scripts]
run = "shop.cli:run"
"""
FILES = {
    "src/shop/__init__.py": '"""A shop."""\n',
    "src/shop/cli.py": "from shop.till import Till, total\n\ndef run():\n    return Till().add(total([]))\n",
    "src/shop/till.py": """
        import asyncio

        RATE = 2
        FORGOTTEN = 3

        def total(prices):
            return sum(prices) * RATE

        def half(price):
            return rounded(price) / 2

        def rounded(price):
            return half(price)

        class Till(asyncio.Protocol):
            sold: int = 0
            refused: int = 0

            def __init__(self):
                self.opened_at = 0

            def add(self, price):
                self.sold += 1
                self.refused += 1
                return self._added(price, self.sold)

            def _added(self, price, _number):
                return price

            def connection_made(self, transport):
                return transport

            def emptied(self):
                return None

        class Drawer:
            def opened(self):
                return Drawer()

        def documented():
            return None
    """,
    "docs/shop.md": "Call `documented()`; half of it is prose.\n",
    "tests/test_till.py": "from shop.till import FORGOTTEN, Drawer, half\n",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.removeprefix("        ") for line in text.split("\n")))
    return tmp_path


def test_names_that_only_tests_or_each_other_use_are_found(shop: Path) -> None:
    found = unused_names.unused(shop, "shop")
    assert set(found) == {
        *("shop.till.FORGOTTEN", "shop.till.half", "shop.till.rounded", "shop.till.Till.emptied", "shop.till.Drawer"),
        *("shop.till.Till.refused", "shop.till.Till.opened_at"),
    }
    assert found["shop.till.FORGOTTEN"] == "src/shop/till.py:5"


def test_an_export_of_a_package_is_used(shop: Path) -> None:
    (shop / "src/shop/__init__.py").write_text('from shop.till import Drawer\n\n__all__ = ["Drawer"]\n')
    assert {name for name in unused_names.unused(shop, "shop") if "Drawer" in name} == {"shop.till.Drawer.opened"}


def test_nothing_public_is_unused_but_for_exceptions_that_exist_and_have_a_reason() -> None:
    found = unused_names.unused()
    assert unused_names.complaints(found) == []
    assert set(unused_names.ALLOWED) <= set(found)
    assert all(unused_names.ALLOWED.values())
