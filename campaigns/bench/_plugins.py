"""The costs of the plugins: encodings beside the compact one, their serializers beside the
standard json, WebSocket beside TCP.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter
from typing import Any, Final

import trio

from campaigns.bench._bulk import nanoseconds_each, over_trio, read_elements, time_subscription
from campaigns.bench._measure import Bar, Group, Opening, Timer
from campaigns.bench._mixed import read_objects
from campaigns.bench._serving_process import serving_process

_COMPACT: Final = "compact"
_STANDARD: Final = "standard json"
_TCP: Final = "penstock, tcp"
_WS: Final = "penstock, ws"
_BARE: Final = "trio-websocket"


def _in_encoding(name: str) -> Callable[[int, int, int], Awaitable[float]]:
    async def read(port: int, size: int, count: int) -> float:
        from penstock.runtime import connect

        async with connect(f"tcp://127.0.0.1:{port}", encoding=name) as remote:
            await remote.wait_accepted()
            return await time_subscription(remote, size, count)

    return read


def _encodings(short: bool) -> dict[str, Opening]:
    count = 100_000 if short else 400_000
    return {
        _COMPACT: partial(over_trio, "penstock", read_elements, 64, count),
        **{
            name: partial(over_trio, "penstock", _in_encoding(name), 64, count)
            for name in ("msgpack", "protobuf")
        },
    }


async def _read_structs(port: int, size: int, count: int) -> float:
    from campaigns.bench._articles import Article

    return await read_objects(port, size, count, serializer="msgpack", kind=Article)


async def _read_protobuf(port: int, size: int, count: int) -> float:
    from campaigns.bench._articles import protobuf_article

    return await read_objects(port, size, count, serializer="protobuf", kind=protobuf_article())


def _objects(short: bool) -> dict[str, Opening]:
    count = 20_000 if short else 100_000
    return {
        _STANDARD: partial(over_trio, "standard_objects", read_objects, 64, count),
        "msgpack, dicts": partial(
            over_trio, "msgpack_objects", partial(read_objects, serializer="msgpack"), 64, count
        ),
        "msgpack, structs": partial(over_trio, "msgpack_structs", _read_structs, 64, count),
        "protobuf": partial(over_trio, "protobuf_objects", _read_protobuf, 64, count),
    }


@contextmanager
def _over_websocket(
    kind: str, read: Callable[[int, int, int], Awaitable[float]], size: int, count: int
) -> Iterator[Timer]:
    with serving_process(kind, size, count) as server:
        timer = partial(trio.run, read, server.port, size, count)
        timer()
        yield timer


async def _read_websocket(port: int, size: int, count: int) -> float:
    from penstock.runtime import connect

    async with connect(f"ws://127.0.0.1:{port}") as remote:
        await remote.wait_accepted()
        return await time_subscription(remote, size, count)


async def _read_bare(port: int, size: int, count: int) -> float:
    import trio_websocket

    # With its default buffer of 4 KiB it takes 3.7 times as long for 64 KiB.
    options: dict[str, Any] = {"message_queue_size": 64, "receive_buffer_size": 128 << 10}
    async with trio_websocket.open_websocket(
        "127.0.0.1", port, "/", use_ssl=False, **options
    ) as socket:
        began = perf_counter()
        await socket.send_message("go")
        for _ in range(count):
            await socket.get_message()
        taken = nanoseconds_each(began, count)
        with trio.move_on_after(1):
            await socket.aclose()
    return taken


def _websocket_of(size: int, count: int, bare_count: int) -> Callable[[bool], dict[str, Opening]]:
    def contenders(short: bool) -> dict[str, Opening]:
        many, few = (count // 4, bare_count // 4) if short else (count, bare_count)
        return {
            _TCP: partial(over_trio, "penstock", read_elements, size, many),
            _WS: partial(_over_websocket, "penstock_websocket", _read_websocket, size, many),
            _BARE: partial(_over_websocket, "bare_websocket", _read_bare, size, few),
        }

    return contenders


_NEEDS_WEBSOCKET: Final = {_WS: "penstock_websocket", _BARE: "trio_websocket"}

GROUPS: Final = (
    Group(
        "encodings",
        "Elements of 64 bytes in each encoding of RS.io",
        "element",
        _COMPACT,
        _encodings,
        (
            Bar("64 B in msgpack, beside compact", "msgpack", _COMPACT, at_least=0.6),
            Bar("64 B in protobuf, beside compact", "protobuf", _COMPACT, at_least=0.6),
        ),
        {"msgpack": "penstock_msgpack", "protobuf": "penstock_protobuf"},
    ),
    Group(
        "plugin-objects",
        "Objects of five fields, with the serializers of plugins",
        "element",
        _STANDARD,
        _objects,
        (
            Bar(
                "objects with msgpack, beside standard json",
                "msgpack, structs",
                _STANDARD,
                at_least=3,
            ),
            Bar("objects with protobuf, beside standard json", "protobuf", _STANDARD, at_least=2),
        ),
        {
            "msgpack, dicts": "penstock_msgpack",
            "msgpack, structs": "penstock_msgpack",
            "protobuf": "penstock_protobuf",
        },
    ),
    Group(
        "websocket",
        "Elements of 64 bytes over WebSocket",
        "element",
        _TCP,
        _websocket_of(64, 200_000, 20_000),
        (
            Bar("64 B over ws, beside trio-websocket", _WS, _BARE, at_least=10),
            Bar("64 B over ws, beside tcp", _WS, _TCP, at_least=0.4),
        ),
        _NEEDS_WEBSOCKET,
    ),
    Group(
        "websocket-large",
        "Elements of 64 KiB over WebSocket",
        "element",
        _TCP,
        _websocket_of(65_536, 6_000, 3_000),
        (Bar("64 KiB over ws, beside trio-websocket", _WS, _BARE, at_least=0.4),),
        _NEEDS_WEBSOCKET,
    ),
)
