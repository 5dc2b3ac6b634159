"""The page as Chromium draws it, at a phone's width and a desk's, in light and dark."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rackspan.report import write_report
from tests.depth import one_in
from tests.report.test_page import STORIES

pytestmark = pytest.mark.browser

PHONE, DESK = 375, 1280

OVERFLOWING = """() => [...document.querySelectorAll('body *')].filter(one => {
    const box = one.getBoundingClientRect();
    return box.width && box.right > innerWidth + 0.5 && !one.closest('.scroll') && !one.closest('.defs') && !one.closest('thead');
}).map(one => one.outerHTML.slice(0, 120))"""

TEXTS = """() => [...document.querySelectorAll('svg.timeline, svg.flows')].filter(one => one.getBoundingClientRect().width).map(one => {
    const frame = one.getBoundingClientRect();
    return [...one.querySelectorAll('text')].map(text => {
        const box = text.getBoundingClientRect();
        return [box.left - frame.left, frame.right - box.right, box.top - frame.top, frame.bottom - box.bottom,
                box.left, box.right, box.top, box.bottom];
    });
})"""

CUT = """() => [...document.querySelectorAll('h1, h2, h3, h4, dt, dd, p, li, .c, .state, summary')].filter(
    one => one.getBoundingClientRect().width && one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).display !== 'inline'
).map(one => one.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine, so nobody looked at the page; install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    paths = {name: folder / f"{name.replace(' ', '-')}.html" for name in STORIES}
    for name, path in paths.items():
        write_report(STORIES[name], path)
    return paths


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", one_in(2, STORIES))
def test_nothing_leaves_the_screen_is_cut_or_covers_another(
    browser: Any, files: dict[str, Path], name: str, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 800})
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(files[name].as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert requested == [files[name].as_uri()]
    assert complaints == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(CUT) == []
    for texts in page.evaluate(TEXTS):
        assert all(min(text[:4]) >= -1 for text in texts), texts
        assert_apart([text[4:] for text in texts])
    page.close()


def assert_apart(boxes: list[list[float]]) -> None:
    for index, (left, right, top, bottom) in enumerate(boxes):
        for left2, right2, top2, bottom2 in boxes[index + 1 :]:
            # Boxes of neighbouring lines may touch by a pixel of their line height.
            assert right <= left2 or right2 <= left or bottom <= top2 + 3 or bottom2 <= top + 3


TALL = """() => [...document.querySelectorAll('.rows:not(.stack) tbody tr')].filter(
    one => one.getBoundingClientRect().height > 2 * parseFloat(getComputedStyle(one).lineHeight)
).map(one => one.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", ["during the loss", "traffic"])
def test_a_row_of_a_table_that_scrolls_is_one_line_on_a_phone(browser: Any, files: dict[str, Path], name: str) -> None:
    page = browser.new_page(viewport={"width": PHONE, "height": 800})
    page.goto(files[name].as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(one => { one.open = true })")
    assert page.evaluate("() => document.querySelectorAll('.rows:not(.stack) tbody tr').length") > 6
    assert page.evaluate(TALL) == []
    # What the loss of a broker would do is on the screen without scrolling.
    (right,) = page.evaluate(
        "() => [Math.max(...[...document.querySelectorAll('.brokers tbody tr')].map(one => one.children[2].getBoundingClientRect().right))]"
    )
    assert right <= PHONE
    page.close()


CONTRAST = """() => {
    const channel = value => { const s = value / 255; return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4 };
    const light = colour => { const [r, g, b] = colour.match(/[0-9.]+/g).map(Number);
        return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b) };
    const behind = one => { for (; one; one = one.parentElement) {
        const colour = getComputedStyle(one).backgroundColor;
        if (!colour.endsWith(', 0)')) return colour; } return 'rgb(255,255,255)' };
    return Math.min(...[...document.querySelectorAll('p, th, td, dt, dd, li, h1, h2, h3, small, a, code, summary')].map(one => {
        const [a, b] = [light(getComputedStyle(one).color), light(behind(one))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) }));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_the_contrast_that_wcag_requires_in_both_colour_schemes(
    browser: Any, files: dict[str, Path], scheme: str
) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 800}, color_scheme=scheme)
    page.goto(files["traffic"].as_uri())
    assert page.evaluate(CONTRAST) >= 4.5
    background = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    page.close()


def test_only_the_drawing_that_fits_the_screen_is_shown(browser: Any, files: dict[str, Path]) -> None:
    shown = "() => [...document.querySelectorAll('svg.timeline')].map(one => one.getBoundingClientRect().width)"
    page = browser.new_page(viewport={"width": PHONE, "height": 800})
    page.goto(files["shop"].as_uri())
    assert page.evaluate(shown) == [0, 343]
    page.set_viewport_size({"width": DESK, "height": 800})
    assert page.evaluate(shown) == [1040, 0]
    page.close()


def test_on_paper_everything_collapsed_is_open(browser: Any, files: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": DESK, "height": 800})
    page.goto(files["shop"].as_uri())
    batch = "() => [...document.querySelectorAll('details:not([open]) ul, details:not([open]) table')].map(one => one.checkVisibility())"
    assert not any(page.evaluate(batch))
    page.emulate_media(media="print")
    assert all(page.evaluate(batch))
    page.close()


SHOWN = "() => [...document.querySelectorAll('[data-topic]')].filter(one => one.checkVisibility()).map(one => one.dataset.topic)"


def test_one_of_five_hundred_topics_is_found_by_its_name(browser: Any, files: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": PHONE, "height": 800})
    page.goto(files["five hundred topics"].as_uri())
    assert set(page.evaluate(SHOWN)) == {"payments", "clicks", "audit-log"}
    page.fill(".find input", " EVENTS-48 ")
    assert set(page.evaluate(SHOWN)) == {f"team-{code % 17}.events-{code}" for code in (48, *range(480, 490))}
    assert page.inner_text(".find output") == "11 of 500 topics"
    page.fill(".find input", "")
    assert set(page.evaluate(SHOWN)) == {"payments", "clicks", "audit-log"}
    page.close()


def test_a_button_copies_the_command_before_it(browser: Any, files: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": PHONE, "height": 800})
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text }}})"
    )
    page.goto(files["traffic"].as_uri())
    page.click(".copy")
    assert page.evaluate("() => window.copied") == "rackspan reassign plan --topic audit-log --replication-factor 2"
    assert page.inner_text(".copy") == "copied"
    page.close()
