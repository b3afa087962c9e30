"""The server: a publisher whose elements are objects of a class. Start it with
`penstock serve market:service tcp://127.0.0.1:7000`.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Literal

import penstock

service = penstock.Service()


@dataclass
class Quote:
    """The price of a symbol on a day."""

    symbol: str
    day: date
    price: Decimal


@service.publisher("quotes/{symbol}")
async def quotes(
    symbol: str, since: date, side: Literal["bid", "ask"] = "bid"
) -> AsyncIterator[Quote]:
    """Three quotes. The return annotation is the type of the elements."""
    price = Decimal("1.08") if side == "bid" else Decimal("1.09")
    for days in range(3):
        yield Quote(symbol, since + timedelta(days), price + days)
