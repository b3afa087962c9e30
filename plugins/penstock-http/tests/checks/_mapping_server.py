"""A small scripted server of the mapping, with a switch for each fault. It uses no code of
penstock-http; h11 reads the requests.
"""

import base64
import gzip
import secrets
from collections.abc import Iterable
from itertools import count
from urllib.parse import parse_qsl
from uuid import uuid4

import attrs
import h11
import trio
from penstock_tck.wire import large_element

from penstock.spi import Connection

MAX = 2**63 - 1
PREFIXED, FIXED = "X-Rsio-LengthPrefixedElements", "X-Rsio-FixedSizeElements"
PUBLISHERS: dict[str, Iterable[bytes]] = {
    "numbers": [b"a number"] * 2000,
    "fixed": [b"a number"] * 2000,
    "three": [b"one", b"two", b"three"],
    "one": [b"one"],
    "empty": [],
    "large": [large_element(number) for number in range(3)],
    "failing": [b"one"],
    "slow": [b"late"],
    "blank": [b""],
    "private": [],
}
CONDITIONS = ("if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range")


class Refused(Exception):
    """A request whose number cannot be read."""


@attrs.define
class Answer:
    status: int
    headers: list[tuple[str, str]] = attrs.field(factory=list)
    body: bytes = b""


@attrs.define(eq=False)
class Stream:
    name: str
    elements: list[bytes]
    ready_at: float = 0.0
    demand: int = 0
    cursor: int = 0
    base: int = 0
    last: int | None = None
    """Where the last answer began, while it may be lost."""
    newest: int = 0
    ended: Answer | None = None
    changed: trio.Event = attrs.field(factory=trio.Event)

    def wake(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


class MappingServer:
    """The streams of one target."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.streams: dict[str, Stream] = {}
        self.numbers = count()
        self.turn = trio.Lock()

    async def serve(self, connection: Connection) -> None:
        """Answer the requests of one connection."""
        last: Stream | None = None
        rest, kept = b"", b""
        while True:
            parser = h11.Connection(h11.SERVER)
            parser.receive_data(rest) if rest else None
            request = await self._next(parser, connection)
            rest = parser.trailing_data[0]
            if request is None:
                # Memory has no reset. The checks close a connection between two requests only to
                # lose an answer.
                self.resend(last)
                return
            headers = {name.decode(): value.decode() for name, value in request.headers}
            path, _, query = request.target.decode().partition("?")
            last = self.streams.get("/".join(path.split("/")[:3]))
            arguments = parse_qsl(query, keep_blank_values=True)
            try:
                if self.fault == "one-request-at-a-time":
                    async with self.turn:
                        answer = await self.answer(
                            request.method.decode(), path, arguments, headers
                        )
                else:
                    answer = await self.answer(request.method.decode(), path, arguments, headers)
            except Refused:
                if last is not None and self.fault != "malformed-goes-on":
                    last.ended = self.error(404)
                answer = self.error(400)
            if answer.status == 0:  # a fault: the connection ends instead of an answer
                return
            data = self.encode(answer, request.method.decode())
            if rest and self.fault == "pipeline-swapped":
                kept = data
                continue
            try:
                await connection.send(data + kept)
                kept = b""
                if self.fault == "honest:closes":
                    await connection.aclose()
                    return
            except trio.BrokenResourceError:
                self.resend(last)
                return

    def resend(self, stream: Stream | None) -> None:
        """Send the elements of the last answer again: it was lost."""
        if stream is not None and stream.last is not None and self.fault != "lost-is-sent":
            if self.fault == "lost-costs-all-but-one":
                del stream.elements[stream.last + 1 : stream.cursor]
            stream.cursor = stream.last
            stream.demand -= self.fault == "lost-costs-demand"
            if self.fault == "lost-is-mixed":
                stream.elements.reverse()

    async def _next(self, parser: h11.Connection, connection: Connection) -> h11.Request | None:
        request = None
        while True:
            event = parser.next_event()
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.EndOfMessage):
                return request
            elif event is h11.NEED_DATA:
                data = await connection.receive()
                if data is None:
                    return None
                parser.receive_data(bytes(data))

    def encode(self, answer: Answer, method: str) -> bytes:
        """Return the bytes of an answer."""
        fault, status, body = self.fault, answer.status, answer.body
        is_batch = any(name == "Content-Encoding" for name, _ in answer.headers)
        headers = [
            ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("Cache-Control", "no-store"),
            *answer.headers,
        ]
        if fault == "no-date" or (fault == "no-date-in-errors" and status >= 400):
            del headers[0]
        if fault == "cacheable":
            headers.remove(("Cache-Control", "no-store"))
        if fault == "validators" or (fault == "validators-at-the-end" and status == 410):
            headers.append(("ETag", '"1"'))
        if fault == "gzip-unasked" and status == 200 and body and not is_batch:
            headers.append(("Content-Encoding", "gzip"))
            body = gzip.compress(body)
        if status == 200 and (fault == "trailers" or (fault == "trailers-of-batches" and is_batch)):
            headers.append(("Transfer-Encoding", "chunked"))
            body = (
                b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            ) + b"0\r\nX-Rsio-Error: true\r\n\r\n"
        elif fault == "two-lengths" or (fault == "two-lengths-of-batches" and is_batch):
            headers += [("Transfer-Encoding", "chunked"), ("Content-Length", str(len(body)))]
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        elif fault == "honest:chunked" and status != 204:
            headers.append(("Transfer-Encoding", "chunked"))
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
        elif status != 204:
            length = len(body) - (fault == "length-short" and status >= 400 and bool(body))
            headers.append(("Content-Length", str(length)))
        elif fault == "nothing-with-body":
            body = b"nothing\n"
        if fault == "honest:closes":
            headers.append(("Connection", "close"))
        if method == "HEAD" and fault != "head-body":
            body = b""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + body

    # --- answers

    def error(self, status: int) -> Answer:
        kind = {"error-html": "text/html", "error-json": "application/json"}.get(
            self.fault, "text/plain"
        )
        if self.fault == "refusal-html" and status == 400:
            kind = "text/html"
        marked = [] if self.fault == "error-unmarked" else [("X-Rsio-Error", "true")]
        text = b"" if self.fault == "error-silent" else b"failed\n"
        if self.fault == "error-traceback" and status == 400:
            text = b"ValueError: invalid literal for int() with base 10: 'x'\n"
        return Answer(status, [*marked, ("Content-Type", kind)], text)

    async def answer(  # noqa: PLR0911 (one for each kind of answer)
        self, method: str, path: str, arguments: list[tuple[str, str]], headers: dict[str, str]
    ) -> Answer:
        if self.fault == "chunked-refused" and "transfer-encoding" in headers:
            return Answer(501)
        if self.fault == "negotiates" and "image" in headers.get("accept", ""):
            return Answer(406)
        is_events = path.endswith("/events")
        if (
            method not in (("GET",) if is_events else ("PUT", "POST"))
            and self.fault != "any-method"
        ):
            return Answer(
                405, [("Allow", "GET" if is_events else "PUT, POST")], b"not this method\n"
            )
        if method == "POST" and self.fault == "post-refused":
            return Answer(500)
        if any(name in headers for name in CONDITIONS) and self.fault != "conditions-ignored":
            if self.fault == "conditions-act" and path.startswith("/s/") and "/" not in path[3:]:
                self.request(self.streams[path], arguments, headers)
            if self.fault == "condition-ends" and path.startswith("/s/"):
                return self.error(412)
            return Answer(412)
        if path.startswith("/p/"):
            return self.subscribe(path, arguments, headers)
        if self.fault == "redirects":
            return Answer(307, [("Location", path)])
        base = "/".join(path.split("/")[:3])
        stream = self.streams.get(base)
        if stream is None:
            return self.unknown()
        return await self.act(stream, path.removeprefix(base), arguments, headers)

    def unknown(self) -> Answer:
        if self.fault == "unknown-unmarked":
            return Answer(404)
        return self.error(500 if self.fault == "unknown-500" else 404)

    def subscribe(
        self, path: str, arguments: list[tuple[str, str]], headers: dict[str, str]
    ) -> Answer:
        name = path.removeprefix("/p/")
        if name not in PUBLISHERS:
            return Answer(404) if self.fault == "missing-unmarked" else self.error(404)
        stream = Stream(name, list(PUBLISHERS[name]))
        stream.ready_at = trio.current_time() + 0.25 if name == "slow" else 0.0
        self.request(stream, arguments, headers)
        stream.demand += self.fault == "initial-demand-one"
        number = next(self.numbers)
        secret = f"{number:022}" if self.fault == "url-counted" else secrets.token_urlsafe(16)
        if self.fault == "honest:uuid":
            secret = str(uuid4())
        url = f"/s/{secret}"
        if self.fault == "url-reused" and any(old.ended for old in self.streams.values()):
            url = next(key for key, old in self.streams.items() if old.ended)
        if self.fault == "url-shared" and name == "numbers":
            url = "/s/shared"
        self.streams[url] = stream
        location = url + ("?request=1" if self.fault == "url-with-request" else "")
        return Answer(
            201,
            [("Location", location)],
            b"created\n" if self.fault == "created-with-body" else b"",
        )

    def request(
        self,
        stream: Stream,
        arguments: list[tuple[str, str]],
        headers: dict[str, str],
        name: str = "request",
    ) -> None:
        values = [value for key, value in arguments if key == name]
        if len(values) > 1 and self.fault != "malformed-taken":
            raise Refused
        demand = self.number(values[0], least=int(name != "request")) if values else 0
        if self.fault == "poll-demand-lost" and stream.base + stream.cursor + stream.newest:
            demand = 0
        if self.fault == "demand-overflows" and stream.demand + demand > MAX:
            raise Refused
        if self.fault == "shared-demand":
            for other in self.streams.values():
                other.demand = min(MAX, other.demand + demand)
                other.wake()
        if self.fault == "demand-replaces" and demand:
            stream.demand = stream.cursor + demand
        elif "x-rsio-requested" in headers and self.fault != "requested-ignored":
            stream.demand = max(stream.demand, int(headers["x-rsio-requested"]))
        else:
            stream.demand = min(MAX, stream.demand + demand)

    def number(self, text: str, *, least: int = 0) -> int:
        if not (text.isascii() and text.isdigit()) or not least <= int(text) <= MAX:
            if self.fault == "malformed-taken":
                return 0
            raise Refused
        return int(text)

    # --- one subscription

    async def act(
        self, stream: Stream, action: str, arguments: list[tuple[str, str]], headers: dict[str, str]
    ) -> Answer:
        if stream.ended is not None and stream.ended.status != 410:
            if self.fault == "lives-after-error" and stream.name == "failing":
                return Answer(204)
            return stream.ended
        if action == "/cancel":
            return self.cancel(stream)
        if action.startswith("/requestMore="):
            return self.request_more(stream, action.partition("=")[2], headers)
        if action == "/events":
            return self.events(stream, headers)
        return await self.poll(stream, arguments, headers)

    def cancel(self, stream: Stream) -> Answer:
        if self.fault != "cancel-ignored":
            stream.ended = self.error(500 if self.fault == "cancelled-500" else 404)
            if self.fault != "cancel-leaves-polls":
                stream.wake()
        return Answer(204 if self.fault == "cancel-204" else 200)

    def request_more(self, stream: Stream, text: str, headers: dict[str, str]) -> Answer:
        demand = (
            0
            if self.fault == "request-more-any" and not text.isdigit()
            else self.number(text, least=self.fault != "request-more-any")
        )
        if self.fault == "request-more-doubles":
            self.request(stream, [("request", str(demand))], {})
        if self.fault != "request-more-lost":
            self.request(stream, [("request", str(demand))], headers)
        return Answer(204 if self.fault == "request-more-204" else 200)

    def events(self, stream: Stream, headers: dict[str, str]) -> Answer:
        first = 1 if self.fault == "events-from-1" else 0
        last = -1 if self.fault == "last-event-ignored" else int(headers.get("last-event-id", -1))
        lines = [
            b"id: %d\ndata: %b\n\n" % (at, base64.b64encode(element))
            for at, element in enumerate(stream.elements, first)
            if at > last
        ]
        end = b"" if self.fault == "events-endless" else b"event: rsio-complete\ndata:\n\n"
        return Answer(200, [("Content-Type", "text/event-stream")], b"".join(lines) + end)

    async def poll(
        self, stream: Stream, arguments: list[tuple[str, str]], headers: dict[str, str]
    ) -> Answer:
        stream.newest += 1
        number = stream.newest
        refused = self.go_to(stream, headers)
        if refused is not None:
            return refused
        self.request(stream, arguments, headers)
        wait = (
            0.0
            if "wait=0" in headers.get("prefer", "") and self.fault != "prefer-ignored"
            else 25.0
        )
        until = trio.current_time() + wait
        if stream.newest == 1 and self.fault == "hangs-up" and stream.name == "slow":
            return Answer(0)
        if stream.newest > 1:
            stream.wake()  # an older poll is answered at once
        while True:
            if self.fault == "polls-same":
                cursor = stream.cursor
            answer = self.ready(stream, number, headers)
            if answer is not None:
                if self.fault == "polls-same" and answer.status == 200:
                    after, stream.cursor = stream.cursor, cursor
                    await trio.sleep(0.001)
                    stream.cursor = max(after, stream.cursor)
                if self.fault == "poll-demand-held" and answer.status == 204:
                    stream.demand -= sum(int(text) for name, text in arguments if name == "request")
                return answer
            if trio.current_time() >= until:
                return Answer(204, self.positions(stream))
            changed = stream.changed
            with trio.move_on_at(
                min(until, stream.ready_at if stream.ready_at > trio.current_time() else until)
            ):
                await changed.wait()

    def go_to(self, stream: Stream, headers: dict[str, str]) -> Answer | None:
        text = headers.get("x-rsio-position")
        if text is None:
            if stream.last is not None:
                stream.base = stream.cursor
            return None
        position = int(text)
        if position > stream.cursor and self.fault != "position-ahead-taken":
            return self.error(400)
        if position < stream.base and self.fault != "position-forgets-nothing":
            return self.error(409)
        if self.fault != "position-ignored":
            stream.base = stream.cursor = min(position, stream.cursor)
        else:
            stream.base = position
        return None

    def positions(self, stream: Stream) -> list[tuple[str, str]]:
        return [("X-Rsio-Position", str(stream.cursor + (self.fault == "position-from-1")))]

    def ready(self, stream: Stream, number: int, headers: dict[str, str]) -> Answer | None:
        """Return the answer to a poll, or None if it has to wait."""
        if stream.ended is not None and stream.ended.status != 410:
            return stream.ended
        if stream.newest != number and self.fault != "polls-share":
            return Answer(204, self.positions(stream))
        rest = len(stream.elements) - stream.cursor
        is_there = rest > 0 and trio.current_time() >= stream.ready_at
        if is_there and (
            stream.cursor < stream.demand or (self.fault == "demand-ignored" and stream.demand)
        ):
            return self.elements(stream, headers)
        if self.fault == "twice" and stream.name == "slow" and not rest:
            return Answer(200, self.positions(stream), b"late")
        # The first poll of an empty stream finds the end, also without demand.
        if not rest and not (self.fault == "end-needs-demand" and not stream.demand):
            return self.end(stream)
        return None if stream.cursor < stream.demand else self.nothing(stream)

    def nothing(self, stream: Stream) -> Answer:
        if self.fault == "nothing-is-200":
            return Answer(200, self.positions(stream))
        return Answer(204, self.positions(stream))

    def end(self, stream: Stream) -> Answer:
        if self.fault == "completion-restarts" and stream.ended is not None:
            stream.cursor, stream.ended, stream.demand = 0, None, 1
            return Answer(204)
        if stream.name == "private" and stream.ended is None:
            stream.ended = self.error(500)
            if self.fault == "error-leaks":
                stream.ended.body = b"tck-private\n"
            return stream.ended
        if stream.name == "failing":
            stream.ended = self.error(500)
            return Answer(410) if self.fault == "failure-completes" else stream.ended
        if self.fault == "completion-forgotten" and stream.ended is not None:
            return self.error(404)
        stream.ended = Answer(
            204 if self.fault == "completion-204" else 410, self.positions(stream)
        )
        if self.fault == "completion-fails":
            return self.error(500)
        return stream.ended

    def elements(self, stream: Stream, headers: dict[str, str]) -> Answer:
        accepted = headers.get("accept-encoding", PREFIXED).lower()
        batches = (
            PREFIXED.lower() in accepted or FIXED.lower() in accepted
        ) and "q=0" not in accepted
        batches = batches or (self.fault == "batches-unasked" and "x-rsio-position" not in headers)
        most = stream.demand - stream.cursor if self.fault != "demand-ignored" else 1
        if headers.get("x-rsio-delivery") == "stream" and self.fault == "streamed-too-long":
            most += 1
        elements = stream.elements[stream.cursor : stream.cursor + (most if batches else 1)]
        if self.fault == "batch-reversed":
            elements.reverse()
        if self.fault == "range-of-batches" and "range" in headers and len(elements) > 1:
            elements = [element[:1] for element in elements]
        stream.last = stream.cursor
        answer = Answer(200, self.positions(stream))
        stream.cursor += len(elements)
        if self.fault == "element-typed":
            answer.headers.append(("Content-Type", "application/json"))
        if self.fault == "element-cut" and len(elements) == 1:
            elements = [elements[0][:0]]
        if "range" in headers and self.fault == "range-taken":
            elements = [elements[0][:1]]
        if elements == [b""] and self.fault == "empty-is-204":
            return Answer(204, self.positions(stream))
        if len(elements) == 1:
            answer.body = elements[0]
        else:
            self.batch(answer, elements, accepted)
        return answer

    def batch(self, answer: Answer, elements: list[bytes], accepted: str) -> None:
        order = "little" if self.fault == "little-endian" else "big"
        if FIXED.lower() in accepted and PREFIXED.lower() not in accepted:
            is_one_size = len({len(element) for element in elements}) == 1
            if is_one_size or self.fault == "fixed-size-pads":
                size = max(map(len, elements)) + (self.fault == "fixed-size-wrong")
                answer.headers.append(("Content-Encoding", FIXED))
                padded = (element.ljust(size) for element in elements)
                answer.body = size.to_bytes(4, order) + b"".join(
                    elements if self.fault == "fixed-size-wrong" else padded
                )
                return
        if self.fault == "batch-typed":
            answer.headers.append(("Content-Type", "application/json"))
        answer.headers.append(("Content-Encoding", PREFIXED))
        if self.fault == "batch-one-more":
            elements = [*elements, elements[0]]
        answer.body = b"".join(len(element).to_bytes(4, order) + element for element in elements)
        if self.fault == "batch-cut":
            answer.body = answer.body[:-1]
