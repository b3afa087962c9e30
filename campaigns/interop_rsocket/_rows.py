"""The rows of the table: what a server is asked, and the service that a client asks.

Every peer has the same routes: ``echo`` answers with the data, ``fail`` with an error "boom",
``seen`` with the number of bytes of the last message, ``type`` with the data type of the SETUP,
``count/N`` (``count.N`` of peers) is a stream of N numbers, ``double`` a channel that repeats each
element in itself, and ``ask-back`` asks the client for its ``hello``. A Spring service also has
``order/DISCOUNT``, which takes an `Order` and answers with a `Receipt`, and ``cancelled``, the
number of streams that were cancelled.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import attrs
import trio
from penstock_rsocket import SetupData

import penstock
from penstock import Credentials, PublisherFailed, Rejected, Source
from penstock.spi import PeerIdentity

COMMON = (
    "request-response",
    "fragments",
    "error",
    "fire-and-forget",
    "stream",
    "cancel",
    "channel",
    "setup",
)
OF_SPRING = ("cancel heard", "typed", "invalid", "credentials")
ROWS = (*COMMON, *OF_SPRING, "asks back", "leases", "page")
HANGS_AFTER = 20


@dataclass
class Order:
    """What ``order`` takes."""

    symbol: str
    amount: int


@dataclass
class Receipt:
    """What ``order`` answers with."""

    symbol: str
    total: float


# --- our service


def service_of(clients: Callable[[], Sequence[penstock.Peer]]) -> penstock.Service:
    """Return the service that a client is served with. ``ask-back`` asks one of `clients`."""
    seen = [b"nothing"]

    def authenticate(scheme: str, data: bytes, _peer: PeerIdentity) -> str | None:
        known = {("bearer", b"token"), ("basic", b"ann:secret")}
        return "client" if (scheme, data) in known else None

    service = penstock.Service(authenticate=authenticate)

    @service.request("echo")
    async def echo(payload: bytes) -> bytes:
        return payload

    @service.request("fail")
    async def fail() -> bytes:
        raise penstock.PublicError("boom")

    @service.request("note")
    async def note(payload: bytes) -> bytes:
        seen[0] = b"%d" % len(payload)
        return b""

    @service.request("seen")
    async def last() -> bytes:
        return seen[0]

    @service.request("ask-back")
    async def ask_back() -> bytes:
        return bytes(await clients()[0].request("hello", b"penstock"))

    @service.request("order/{discount}")
    async def order(discount: int, payload: Order) -> Receipt:
        return Receipt(payload.symbol, payload.amount * 100.0 - discount)

    _add_streams(service)
    return service


def _add_streams(service: penstock.Service) -> None:
    cancelled = [0]

    @service.publisher("count/{n}")
    async def count(n: int) -> AsyncIterator[bytes]:
        is_over = False
        try:
            for number in range(n):
                yield b"%d" % number
            is_over = True
        finally:
            cancelled[0] += not is_over

    @service.request("cancelled")
    async def how_many_cancelled() -> bytes:
        return b"%d" % cancelled[0]

    @service.publisher("double")
    async def double(elements: Source[bytes]) -> AsyncIterator[bytes]:
        async with penstock.subscribe(elements, demand=3) as stream:
            async for element in stream:
                yield element * 2


def greeting_of() -> penstock.Service:
    """Return the service of a client, which its server asks."""
    service = penstock.Service()

    @service.request("hello")
    async def hello(payload: bytes) -> bytes:
        return b"hello " + payload

    return service


async def numbers(count: int) -> AsyncIterator[bytes]:
    for number in range(count):
        yield b"%d" % number


# --- what a server is asked


@attrs.frozen
class Checks:
    """The checks of a server, by row."""

    url: str
    peer: penstock.Peer

    async def echo(self) -> bool:
        return bytes(await self.peer.request("echo", b"x")) == b"x"

    async def fragments(self) -> bool:
        data = bytes(range(256)) * 1000
        return bytes(await self.peer.request("echo", data)) == data

    async def error(self) -> bool:
        try:
            await self.peer.request("fail")
        except PublisherFailed as failed:
            return "boom" in str(failed)
        return False

    async def message(self) -> bool:
        await self.peer.fire_and_forget(bytes(10_000), name="note")
        for _ in range(100):
            if await self.peer.request("seen") == b"10000":
                return True
        return False

    async def stream(self) -> bool:
        async with self.peer.subscribe("count.2000", demand=7) as elements:
            return [element async for element in elements] == [b"%d" % n for n in range(2000)]

    async def cancel(self) -> bool:
        async with self.peer.subscribe("count.100000", demand=16) as elements:
            await anext(elements)
        return await self.echo()

    async def cancel_heard(self) -> bool:
        for _ in range(100):
            if await self.peer.request("cancelled") != b"0":
                return True
        return False

    async def channel(self) -> bool:
        async with self.peer.request_channel(numbers(50), name="double", demand=5) as elements:
            return [element async for element in elements] == [b"%d" % n * 2 for n in range(50)]

    async def setup(self) -> bool:
        return bytes(await self.peer.request("type")) == b"application/json"

    async def typed(self) -> bool:
        receipt = await self.peer.request("order.7", Order("AAPL", 3), type=Receipt)
        return receipt == Receipt("AAPL", 293.0)

    async def invalid(self) -> bool:
        try:
            await self.peer.request("order.7", Order("", 0), type=Receipt)
        except PublisherFailed as failed:
            return "amount" in str(failed) and "symbol" in str(failed)
        return False

    async def credentials(self) -> bool:
        async with connect(self.url, Credentials.basic("ann", "secret")) as peer:
            accepted = await peer.request("echo", b"x") == b"x"
        wrong = (Credentials.basic("ann", "guess"), Credentials.bearer("guess"), None)
        return accepted and all([await self._is_refused(each) for each in wrong])

    async def _is_refused(self, credentials: Credentials | None) -> bool:
        try:
            async with connect(self.url, credentials) as peer:
                await peer.request("echo", b"x")
        except Rejected:
            return True
        return False

    async def asks_back(self) -> bool:
        return bytes(await self.peer.request("ask-back")).startswith(b"hello ")


CHECKS: dict[str, Callable[[Checks], Awaitable[bool]]] = {
    "request-response": Checks.echo,
    "fragments": Checks.fragments,
    "error": Checks.error,
    "fire-and-forget": Checks.message,
    "stream": Checks.stream,
    "cancel": Checks.cancel,
    "cancel heard": Checks.cancel_heard,
    "channel": Checks.channel,
    "setup": Checks.setup,
    "typed": Checks.typed,
    "invalid": Checks.invalid,
    "credentials": Checks.credentials,
    "asks back": Checks.asks_back,
}


def connect(
    url: str, credentials: Credentials | None
) -> AbstractAsyncContextManager[penstock.Peer]:
    """Connect as the rows do."""
    return penstock.connect(
        url,
        setup=SetupData(b"hi", data_type="application/json"),
        credentials=credentials,
        service=greeting_of(),
    )


async def ask(url: str, rows: tuple[str, ...]) -> dict[str, str]:
    """Ask a server for each of the rows that has a check. Return what was found."""
    async with connect(url, Credentials.bearer("token")) as peer:
        checks = Checks(url, peer)
        return {row: await judge(CHECKS[row], checks) for row in rows if row in CHECKS}


async def ask_with_leases(url: str) -> bool:
    """Ask 8 times at once a server that permits 3 requests a second, and refuses more."""
    # A second: a request that crosses with the next lease is counted in it by the server, and one
    # of the next requests is refused.
    answers: list[bytes] = []
    async with penstock.connect(url, setup=SetupData(leases=True)) as peer:

        async def once(number: int) -> None:
            answers.append(bytes(await peer.request("echo", b"%d" % number)))

        async with trio.open_nursery() as nursery:
            for number in range(8):
                nursery.start_soon(once, number)
    return sorted(map(int, answers)) == list(range(8))


async def judge(
    check: Callable[..., Awaitable[bool]], *arguments: object, within: float = HANGS_AFTER
) -> str:
    """Return what one cell of the table says."""
    try:
        with trio.fail_after(within):
            return "ok" if await check(*arguments) else "wrong answer"
    except Exception as failed:  # boundary: a row that fails must not hide the others
        return repr(failed)
