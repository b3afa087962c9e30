"""A source and a transport that are imported with their first URL."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar

import pytest
import trio

from penstock.api import Limits, UsageError
from penstock.spi import (
    Connection,
    ElementSink,
    LateTransport,
    LateUrlSource,
    Listener,
    SourceOptions,
    Transport,
    TransportOptions,
    Url,
    UrlSource,
    parse_url,
)

made: list[object] = []
HERE = "tests.spi.test_late"
OPTIONS = SourceOptions(limits=Limits(), transport=TransportOptions())


class Source(UrlSource):
    schemes = ("slow",)
    why_no_connection = "it keeps elements"

    def __init__(self) -> None:
        made.append(self)

    def check(self, url: str, options: SourceOptions) -> None:
        raise UsageError(f"checked {url}")

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        sink.put([url.encode()])

    @asynccontextmanager
    async def _log(self, *what: object) -> AsyncIterator[object]:
        yield what

    def log_at(
        self, url: str, options: SourceOptions, *, read_only: bool = True, retention: Any = None
    ) -> AbstractAsyncContextManager[Any]:
        return self._log(url, read_only, retention)


class LateSource(LateUrlSource):
    schemes: ClassVar[tuple[str, ...]] = ("slow",)
    why_no_connection: ClassVar[str] = "it keeps elements"
    target: ClassVar[str] = f"{HERE}:Source"


class Carrier(Transport):
    schemes = ("slow",)

    def __init__(self) -> None:
        made.append(self)

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        raise UsageError(f"connected to {url}")

    async def listen(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Listener:
        raise UsageError(f"listened at {url}")


class LateCarrier(LateTransport):
    schemes: ClassVar[tuple[str, ...]] = ("slow",)
    target: ClassVar[str] = f"{HERE}:Carrier"


class Sink(ElementSink):
    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def wait_demand(self) -> int:
        raise AssertionError

    def put(self, elements: Any, /) -> None:
        self.got += elements


async def test_a_source_is_made_with_its_first_url_and_once() -> None:
    """Each call goes to it, and what it raises comes from it."""
    made.clear()
    late, again = LateSource(), LateSource()
    assert not made
    with pytest.raises(UsageError, match="checked slow://a"):
        late.check("slow://a", OPTIONS)
    sink = Sink()
    await again.read("slow://b", sink, OPTIONS)
    assert sink.got == [b"slow://b"]
    async with late.log_at("slow://c", OPTIONS, read_only=False, retention=5) as log:
        assert log == ("slow://c", False, 5)
    assert late.made() is again.made()
    assert len(made) == 1


async def test_a_transport_is_made_with_its_first_url_and_once() -> None:
    """The same for one that connects and listens."""
    made.clear()
    late, url = LateCarrier(), parse_url("slow://a:1").address
    assert not made
    async with trio.open_nursery() as nursery:
        with pytest.raises(UsageError, match="connected to slow://a:1"):
            await late.connect(url, options=OPTIONS.transport, nursery=nursery)
        with pytest.raises(UsageError, match="listened at slow://a:1"):
            await LateCarrier().listen(url, options=OPTIONS.transport, nursery=nursery)
    assert len(made) == 1


def test_a_target_that_is_not_there_is_an_error_of_its_plugin() -> None:
    """It names what is missing."""

    class Broken(LateSource):
        target = f"{HERE}:Nothing"

    with pytest.raises(AttributeError, match="Nothing"):
        Broken().check("slow://a", OPTIONS)
