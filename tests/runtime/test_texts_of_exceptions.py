"""A publisher, a setup function or `may_open` may raise an exception whose text cannot be sent.
Its stream ends with another text.
"""

from collections.abc import AsyncIterator, Callable

import pytest
import trio
from trio.testing import MockClock

from penstock import (
    NotAvailable,
    PublicError,
    PublisherFailed,
    Rejected,
    Service,
    collect,
    connect,
    remote,
    serve,
)
from penstock.spi import PeerIdentity

PROTOCOLS = ("", "reactivesocket+")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_half_a_surrogate_pair_in_a_public_error_reaches_the_client_as_a_question_mark(
    protocol: str, autojump_clock: MockClock
) -> None:
    """The name of a file may have one.
    RS.io once sent nothing, so the client waited without end.
    """
    service = Service()

    @service.publisher("file")
    async def file() -> AsyncIterator[bytes]:
        raise PublicError("no file 7\udce9")
        yield b""

    url = f"{protocol}memory://texts"
    async with serve(service, url):
        with trio.fail_after(10), pytest.raises(PublisherFailed, match=r"no file 7\?"):
            await collect(remote(f"{url}/file"))


class MuteError(PublicError):
    def __str__(self) -> str:
        raise RuntimeError


class MuteRefusal(NotAvailable):
    def __str__(self) -> str:
        raise RuntimeError


def mute_service(setup: Callable[[bytes], bool] | None = None) -> Service:
    """Return a service whose exceptions have no text, before and after a stream has begun."""
    service = Service(setup=setup)

    @service.publisher("fails")
    async def fails() -> AsyncIterator[bytes]:
        raise MuteError
        yield b""

    @service.publisher("fails-at-once")
    def fails_at_once() -> AsyncIterator[bytes]:
        raise MuteError

    @service.publisher("denies")
    async def denies() -> AsyncIterator[bytes]:
        raise MuteRefusal
        yield b""

    @service.publisher("denies-at-once")
    def denies_at_once() -> AsyncIterator[bytes]:
        raise MuteRefusal

    return service


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_exception_whose_str_raises_ends_its_stream_alone(
    protocol: str, autojump_clock: MockClock
) -> None:
    """Such a stream once had no end, and such a function once ended the connection."""
    url = f"{protocol}memory://texts"
    async with serve(mute_service(), url, on_violation=lambda _: None), connect(url) as peer:
        with trio.fail_after(10):
            for name in ("fails", "fails-at-once"):
                with pytest.raises(
                    (PublisherFailed, Rejected), match="MuteError, whose __str__ raised"
                ):
                    await collect(peer.source(name))
            for name in ("denies", "denies-at-once"):
                with pytest.raises((PublisherFailed, Rejected), match="no such publisher"):
                    await collect(peer.source(name))


async def test_a_setup_function_whose_exception_has_no_text_refuses_the_client(
    autojump_clock: MockClock,
) -> None:
    """The client is told the class of the exception."""

    def refuse(data: bytes) -> bool:
        raise MuteError

    url = "reactivesocket+memory://texts"
    async with serve(mute_service(refuse), url, on_violation=lambda _: None):
        with trio.fail_after(10), pytest.raises(Rejected, match="MuteError, whose __str__ raised"):
            async with connect(url) as peer:
                await peer.wait_accepted()


async def test_a_failure_of_may_open_without_a_text_refuses_the_name(
    autojump_clock: MockClock,
) -> None:
    """In the same words as a name that is not there."""

    def may_open(target: object, peer: PeerIdentity) -> bool:
        raise MuteRefusal

    service = Service(may_open=may_open)
    service.publish("numbers", range(3), serializer="json")
    async with serve(service, "memory://texts"):
        with trio.fail_after(10), pytest.raises(Rejected, match="no such publisher"):
            await collect(remote("memory://texts/numbers", serializer="json"))
