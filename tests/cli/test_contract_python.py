"""Typed clients in Python, written from a running service and used with it."""

import asyncio
import datetime as dt
import decimal
import importlib.util
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import msgspec
import pytest
import trio

import penstock
from penstock import aio, blocking
from penstock.cli._contract import contract_of
from penstock.cli._contract_python import SHELLS, python_client
from penstock.runtime.service._description import entry_of
from tests._real_time import HANGS_AFTER
from tests.cli import _typed_service
from tests.contracts._trio_server import Served, serving


def entries_of(service: penstock.Service) -> list[dict[str, Any]]:
    """Return what the service describes."""
    return [entry_of(service, route) for route in service.router.routes()]


def imported(text: str, folder: Path) -> ModuleType:
    """Return the module of a file with this text."""
    path = folder / "typed_client.py"
    path.write_text(text, encoding="ascii")
    spec = importlib.util.spec_from_file_location("typed_client", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # msgspec looks the names in annotations up in the module.
    sys.modules["typed_client"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(make=_typed_service.service) as running:
        yield running


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    def write(shell: str) -> Any:
        text, _ = python_client(contract_of(entries_of(_typed_service.service())), shell)
        return imported(text, tmp_path)

    yield write
    sys.modules.pop("typed_client", None)


TIME = dt.datetime(2026, 7, 1, 8, tzinfo=dt.UTC)


def check_trees(client: Any, trees: list[Any]) -> None:
    """Each value has the type that the service gave it."""
    assert [each.value for each in trees] == [3, 4]
    tree = trees[0]
    assert isinstance(tree, client.Tree)
    assert (tree.side, tree.when, tree.price) == ("sell", TIME, decimal.Decimal("1.50"))
    assert (tree.data, tree.took) == (b"\x00\xff", dt.timedelta(seconds=90))
    assert (tree.by_number, tree.by_side) == ({1: 0.5}, {"sell": 2})
    assert (tree.anything, tree.pair) == (["a/b ?", True], (1, "a"))
    assert [each.value for each in tree.kids] == [9]


ARGUMENTS: dict[str, Any] = {
    "side": "sell",
    "sizes": [3, 4],
    "at": TIME,
    "demand_": 9,
    "fresh": True,
}


def test_trio(served: Served, written: Callable[[str], Any]) -> None:
    """Publishers and requests with parameters, payloads and answers, over one connection."""
    client = written("trio")

    async def main() -> None:
        async with penstock.connect(served.url) as peer:
            typed = client.Client(peer)
            async with typed.trees("a/b ?", **ARGUMENTS, demand=2) as trees:
                check_trees(client, [each async for each in trees])
            async with typed.changes() as changes:
                found = [each async for each in changes]
            assert found == [client.Opened(number=1), client.Closed(the_reason="over")]
            async with typed.rows() as rows:
                [[row]] = [each async for each in rows]
            assert (row.class_, row.max_price, row.self_, row.int_, row.field_1st) == (
                *(1, 1.5, "s", 2),
                True,
            )
            page = await typed.tree(5, client.Tree(value=1, kids=[client.Tree(value=2)]))
            assert (page.next, page.items[0].kids[0].value) == ("5", 2)
            assert await typed.many([client.Tree(value=1)], needed=2) == 3
            assert await typed.choose() == "sell"
            assert await typed.choose("buy") == "buy"
            assert await typed.text("ab") == "abab"
            assert await typed.bytes_(b"ab") == b"abab"
            assert await typed.change(client.Closed()) == "Closed"

    trio.run(main)


def test_asyncio(served: Served, written: Callable[[str], Any]) -> None:
    """The same on asyncio."""
    client = written("asyncio")

    async def main() -> None:
        async with aio.connect(served.url) as peer:
            typed = client.Client(peer)
            async with typed.trees("a/b ?", **ARGUMENTS) as trees:
                check_trees(client, [each async for each in trees])
            async with typed.raw() as raw, typed.texts() as texts:
                assert [each async for each in raw] == [b"\x00raw"]
                assert [each async for each in texts] == ["text"]
            assert (await typed.tree(5, client.Tree(value=1))).next == "5"

    asyncio.run(asyncio.wait_for(main(), HANGS_AFTER))


def test_blocking(served: Served, written: Callable[[str], Any]) -> None:
    """The same in a program that blocks, with each of the other types."""
    client = written("blocking")
    with blocking.connect(served.url) as peer:
        typed = client.Client(peer)
        with typed.trees("a/b ?", **ARGUMENTS) as trees:
            check_trees(client, list(trees))
        with typed.models() as models:
            [model] = models
        assert (model.count, model.names, model.inner.count) == (1, [], 2)
        with typed.places() as places, typed.anything() as anything, typed.quotes() as quotes:
            assert (list(places), list(anything)) == ([(1, 2)], [{"a": [1]}])
            assert list(quotes) == [client.Quote(price=1.0)]
        with typed.log(start="earliest", stop="latest") as log:
            assert list(log) == []
        assert typed.other_quotes() == [client.Quote2(ask=2.0)]
        # Names that are words of the language, or that a method of the client has.
        assert (typed.class_(), typed.class_by_class(4)) == (7, [4, 1, 2])
        assert typed.class_by_class(4, options=5, payload=6) == [4, 5, 6]
        assert (typed.gr_e(), typed.offer_1_2(), typed.then()) == (8, 9, 10)


EACH: Final[dict[str, Any]] = {
    "text": "a/b ?+%2F",
    "took": dt.timedelta(days=1, seconds=3, microseconds=5),
    "at": dt.time(12, 30, 1),
    "number": 1e300,
    "price": decimal.Decimal("-1.50"),
    "key": uuid.UUID(int=7),
    "day": dt.date(2026, 1, 31),
    "moment": TIME,
    "side": "sell",
    "kind": 1,
    "fresh": True,
    "pauses": [dt.timedelta(seconds=-0.5), dt.timedelta(0)],
}


@pytest.mark.parametrize("change", [{}, {"text": ".."}, {"text": "\0"}, {"number": -5e-7}], ids=str)
def test_each_type_of_a_parameter_arrives_as_it_was(
    served: Served, written: Callable[[str], Any], change: dict[str, Any]
) -> None:
    """In the path and in the query of a name. A timedelta was written as "1 day, 0:00:03"."""
    client, given = written("blocking"), {**EACH, **change}
    with blocking.connect(served.url) as peer:
        answer = client.Client(peer).spelled(**given)
    pauses = msgspec.convert(answer.pop(), list[dt.timedelta])
    *values, expected = given.values()
    assert pauses == expected
    pairs = zip(answer, values, strict=True)
    assert [msgspec.convert(each, type(value)) for each, value in pairs] == values


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_part_of_a_name_is_refused_before_it_is_sent(
    written: Callable[[str], Any], shell: str
) -> None:
    """The server would answer that there is no such publisher."""
    call = written(shell).Client(SimpleNamespace(subscribe=None)).trees
    with pytest.raises(ValueError, match="a name has no empty part"):
        call("")


@pytest.mark.parametrize("shell", SHELLS)
def test_an_empty_list_is_refused_before_it_is_sent(
    written: Callable[[str], Any], shell: str
) -> None:
    """A name without the key would mean the default of the service."""
    call = written(shell).Client(SimpleNamespace(subscribe=None)).trees
    with pytest.raises(ValueError, match="cannot carry an empty list: give sizes at least one"):
        call("a", sizes=[])


CHANNEL = "sums is left out: a channel has no typed call; use Peer.request_channel"
ABOVE = (
    "above is left out: its payload needs Peer.request_stream, which the client on trio alone has"
)


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_client_cannot_call_is_left_out_and_named(shell: str) -> None:
    """The elements of a channel go both ways, and a payload for a publisher needs RSocket."""
    text, notes = python_client(contract_of(entries_of(_typed_service.service())), shell)
    assert "def sums" not in text
    assert sorted(notes) == ([CHANNEL] if shell == "trio" else [ABOVE, CHANNEL])
    assert ("def above" in text) == (shell == "trio")
