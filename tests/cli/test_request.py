"""`penstock request` sends one request and writes its answer."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from penstock.api import (
    NoElement,
    PublicError,
    PublisherFailed,
    Rejected,
    StreamTimeout,
    UsageError,
)
from penstock.cli._main import parse
from penstock.runtime import Service, serve
from penstock.spi import Serializer, build_registry, hookimpl
from tests._real_time import HANGS_AFTER
from tests.cli._programs import penstock

URL = "memory://request"


@dataclass
class Order:
    """A payload."""

    symbol: str
    count: int


class Reversed(Serializer):
    """A format that is not text: JSON, read from its end."""

    name = "reversed"

    def dumps(self, element: object, /) -> bytes:
        return json.dumps(element).encode()[::-1]

    def loads(self, data: bytes, /) -> object:
        return json.loads(data[::-1])

    def for_type(self, kind: Any, /) -> Serializer:
        return self


class Plugin:
    """Offers that format."""

    @hookimpl
    def penstock_serializers(self) -> list[Reversed]:
        return [Reversed()]


REGISTRY = build_registry([Plugin()], environ={})


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry that the command finds."""
    monkeypatch.setattr("penstock.cli._request.build_registry", lambda: REGISTRY)


def _service(**options: Any) -> Service:
    service = Service(**options)

    @service.request("price/{symbol}")
    async def price(symbol: str) -> dict[str, float]:
        return {symbol: 1.5}

    @service.request("order")
    async def order(payload: Order) -> Order:
        if payload.count < 0:
            raise PublicError("count is below 0")
        return Order(payload.symbol, payload.count + 1)

    @service.request("packed/{kind}", serializer="reversed")
    async def packed(kind: str, payload: dict[str, int]) -> dict[str, int]:
        return {kind: payload["n"] + 1}

    _add_streams(service)
    return service


def _add_streams(service: Service) -> None:
    @service.publisher("numbers", serializer="json")
    async def numbers() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    @service.publisher("empty")
    async def empty() -> AsyncIterator[bytes]:
        for never in ():
            yield never

    @service.publisher("never")
    async def never() -> AsyncIterator[bytes]:
        await trio.sleep_forever()
        yield b""

    @service.request_response
    async def answer(data: bytes) -> bytes:
        return b"got " + data

    @service.request_stream
    async def streamed(data: bytes) -> AsyncIterator[bytes]:
        for number in range(3):
            yield data + b"%d" % number


async def _ask(*arguments: str, **options: Any) -> int:
    async with serve(_service(**options), URL, registry=REGISTRY):
        parsed = parse(["request", *arguments, "--quiet"])
        return int(await parsed.run(parsed))


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ([f"{URL}/price/EURUSD"], '{"EURUSD":1.5}\n'),
        ([f"{URL}/price/EURUSD", "--format", "json"], '{"EURUSD": 1.5}\n'),
        ([f"{URL}/price/EURUSD", "--format", "raw"], '{"EURUSD":1.5}'),
        ([f"reactivesocket+{URL}/price/EURUSD"], '{"EURUSD":1.5}\n'),
        ([f"{URL}/order", '{"symbol": "X", "count": 1}'], '{"symbol":"X","count":2}\n'),
        (
            [f"{URL}/order", '{"symbol": "X", "count": 1}', "--format", "json"],
            '{"symbol": "X", "count": 2}\n',
        ),
        (
            [f"reactivesocket+{URL}/order", '{"symbol": "X", "count": 1}'],
            '{"symbol":"X","count":2}\n',
        ),
        ([f"{URL}/numbers"], "0\n"),
        ([f"{URL}/numbers", "--stream"], "0\n1\n2\n"),
        ([f"{URL}/numbers", "--stream", "--count", "2"], "0\n1\n"),
        ([URL, "data"], "got data\n"),
        ([f"reactivesocket+{URL}", "data"], "got data\n"),
        ([f"reactivesocket+{URL}", "data", "--stream"], "data0\ndata1\ndata2\n"),
        ([f"reactivesocket+{URL}/numbers", "--stream"], "0\n1\n2\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
async def test_the_answer_is_written(
    arguments: list[str], printed: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """One value, or a stream, by name or by data alone."""
    assert await _ask(*arguments) == 0
    assert capfdbinary.readouterr().out.decode() == printed


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["said/no"], '"no payload"\n'),
        (["said/no", "--stream"], '"no payload"\n'),
        (["said/a", "text"], '"a text"\n'),
        (["said-as-json/a", '"text"'], '"a text"\n'),
        (["order", '{"symbol": "X", "count": 1}'], '{"symbol": "X", "count": 2}\n'),
        (["price/EURUSD"], '{"EURUSD": 1.5}\n'),
    ],
)
async def test_json_of_an_answer_is_written_as_the_service_describes_it(
    words: list[str], printed: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A text travels without quotes, and is JSON with them."""
    service = _service(describe=True)

    @service.request("said/{word}")
    async def said(word: str, payload: str = "payload") -> str:
        return f"{word} {payload}"

    @service.request("said-as-json/{word}", serializer="json")
    async def said_as_json(word: str, payload: str) -> str:
        return f"{word} {payload}"

    async with serve(service, URL, registry=REGISTRY):
        name, *more = words
        parsed = parse(["request", f"{URL}/{name}", *more, "--format", "json", "--quiet"])
        assert await parsed.run(parsed) == 0
    assert capfdbinary.readouterr().out.decode() == printed


@pytest.mark.parametrize("described", [True, False])
async def test_the_description_says_how_a_payload_is_written(
    described: bool, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """It is written as JSON then, in each format of the request. Without a description the option
    does the same.
    """
    option = () if described else ("--serializer", "reversed")
    assert await _ask(f"{URL}/packed/x", '{"n": 1}', *option, describe=described) == 0
    assert capfdbinary.readouterr().out == b'{"x": 2}\n'
    with pytest.raises(UsageError, match="write it as JSON; this is none"):
        await _ask(f"{URL}/packed/x", "n=1", *option, describe=described)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ([f"{URL}/order", '{"symbol": "X", "count": -1}'], PublisherFailed, "count is below 0"),
        ([f"{URL}/order", "nonsense"], PublisherFailed, "is not JSON"),
        ([f"{URL}/order"], Rejected, "order needs a payload"),
        ([f"{URL}/nothing"], Rejected, "no such publisher"),
        ([f"{URL}/nothing", "data"], Rejected, "no such publisher"),
        ([f"{URL}/empty"], NoElement, "ended without a value; --stream takes"),
        ([URL], UsageError, "names no request, and there is no PAYLOAD"),
        ([f"{URL}/order", "@/no/such/file"], UsageError, "names no file that can be read"),
        ([f"{URL}/order", "x" * (17 << 20)], UsageError, "the payload has more than"),
        ([f"{URL}/x", "data", "--fire-and-forget"], UsageError, "has no fire and forget"),
        ([f"{URL}/x", "data", "--channel"], UsageError, "leave PAYLOAD out"),
        ([f"{URL}/x", "--timeout", "0"], UsageError, "give more than 0 seconds"),
        ([f"{URL}/x", "--timeout", "nan"], UsageError, "give more than 0 seconds"),
        ([f"{URL}/x", "--count", "0"], UsageError, "--count 0"),
        ([f"{URL}/x", "--demand", "0"], UsageError, "--demand 0"),
        ([f"{URL}/order", "{}", "--serializer", "jsn"], UsageError, "there is no serializer 'jsn'"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else None,
)
async def test_what_went_wrong_is_said(arguments: list[str], error: type, text: str) -> None:
    """The words of the other side, or what to write."""
    with pytest.raises(error, match=text):
        await _ask(*arguments)


async def test_a_request_is_given_up_after_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The error names the option."""
    with pytest.raises(StreamTimeout, match=r"within 5 s \(--timeout\)"):
        await _ask(f"{URL}/never", "--timeout", "5")
    assert trio.current_time() < 6


async def test_a_payload_comes_from_a_file(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Its bytes go unchanged."""
    (tmp_path / "data").write_bytes(b"\x00\xff\n")
    assert await _ask(URL, f"@{tmp_path / 'data'}", "--format", "raw") == 0
    assert capfdbinary.readouterr().out == b"got \x00\xff\n"


async def test_a_message_without_an_answer_arrives() -> None:
    """The command ends when it is on its way."""
    service, arrived = Service(), trio.Event()

    @service.fire_and_forget
    async def forgotten(data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if data == b"data":
            arrived.set()

    async with serve(service, URL):
        parsed = parse(["request", f"reactivesocket+{URL}", "data", "--fire-and-forget"])
        assert await parsed.run(parsed) == 0
        with trio.fail_after(HANGS_AFTER):
            await arrived.wait()


@pytest.mark.slow
def test_a_payload_comes_from_standard_input(address: str) -> None:
    """Without a name it is all that is sent; what fails is one line."""
    with penstock("request", address, "-") as program:
        _, err = program.communicate(b"data", timeout=HANGS_AFTER)
    assert (program.returncode, err.count(b"\n")) == (1, 1)
    assert b"no such publisher" in err
