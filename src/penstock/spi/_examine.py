"""Examine one plugin on its own: return what it offers and observes, or raise the PluginError
that says why it is left out.

Rules of this file:

* Each plugin gets its own plugin manager: it cannot affect the hooks of another plugin.
* All or nothing: a plugin with one broken hook is left out as a whole, so
  that no program runs half of it.
* Code of the plugin runs here: its import, its hooks, the iteration of its lists. Every exception
  becomes a PluginError, SystemExit included.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import attrs
import pluggy

from penstock.api import PluginError
from penstock.spi import _hookspecs
from penstock.spi._events import OBSERVER_HOOKS, Event
from penstock.spi._factory import Factory
from penstock.spi._finding import GROUP
from penstock.spi._name_claims import NAME
from penstock.spi._one_line import one_line
from penstock.spi._serializer import Serializer
from penstock.spi._statistics import Fact
from penstock.spi._url_source import UrlSource

if TYPE_CHECKING:
    from penstock.spi._transport import Transport

T = TypeVar("T")

FIRST_FOREIGN_ID: Final = 128
HIGHEST_ID: Final = (1 << 63) - 1
RESERVED_ENCODINGS: Final = MappingProxyType({16: "penstock-msgpack", 17: "penstock-protobuf"})
"""Ids of encodings below FIRST_FOREIGN_ID that are not penstock's own: each belongs to the
plugins of one distribution.
"""


@attrs.frozen(kw_only=True)
class Contribution:
    """The offers and observers of one sound plugin."""

    transports: "tuple[Transport, ...]"
    sources: tuple[UrlSource, ...]
    serializers: tuple[Serializer, ...]
    dialects: tuple[Factory, ...]
    encodings: tuple[Factory, ...]
    extensions: tuple[Factory, ...]
    reads: tuple[Fact, ...]
    observers: tuple[tuple[str, Callable[[Event], object]], ...]


def examine(
    name: str, load: Callable[[], object], *, is_own: bool, distribution: str = ""
) -> Contribution:
    """Load a plugin and call its hooks. Raises PluginError if anything is wrong with it.

    `is_own`: the plugin is penstock's own, and may use ids below FIRST_FOREIGN_ID.
    `distribution` declares it.
    """
    # Here, because it needs trio, and a registry that was made by hand needs neither.
    from penstock.spi._transport import Transport  # noqa: PLC0415  # needs trio

    try:
        plugin = load()
    # The boundary to a plugin's code: an import may raise anything,
    # and a script may try to end the process.
    except (Exception, SystemExit) as error:
        raise PluginError(f"cannot be loaded: {one_line(error)}") from error
    hooks = _Hooks(name, plugin)
    contribution = Contribution(
        transports=_checked(hooks.offers("penstock_transports", Transport), _check_transport),
        sources=_checked(hooks.offers("penstock_sources", UrlSource), _check_source),
        serializers=_checked(hooks.offers("penstock_serializers", Serializer), _check_serializer),
        dialects=_checked(hooks.offers("penstock_dialects", Factory), _check_name),
        encodings=_checked(
            hooks.offers("penstock_encodings", Factory),
            partial(_check_encoding, is_own=is_own, distribution=distribution),
        ),
        reads=hooks.offers("penstock_reads", Fact),
        extensions=_checked(
            hooks.offers("penstock_extensions", Factory),
            lambda factory: _check_id(factory, is_own=is_own),
        ),
        observers=tuple(hooks.observers()),
    )
    _check_claims(contribution)
    return contribution


def claims_of(contribution: Contribution) -> Iterator[tuple[str, str | int, object]]:
    """Yield every claim of a plugin: the kind, the name or number, and the offer."""
    for transport in contribution.transports:
        yield from (("transport", scheme, transport) for scheme in transport.schemes)
    for source in contribution.sources:
        yield from (("source", scheme, source) for scheme in source.schemes)
    for serializer in contribution.serializers:
        yield "serializer", serializer.name, serializer
    for kind, factories in (
        ("dialect", contribution.dialects),
        ("encoding", contribution.encodings),
        ("extension", contribution.extensions),
    ):
        for factory in factories:
            yield kind, factory.name, factory
            if factory.id is not None and kind != "dialect":
                # encodings are negotiated as extensions: both share one space of numbers.
                yield "extension id", factory.id, factory


class _Hooks:
    """The hooks of one plugin, verified against the specifications."""

    def __init__(self, name: str, plugin: object) -> None:
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(_hookspecs)
        try:
            self._manager.register(plugin, name=name)
            self._manager.check_pending()
        # The boundary to a plugin's code:
        # pluggy reads every attribute of the plugin, and a property may run code.
        except (Exception, SystemExit) as error:
            raise PluginError(f"has a hook that does not fit: {one_line(error)}") from error
        if not self._manager.get_hookcallers(plugin):
            raise PluginError(
                "has no hook; check that its entry point names the module of its hooks, and that "
                "they bear @hookimpl"
            )

    def offers(self, hook: str, kind: type) -> tuple[Any, ...]:
        """Call a hook; return its results, checked to be instances of `kind`."""
        found = tuple(
            each for function, _ in self._functions(hook) for each in _listed(hook, function)
        )
        for each in found:
            if not isinstance(each, kind):
                raise PluginError(
                    f"returned {each!r} from {hook}; each must be a {kind.__name__} (an object, "
                    "not a class)"
                )
        return found

    def observers(self) -> Iterator[tuple[str, Callable[[Event], object]]]:
        """Yield each observer as the name of its hook and a function of the event."""
        for hook in OBSERVER_HOOKS:
            for function, names in self._functions(hook):
                if inspect.isgeneratorfunction(function):
                    raise PluginError(
                        f"has a generator as {hook}, whose body would never run; an observer is a "
                        "plain function"
                    )
                yield hook, function if names else _without_event(function)

    def _functions(self, hook: str) -> Iterator[tuple[Callable[..., Any], tuple[str, ...]]]:
        for found in getattr(self._manager.hook, hook).get_hookimpls():
            if found.wrapper or found.hookwrapper:
                raise PluginError(
                    f"has a wrapper around {hook}; a plugin cannot wrap the hooks of other plugins"
                )
            if inspect.iscoroutinefunction(found.function) or inspect.isasyncgenfunction(
                found.function
            ):
                raise PluginError(f"has an async function as {hook}; hooks are plain functions")
            yield found.function, found.argnames


def _listed(hook: str, function: Callable[[], Any]) -> tuple[Any, ...]:
    try:
        result = function()
        # A str is also iterable: without this check "tcp" would be three offers.
        items = (
            tuple(result)
            if isinstance(result, Iterable) and not isinstance(result, str | bytes)
            else None
        )
    # The boundary to a plugin's code: the hook may raise anything, and so may the iterator
    # that it returns.
    except (Exception, SystemExit) as error:
        raise PluginError(f"raised in {hook}: {one_line(error)}") from error
    if items is None:
        raise PluginError(
            f"returned {result!r} from {hook}; return a list, an empty one for nothing"
        )
    return items


def _without_event(function: Callable[[], object]) -> Callable[[Event], object]:
    return lambda event: function()


def _checked(offers: tuple[T, ...], check: Callable[[T], None]) -> tuple[T, ...]:
    for offer in offers:
        check(offer)
    return offers


def _check_transport(transport: "Transport") -> None:
    _check_schemes(transport, "transport")


def _check_source(source: UrlSource) -> None:
    _check_schemes(source, "source")


def _check_schemes(offer: object, kind: str) -> None:
    schemes = getattr(offer, "schemes", None)
    if not isinstance(schemes, tuple) or not schemes:
        raise PluginError(
            f"has a {kind} {offer!r} with schemes={schemes!r}; give a tuple of at least one scheme"
        )
    for scheme in schemes:
        _check_word(scheme, "scheme")


def _check_serializer(serializer: Serializer) -> None:
    _check_word(getattr(serializer, "name", None), "name of a serializer")


def _check_name(offer: Factory) -> None:
    _check_word(offer.name, "name")


def _check_word(word: object, role: str) -> None:
    if not isinstance(word, str) or not NAME.fullmatch(word):
        raise PluginError(
            f"has {word!r} as a {role}; allowed are small letters, digits, '.' and '-', a letter "
            "first"
        )


def _check_encoding(factory: Factory, *, is_own: bool, distribution: str) -> None:
    # By the distribution, and not by the name: a program that passes in an object, or another
    # package, does not get the number.
    _check_id(
        factory,
        is_own=is_own
        or (distribution != "" and RESERVED_ENCODINGS.get(factory.id or 0) == distribution),
    )


def _check_id(factory: Factory, *, is_own: bool) -> None:
    _check_name(factory)
    lowest = 0 if is_own else FIRST_FOREIGN_ID
    if type(factory.id) is not int or not lowest <= factory.id <= HIGHEST_ID:
        raise PluginError(
            f"has id={factory.id!r} for {factory.name!r}; give an integer from {FIRST_FOREIGN_ID} "
            "on: lower ones are penstock's"
        )


def _check_claims(contribution: Contribution) -> None:
    seen = set()
    for kind, name, _ in claims_of(contribution):
        if (kind, name) in seen:
            raise PluginError(f"offers the {kind} {name!r} twice")
        seen.add((kind, name))
