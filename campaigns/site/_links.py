"""The links of built pages: each leads to a file of the site, and to an anchor that is there."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

ADDRESSES = {"a": "href", "link": "href", "img": "src", "script": "src", "source": "src"}
"""The attribute of each element that has an address."""


class Dead(NamedTuple):
    """A link that leads nowhere."""

    page: str
    address: str
    why: str

    def __str__(self) -> str:
        return f"{self.page}: {self.address}: {self.why}"


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.anchors = {"", "top"}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {each for each in (given.get("id"), given.get("name")) if each}
        address = given.get(ADDRESSES.get(tag, ""))
        # The canonical link is the address at the place where the site is published.
        if address is not None and given.get("rel") != "canonical":
            self.addresses.append(address)


def _parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def pages_of(root: Path) -> list[Path]:
    """Return the pages of a site, in order."""
    return sorted(root.rglob("*.html"))


def dead_links(root: Path) -> Iterator[Dead]:
    """Yield each link between pages of a site that leads to no file, or to no anchor of it."""
    pages = {path.resolve(): _parsed(path) for path in pages_of(root)}
    for path, page in pages.items():
        name = str(path.relative_to(root.resolve()))
        for address in dict.fromkeys(page.addresses):
            why = _why_dead(path, address, pages)
            if why:
                yield Dead(name, address, why)


def _why_dead(path: Path, address: str, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return "there is no such file"
    found = pages.get(target)
    if found is not None and unquote(parts.fragment) not in found.anchors:
        return "the page has no such anchor"
    return ""
