"""The offers of a service as plain values:
for `Service(describe=True)`, whose peers read it like any other publisher.

Rules of this file:

* A peer gets the entries that it may open. `authorize` and `may_open` are asked with the pattern of
  each, ``ticks/{symbol}``, as the name.
* Nothing of the program's code runs but these two functions, and only texts
  that the program's author wrote are sent.
"""

import inspect
import re
from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from typing import Any, Final, Protocol

from penstock.api import Model, NotAvailable, PublicError, Request, UsageError
from penstock.runtime.service._function_annotations import (
    Annotations,
    called_function,
    open_parameters,
)
from penstock.runtime.service._named_requests import NamedHandler
from penstock.runtime.service._payload_parameter import PAYLOAD, PayloadParameter
from penstock.runtime.service._router import NoMatch, Route, Router
from penstock.runtime.service._text_parameters import without_none
from penstock.spi import (
    PeerIdentity,
    Serializer,
    is_bytes,
    json_schema_of,
    serializer_name,
    type_name,
)

LONGEST_NAME: Final = 4096
"""Bytes. Longer request data is not looked up as a publisher's name, so
that a large request is not decoded for nothing.
"""

DESCRIPTION: Final = "penstock/describe"
"""The name under which a service describes itself."""


ANSWERS: Final = frozenset({"positions", "acknowledge"})
"""The words of a log whose answer is no element of it."""

_QUALIFIER: Final = re.compile(r"(?:[\w<>]+\.)+(?=\w)")


class Described(Protocol):
    """The part of a service that is described."""

    router: Router
    named: dict[Route, NamedHandler]
    authorize: Any
    may_open: Any
    options: dict[Route, tuple[str | Serializer | None, int, Any, str]]
    logs: dict[Route, Any]
    payloads: dict[Route, PayloadParameter]

    def publisher(self, name: str, *, serializer: str) -> Callable[[Any], Any]:
        """Offer the decorated function."""


def offer_description(service: Described) -> None:
    """Offer the description of a service as one of its publishers."""

    def description(peer: PeerIdentity) -> AsyncIterator[dict[str, Any]]:
        """List the publishers and requests of this service."""
        return describe(service, peer)

    # Published like every other one, so that `authorize` and `may_open` are also asked about it.
    service.publisher(DESCRIPTION, serializer="json")(description)


def content_of(service: Described, target: str | Request) -> tuple[str, str] | None:
    """Return the names of the serializer and of the type that the elements of `target` have;
    None if no publisher has that name.
    """
    if isinstance(target, Request):
        if target.model is Model.RESPONSE or len(target.data) > LONGEST_NAME:
            return None
        target = target.data.decode(errors="replace")
    try:
        route, _, query = service.router.find(target)
    except NoMatch:
        return None
    # The answer about a log, which is JSON, is none of its elements.
    if query and route in service.logs and query.keys() & ANSWERS:
        return None
    # Once for each route: each stream of it is announced in the same words.
    # Without this, and the same on the other side, a stream of one element took 946 thousand
    # instructions, and not 808.
    if route.content is None and (options := service.options.get(route)) is not None:
        serializer, _, kind, _ = options
        route.content = serializer_name(serializer, kind), type_name(kind)
    return route.content  # None for a handler of requests, and for a log


async def describe(service: Described, peer: PeerIdentity) -> AsyncIterator[dict[str, Any]]:
    """Yield an entry for each publisher and request that `peer` may open, by name."""
    # A list of this moment: a publisher may be added while `authorize` is waited for.
    for route in service.router.routes():
        if await _may_see(service, route.pattern.text, peer):
            yield entry_of(service, route)


async def _may_see(service: Described, name: str, peer: PeerIdentity) -> bool:
    try:
        # True and nothing else: an awaitable counts as true, and would list each name.
        if service.may_open is not None and service.may_open(name, peer) is not True:
            return False
        if service.authorize is None:
            return True
        verdict = service.authorize(peer.principal, name)
        if isawaitable(verdict):
            verdict = await verdict
    except (NotAvailable, PublicError):
        # These refuse; another exception is a fault of the program, and ends the description.
        return False
    return verdict is True


def entry_of(service: Described, route: Route) -> dict[str, Any]:
    """Return what is known of a publisher or a request. Every value is one that JSON has."""
    pattern, handler = route.pattern, service.named.get(route)
    function = route.function
    annotations = Annotations(function, f"{pattern.text!r}")
    entry: dict[str, Any] = {
        "name": pattern.text,
        "kind": "publisher" if handler is None else "request",
    }
    open_to_peers = {
        name: each
        for name, each in open_parameters(function, f"{pattern.text!r}").items()
        # The server gives these. A client cannot send them, so they are not listed.
        if without_none(_known(annotations, name)) not in (PeerIdentity, Request)
        and name not in route.elements
    }
    takes_payload = handler is not None or route in service.payloads
    payload = open_to_peers.pop(PAYLOAD, None) if takes_payload else None
    entry["parameters"] = [
        _parameter(
            name,
            _known(annotations, name),
            is_in_name=name in pattern.parameters,
            is_required=each.default is each.empty,
        )
        for name, each in open_to_peers.items()
    ]
    for kind in route.elements.values():
        entry["channel"] = _type_text(kind)
        _add_schema(entry, "channel", kind)
    if route in service.logs:
        entry["positions"] = True
    if handler is None:
        serializer, size, kind, _ = service.options.get(route, (None, 0, None, ""))
        if size:
            entry["element_size"] = size
        entry["serializer"] = name = serializer_name(serializer, kind)
        # Without a type the name of the format is all that is known.
        entry["elements"] = _type_text(
            kind, "bytes" if name == "bytes" else "str" if name == "text" else ""
        )
        _add_schema(entry, "elements", kind)
    if payload is not None:
        entry["payload"] = _type_text(_known(annotations, PAYLOAD))
        entry["needs_payload"] = payload.default is payload.empty
        _add_schema(entry, "payload", _known(annotations, PAYLOAD))
    if handler is not None:
        entry["answer"] = _type_text(_known(annotations, "return"))
        _add_schema(entry, "answer", _known(annotations, "return"))
        if handler.serializer is not None:  # else the types decide: bytes, text or json
            entry["serializer"] = serializer_name(handler.serializer)
    entry["summary"] = summary_of(function)
    return entry


def _parameter(name: str, kind: Any, *, is_in_name: bool, is_required: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": name,
        "type": _type_text(kind, "str"),
        "in": "name" if is_in_name else "query",
        "required": is_required,
    }
    # The name of a type that is sent as it is says all.
    if kind not in (None, str, int, float, bool) and (schema := json_schema_of(kind)) is not None:
        found["schema"] = schema
    return found


def _add_schema(entry: dict[str, Any], what: str, kind: Any) -> None:
    # Bytes have no schema: msgspec describes those in JSON, in base64, and these go unchanged.
    if not is_bytes(kind) and (schema := json_schema_of(kind)) is not None:
        entry[f"{what}_schema"] = schema


def summary_of(function: Any) -> str:
    """Return the first line of a function's docstring, or ""."""
    text = inspect.getdoc(inspect.unwrap(called_function(function)))
    return text.strip().partition("\n")[0] if text else ""


def _known(annotations: Annotations, name: str) -> Any:
    # A name that only a type checker imports does not refuse the description.
    try:
        return annotations.of(name)
    except UsageError:
        return None


def _type_text(kind: Any, default: str = "bytes") -> str:
    # Without the names of modules and functions around a class: they say how the program is built,
    # which is nothing for a peer.
    return default if kind is None else _QUALIFIER.sub("", str(inspect.formatannotation(kind)))
