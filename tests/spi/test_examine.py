"""The examination of one plugin: the offers of a sound one, and each way in
which a plugin can be broken.
"""

import types
from collections.abc import Callable
from typing import Any

import pytest
import trio

from penstock.api import PluginError
from penstock.spi import (
    Connection,
    Events,
    Factory,
    Outcome,
    Serializer,
    StreamEnded,
    Transport,
    TransportOptions,
    Url,
    hookimpl,
)
from penstock.spi._examine import claims_of, examine


class Wire(Transport):
    schemes = ("wire", "wires")

    async def connect(
        self, url: Url, *, options: TransportOptions, nursery: trio.Nursery
    ) -> Connection:
        raise AssertionError("no test connects")


class Plain(Serializer):
    name = "plain"

    def dumps(self, element: object, /) -> bytes:
        return b""

    def loads(self, data: bytes, /) -> object:
        return 1


def _plugin(**hooks: Callable[..., object]) -> types.SimpleNamespace:
    return types.SimpleNamespace(
        **{f"penstock_{name}": hookimpl(function) for name, function in hooks.items()}
    )


def _examine(plugin: object, *, is_own: bool = False) -> Any:
    return examine("mine", lambda: plugin, is_own=is_own)


def _factory(name: str = "x", id: int | None = 200) -> Factory:  # noqa: A002 (the field's name)
    return Factory(name=name, make=object, id=id)


def test_the_results_of_the_hooks_are_collected_by_kind() -> None:
    """In the plugin's order. A hook may return any iterable;
    a generator works as well as a list.
    """
    wire, plain, dialect, encoding, extension = (
        Wire(),
        Plain(),
        _factory("d", None),
        _factory("e", 200),
        _factory("f", 201),
    )

    def transports() -> Any:
        yield wire

    found = _examine(
        _plugin(
            transports=transports,
            serializers=lambda: (plain,),
            dialects=lambda: [dialect],
            encodings=lambda: [encoding],
            extensions=lambda: {extension: 1},
        )
    )
    assert (found.transports, found.serializers) == ((wire,), (plain,))
    assert (found.dialects, found.encodings, found.extensions, found.observers) == (
        (dialect,),
        (encoding,),
        (extension,),
        (),
    )
    assert list(claims_of(found)) == [
        ("transport", "wire", wire),
        ("transport", "wires", wire),
        ("serializer", "plain", plain),
        ("dialect", "d", dialect),
        ("encoding", "e", encoding),
        ("extension id", 200, encoding),
        ("extension", "f", extension),
        ("extension id", 201, extension),
    ]


def test_a_plugin_may_be_any_object() -> None:
    """An instance, a class with static methods, a module."""

    class Pack:
        @hookimpl
        def penstock_serializers(self) -> list[Serializer]:
            return [Plain()]

    class Pile:
        @staticmethod
        @hookimpl
        def penstock_serializers() -> list[Serializer]:
            return [Plain()]

    module = types.ModuleType("pack")
    module.penstock_serializers = hookimpl(lambda: [Plain()])  # type: ignore[attr-defined]  # modules take any attribute
    assert [len(_examine(plugin).serializers) for plugin in (Pack(), Pile, module)] == [1, 1, 1]


def test_an_observer_may_omit_its_parameter() -> None:
    """Both forms are called with the event."""
    seen: list[object] = []
    found = _examine(
        _plugin(
            stream_ended=lambda event: seen.append(event) or None,
            connection_closed=lambda: seen.append("closed"),
        )
    )
    ended = StreamEnded(connection=1, stream=1, outbound=False, outcome=Outcome.LOST, elements=0)
    events = Events.of([("mine", hook, call) for hook, call in found.observers])
    events.stream_ended(ended)
    events.connection_closed(None)  # type: ignore[arg-type]  # the observer does not use it
    assert seen == [ended, "closed"]


def _raises(error: BaseException) -> Callable[[], object]:
    def load() -> object:
        raise error

    return load


@pytest.mark.parametrize(
    "error", [ImportError("no module named 'x'"), SyntaxError("bad"), ValueError(), SystemExit(3)]
)
def test_a_plugin_that_cannot_be_loaded_is_refused(error: BaseException) -> None:
    """Every exception of its import becomes a PluginError, SystemExit included."""
    with pytest.raises(PluginError, match=f"cannot be loaded: {type(error).__name__}") as caught:
        examine("mine", _raises(error), is_own=False)
    assert caught.value.__cause__ is error


def test_ctrl_c_during_the_import_is_not_caught() -> None:
    """It comes from the user, not from the plugin."""
    with pytest.raises(KeyboardInterrupt):
        examine("mine", _raises(KeyboardInterrupt()), is_own=False)


class RaisingDir:
    """Listing its attributes raises."""

    def __dir__(self) -> list[str]:
        raise RuntimeError("no attributes")


def _nothing() -> list[Serializer]:
    return []


def _unmarked() -> list[Serializer]:
    return []


def _one() -> object:
    return Plain()


async def _async() -> list[object]:
    return []


async def _async_generator() -> Any:
    yield 1


def _generator(event: object) -> Any:
    yield event


def _exploding() -> Any:
    yield Plain()
    raise RuntimeError("in the middle")


def _wrapper() -> Any:
    return (yield)


def _with_schemes(schemes: object) -> Transport:
    transport = Wire()
    transport.schemes = schemes  # type: ignore[misc,assignment]  # broken on purpose
    return transport


def _without_name() -> Serializer:
    serializer = Plain()
    serializer.name = None  # type: ignore[misc,assignment]  # broken on purpose
    return serializer


BROKEN = [
    ("no hooks", types.SimpleNamespace(), "has no hook"),
    (
        "hooks without the mark",
        types.SimpleNamespace(penstock_serializers=_unmarked),
        "has no hook",
    ),
    ("None", None, "has no hook"),
    ("its __dir__ raises", RaisingDir(), "does not fit: RuntimeError: no attributes"),
    ("misspelt", _plugin(serialisers=_nothing), "unknown hook 'penstock_serialisers'"),
    (
        "unknown parameter",
        _plugin(serializers=lambda registry: []),
        "declared in the hookimpl but can not be found",
    ),
    (
        "raises",
        _plugin(serializers=_raises(RuntimeError("no"))),
        "raised in penstock_serializers: RuntimeError: no",
    ),
    (
        "exits",
        _plugin(serializers=_raises(SystemExit(1))),
        "raised in penstock_serializers: SystemExit: 1",
    ),
    (
        "raises during iteration",
        _plugin(serializers=_exploding),
        "raised in penstock_serializers: RuntimeError: in the middle",
    ),
    (
        "returns None",
        _plugin(serializers=lambda: None),
        "returned None from penstock_serializers; return a list",
    ),
    ("returns no iterable", _plugin(serializers=_one), "return a list"),
    ("returns a str", _plugin(serializers=lambda: "plain"), "return a list"),
    ("returns another kind", _plugin(serializers=lambda: [Wire()]), "each must be a Serializer"),
    (
        "returns the class",
        _plugin(transports=lambda: [Wire]),
        r"each must be a Transport \(an object, not a class\)",
    ),
    ("returns tuples", _plugin(dialects=lambda: [("x", object)]), "each must be a Factory"),
    ("async", _plugin(serializers=_async), "async function as penstock_serializers"),
    ("async generator", _plugin(serializers=_async_generator), "async function"),
    ("async observer", _plugin(stream_opened=_async), "async function as penstock_stream_opened"),
    (
        "generator as observer",
        _plugin(stream_opened=_generator),
        "generator as penstock_stream_opened",
    ),
    (
        "wrapper",
        types.SimpleNamespace(penstock_serializers=hookimpl(_wrapper, wrapper=True)),
        "wrapper around penstock_serializers",
    ),
    (
        "old wrapper",
        types.SimpleNamespace(penstock_serializers=hookimpl(_wrapper, hookwrapper=True)),
        "wrapper around",
    ),
    (
        "no schemes",
        _plugin(transports=lambda: [_with_schemes(())]),
        "give a tuple of at least one scheme",
    ),
    (
        "schemes that are not a tuple",
        _plugin(transports=lambda: [_with_schemes("wire")]),
        "give a tuple of at least one scheme",
    ),
    (
        "a '+' in a scheme",
        _plugin(transports=lambda: [_with_schemes(("a+b",))]),
        r"has 'a\+b' as a scheme",
    ),
    (
        "a scheme in capitals",
        _plugin(transports=lambda: [_with_schemes(("Wire",))]),
        "has 'Wire' as a scheme",
    ),
    (
        "a scheme that is not a str",
        _plugin(transports=lambda: [_with_schemes((1,))]),
        "has 1 as a scheme",
    ),
    (
        "no name",
        _plugin(serializers=lambda: [_without_name()]),
        "has None as a name of a serializer",
    ),
    ("a dialect without a name", _plugin(dialects=lambda: [_factory("")]), "has '' as a name"),
    (
        "an encoding with a wrong name",
        _plugin(encodings=lambda: [_factory("No")]),
        "has 'No' as a name",
    ),
    (
        "an encoding without an id",
        _plugin(encodings=lambda: [_factory("x", None)]),
        "has id=None for 'x'",
    ),
    (
        "an extension without an id",
        _plugin(extensions=lambda: [_factory("x", None)]),
        "has id=None for 'x'",
    ),
    (
        "an id of penstock's",
        _plugin(extensions=lambda: [_factory("x", 127)]),
        "has id=127 for 'x'; give an integer from 128 on",
    ),
    ("an id below zero", _plugin(extensions=lambda: [_factory("x", -1)]), "has id=-1"),
    (
        "an id above the highest",
        _plugin(extensions=lambda: [_factory("x", 1 << 63)]),
        "has id=9223372036854775808",
    ),
    ("an id that is True", _plugin(extensions=lambda: [_factory("x", True)]), "has id=True"),
    (
        "a name twice",
        _plugin(serializers=lambda: [Plain(), Plain()]),
        "offers the serializer 'plain' twice",
    ),
    (
        "an id twice",
        _plugin(encodings=lambda: [_factory("x")], extensions=lambda: [_factory("y")]),
        "offers the extension id 200 twice",
    ),
]


@pytest.mark.parametrize(
    ("plugin", "why"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_plugin_is_refused_with_the_reason(plugin: object, why: str) -> None:
    """The message names the hook and the mistake."""
    with pytest.raises(PluginError, match=why):
        _examine(plugin)


@pytest.mark.parametrize("number", [128, (1 << 63) - 1])
def test_ids_of_plugins_are_128_to_2_63_minus_1(number: int) -> None:
    """Both ends are allowed."""
    assert _examine(_plugin(extensions=lambda: [_factory("x", number)])).extensions[0].id == number


def test_penstock_s_own_plugin_may_use_ids_below_128() -> None:
    """Other plugins may not."""
    assert (
        _examine(_plugin(extensions=lambda: [_factory("x", 1)]), is_own=True).extensions[0].id == 1
    )


@pytest.mark.parametrize(
    ("number", "distribution", "is_allowed"),
    [
        (16, "penstock-msgpack", True),
        (17, "penstock-protobuf", True),
        (17, "penstock-msgpack", False),
        (16, "penstock-protobuf", False),
        (16, "another", False),
        (16, "", False),
        (18, "", False),
        (0, "", False),
    ],
)
def test_two_ids_of_encodings_belong_to_distributions(
    number: int, distribution: str, is_allowed: bool
) -> None:
    """By the name of the distribution, and for an encoding only:
    an extension of it gets no id below 128.
    """

    def examined(**hooks: Callable[..., object]) -> object:
        return examine("mine", lambda: _plugin(**hooks), is_own=False, distribution=distribution)

    if is_allowed:
        assert examined(encodings=lambda: [_factory("x", number)])
    else:
        with pytest.raises(PluginError, match=f"has id={number} for 'x'"):
            examined(encodings=lambda: [_factory("x", number)])
    with pytest.raises(PluginError, match=f"has id={number} for 'x'"):
        examined(extensions=lambda: [_factory("x", number)])
