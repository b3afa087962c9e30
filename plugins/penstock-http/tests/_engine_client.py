"""A client of the engine: no connection, the time as a number, and a publisher
that is driven by hand.
"""

from itertools import count
from typing import Any

from penstock_http._engine import Engine, Exchange, Subscribe
from penstock_http._exchanges import Poll
from penstock_http._messages import Request, Response
from penstock_http._settings import Settings

from penstock.api import UNBOUNDED
from penstock.testing import ManualPublisher


def request(path: str, method: str = "PUT", **headers: str) -> Request:
    """Return a request; underscores in the names of headers stand for dashes."""
    path, _, query = path.partition("?")
    named = {name.lower().replace("_", "-"): (value,) for name, value in headers.items()}
    return Request(method=method, path=path, query=query, headers=named)


class Client:
    def __init__(self, **settings: Any) -> None:
        numbers = count()
        self.settings = Settings(**settings)
        self.engine = Engine(self.settings, lambda: f"{next(numbers):022}")
        self.now = 0.0
        self.publisher = ManualPublisher()
        self.released: list[float] = []

    def subscribe(
        self, demand: int | None = None, *, is_polled: bool = True, **headers: str
    ) -> str:
        """Subscribe, and return the path of the subscription. It was polled, unless the test is
        about the time before that.
        """
        query = "" if demand is None else f"?request={demand}"
        asked = self.engine.receive(request(f"/p/numbers{query}", **headers), self.now)
        assert isinstance(asked, Subscribe)
        self.publisher.subscribe(asked.subscription)
        created = self.engine.opened(
            asked, request("/p/numbers", **headers), None, lambda: self.released.append(self.now)
        )
        assert created.status == 201
        if is_polled:
            asked.subscription.note_poll()
        return "/" + dict(created.headers)["Location"].removeprefix("../")

    def send(self, path: str, method: str = "PUT", **headers: str) -> Exchange:
        return self.engine.receive(request(path, method, **headers), self.now)

    def poll(self, path: str, **headers: str) -> Response | Poll:
        """Send a poll. Return its answer, or the poll if that waits."""
        exchange = self.send(path, **headers)
        if isinstance(exchange, Response):
            return exchange
        assert isinstance(exchange, Poll)
        exchange.begin(lambda: None)
        answer = exchange.advance(self.now)
        if answer is None:
            return exchange
        exchange.release(self.now)
        return answer

    def answer(self, path: str, *, lost: bool = False, **headers: str) -> Response:
        """Send a poll that is answered at once, and say what became of the answer."""
        response = self.poll(path, **headers)
        assert isinstance(response, Response)
        if response.outcome is not None:
            (response.outcome.on_lost if lost else response.outcome.on_written)()
        return response

    def emit(self, *elements: bytes) -> None:
        self.publisher.emit(*elements)


def header(response: Response, name: str) -> str | None:
    return dict(response.headers).get(name)


def elements_of(response: Response) -> list[bytes]:
    """Return the elements of an answer in any coding."""
    coding, body = header(response, "Content-Encoding"), response.body
    if response.status != 200:
        return []
    if coding is None:
        return [body]
    if coding == "X-Rsio-FixedSizeElements":
        size = int.from_bytes(body[:4], "big")
        return [body[at : at + size] for at in range(4, len(body), size)]
    elements = []
    while body:
        size = int.from_bytes(body[:4], "big")
        elements.append(body[4 : 4 + size])
        body = body[4 + size :]
    return elements


__all__ = ["UNBOUNDED", "Client", "elements_of", "header", "request"]
