"""Handlers of requests by name: the signature that tells what they take,
and one call with its payload and its answer.

Rules of this file:

* The parameter called ``payload`` gets the payload.
  All others come from the name, as those of publishers do.
* A signature that no request could fit is a UsageError when the handler is added.
* A payload that does not decode is the peer's fault: the peer gets the reason, and nothing is
  reported here. If the code of the payload's class raises, that is a fault of this side, and
  reported as one of the handler.
"""

import collections.abc
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin

from penstock.api import ProtocolError, UsageError, shown
from penstock.runtime.service._cannot_open import UnfitPayload, UnreadablePayload
from penstock.runtime.service._function_annotations import (
    Annotations,
    called_function,
    open_parameters,
)
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._router import Pattern, Route
from penstock.runtime.service._text_parameters import without_none
from penstock.spi import (
    PeerIdentity,
    Registry,
    Serializer,
    TypeCodeFailed,
    WrongElementType,
    bare_type,
    check_serializer_argument,
    dump_error,
    dumped_bytes,
    serializer_for,
)

PAYLOAD: Final = "payload"
"""The name of the parameter that gets the payload."""


class NamedHandler:
    """A user's function that answers the requests with one name or pattern."""

    __slots__ = (
        "_answer_type",
        "_known",
        "_payload_type",
        "_serializer",
        "_takes_payload",
        "answer_place",
        "label",
        "needs_payload",
        "route",
    )

    def __init__(
        self, pattern: Pattern, function: Any, serializer: str | Serializer | None
    ) -> None:
        """Raises UsageError for a function that no request could call, and for one
        that cannot answer.
        """
        where = f"the request {pattern.text!r}"
        # Checked first: a wrong serializer is the same mistake for every function.
        check_serializer_argument(serializer)
        # A generator function would stream, and a plain function would hold up the connection while
        # it works.
        if not callable(function) or not inspect.iscoroutinefunction(called_function(function)):
            raise UsageError(
                f"{where}: {function!r} is no `async def` function that returns one value; make it "
                "one, or use @service.publisher"
            )
        # The text of the name and the payload cannot both be given to one parameter.
        if PAYLOAD in pattern.parameters:
            raise UsageError(
                f"{where}: a parameter of a name cannot be called {PAYLOAD!r}, which gets the "
                "payload; rename it"
            )
        annotations, given = (
            Annotations(function, where),
            open_parameters(function, where).get(PAYLOAD),
        )
        self._takes_payload = given is not None
        self.needs_payload: bool = given is not None and given.default is inspect.Parameter.empty
        # ``| None`` says that the payload may be left out.
        # It does not belong to the type that is sent.
        self._payload_type = without_none(annotations.of(PAYLOAD))
        # Nothing else would notice the mistake:
        # the identity would be read from the bytes of the peer.
        if self._payload_type is PeerIdentity:
            raise UsageError(
                f"{where}: the parameter {PAYLOAD!r} gets the payload; give the one for the "
                "PeerIdentity another name"
            )
        self._answer_type = annotations.of("return")
        self.answer_place: str = (
            "" if self._answer_type is None else f"the return annotation of {where}"
        )
        _check_answer(self._answer_type, where)
        self._serializer = serializer
        self.label: str = getattr(function, "__qualname__", where)
        self.route: Route = _route(pattern, function)
        # For the registry that was asked last: a service is served with one, and a typed serializer
        # is not looked up for each request.
        self._known: tuple[Registry, Serializer | None, Serializer | None] | None = None

    def serializers(self, registry: Registry) -> tuple[Serializer | None, Serializer | None]:
        """Return what reads payloads and what writes answers; None is for bytes. Raises
        UsageError if one is not installed.
        """
        known = self._known
        if known is None or known[0] is not registry:
            payloads = (
                serializer_for(registry, self._serializer, self._payload_type)
                if self._takes_payload
                else None
            )
            known = self._known = (
                registry,
                payloads,
                serializer_for(registry, self._serializer, self._answer_type),
            )
        return known[1], known[2]

    def call(self, function: Callable[..., Any], payload: bytes | None) -> "NamedCall":
        """Return the call of `function`, which has its other parameters. Raises UnfitPayload;
        None means that none was sent.
        """
        # Told apart from a wrong name: the caller has found the request,
        # and must change what it sends.
        if payload is None and self.needs_payload:
            raise UnfitPayload(f"{self.route.pattern.text} needs a payload, and none was sent")
        # Refused, and not dropped: an answer would look as if the payload had been used.
        if payload is not None and not self._takes_payload:
            raise UnfitPayload(
                f"{self.route.pattern.text} takes no payload, and one of {len(payload)} bytes was "
                "sent"
            )
        return NamedCall(self, function, payload)


class NamedCall(Handler):
    """One request by name, as a handler that is called once. `use` gives it its serializers."""

    __slots__ = ("_call", "_dumps", "_handler", "_loads", "_payload")

    def __init__(
        self, handler: NamedHandler, call: Callable[..., Any], payload: bytes | None
    ) -> None:
        self._handler = handler
        self._call = call
        self._payload = payload
        # None until `use`: the registry is known to the connection, and not to the service.
        self._loads: Serializer | None = None
        self._dumps: Serializer | None = None
        # No short way: the call has its own arguments.
        self.plain: Any = None
        self.label: str = handler.label
        self.pattern: str = handler.route.pattern.text
        self.is_generator: bool = False

    def use(self, registry: Registry) -> None:
        """Look up the serializers. Raises UsageError if one is not installed."""
        self._loads, self._dumps = self._handler.serializers(registry)

    def __call__(self, data: bytes, peer: PeerIdentity) -> Any:
        return self._answer()

    async def _answer(self) -> Any:
        # The handler decides how long its payload lives.
        payload, self._payload = self._payload, None
        if payload is None:
            value = await self._call()
        else:
            value = await self._call(
                payload=payload if self._loads is None else self._loaded(self._loads, payload)
            )
        # None is refused behind this call, in the words for all handlers.
        if self._dumps is None or value is None:
            return value
        try:
            return dumped_bytes(self._dumps.dumps(value), self._dumps, value)
        except WrongElementType as error:
            raise dump_error(error, self._handler.answer_place) from error

    def _loaded(self, serializer: Serializer, payload: bytes) -> object:
        try:
            return serializer.loads(payload)
        # The code of the payload's class has raised:
        # a fault of this side, which is reported as one of the handler.
        except TypeCodeFailed:
            raise
        except (ProtocolError, UsageError) as error:
            pattern = self._handler.route.pattern.text
            raise UnreadablePayload(
                f"the payload of {pattern}, {len(payload)} bytes, cannot be read by the serializer "
                f"{serializer.name!r}: {error}"
            ) from error


def _route(pattern: Pattern, function: Callable[..., Any]) -> Route:
    try:
        return Route(pattern, function, peer_type=PeerIdentity, payload=PAYLOAD)
    except UsageError as error:
        # The usual mistake: the payload has another name,
        # and is taken for a parameter of the pattern.
        raise UsageError(
            f"{error}. The parameter that gets the payload of a request is called {PAYLOAD!r}"
        ) from None


def _check_answer(kind: Any, where: str) -> None:
    """Raise UsageError for a return annotation that says:
    no value, perhaps no value, or a stream.
    """
    if kind is type(None):
        raise UsageError(
            f"{where}: its function is annotated to return None, and a request has an answer; "
            "return a value, or use fire_and_forget"
        )
    bare = bare_type(kind)
    while get_origin(bare) is Annotated:
        bare = bare_type(get_args(bare)[0])
    # Refused although the value may never be None:
    # it would fail at the first None, perhaps days later.
    if get_origin(bare) in (Union, UnionType) and type(None) in get_args(bare):
        raise UsageError(
            f"{where}: its function is annotated to return {shown(kind)}, and None is never an "
            "answer (rule 2.13). For no value return one that says so, such as a record with an "
            "optional field, or raise PublicError with the reason; then leave `| None` out"
        )
    # ``AsyncIterator[Price]`` is an alias, and no class.
    origin = get_origin(kind) or kind
    if isinstance(origin, type) and issubclass(origin, collections.abc.AsyncIterable):
        raise UsageError(
            f"{where}: its function returns a stream, and a request has one answer; use "
            "@service.publisher for a stream"
        )
