"""One plugin, examined alone: what it offers and observes, or the PluginError that says why it is left out.

Rules of this file:

* Each plugin gets a plugin manager of its own: nothing that it does reaches the hooks of another one.
* All or nothing: a plugin with one broken hook is left out whole, so that nobody runs half of it.
* Code of others runs here (imports, hooks, iteration). Whatever it raises becomes a PluginError; a plugin that wants to exit does not.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pluggy

from penstock.api import PluginError
from penstock.plugins import _hookspecs
from penstock.plugins._events import OBSERVER_HOOKS, Event
from penstock.plugins._factory import Factory
from penstock.plugins._hookspecs import GROUP
from penstock.plugins._one_line import one_line
from penstock.plugins._serializer import Serializer
from penstock.plugins._transport import Transport

T = TypeVar("T")

NAME: Final = re.compile(r"[a-z][a-z0-9.-]*", re.ASCII)
FIRST_ID_OF_OTHERS: Final = 128
HIGHEST_ID: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one sound plugin brings."""

    transports: tuple[Transport, ...]
    serializers: tuple[Serializer, ...]
    dialects: tuple[Factory, ...]
    encodings: tuple[Factory, ...]
    extensions: tuple[Factory, ...]
    observers: tuple[tuple[str, Callable[[Event], object]], ...]


def examine(name: str, load: Callable[[], object], *, ours: bool) -> Contribution:
    """Load a plugin and ask its hooks what it offers. Raises PluginError for whatever is wrong with it."""
    try:
        plugin = load()
    # The boundary to code of others: importing it may raise anything, and may try to end the process.
    except (Exception, SystemExit) as error:
        raise PluginError(f"cannot be loaded: {one_line(error)}") from error
    hooks = _Hooks(name, plugin)
    contribution = Contribution(
        transports=_checked(hooks.offers("penstock_transports", Transport), _check_transport),
        serializers=_checked(hooks.offers("penstock_serializers", Serializer), _check_serializer),
        dialects=_checked(hooks.offers("penstock_dialects", Factory), _check_name),
        encodings=_checked(hooks.offers("penstock_encodings", Factory), lambda offer: _check_id(offer, ours=ours)),
        extensions=_checked(hooks.offers("penstock_extensions", Factory), lambda offer: _check_id(offer, ours=ours)),
        observers=tuple(hooks.observers()),
    )
    _check_claims(contribution)
    return contribution


def claims_of(contribution: Contribution) -> Iterator[tuple[str, str | int, object]]:
    """Everything that a plugin claims: the kind, the name or number, and what stands behind it."""
    for transport in contribution.transports:
        yield from (("transport", scheme, transport) for scheme in transport.schemes)
    for serializer in contribution.serializers:
        yield "serializer", serializer.name, serializer
    for kind, offers in (
        ("dialect", contribution.dialects),
        ("encoding", contribution.encodings),
        ("extension", contribution.extensions),
    ):
        for offer in offers:
            yield kind, offer.name, offer
            if offer.id is not None and kind != "dialect":
                yield "extension id", offer.id, offer  # encodings are negotiated as extensions: one space of numbers for both


class _Hooks:
    """The hooks of one plugin, verified against the specifications."""

    def __init__(self, name: str, plugin: object) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(_hookspecs)
        try:
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
        # The boundary to code of others: pluggy looks at every attribute of the plugin, and looking may run code.
        except (Exception, SystemExit) as error:
            raise PluginError(f"has a hook that does not fit: {one_line(error)}") from error
        if not self._manager.get_hookcallers(plugin):
            raise PluginError("has no hook: does its entry point lead to where they are, and do they bear @hookimpl?")

    def offers(self, hook: str, kind: type) -> tuple[Any, ...]:
        """What a hook returns, checked to be things of the right kind."""
        found = tuple(each for function, _ in self._functions(hook) for each in _listed(hook, function))
        for each in found:
            if not isinstance(each, kind):
                raise PluginError(f"returned {each!r} from {hook}; each must be a {kind.__name__} (an object, not a class)")
        return found

    def observers(self) -> Iterator[tuple[str, Callable[[Event], object]]]:
        """Each observer of the plugin, by the name of its hook, as a function of the event."""
        for hook in OBSERVER_HOOKS:
            for function, names in self._functions(hook):
                if inspect.isgeneratorfunction(function):
                    raise PluginError(f"has a generator as {hook}, which nobody would run; an observer is a plain function")
                yield hook, function if names else _without_event(function)

    def _functions(self, hook: str) -> Iterator[tuple[Callable[..., Any], tuple[str, ...]]]:
        for found in getattr(self._manager.hook, hook).get_hookimpls():
            if found.wrapper or found.hookwrapper:
                raise PluginError(f"has a wrapper around {hook}; a plugin cannot wrap what others do")
            if inspect.iscoroutinefunction(found.function) or inspect.isasyncgenfunction(found.function):
                raise PluginError(f"has an async function as {hook}; hooks are plain functions")
            yield found.function, found.argnames


def _listed(hook: str, function: Callable[[], Any]) -> tuple[Any, ...]:
    try:
        result = function()
        things = tuple(result) if isinstance(result, Iterable) and not isinstance(result, str | bytes) else None
    # The boundary to code of others: a hook may raise anything, and so may the list that it returns.
    except (Exception, SystemExit) as error:
        raise PluginError(f"raised in {hook}: {one_line(error)}") from error
    if things is None:
        raise PluginError(f"returned {result!r} from {hook}; return a list, an empty one for nothing")
    return things


def _without_event(function: Callable[[], object]) -> Callable[[Event], object]:
    return lambda event: function()


def _checked(offers: tuple[T, ...], check: Callable[[T], None]) -> tuple[T, ...]:
    for offer in offers:
        check(offer)
    return offers


def _check_transport(transport: Transport) -> None:
    schemes = getattr(transport, "schemes", None)
    if not isinstance(schemes, tuple) or not schemes:
        raise PluginError(f"has a transport {transport!r} with schemes={schemes!r}; give a tuple of at least one scheme")
    for scheme in schemes:
        _check_word(scheme, "scheme")


def _check_serializer(serializer: Serializer) -> None:
    _check_word(getattr(serializer, "name", None), "name of a serializer")


def _check_name(offer: Factory) -> None:
    _check_word(offer.name, "name")


def _check_word(word: object, what: str) -> None:
    if not isinstance(word, str) or not NAME.fullmatch(word):
        raise PluginError(f"has {word!r} as a {what}; allowed are small letters, digits, '.' and '-', a letter first")


def _check_id(offer: Factory, *, ours: bool) -> None:
    _check_name(offer)
    least = 0 if ours else FIRST_ID_OF_OTHERS
    if type(offer.id) is not int or not least <= offer.id <= HIGHEST_ID:
        raise PluginError(f"has id={offer.id!r} for {offer.name!r}; give an integer from {FIRST_ID_OF_OTHERS} on, below is penstock's")


def _check_claims(contribution: Contribution) -> None:
    seen = set()
    for kind, key, _ in claims_of(contribution):
        if (kind, key) in seen:
            raise PluginError(f"offers the {kind} {key!r} twice")
        seen.add((kind, key))
