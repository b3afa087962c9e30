"""A client of the mapping for the checks: it subscribes, polls and counts, and fails the check at
an answer that is not expected.

Rules of this file:

* A poll without demand is answered at once, or held.
  So "no element" is a 204, or no answer within `Target.quiet`.
* A name of a publisher is served at ``/p/NAME``. A name that begins with a slash is a path.
"""

from typing import Final
from urllib.parse import quote, urljoin, urlsplit

import trio
from penstock_tck.wire import CheckContext, NotSupported, fail, verify

from penstock_http.checks._http_peer import Answer, HttpPeer

DRAFT: Final = "RS.io over HTTP draft"
LENGTH_PREFIXED: Final = "X-Rsio-LengthPrefixedElements"
FIXED_SIZE: Final = "X-Rsio-FixedSizeElements"
CODINGS: Final = (LENGTH_PREFIXED.lower(), FIXED_SIZE.lower())
SINGLE: Final = ("Accept-Encoding", "identity")
BATCH: Final = ("Accept-Encoding", LENGTH_PREFIXED)

Header = tuple[str, str]


class MappingClient:
    """Sends requests to the target, on one connection if the target keeps it open."""

    def __init__(self, context: CheckContext) -> None:
        self._context = context
        self._base = str(context.url.address)
        self._peer: HttpPeer | None = None
        self.target = context.target

    async def ask(
        self, path: str, *headers: Header, method: str = "PUT", chunked: bool = False
    ) -> Answer:
        """Send a request, and return its complete answer."""
        peer = await self.begin(path, *headers, method=method, chunked=chunked)
        return await peer.finish()

    async def begin(
        self, path: str, *headers: Header, method: str = "PUT", chunked: bool = False
    ) -> HttpPeer:
        """Send a request, and return the connection on which its answer comes."""
        peer = await self.connected()
        await peer.begin(method, path, headers, chunked=chunked)
        return peer

    async def connected(self) -> HttpPeer:
        """Return a connection on which the next request can be sent."""
        peer = self._peer
        if peer is None or not peer.is_ready:
            peer = self._peer = HttpPeer(
                await self._context.connect(),
                self.target,
                urlsplit(self._base).netloc or "localhost",
            )
        return peer

    async def abort(self) -> None:
        """Break the connection, over what it has not read."""
        peer, self._peer = self._peer, None
        if peer is not None:
            await peer.connection.abort()

    def publisher(self, name: str) -> str:
        """Return the path of a publisher."""
        return name if name.startswith("/") else f"/p/{quote(name, safe='/?=&')}"

    def missing(self) -> str:
        """Return a path beside that of the publishers, where none is."""
        return urljoin(self.publisher(self.target.publisher or "x"), quote(self.target.missing))

    async def subscribe(
        self, name: str, demand: int | None = None, *headers: Header
    ) -> "MappedStream":
        """Subscribe to a publisher. Fails the check if that is refused."""
        path = with_argument(self.publisher(name), "request", demand)
        answer = await self.ask(path, *headers)
        verify(answer.status == 201, f"{answer}; 201 was due")
        return MappedStream(self, self.location(answer, path))

    def location(self, answer: Answer, path: str) -> str:
        """Return the path of the subscription that an answer names."""
        location = answer.header("location")
        verify(location, f"{answer}, and has no Location")
        found = urlsplit(urljoin(f"http://target{path}", location or ""))
        if found.netloc not in ("target", urlsplit(self._base).netloc):
            raise NotSupported(f"the subscription is at another host: {location}")
        return found.path + (f"?{found.query}" if found.query else "")


class MappedStream:
    """A subscription, as the checking side sees it."""

    def __init__(self, client: MappingClient, path: str) -> None:
        self.client = client
        self.path = path

    def at(self, suffix: str) -> str:
        """Return the path of the subscription with `suffix` before its query."""
        path, mark, query = self.path.partition("?")
        return f"{path}{suffix}{mark}{query}"

    async def poll(self, demand: int | None = None, *headers: Header) -> Answer:
        """Send one poll."""
        return await self.client.ask(with_argument(self.path, "request", demand), *headers)

    async def take(self, count: int, *headers: Header, demand: int | None = None) -> list[bytes]:
        """Poll until `count` elements have come, and return them.
        The first poll requests `demand`.
        """
        elements: list[bytes] = []
        until = self._deadline()
        while len(elements) < count:
            answer = await self._poll_until(until, f"element {len(elements) + 1}", demand, *headers)
            verify(
                answer.status in (200, 204), f"{answer}, after {len(elements)} of {count} elements"
            )
            elements += elements_of(answer)
            demand = None
        verify(
            len(elements) <= count, f"{len(elements)} elements came, where {count} were requested"
        )
        return elements

    async def take_batch(self, coding: str) -> tuple[list[bytes], Answer]:
        """Poll until a batch with `coding` comes. Not supported if the target sends none."""
        await self.let_elements_come()
        until = self._deadline()
        for _ in range(5):
            answer = await self._poll_until(until, "a batch", None, ("Accept-Encoding", coding))
            verify(answer.status in (200, 204), f"{answer}; elements were due")
            if (answer.header("content-encoding") or "").lower() == coding.lower():
                return elements_of(answer), answer
        raise NotSupported(f"the target answers with single elements, and never with {coding}")

    async def first(self, *headers: Header) -> Answer:
        """Poll until an answer with elements comes, and return it."""
        until = self._deadline()
        while True:
            answer = await self._poll_until(until, "an element", None, *headers)
            verify(answer.status in (200, 204), f"{answer}; an element was due")
            if answer.status == 200:
                return answer

    async def let_elements_come(self) -> None:
        """Give the publisher time for elements that were requested, so
        that the next poll finds several.
        """
        await trio.sleep(self.client.target.quiet)

    async def expect_nothing(self, why: str) -> None:
        """Fail if an element comes, or an error."""
        answer: Answer | None = None
        with trio.move_on_after(self.client.target.quiet):
            answer = await self.poll()
        if answer is None:
            await self.client.abort()
        else:
            verify(answer.status in (204, 410), f"{answer}, and {why}")

    async def expect_exactly(self, count: int) -> list[bytes]:
        """Take `count` elements, and fail if more come."""
        elements = await self.take(count)
        await self.expect_nothing(f"{count} elements were requested, and have come")
        return elements

    async def end(self) -> tuple[list[bytes], Answer]:
        """Poll until the stream ends. Return its elements and the answer that ends it."""
        elements: list[bytes] = []
        until = self._deadline()
        while True:
            answer = await self._poll_until(until, "the end of the stream", None)
            if answer.status >= 300:
                return elements, answer
            elements += elements_of(answer)

    async def cancel(self) -> Answer:
        """Cancel the subscription."""
        return await self.client.ask(self.at("/cancel"))

    async def request_more(self, demand: int) -> Answer:
        """Send demand alone."""
        return await self.client.ask(self.at(f"/requestMore={demand}"))

    def _deadline(self) -> float:
        return trio.current_time() + self.client.target.patience

    async def _poll_until(
        self, deadline: float, what: str, demand: int | None, *headers: Header
    ) -> Answer:
        """Send a poll; after a 204 wait before the next one.
        Fails the check behind the deadline.
        """
        if trio.current_time() >= deadline:
            fail(f"{what} did not come within {self.client.target.patience} s")
        answer = await self.poll(demand, *headers)
        if answer.status == 204:
            await trio.sleep(self.client.target.quiet / 5)
        return answer


def with_argument(path: str, name: str, value: int | None) -> str:
    """Return `path` with an argument in its query; unchanged if the value is None."""
    if value is None:
        return path
    return f"{path}{'&' if '?' in path else '?'}{name}={value}"


def elements_of(answer: Answer) -> list[bytes]:
    """Return the elements of an answer: none of a 204.
    Fails the check if the body is not a whole number of them.
    """
    if answer.status != 200:
        return []
    coding, body = (answer.header("content-encoding") or "identity").lower(), bytes(answer.body)
    if coding == "identity":
        return [body]
    verify(coding in CODINGS, f"{answer}, in the coding {coding!r}, which was not asked for")
    if coding == FIXED_SIZE.lower():
        size = int.from_bytes(body[:4])
        verify(
            len(body) >= 4 and size > 0 and (len(body) - 4) % size == 0,
            f"a batch of {len(body)} bytes has elements of {size} bytes",
        )
        return [body[at : at + size] for at in range(4, len(body), size)]
    elements = []
    while body:
        size = int.from_bytes(body[:4])
        verify(
            len(body) >= 4 + size, f"an element of {size} bytes goes beyond the end of its batch"
        )
        elements.append(body[4 : 4 + size])
        body = body[4 + size :]
    return elements
