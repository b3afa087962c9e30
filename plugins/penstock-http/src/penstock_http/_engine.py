"""The mapping of RS.io to HTTP without I/O: a request goes in;
an answer, or something that waits for one, comes out.

Rules of this file:

* It reads no clock and draws no random numbers:
  the time is passed in, and so is the function that makes secrets.
* A request that is refused changes nothing, unless its answer says that the stream has ended.
* The URL of a subscription is a secret: 192 random bits. A request with other credentials than
  those of the subscribe does not find it.
* A subscription that has ended answers in the same way for `Settings.idle` seconds:
  an answer may have been lost.
"""

import re
from collections.abc import Callable
from typing import Final
from urllib.parse import unquote, urlencode

import attrs

from penstock.api import AuthRefused, LimitExceeded, NotAvailable, PenstockError, Rejected
from penstock_http._conditions import demand_of, header_number, is_conditional, number
from penstock_http._credentials import NONE, credentials_of
from penstock_http._exchanges import Events, Poll, Pushes, StreamedBatch
from penstock_http._messages import (
    DELIVERY,
    ERROR,
    NO_STORE,
    POSITION,
    REQUESTED,
    Malformed,
    Request,
    Response,
    answer,
    refusal,
)
from penstock_http._settings import Settings
from penstock_http._subscription import COMPLETED, ClientSubscription, Ended, Unfit

MAX_TOMBSTONES: Final = 10_000
"""Ended subscriptions that are remembered, about.
The others are bounded by the places of the server.
"""

AT_ONCE: Final = 100
"""Subscriptions that are forgotten in one pass of the run loop. 10,000 that were forgotten in one,
each with a publisher that waited, held it up for 221 ms.
"""

METHODS: Final = ("PUT", "POST")
SECRET_OF_PATH: Final = re.compile(r"/s/([A-Za-z0-9_-]+)(?:/|$)", re.ASCII)
"""Finds the secret in the path of a subscription."""

_SUBSCRIPTION: Final = re.compile(
    r"/s/([A-Za-z0-9_-]{22,64})(/element/[0-9]{1,19}|/[^/]*)?", re.ASCII
)
REQUEST_MORE: Final = "/requestMore="
ELEMENT: Final = "/element/"
REALM: Final = "penstock"
"""The names and passwords of a server are one realm. Basic must name it (RFC 7617, 2)."""
_UNKNOWN: Final = "no such subscription"


@attrs.frozen
class Subscribe:
    """A request for a new subscription: the server looks up the name, and then calls
    `Engine.opened` or `Engine.refused`.
    """

    name: str
    subscription: ClientSubscription
    path: str


@attrs.define
class _Entry:
    """A subscription, and the credentials with which it was made."""

    subscription: ClientSubscription
    credentials: tuple[str, bytes]
    """Those of the request that made it."""
    principal: object
    shown: object
    """The principal that the transport knew, before any examination; mostly None."""
    release: Callable[[], None]
    """Frees the place of the subscription. It may be called again."""


Waiting = Poll | Pushes | StreamedBatch | Events
Exchange = Response | Subscribe | Waiting


class Engine:
    """The subscriptions of one listener, and the answers to requests."""

    def __init__(self, settings: Settings, make_secret: Callable[[], str]) -> None:
        self._settings = settings
        self._make_secret = make_secret
        self._entries: dict[str, _Entry] = {}
        # Whether the transport has told a principal: most do not, and their polls are not asked.
        self._knows_users = False

    def __len__(self) -> int:
        return len(self._entries)

    def receive(self, request: Request, now: float) -> Exchange:
        """Return what a request leads to."""
        try:
            return self._receive(request, now)
        except Malformed as error:
            return refusal(400, str(error))

    def opened(
        self,
        subscribe: Subscribe,
        request: Request,
        principal: object,
        release: Callable[[], None],
        *,
        shown: object = None,
    ) -> Response:
        """Return the answer to a subscribe that has succeeded. `release` is called when the
        server holds nothing more for it. `shown` is the principal that the transport knew.
        """
        self._bury()
        self._knows_users = self._knows_users or shown is not None
        secret = self._make_secret()
        self._entries[secret] = _Entry(
            subscribe.subscription, self.credentials_of(request), principal, shown, release
        )
        public = self._settings.public
        # Relative: a prefix that a proxy has taken off the path is not known here.
        location = (
            f"{public}/s/{secret}"
            if public
            else f"{'../' * (subscribe.path.count('/') - 1)}s/{secret}"
        )
        idle = ("X-Rsio-Idle-Timeout", f"{self._settings.idle:g}")
        return answer(201, ("Location", location), idle)

    def expire(self, now: float) -> float | None:
        """Forget subscriptions that no client has used for `Settings.idle` seconds: `AT_ONCE` of
        them, because each has a publisher to stop. Return when to call again, None if no
        subscription is left.
        """
        idle, left = self._settings.idle, AT_ONCE
        next_due: float | None = None
        for secret, entry in tuple(self._entries.items()):
            subscription = entry.subscription
            # A request that waits keeps its subscription.
            due = (now if subscription.on_change is not None else subscription.used_at) + idle
            if due <= now:
                if not left:
                    return now
                left -= 1
                self._forget(secret)
                subscription.cancel()
            elif next_due is None or due < next_due:
                next_due = due
        return next_due

    def credentials_of(self, request: Request) -> tuple[str, bytes]:
        """Return the scheme and the data of the credentials of a request."""
        return credentials_of(request, self._settings.cookie)

    def needs_credentials(self, request: Request, shown: object = None) -> bool:
        """Return whether a request to a subscription has other credentials than those of its
        subscribe, or another principal that the transport knows: they must be examined.
        """
        given = credentials_of(request, self._settings.cookie)
        if given == NONE and not self._knows_users:
            return False
        entry = self._entry_of(request.path)
        return entry is not None and (
            given not in (NONE, entry.credentials) or shown != entry.shown
        )

    def belongs_to(self, request: Request, principal: object) -> bool:
        """Return whether the subscription of a request is that of `principal`."""
        entry = self._entry_of(request.path)
        return entry is not None and entry.principal == principal

    # --- inside

    def _receive(self, request: Request, now: float) -> Exchange:
        found = _SUBSCRIPTION.fullmatch(request.path)
        misplaced = _misplaced(request, found)
        if misplaced is not None:
            return misplaced
        if found is None:
            return self._subscribe(request, now)
        entry = self._entries.get(found[1])
        if entry is None:
            return refusal(404, _UNKNOWN)
        subscription = entry.subscription
        subscription.used_at = now
        exchange = self._act(request, subscription, found[2] or "", now)
        # The subscription answers for some time after its end. That costs little, and no place.
        if subscription.ended is not None and not subscription.kept_bytes():
            entry.release()
        return exchange

    def _subscribe(self, request: Request, now: float) -> Subscribe:
        arguments = request.arguments()
        demand = demand_of(arguments)
        in_all = header_number(request, REQUESTED)
        rest = [(key, value) for key, value in arguments if key != "request"]
        name = "/".join(
            _escaped(unquote(segment)) for segment in request.path.removeprefix("/p/").split("/")
        )
        settings = self._settings
        subscription = ClientSubscription(
            max_elements=settings.max_elements, max_bytes=settings.max_bytes, now=now
        )
        subscription.request(demand, in_all)
        return Subscribe(f"{name}?{urlencode(rest)}" if rest else name, subscription, request.path)

    def _act(
        self, request: Request, subscription: ClientSubscription, action: str, now: float
    ) -> Exchange:
        ended = subscription.ended
        if ended is not None and ended is not COMPLETED and subscription.is_over:
            return refusal(ended.status, ended.text)
        try:
            return self._act_on_open(request, subscription, action, now)
        # Rule 3.9: a wrong demand ends the stream. The answer says so.
        except Malformed as error:
            return self._fail(subscription, 400, str(error))
        except Unfit as error:
            return self._fail(subscription, error.status, str(error))

    def _act_on_open(
        self, request: Request, subscription: ClientSubscription, action: str, now: float
    ) -> Exchange:
        arguments = request.arguments()
        if action.startswith(REQUEST_MORE):
            return self._request_more(
                request,
                subscription,
                number(action.removeprefix(REQUEST_MORE), "requestMore", least=1),
                now,
            )
        if not action:
            if arguments and "requestMore" in dict(arguments):
                return self._request_more(
                    request, subscription, demand_of(arguments, "requestMore", least=1), now
                )
            return self._poll(request, subscription, demand_of(arguments), now)
        if action == "/cancel":
            return self._cancel(subscription)
        if action.startswith(ELEMENT):
            return _element(
                subscription, number(action.removeprefix(ELEMENT), "the position of an element")
            )
        return self._events(request, subscription, now)

    def _poll(
        self, request: Request, subscription: ClientSubscription, demand: int, now: float
    ) -> Exchange:
        position, in_all = header_number(request, POSITION), header_number(request, REQUESTED)
        is_streamed = (request.header(DELIVERY) or "").strip().lower() == "stream"
        subscription.go_to(position, now, is_poll=not is_streamed)
        subscription.request(demand, in_all)
        if is_streamed:
            return StreamedBatch(subscription, request, self._settings, now)
        return Poll(subscription, request, self._settings, now)

    def _request_more(
        self, request: Request, subscription: ClientSubscription, demand: int, now: float
    ) -> Exchange:
        position, in_all = header_number(request, POSITION), header_number(request, REQUESTED)
        # A request that waits already gets what is requested here.
        if request.accepts_pushes and subscription.on_change is None:
            subscription.go_to(position, now)
            subscription.request(demand, in_all)
            return Pushes(
                subscription, request, self._settings, now, request.path.partition(REQUEST_MORE)[0]
            )
        if position is not None:
            subscription.acknowledge(position)
        subscription.request(demand, in_all)
        subscription.wake()
        return answer(200)

    def _cancel(self, subscription: ClientSubscription) -> Response:
        if subscription.is_over:
            return refusal(404, "this subscription has ended already")
        subscription.cancel()
        return answer(200)

    def _events(self, request: Request, subscription: ClientSubscription, now: float) -> Exchange:
        arguments = dict(request.arguments())
        last = request.header("last-event-id") or arguments.get("last_event_id")
        if last is not None:
            subscription.go_to(number(last, "the id of the last event") + 1, now)
        if subscription.is_over:
            return Poll(subscription, request, self._settings, now)
        subscription.request(demand_of(request.arguments()), header_number(request, REQUESTED))
        return Events(subscription, self._settings, now, text=arguments.get("text") == "1")

    def _fail(self, subscription: ClientSubscription, status: int, text: str) -> Response:
        subscription.cancel(Ended(status, text))
        return refusal(status, text)

    def _bury(self) -> None:
        """Forget the oldest ended subscriptions if there are too many, several at a time:
        each look at all of them costs.
        """
        if len(self._entries) < 2 * MAX_TOMBSTONES:
            return
        ended = [
            secret
            for secret, entry in self._entries.items()
            if entry.subscription.ended is not None and not entry.subscription.kept_bytes()
        ]
        for secret in ended[: max(0, len(ended) - MAX_TOMBSTONES * 7 // 8)]:
            self._forget(secret)

    def _forget(self, secret: str) -> None:
        self._entries.pop(secret).release()

    def _entry_of(self, path: str) -> _Entry | None:
        found = _SUBSCRIPTION.fullmatch(path)
        return None if found is None else self._entries.get(found[1])


def refused(error: PenstockError) -> Response:
    """Return the answer to a subscribe that has failed with `error`."""
    if isinstance(error, AuthRefused):
        # No X-Rsio-Error: the client may come again with credentials.
        return answer(
            401,
            ("WWW-Authenticate", f'Bearer realm="{REALM}"'),
            ("WWW-Authenticate", f'Basic realm="{REALM}"'),
            text="credentials are needed, or were refused",
        )
    if isinstance(error, Rejected) and error.temporary:
        # No X-Rsio-Error: the client may try again.
        return answer(
            429,
            ("Retry-After", "5"),
            text="too many wrong credentials came from this address, or for this name",
        )
    if isinstance(error, LimitExceeded) and error.limit == "max_connections":
        # No X-Rsio-Error: the client may try again.
        return answer(
            503, ("Retry-After", "5"), text="the server has as many streams as it may have"
        )
    if isinstance(error, LimitExceeded):
        return answer(
            429, ERROR, ("Retry-After", "5"), text="this client has as many streams as it may have"
        )
    if isinstance(error, NotAvailable):
        return refusal(404, "no such publisher")
    return refusal(500, str(error))


def _element(subscription: ClientSubscription, position: int) -> Response:
    """Return an element that was pushed: its path was promised, so it can be asked for."""
    element = subscription.sent_element(position)
    if element is None:
        return answer(404, text="this element is not kept")
    headers = NO_STORE, (POSITION, str(position))
    return Response(
        status=200, headers=headers, body=element, holder=subscription, element=position
    )


def _misplaced(request: Request, found: re.Match[str] | None) -> Response | None:
    """Return the answer to a request with a wrong path, a wrong method or a condition;
    None for all others.
    """
    action = None if found is None else found[2] or ""
    if not request.path.startswith("/p/") if action is None else action and not _is_action(action):
        return refusal(404, "nothing is served at this path")
    allowed = (
        ("GET",) if action is not None and action.startswith(("/events", ELEMENT)) else METHODS
    )
    if request.method not in allowed:
        return answer(405, ("Allow", ", ".join(allowed)), text=f"the method here is {allowed[0]}")
    # After the method, and before everything that has an effect.
    return (
        answer(412, text="a stream has no versions: send no If-* header")
        if is_conditional(request)
        else None
    )


def _is_action(action: str) -> bool:
    return action in ("/cancel", "/events") or action.startswith((REQUEST_MORE, ELEMENT))


def _escaped(segment: str) -> str:
    # Unescaped, these would end the segment, or begin an escape:
    # names are matched segment by segment.
    return segment.replace("%", "%25").replace("/", "%2F").replace("?", "%3F")
