"""What a browser would forgive and we do not: a strict reading of the page with the standard library's parser."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise

VOID = frozenset({"meta", "br", "img", "link", "input", "hr"})
WITHOUT_WORDS = frozenset({"svg", "g", "table", "thead", "tbody", "tr", "ul", "ol", "dl"})


@dataclass
class Element:
    """An element with what it holds, in order: texts and elements."""

    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    held: list["Element | str"] = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        yield self
        for one in self.held:
            if isinstance(one, Element):
                yield from one.walk()

    def all(self, tag: str, kind: str | None = None) -> list["Element"]:
        """Elements of a tag, and of a class where one is named."""
        return [one for one in self.walk() if one.tag == tag and (kind is None or kind in one.kinds)]

    @property
    def kinds(self) -> list[str]:
        return self.attributes.get("class", "").split()

    @property
    def text(self) -> str:
        """Its words, white space collapsed as a browser collapses it."""
        return " ".join("".join(self._texts()).split())

    def _texts(self) -> Iterator[str]:
        for one in self.held:
            if isinstance(one, str):
                yield one
            else:
                yield from one._texts()


class _Strict(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#root", {})
        self.open = [self.root]
        self.doctype = ""

    def handle_decl(self, decl: str) -> None:
        self.doctype = decl

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> says an attribute twice: {names}"
        element = Element(tag, {name: value or "" for name, value in attrs}, self.open[-1])
        self.open[-1].held.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        assert self.open[-1].tag not in WITHOUT_WORDS or not data.strip(), f"<{self.open[-1].tag}> shows no {data!r}"
        self.open[-1].held.append(data)


def drawn(picture: str) -> Element:
    """A picture on its own as a tree."""
    reader = _Strict()
    reader.feed(picture)
    assert reader.open == [reader.root], f"never closed: {[one.tag for one in reader.open[1:]]}"
    return reader.root


def parsed(page: str) -> Element:
    """The page as a tree. Fails on what HTML leaves to a browser's mercy: unclosed elements, ids twice, dead links."""
    reader = _Strict()
    reader.feed(page)
    reader.close()
    assert reader.doctype == "doctype html"
    assert reader.open == [reader.root], f"never closed: {[one.tag for one in reader.open[1:]]}"
    _check_names(reader.root)
    _check_headings(reader.root)
    _check_tables(reader.root)
    return reader.root


def _check_names(root: Element) -> None:
    names = [one.attributes["id"] for one in root.walk() if "id" in one.attributes]
    assert len(names) == len(set(names)), f"ids used twice: {sorted({one for one in names if names.count(one) > 1})}"
    for one in root.walk():
        for target in one.attributes.get("aria-labelledby", "").split():
            assert target in names, f"aria-labelledby names {target}, which is not there"
        href = one.attributes.get("href")
        assert href is None or href.removeprefix("#") in names, f"href {href} leads nowhere"


def _check_headings(root: Element) -> None:
    levels = [int(one.tag[1]) for one in root.walk() if one.tag in ("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1, f"{levels.count(1)} main headings"
    assert levels[0] == 1
    for before, after in pairwise(levels):
        assert after <= before + 1, f"a heading of level {after} follows one of {before}"


def _check_tables(root: Element) -> None:
    for table in root.all("table"):
        widths = {sum(one.tag in ("td", "th") for one in row.walk()) for row in table.all("tr")}
        assert len(widths) == 1, f"rows of {widths} cells in one table"
        assert all(one.attributes.get("scope") in ("row", "col") for one in table.all("th"))
