"""Handlers of requests by name: which functions can be one, and the arguments of a call."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any, NewType

import pytest

from penstock.api import PublicError, UsageError
from penstock.runtime.service import Service
from penstock.runtime.service._cannot_open import UnfitPayload
from penstock.runtime.service._named_requests import NamedCall
from penstock.spi import PeerIdentity, Serializer, build_registry
from tests.runtime._named import RECORDS, Price, named_service

PEER = PeerIdentity(address="test")


async def call(service: Service, name: str, payload: bytes | None = None) -> Any:
    """Return what the handler of `name` answers."""
    found = service.find(name, PEER, payload)
    assert isinstance(found, NamedCall)
    found.use(build_registry())
    return await found(b"", PEER)


async def test_the_payload_and_the_parameters_of_the_name_are_converted() -> None:
    """By their annotations; the answer becomes bytes by its own."""
    service = named_service()
    assert (
        await call(service, "price/EURUSD?cents=7", b'{"lots": 2}')
        == b'{"symbol": "EURUSD", "cents": 14}'
    )
    assert await call(service, "upper", b"a") == b"A"
    assert await call(service, "whoami") == b"test"


async def test_a_default_stands_for_no_payload() -> None:
    """And not for an empty one."""
    service = named_service()
    assert await call(service, "echo") == b"nothing"
    assert await call(service, "echo", b"") == b""


@pytest.mark.parametrize(
    ("name", "payload", "says"),
    [
        ("upper", None, "needs a payload"),
        ("time", b"", "takes no payload"),
        ("numbers", b"", "is a publisher"),
    ],
)
def test_a_payload_that_does_not_fit_opens_nothing(
    name: str, payload: bytes | None, says: str
) -> None:
    """The text names the pattern, and not what the peer sent."""
    with pytest.raises(UnfitPayload, match=says):
        named_service().find(name, PEER, payload)


def test_parameters_that_do_not_fit_are_an_unknown_name() -> None:
    """The service finds no handler, as it finds no publisher."""
    service = named_service()
    for name in ("price", "price/", "price/a?cents=x", "price/a?payload=1", "nowhere"):
        assert service.find(name, PEER, b"") is None


async def test_a_payload_that_cannot_be_read_is_a_public_error() -> None:
    """With the pattern, the length and the reason; the serializer's own error is its cause."""
    with pytest.raises(
        PublicError, match=r"price/\{symbol\}, 2 bytes, .* 'records': at byte 1"
    ) as raised:
        await call(named_service(), "price/a", b"[x")
    assert raised.value.__cause__ is not None


async def test_none_is_passed_on_and_not_encoded() -> None:
    """It is refused in the words for all handlers."""
    service = Service()

    @service.request("none", serializer=RECORDS)
    async def none() -> Any:
        return None

    assert await call(service, "none") is None


async def one(symbol: str) -> bytes:
    return symbol.encode()


async def no_answer() -> None: ...


async def perhaps() -> Price | None: ...


async def optionally() -> "Price | None": ...


Found = NewType("Found", Annotated[bytes | None, "a note"])  # type: ignore[valid-newtype]  # what is tried


async def by_another_name() -> Found: ...  # type: ignore[empty-body]  # it is never called


async def streams() -> AsyncIterator[bytes]: ...  # type: ignore[empty-body]  # it is never called


async def generator() -> AsyncIterator[bytes]:
    yield b""


async def order_by_another_name(order: Price) -> Price: ...  # type: ignore[empty-body]  # it is never called


async def positional(payload: bytes, /) -> bytes:
    return payload


async def identity(payload: PeerIdentity) -> bytes:
    return payload.address.encode()


def plain() -> bytes:
    return b""


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("a", plain, "no `async def` function"),
        ("a", generator, "use @service.publisher"),
        ("a", 3, "no `async def` function"),
        ("a", no_answer, "annotated to return None"),
        (
            "a",
            perhaps,
            r"annotated to return .*Price \| None, and None is never an answer \(rule 2.13\). For no value return one that",
        ),
        (
            "a",
            optionally,
            "or raise PublicError with the reason; then leave `| None` out".replace("|", r"\|"),
        ),
        ("a", by_another_name, "None is never an answer"),
        ("a", streams, "returns a stream"),
        (
            "a",
            order_by_another_name,
            (
                "no text can become the parameter 'order'.*gets the payload of a request is "
                "called 'payload'"
            ),
        ),
        ("a", positional, "'payload' of its function cannot be given by name"),
        ("a", identity, "give the one for the PeerIdentity another name"),
        ("a/{payload}", one, "cannot be called 'payload'"),
        ("a/{other}", one, "has the parameter 'other', which its function does not take"),
        ("/a", one, "cannot be a publisher's name"),
    ],
)
def test_a_function_that_no_request_could_call_is_refused(
    name: str, function: Callable[..., Awaitable[bytes]], says: str
) -> None:
    """When it is decorated."""
    with pytest.raises(UsageError, match=says):
        Service().request(name)(function)


def test_names_of_publishers_and_requests_are_of_one_kind() -> None:
    """One of each name, in one list."""
    service = named_service()
    with pytest.raises(UsageError, match="matches the same names"):
        service.publish("time", [b""])
    assert service.names() == ["echo", "numbers", "price/{symbol}", "time", "upper", "whoami"]


def test_a_serializer_that_is_missing_is_found_before_the_first_request() -> None:
    """By the check that `serve` makes; the message names the request."""
    service = Service()
    service.request("a/{symbol}", serializer="nowhere")(one)
    with pytest.raises(UsageError, match=r"the request 'a/\{symbol\}': .*nowhere"):
        service.check(build_registry())
    with pytest.raises(UsageError, match="give a name like"):
        service.request("b/{symbol}", serializer=3)(one)  # type: ignore[arg-type]  # the mistake of the test


async def test_a_serializer_that_knows_no_types_is_taken_as_it_is() -> None:
    """The annotations are the author's own then."""
    service = Service()

    class Backwards(Serializer):
        name = "backwards"

        def dumps(self, element: object, /) -> bytes:
            return str(element)[::-1].encode()

        def loads(self, data: bytes, /) -> object:
            return data[::-1].decode()

    @service.request("same", serializer=Backwards())
    async def same(payload: Price) -> Price:
        assert payload == "cba"  # type: ignore[comparison-overlap]  # what the serializer gives
        return payload

    assert await call(service, "same", b"abc") == b"abc"
