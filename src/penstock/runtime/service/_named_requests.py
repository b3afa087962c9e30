"""Handlers of requests by name: the signature that tells what they take,
and one call with its payload and its answer.

Rules of this file:

* The parameter called ``payload`` gets the payload.
  All others come from the name, as those of publishers do.
* A signature that no request could fit is a UsageError when the handler is added.
* A payload is read in the call of the handler (`_payload_parameter`).
"""

import collections.abc
import inspect
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from penstock.api import ContentTypes, UsageError, shown
from penstock.runtime.service._function_annotations import (
    Annotations,
    called_function,
)
from penstock.runtime.service._handler import Handler
from penstock.runtime.service._payload_parameter import PAYLOAD, PayloadParameter
from penstock.runtime.service._router import Pattern, Route
from penstock.spi import (
    PeerIdentity,
    Registry,
    Serializer,
    WrongElementType,
    bare_type,
    check_serializer_argument,
    dump_error,
    dumped_bytes,
    known_media_type,
    serializer_for,
)


class NamedHandler:
    """A user's function that answers the requests with one name or pattern."""

    __slots__ = (
        "_answer_type",
        "_known",
        "answer_place",
        "label",
        "payload",
        "route",
        "serializer",
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
        self.payload: PayloadParameter = PayloadParameter(pattern.text, function, where, serializer)
        annotations = Annotations(function, where)
        self._answer_type = annotations.of("return")
        self.answer_place: str = (
            "" if self._answer_type is None else f"the return annotation of {where}"
        )
        _check_answer(self._answer_type, where)
        self.serializer: str | Serializer | None = serializer
        self.label: str = getattr(function, "__qualname__", where)
        self.route: Route = _route(pattern, function)
        # For the registry that was asked last: a service is served with one, and a typed serializer
        # is not looked up for each request. By the MIME types that the peer has named: each pair is
        # of serializers that are installed.
        self._known: tuple[Registry, dict[Any, tuple[Serializer | None, Serializer | None]]] | None
        self._known = None

    def serializers(
        self, registry: Registry, types: ContentTypes | None = None
    ) -> tuple[Serializer | None, Serializer | None]:
        """Return what reads payloads and what writes answers; None is for bytes. Raises
        UsageError if one is not installed.
        """
        known = self._known
        if known is None or known[0] is not registry:
            known = self._known = registry, {}
        if types is None or self.serializer is not None:
            key: tuple[str | None, str | None] = (None, None)
        else:
            # Types that no serializer has are one key: a peer may name any number of them.
            data = known_media_type(registry, (types.data,))
            key = data, known_media_type(registry, types.accepted) or data
        found = known[1].get(key)
        if found is None:
            found = known[1][key] = (
                self.payload.reader(registry, key[0]),
                serializer_for(registry, self.serializer, self._answer_type, key[1]),
            )
        return found

    def call(
        self,
        function: Callable[..., Any],
        payload: bytes | None,
        types: ContentTypes | None = None,
    ) -> "NamedCall":
        """Return the call of `function`, which has its other parameters. Raises UnfitPayload;
        None means that none was sent.
        """
        self.payload.check(payload)
        return NamedCall(self, function, payload, types)


class NamedCall(Handler):
    """One request by name, as a handler that is called once. `use` gives it its serializers."""

    __slots__ = ("_call", "_dumps", "_handler", "_loads", "_payload", "_types")

    def __init__(
        self,
        handler: NamedHandler,
        call: Callable[..., Any],
        payload: bytes | None,
        types: ContentTypes | None,
    ) -> None:
        self._handler = handler
        self._call = call
        self._payload = payload
        self._types = types
        # None until `use`: the registry is known to the connection, and not to the service.
        self._loads: Serializer | None = None
        self._dumps: Serializer | None = None
        # No short way: the call has its own arguments.
        self.plain: Any = None
        self.label: str = handler.label
        self.pattern: str = handler.route.pattern.text
        self.is_generator: bool = False
        self.takes_request: bool = False  # the router has given it

    def use(self, registry: Registry) -> None:
        """Look up the serializers. Raises UsageError if one is not installed."""
        self._loads, self._dumps = self._handler.serializers(registry, self._types)

    def __call__(self, data: bytes, peer: PeerIdentity) -> Any:
        return self._answer()

    async def _answer(self) -> Any:
        # The handler decides how long its payload lives.
        payload, self._payload = self._payload, None
        if payload is None:
            value = await self._call()
        else:
            value = await self._call(payload=self._handler.payload.load(self._loads, payload))
        # None is refused behind this call, in the words for all handlers.
        if self._dumps is None or value is None:
            return value
        try:
            return dumped_bytes(self._dumps.dumps(value), self._dumps, value)
        except WrongElementType as error:
            raise dump_error(error, self._handler.answer_place) from error


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
