"""A publisher may raise an exception whose text cannot be sent. Its stream ends all the same."""

from collections.abc import AsyncIterator

import pytest
import trio
from trio.testing import MockClock

from penstock import PublicError, PublisherFailed, Service, collect, remote, serve

PROTOCOLS = ("", "reactivesocket+")


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_half_a_surrogate_pair_in_a_public_error_reaches_the_client_as_a_question_mark(
    protocol: str, autojump_clock: MockClock
) -> None:
    """The name of a file may have one. RS.io once sent nothing, so the client waited without end."""
    service = Service()

    @service.publisher("file")
    async def file() -> AsyncIterator[bytes]:
        raise PublicError("no file caf\udce9")
        yield b""

    url = f"{protocol}memory://texts"
    async with serve(service, url):
        with trio.fail_after(10), pytest.raises(PublisherFailed, match=r"no file caf\?"):
            await collect(remote(f"{url}/file"))
