"""A table in a notebook asks for what its page can draw. Run by `nox -s examples`."""

import asyncio
import collections
import dataclasses
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest

from penstock import aio
from penstock.api import UsageError
from penstock.notebook import Table
from penstock.notebook._table import MOST_TEXT, row_of, text_of
from tests.aio._run import run

ROOT = Path(__file__).parents[2]
ROWS = 3

pytest.importorskip("anywidget", reason="needs anywidget: `nox -s examples` installs it")


class Page:
    """The page of a table, as the kernel sees it."""

    def __init__(self, table: Table) -> None:
        self._widget = table._widget
        self.rows: list[dict[str, str]] = []
        self.ends: list[str] = []
        self._widget.send = self._on_send

    def wants(self, content: Any) -> None:
        self._widget._handle_custom_msg(content, [])

    def _on_send(self, content: Any) -> None:
        self.rows += content.get("rows", [])
        self.ends += [content["end"]] if "end" in content else []


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def counting(made: list[int], count: int = 10_000) -> Any:
    async def numbers() -> AsyncIterator[dict[str, int]]:
        for number in range(count):
            made.append(number)
            yield {"number": number}

    return aio.from_asyncio(numbers)


def test_the_demand_is_that_of_the_page() -> None:
    """Nothing is made before the page has room, and then no more than it has room for."""

    async def main() -> None:
        made: list[int] = []
        table = Table(aio.subscribe, counting(made), rows=ROWS)
        page = Page(table)
        await settle()
        assert made == []
        page.wants({"wants": ROWS})
        while len(page.rows) < ROWS:
            await settle()
        await settle()
        assert page.rows == [{"number": "0"}, {"number": "1"}, {"number": "2"}]
        assert len(made) == ROWS
        # It is the room of the page, and not an increment; and never more than the table shows.
        for _ in range(5):
            page.wants({"wants": 1_000_000})
        while len(page.rows) < 2 * ROWS:
            await settle()
        await settle()
        assert len(made) == 2 * ROWS == table.received
        assert repr(table) == "<table, 6 elements, open>"
        table.stop()
        await table.wait_ended()
        assert page.ends == ["stopped"]

    run(main())


def test_a_page_that_opens_early_or_late() -> None:
    """Room that is told before the stream is open is used then; a page that is opened after the end
    is told the end. A message that is not a number is ignored.
    """

    async def main() -> None:
        table = Table(aio.subscribe, counting([], 2), rows=ROWS)
        page = Page(table)
        for wrong in ({}, {"wants": "all"}, {"wants": True}, None):
            page.wants(wrong)
        page.wants({"wants": ROWS})
        await table.wait_ended()
        assert page.rows == [{"number": "0"}, {"number": "1"}]
        assert page.ends == ["complete"]
        page.wants({"wants": ROWS})
        await settle()
        assert page.ends == ["complete"] * 2

    run(main())


def test_a_failure_is_shown() -> None:
    """It is shown below the table, and not as an exception that was never retrieved."""

    async def main() -> None:
        service = aio.Service()
        async with (
            aio.serve(service, "memory://table") as server,
            aio.connect(server.addresses[0]) as peer,
        ):
            table = Table(peer.subscribe, "nothing", type=int)
            page = Page(table)
            page.wants({"wants": 1})
            await table.wait_ended()
            assert [end[:27] for end in page.ends] == ["Rejected: the peer refused "]

    run(main())


def test_it_is_shown_by_jupyter() -> None:
    """With the module of the page, and the number of rows."""

    async def main() -> None:
        table = Table(aio.subscribe, counting([]), rows=ROWS)
        shown = table._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in json.dumps(shown)
        state = table._widget.get_state()
        assert state["rows"] == ROWS
        assert "export default" in state["_esm"]
        table.stop()
        await table.wait_ended()

    run(main())


def test_mistakes() -> None:
    """Each says what to do."""
    with pytest.raises(UsageError, match="make it in a cell"):
        Table(aio.subscribe, [])

    async def main() -> None:
        with pytest.raises(UsageError, match="the page decides"):
            Table(aio.subscribe, [], demand=4)
        with pytest.raises(UsageError, match="rows=0"):
            Table(aio.subscribe, [], rows=0)

    run(main())


def test_without_anywidget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what to install, and no stream was opened."""
    monkeypatch.setitem(sys.modules, "anywidget", None)

    async def main() -> None:
        with pytest.raises(UsageError, match=r"install penstock\[notebook\]"):
            Table(aio.subscribe, [])

    run(main())


@dataclasses.dataclass
class _Data:
    name: str
    price: int


@attrs.frozen
class _Attrs:
    name: str
    price: int


class _Struct(msgspec.Struct):
    name: str
    price: int


_Tuple = collections.namedtuple("_Tuple", ["name", "price"])  # noqa: PYI024 (the kind is meant)


@pytest.mark.parametrize(
    "element", [{"name": "a", "price": 1}, *(k("a", 1) for k in (_Data, _Attrs, _Struct, _Tuple))]
)
def test_an_element_with_fields_has_their_columns(element: object) -> None:
    """Whatever kind of record it is; any other element is one cell."""
    assert row_of(element) == {"name": "a", "price": "1"}
    assert row_of(7) == {"element": "7"}


def test_a_cell_is_a_short_text() -> None:
    """Bytes that are not text are shown with their numbers."""
    assert text_of("x" * 1_000) == "x" * MOST_TEXT + "…"
    assert text_of(memoryview(b"x" * 1_000)) == "x" * MOST_TEXT + "…"
    assert text_of(b"\xffa") == r"\xffa"


def node() -> Iterator[str]:
    found = shutil.which("node")
    if found is None:
        pytest.skip("this machine has no Node.js (the program `node`)")
    yield found


def test_the_page_asks_while_it_is_seen() -> None:
    """The module runs in Node.js, with a page that has just enough to draw on."""
    (program,) = node()
    done = subprocess.run(
        [program, str(Path(__file__).with_name("page.mjs"))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
