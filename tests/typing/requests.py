"""Type-checked, never run: requests by name, from the side that asks and from the side
that answers.
"""

from dataclasses import dataclass
from typing import Any, assert_type

import penstock
from penstock.spi import PeerIdentity


@dataclass
class Order:
    """A payload."""

    lots: int


@dataclass
class Price:
    """An answer."""

    cents: int


service = penstock.Service()


@service.request("price/{symbol}")
async def price(payload: Order, symbol: str, peer: PeerIdentity) -> Price:
    """The decorator returns the function itself."""
    return Price(payload.lots * len(symbol) * len(peer.address))


async def calling_the_function(peer: PeerIdentity) -> None:
    """The program itself may also call it."""
    assert_type(await price(Order(1), "EURUSD", peer), Price)


async def asking(peer: penstock.Peer) -> None:
    """`type=` is the type of the answer."""
    assert_type(await peer.request("price/EURUSD", Order(1), type=Price), Price)
    assert_type(await peer.request("time", type=str), str)
    assert_type(await peer.request("prices", type=list[Price]), list[Price])
    assert_type(await peer.request("echo", b"x"), bytes)
    assert_type(await peer.request("echo"), bytes)
    assert_type(await peer.request("price/EURUSD", {"lots": 1}, serializer="json"), Any)


async def asking_by_url() -> None:
    """The same by URL, over a new connection."""
    assert_type(
        await penstock.request("tcp://127.0.0.1:7000/price/EURUSD", Order(1), type=Price), Price
    )
    assert_type(await penstock.request("tcp://127.0.0.1:7000/time"), bytes)
    assert_type(
        await penstock.request("tcp://127.0.0.1:7000/time", type=str, limits=penstock.Limits()), str
    )
    assert_type(await penstock.request("tcp://127.0.0.1:7000/price/EURUSD", serializer="json"), Any)


def unknown_options() -> None:
    """A checker refuses an option that a call does not have."""
    penstock.request("tcp://127.0.0.1:7000/time", bogus=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]  # no such option
    penstock.connect("tcp://127.0.0.1:7000", bogus=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]  # no such option
    penstock.remote("tcp://127.0.0.1:7000/x", bogus=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]  # no such option
    penstock.subscribe("tcp://127.0.0.1:7000/x", bogus=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]  # no such option
