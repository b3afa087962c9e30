"""The streams behind ``http://`` and ``https://`` URLs, for `subscribe` and `remote`.

Rules of this file:

* Each request says which elements are there and how many were requested in all, so repeating it
  loses nothing and repeats nothing.
* A server that knows the draft alone sends no positions. Then an answer counts when it has come to
  its end, and elements beyond the demand of a request that was repeated are kept until they are
  requested here.
* A server that sends more elements than all requests together have asked for breaks rule 1.1, and
  ends the stream. A server that answers at once, again and again, without an element is asked after
  a pause, and `MAX_EMPTY` times at most.
* A server that cannot be reached is reported at once. Requests are repeated when a subscription may
  be lost by that.
* While nothing is requested, a poll without demand asks whether the stream has ended: at its
  beginning, and so often that the server does not forget the subscription.
* Credentials go to the origin of the URL alone. A redirect to another one loses them.
* A stream that ends early is cancelled at the server, within `TransportOptions.close_timeout`.
"""

import base64
import re
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import ClassVar, Final
from urllib.parse import SplitResult, urljoin, urlsplit

import trio

from penstock.api import (
    UNBOUNDED,
    AuthRefused,
    ConnectionLost,
    Credentials,
    LimitExceeded,
    PenstockError,
    ProtocolError,
    PublisherFailed,
    Rejected,
    UsageError,
    printable,
)
from penstock.spi import ElementSink, SourceOptions, UrlSource
from penstock_http._batches import LengthPrefixedReader, check_size, read_fixed_size
from penstock_http._client_connection import (
    RETRIED,
    Answer,
    ClientConnection,
    Open,
    ProxyBusy,
    open_connection,
)
from penstock_http._client_proxy import proxy_for
from penstock_http._late import WHY_NO_CONNECTION, LateSource
from penstock_http._messages import (
    DELIVERY,
    FIXED_SIZE,
    LENGTH_PREFIXED,
    POSITION,
    REQUESTED,
    TRACE,
)
from penstock_http._settings import IDLE, settings_of

PAUSES: Final = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds before each attempt to repeat a request. Together they are well below the 60 s after
which a server forgets a subscription.
"""

MAX_REDIRECTS: Final = 5
MAX_PAUSE: Final = 300.0
"""Seconds that a Retry-After is obeyed for, at most."""

MAX_EMPTY: Final = 20
"""Batches without an element in a row that come at once: a server without one answers 204, or
later."""

MAX_TEXT: Final = 64 << 10
_URL: Final = re.compile(r"[!-~]+", re.ASCII)
EMPTY_PAUSE: Final = 0.5
"""Seconds between two polls of a server that does not hold them."""


class HttpSource(UrlSource):
    """Reads streams over HTTP."""

    schemes: ClassVar[tuple[str, ...]] = LateSource.schemes
    why_no_connection: ClassVar[str] = WHY_NO_CONNECTION

    def __init__(self, open_at: Open = open_connection) -> None:
        self._open = open_at

    def check(self, url: str, options: SourceOptions) -> None:
        try:
            parts = _parts_of(url)
        except ValueError as error:
            raise UsageError(f"the URL is none of HTTP: {error}") from None
        if parts.username is not None:
            # The message does not repeat the text:
            # it may contain a password, and messages are logged.
            raise UsageError(
                "a URL must not hold a user or a password (the part before '@'): URLs are logged; "
                "pass them as credentials"
            )
        if not parts.hostname or parts.path in ("", "/") or parts.fragment:
            raise UsageError(
                f"{url!r} names no publisher; write its URL, for example "
                "http://127.0.0.1:7002/p/ticks/EURUSD"
            )
        if any(part.partition("=")[0] == "request" for part in parts.query.split("&")):
            raise UsageError(
                f"{url!r} has the argument 'request', which is the demand; leave it out"
            )
        authorization_of(options.credentials)
        settings_of(options.transport)  # raises for a wrong option
        proxy_for(parts, options.transport)

    async def read(self, url: str, sink: ElementSink, options: SourceOptions) -> None:
        async with trio.open_nursery() as nursery:
            reading = _Reading(url, sink, options, self._open, nursery)
            error: PenstockError | None = None
            try:
                await reading.run()
            # Taken out of the nursery, which would wrap it in a group.
            except PenstockError as raised:
                error = raised
            finally:
                await reading.leave()
            nursery.cancel_scope.cancel()
        if error is not None:
            raise error


def authorization_of(credentials: Credentials | None) -> list[tuple[str, str]]:
    """Return the header for `credentials`.
    Raises UsageError for a scheme that HTTP does not have.
    """
    if credentials is None:
        return []
    if credentials.scheme == "bearer":
        return [("Authorization", f"Bearer {credentials.data.decode('latin-1')}")]
    if credentials.scheme == "basic":
        return [("Authorization", f"Basic {base64.b64encode(credentials.data).decode()}")]
    raise UsageError(
        f"credentials of the scheme {credentials.scheme!r}; over HTTP give Credentials.bearer(…) "
        "or Credentials.basic(…)"
    )


class _Reading:
    """One subscription."""

    def __init__(
        self,
        url: str,
        sink: ElementSink,
        options: SourceOptions,
        open_at: Open,
        nursery: trio.Nursery,
    ) -> None:
        self._sink = sink
        self._options = options
        self._open = open_at
        self._nursery = nursery
        self._publisher = url
        self._given_origin = _origin_of(urlsplit(url))
        """The origin of the URL: credentials go there alone."""
        self._authorization = authorization_of(options.credentials)
        self._stream: str | None = None
        """The URL of the subscription, while the server may have it."""
        self._connection: ClientConnection | None = None
        self._origin = ""  # of the connection
        self._position = 0  # elements that have come in all
        self._requested = 0  # the demand that the server was told of, in all
        self._idle = IDLE
        self._look_at = 0.0
        """When to ask whether the stream has ended, if nothing is requested until then."""
        self._broken = 0  # answers in a row that broke before their first new element
        self._granted = 0  # the demand of all requests that were sent, repeated ones counted again
        self._empty = 0  # batches in a row that came at once and had no element
        self._surplus: list[bytes] = []  # bounded by `_granted`, and by `Limits.unread_bytes`

    async def run(self) -> None:
        """Subscribe, and deliver elements until the stream has completed."""
        await self._subscribe()
        while self._sink.demand or await self._wait_demand():
            await self._sink.wait_demand()
            if self._surplus:
                demand = self._sink.demand
                part, self._surplus = self._surplus[:demand], self._surplus[demand:]
                self._sink.put(part)
            elif not await self._poll():
                break
        self._stream = None

    async def _wait_demand(self) -> bool:
        """Return True when elements are requested, and False if the stream has completed. Called
        without demand.
        """
        while True:
            with trio.move_on_at(self._look_at):
                await self._sink.wait_demand()
                return True
            if not await self._poll():
                return False

    async def leave(self) -> None:
        """Cancel the subscription if the server may still have it, and close."""
        options = self._options.transport
        with trio.move_on_after(options.close_timeout, shield=True):
            if self._stream is not None:
                stream, self._stream = self._stream, None
                try:
                    # An answer that is under way occupies the connection.
                    await self._drop()
                    await self._ask(f"{stream}/cancel", [])
                except PenstockError:
                    pass  # a best effort: without it the server forgets the subscription by itself
        with trio.move_on_after(options.close_timeout, shield=True):
            await self._drop()

    # --- requests

    async def _subscribe(self) -> None:
        url, redirects = self._publisher, 0
        trace = self._options.traceparent

        def headers(demand: int) -> list[tuple[str, str]]:
            return [(REQUESTED, str(demand)), *([(TRACE, trace)] if trace else [])]

        while True:
            demand = self._demand()
            separator = "&" if urlsplit(url).query else "?"
            answer = await self._repeat(
                f"{url}{separator}request={demand}", headers(demand), demand
            )
            if answer.status == 201 and "location" in answer.headers:
                self._stream = _followed(url, answer)
                self._requested = demand
                self._idle = _idle(answer.headers.get("x-rsio-idle-timeout"))
                await self._skip()
                return
            if 200 <= answer.status < 300:
                raise Rejected(
                    f"{self._publisher} answered a subscribe with HTTP {answer.status}, and "
                    "without the Location of a subscription: it is no publisher over HTTP. Look at "
                    "the URL"
                )
            if answer.status not in {301, 302, 303, 307, 308} or "location" not in answer.headers:
                raise await self._refusal(answer)
            redirects += 1
            if redirects > MAX_REDIRECTS:
                raise ConnectionLost(
                    f"{self._publisher} was redirected more than {MAX_REDIRECTS} times"
                )
            before, url = url, _followed(url, answer)
            if _origin_of(urlsplit(url)) != _origin_of(urlsplit(before)):
                # The credentials were given for the origin of the URL,
                # and a server must not send them elsewhere.
                self._authorization = []
            await self._drop()

    async def _poll(self) -> bool:
        """Send one poll and deliver its elements. Return False if the stream has completed."""
        in_all = min(UNBOUNDED, self._position + self._demand())
        more = max(0, in_all - self._requested)
        headers = [
            (POSITION, str(self._position)),
            (REQUESTED, str(in_all)),
            (DELIVERY, "stream"),
            ("Accept-Encoding", f"{LENGTH_PREFIXED}, {FIXED_SIZE}"),
        ]
        stream, began = self._stream or "", trio.current_time()
        answer = await self._repeat(f"{stream}?request={more}", headers, more)
        self._requested = max(self._requested, in_all)
        self._look_at = trio.current_time() + self._idle / 2
        if answer.status == 200:
            before = self._position
            is_whole = await self._read_elements(answer)
            is_quick = trio.current_time() - began < EMPTY_PAUSE
            if is_whole and is_quick and before == self._position < in_all:
                await self._pause_after_empty()
            else:
                self._empty = 0
        elif answer.status == 204:
            await self._skip()
            if in_all <= self._position:
                return True  # it was not asked for elements
            pause = _seconds(answer.headers.get("retry-after"))
            if not pause and trio.current_time() - began < EMPTY_PAUSE:
                pause = EMPTY_PAUSE
            await trio.sleep(pause)
        elif answer.status == 410 and "x-rsio-error" not in answer.headers:
            await self._skip()
            return False
        else:
            if "x-rsio-error" in answer.headers:
                self._stream = None  # the server has ended it already
            raise await self._refusal(answer)
        return True

    def _demand(self) -> int:
        return min(UNBOUNDED, self._sink.demand)

    async def _repeat(self, url: str, headers: list[tuple[str, str]], demand: int) -> Answer:
        """Send a request for `demand` elements until it is answered;
        give up after as many attempts as there are `PAUSES`.
        """
        for pause in (*PAUSES, None):
            # Counted for each attempt: the server may have got those whose answers were lost.
            self._granted += demand
            try:
                answer = await self._ask(url, headers)
            except ConnectionLost as lost:
                is_unreached = self._connection is None and not isinstance(lost, ProxyBusy)
                if is_unreached and self._stream is None:
                    raise  # no subscription exists that could be lost
                await self._drop()
                if pause is None:
                    raise
                await trio.sleep(pause)
                continue
            if pause is None or answer.status not in RETRIED or "x-rsio-error" in answer.headers:
                return answer
            await self._drop()
            await trio.sleep(max(pause, _seconds(answer.headers.get("retry-after"))))
        raise AssertionError("the last pause returns or raises")

    async def _ask(self, url: str, headers: list[tuple[str, str]]) -> Answer:
        parts = urlsplit(url)
        authority = parts.netloc.rpartition("@")[2]  # as `_authority_of`, without its call
        origin = f"{parts.scheme}://{authority}"
        if self._connection is not None and not (
            self._connection.is_ready and self._origin == origin
        ):
            await self._drop()
        proxy = proxy_for(parts, self._options.transport)
        connection, limit = self._connection, self._options.limits.handshake_timeout
        if connection is None:
            try:
                with trio.fail_after(limit):
                    below = await self._open(parts, proxy, self._options.transport, self._nursery)
            except trio.TooSlowError:
                raise ConnectionLost(
                    f"{proxy.name if proxy else origin} did not answer within {limit} s"
                ) from None
            connection = self._connection = ClientConnection(below, authority)
            self._origin = origin
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        if origin == self._given_origin:
            headers = [*headers, *self._authorization]
        if proxy is not None and parts.scheme == "http":
            target, headers = origin + target, [*headers, *proxy.headers]
        if self._stream is not None:
            return await connection.ask(target, headers)
        # A subscribe waits for no element, so its answer comes as soon as that to a hello does.
        try:
            with trio.fail_after(limit):
                return await connection.ask(target, headers)
        except trio.TooSlowError:
            await self._drop()
            raise ConnectionLost(
                f"{origin} was reached, and did not answer the subscribe within {limit} s "
                "(Limits.handshake_timeout)"
            ) from None

    # --- answers

    async def _read_elements(self, answer: Answer) -> bool:
        """Deliver the elements of an answer; return False if it was cut."""
        connection = self._connection
        coding = answer.headers.get("content-encoding", "identity").lower()
        most = self._options.limits.max_element
        position = answer.headers.get(POSITION.lower())
        try:
            at = self._position if position is None else int(position)
        except ValueError:
            raise ProtocolError(
                f"the server has sent the position {printable(position or '')!r}"
            ) from None
        if connection is None:
            return False
        before = self._position
        # A batch that is cut is asked for again, from the first element that is missing.
        try:
            if coding == "identity":
                body = await connection.whole_body(most)
                check_size(len(body), most)
                self._take([body], at)
            elif coding == FIXED_SIZE.lower():
                body = await connection.whole_body(most + MAX_TEXT)
                most_elements = self._granted - self._position + max(0, self._position - at)
                self._take(read_fixed_size(body, most, most_elements), at)
            elif coding == LENGTH_PREFIXED.lower():
                await self._read_batch(connection, at, is_final=position is None)
            else:
                raise ProtocolError(
                    f"the server has sent the coding {printable(coding)!r}, which was not accepted"
                )
            self._broken = 0
        except ConnectionLost as lost:
            await self._drop()
            await self._pause_after_break(lost, has_progress=self._position > before)
            return False
        return True

    async def _pause_after_empty(self) -> None:
        """Wait before the next poll of a server that answers at once with no element."""
        self._empty += 1
        if self._empty > MAX_EMPTY:
            raise ProtocolError(
                f"the server has answered {self._empty} polls in a row at once, each with a batch "
                "without an element. A server that has none waits, or answers 204. The author of "
                "the server must act",
                reason="protocol:http",
            )
        # A stream that ends while a poll waits may answer one of them so.
        if self._empty > 1:
            await trio.sleep(EMPTY_PAUSE)

    async def _pause_after_break(self, lost: ConnectionLost, *, has_progress: bool) -> None:
        """Wait before the next poll, if an answer broke before its first new element. Raises
        ConnectionLost, as `_repeat` does.
        """
        if has_progress:
            self._broken = 0
            return
        if self._broken == len(PAUSES):
            raise ConnectionLost(
                f"the answers of {self._origin} break before their first element: {lost}"
            ) from lost
        # Without the pause a proxy that cuts each answer would be asked as fast as it can cut.
        await trio.sleep(PAUSES[self._broken])
        self._broken += 1

    async def _read_batch(self, connection: ClientConnection, at: int, *, is_final: bool) -> None:
        """Deliver each element of a batch at once; without a position, when it is complete."""
        reader, whole = LengthPrefixedReader(self._options.limits.max_element), list[bytes]()
        size = 0  # of `whole`
        parts = connection.body()
        try:
            async for part in parts:
                elements = reader.receive(part)
                if is_final:
                    whole += elements
                    size += sum(map(len, elements))
                    if len(whole) > self._granted - self._position:
                        raise self._unrequested(self._position + len(whole))
                    self._check_held(size)
                else:
                    self._take(elements, at)
                    at += len(elements)
        finally:
            await parts.aclose()  # type: ignore[attr-defined]  # an async generator
        reader.end()
        if is_final:
            self._take(whole, at)

    def _take(self, elements: Sequence[bytes], at: int) -> None:
        """Deliver elements whose first one has the position `at`, without those
        that have come before.
        """
        if at > self._position:
            raise ProtocolError(f"the server has left out elements: {at} follows {self._position}")
        new = elements[self._position - at :]
        allowed = self._granted - self._position
        room = min(self._sink.demand, allowed)
        self._position += len(new)
        self._sink.put(new[:room])
        if len(new) > allowed:
            raise self._unrequested(self._position)
        if len(new) > room:
            self._surplus += new[room:]
            self._check_held(sum(map(len, self._surplus)))

    def _unrequested(self, elements: int) -> ProtocolError:
        return ProtocolError(
            f"the server has sent {elements:,} elements, and {self._granted:,} were requested "
            "(rule 1.1). The author of the server must act",
            reason="protocol:demand",
        )

    def _check_held(self, size: int) -> None:
        """Raise LimitExceeded for more bytes than a stream may hold before they are read."""
        most = self._options.limits.unread_bytes
        if size > most:
            raise LimitExceeded(
                f"the server has sent {size:,} bytes of elements that cannot be delivered yet; "
                f"{most:,} are allowed (Limits.unread_bytes). Request fewer at a time",
                limit="unread_bytes",
                value=most,
            )

    async def _refusal(self, answer: Answer) -> PenstockError:
        """Return the error that an answer stands for."""
        text = ""
        if self._connection is not None:
            text = printable(
                (await self._connection.whole_body(MAX_TEXT)).decode(errors="replace").strip()
            )
        what = f"{text or 'the server gave no reason'} (HTTP {answer.status})"
        if answer.status == 404 and "/p/" not in urlsplit(self._publisher).path:
            what += "; a publisher of penstock's server is at the path /p/NAME"
        if answer.status in {401, 407}:  # of the server, or of a proxy
            return AuthRefused(what, processed=False)
        if "x-rsio-error" in answer.headers and answer.status not in {403, 404, 409, 429}:
            return PublisherFailed(text or f"HTTP {answer.status}")
        return Rejected(what, temporary=answer.status in RETRIED)

    async def _skip(self) -> None:
        if self._connection is not None:
            await self._connection.whole_body(MAX_TEXT)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.abort()


def _parts_of(url: str) -> SplitResult:
    """Return the parts of a URL of HTTP. Raises ValueError for any other text."""
    if not _URL.fullmatch(url):
        raise ValueError("give visible ASCII characters, and others percent-encoded")
    parts = urlsplit(url)
    if parts.scheme not in HttpSource.schemes or not parts.hostname or parts.port == 0:
        raise ValueError("it has no host, or a wrong port")
    return parts


def _followed(url: str, answer: Answer) -> str:
    """Return the URL that the Location of an answer leads to.
    Raises ProtocolError if it is not a URL of HTTP.
    """
    location = answer.headers["location"]
    try:
        found = urljoin(url, location)
        _parts_of(found)
    except ValueError:
        raise ProtocolError(
            f"the server has sent the URL {printable(location)!r}, which is none of HTTP"
        ) from None
    return found


def _authority_of(parts: SplitResult) -> str:
    """Return the host and the port, as the URL writes them:
    a user that a redirect names is left out.
    """
    return parts.netloc.rpartition("@")[2]


def _origin_of(parts: SplitResult) -> str:
    return f"{parts.scheme}://{_authority_of(parts)}"


def _idle(text: str | None) -> float:
    """Return the seconds after which the server forgets a subscription, by its answer."""
    try:
        seconds = float(text or "")
    except ValueError:
        return IDLE
    # Not less than a second: a server must not make this side poll all the time.
    return min(MAX_PAUSE, max(1.0, seconds)) if seconds > 0 else IDLE


def _seconds(text: str | None) -> float:
    """Return a Retry-After in seconds;
    0 for none, for a date that has passed, and for a text that is neither.
    """
    if text is None:
        return 0.0
    try:
        # A date of HTTP is one of the clock on the wall.
        seconds = (
            float(text)
            if text.isdecimal()
            else parsedate_to_datetime(text).timestamp() - time.time()
        )
    except ValueError:
        return 0.0
    return min(MAX_PAUSE, max(0.0, seconds))
