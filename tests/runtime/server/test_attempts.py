"""Wrong credentials: counted over every protocol, and bounded for an address and for a name, while
right ones are let in.
"""

from collections.abc import Callable
from inspect import isawaitable
from typing import Any

import pytest
import trio
import trio.testing

import penstock
from penstock import Credentials
from penstock.api import AuthRefused, Rejected, UsageError
from penstock.runtime.server import _attempts as module
from penstock.runtime.server._attempts import AT_ONCE, MOST_WAITING, PATIENCE, Attempts
from penstock.spi import PeerIdentity

Clock = trio.testing.MockClock
RIGHT = b"swordfish"


def at(host: str | None) -> PeerIdentity:
    return PeerIdentity(address="test", host=host)


NEAR, FAR = at("192.0.2.1"), at("198.51.100.7")


class Service:
    """The function of the program, and the calls to it."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.seen: list[bytes] = []
        self.seconds = seconds
        self.attempts = Attempts(self.authenticate)

    def authenticate(self, scheme: str, data: bytes, peer: PeerIdentity) -> Any:
        self.seen.append(data)
        if self.seconds:
            return self._later(data)
        return "alice" if data.endswith(RIGHT) else None

    async def _later(self, data: bytes) -> str | None:
        await trio.sleep(self.seconds)
        return "alice" if data.endswith(RIGHT) else None

    async def ask(self, data: bytes, peer: PeerIdentity = NEAR, scheme: str = "bearer") -> Any:
        """The verdict: a principal, None, or "later"."""
        try:
            verdict = self.attempts(scheme, data, peer)
            return await verdict if isawaitable(verdict) else verdict
        except Rejected as error:
            return "later" if error.temporary else error

    async def guess(self, seconds: float, peer: PeerIdentity = NEAR, scheme: str = "bearer") -> int:
        """Guess without a pause for `seconds`, 20 at a time. Return how many were examined."""
        before = len(self.seen)
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for guesser in range(20):
                    nursery.start_soon(self._guess, guesser, peer, scheme)
        return len(self.seen) - before

    async def _guess(self, guesser: int, peer: PeerIdentity, scheme: str) -> None:
        number = 0
        while True:
            number += 1
            await self.ask(b"anna:%d-%d" % (guesser, number), peer, scheme)
            await trio.sleep(0.01)


async def test_an_address_guesses_at_a_bounded_rate(autojump_clock: Clock) -> None:
    """The rate holds after its first failures. Another address is not slowed down, and this one is
    only for a time.
    """
    service = Service()
    assert await service.guess(60) <= AT_ONCE + 60 * module.PER_SECOND + 1
    assert await service.ask(b"other", FAR) is None
    await trio.sleep(AT_ONCE / module.PER_SECOND)
    assert await service.guess(1) >= AT_ONCE


async def test_a_name_is_guessed_at_a_bounded_rate_from_any_number_of_addresses(
    autojump_clock: Clock,
) -> None:
    """The other names are not slowed down."""
    service, examined = Service(), 0
    for number in range(50):
        examined += await service.guess(1, at(f"192.0.2.{number}"), "basic")
    assert examined <= AT_ONCE + 50 * module.PER_SECOND + 1
    began = trio.current_time()
    assert await service.ask(b"bob:" + RIGHT, FAR, "basic") == "alice"
    assert trio.current_time() == began


@pytest.mark.parametrize("seconds", [0.0, 0.01])
async def test_right_credentials_are_let_in_beside_guesses_from_the_same_address(
    nursery: trio.Nursery, autojump_clock: Clock, seconds: float
) -> None:
    """At once if the address has shown them before; else within some tries."""
    service = Service(seconds)
    assert await service.ask(RIGHT) == "alice"
    nursery.start_soon(service.guess, 3_600.0)
    await trio.sleep(60)
    began = trio.current_time()
    assert await service.ask(RIGHT) == "alice"
    assert trio.current_time() - began <= seconds + 1e-6
    tries = 0
    while await service.ask(b"new " + RIGHT) == "later":
        tries += 1
    assert tries < 60
    nursery.cancel_scope.cancel()


async def test_any_number_of_right_credentials_pass(autojump_clock: Clock) -> None:
    """Also while the address has used up its failures: a fleet whose tokens were renewed."""
    service = Service(0.01)
    await service.guess(10)
    verdicts: list[object] = []

    async def come(number: int) -> None:
        verdicts.append(await service.ask(b"%d " % number + RIGHT))

    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(come, number)
    assert verdicts == ["alice"] * 200


async def test_those_who_wait_are_bounded_in_number_and_time(autojump_clock: Clock) -> None:
    """More are refused at once, and may try again."""
    service = Service()
    await service.guess(1)
    verdicts: list[tuple[object, float]] = []
    began = trio.current_time()

    async def come(number: int) -> None:
        verdicts.append((await service.ask(b"%d" % number), trio.current_time() - began))

    async with trio.open_nursery() as nursery:
        for number in range(MOST_WAITING + 40):
            nursery.start_soon(come, number)
    assert sum(when == 0 and verdict == "later" for verdict, when in verdicts) == 40
    assert max(when for _, when in verdicts) == PATIENCE
    assert not any(failures.waiting for failures in service.attempts._failures.values())


async def test_credentials_that_are_revoked_are_examined_as_all_others(
    autojump_clock: Clock,
) -> None:
    """That they were right before lets them pass once."""
    service = Service()
    assert await service.ask(RIGHT) == "alice"
    await service.guess(5)
    service.attempts._authenticate = lambda *_: service.seen.append(b"")
    assert await service.ask(RIGHT) is None
    before = len(service.seen)
    with trio.move_on_after(0.01):
        await service.ask(RIGHT)
    assert len(service.seen) == before


async def test_tables_are_bounded_and_forget_who_never_fails(
    autojump_clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The addresses that failed first are forgotten. Right credentials leave no failure."""
    monkeypatch.setattr(module, "MOST_KEPT", 100)
    service = Service()
    for number in range(300):
        peer = at(f"192.0.{number // 200}.{number % 200}")
        assert await service.ask(b"wrong", peer) is None
        assert await service.ask(b"%d " % number + RIGHT, FAR) == "alice"
    assert len(service.attempts._failures) == len(service.attempts._right) == 100
    await trio.sleep(60)
    assert await service.ask(RIGHT, at("192.0.1.99")) == "alice"
    assert len(service.attempts._failures) == 99


async def test_a_client_that_shows_nothing_and_one_without_an_address_are_not_slowed_down(
    autojump_clock: Clock,
) -> None:
    """The first guesses nothing; the second is in this process, or at the end of a pipe."""
    service = Service()
    for _ in range(3 * AT_ONCE):
        assert await service.ask(b"") is None
        assert await service.ask(b"wrong", at(None)) is None
    assert service.attempts._failures == {}


async def test_a_failure_of_the_function_counts(autojump_clock: Clock) -> None:
    """It raises for wrong credentials, as it may."""

    def refuse(*_: object) -> None:
        raise Rejected("no")

    attempts = Attempts(refuse)
    for _ in range(AT_ONCE):
        with pytest.raises(Rejected, match="no"):
            attempts("bearer", b"wrong", NEAR)
    waiting = attempts("bearer", b"wrong", NEAR)
    assert isawaitable(waiting)
    waiting.close()  # type: ignore[attr-defined]  # a coroutine


@pytest.mark.parametrize("protocol", ["", "reactivesocket+"])
async def test_a_client_is_told_to_come_again(autojump_clock: Clock, protocol: str) -> None:
    """The refusal is temporary, and the server counts it apart from wrong credentials."""
    service = penstock.Service(authenticate=lambda _scheme, data, _peer: data.endswith(RIGHT))
    service.request("ask")(answer)
    async with penstock.serve(service, "memory://a") as server:
        url = f"{protocol}{server.addresses[0]}"

        async def try_once(number: int, tell: Callable[[Exception], None]) -> None:
            # The name is the same: a memory transport has no address.
            credentials = Credentials.basic("anna", f"{number}")
            try:
                async with penstock.connect(url, credentials=credentials) as peer:
                    await peer.request("ask")
            except Rejected as error:
                tell(error)

        told: list[Exception] = []
        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE + 40):
                nursery.start_soon(try_once, number, told.append)
        await trio.sleep(1)  # virtual: the server counts a connection that has ended
        later = [error for error in told if not isinstance(error, AuthRefused)]
        assert len(told) == AT_ONCE + 40
        assert len(later) > 20
        assert all(isinstance(error, Rejected) and error.temporary for error in later)
        assert server.refused == {"auth": len(told) - len(later), "limit:attempts": len(later)}


async def answer(payload: bytes) -> bytes:
    return payload


def _generator(*_: object) -> Any:
    yield "alice"


async def _async_generator(*_: object) -> Any:
    yield "alice"


async def _later(verdict: object) -> object:
    return verdict


@pytest.mark.parametrize("data", [b"", b"wrong"])
@pytest.mark.parametrize(
    "verdict",
    [
        _generator,
        _async_generator,
        lambda: _generator,
        lambda: _later(_generator()),
        lambda: _later(print),
    ],
)
async def test_what_was_not_run_is_no_principal(verdict: Callable[[], Any], data: bytes) -> None:
    """A generator or a function that is returned lets nobody in, and counts as a failure."""
    attempts = Attempts(lambda *_: verdict())
    for _ in range(AT_ONCE):
        with pytest.raises(UsageError, match=r"authenticate returned .*, which was not run"):
            decided = attempts("bearer", data, NEAR)
            if isawaitable(decided):
                await decided
    assert (await Service().ask(RIGHT)) == "alice"


async def test_a_client_of_a_function_that_returns_a_generator_is_refused() -> None:
    """Whoever wrote it is told."""
    told: list[Exception] = []
    service = penstock.Service(authenticate=lambda *_: _generator())
    service.publish("secret", [b"s"])
    async with penstock.serve(service, "memory://shop", on_violation=told.append):
        with pytest.raises(AuthRefused):
            await penstock.collect(
                penstock.remote("memory://shop/secret", credentials=Credentials.bearer("wrong"))
            )
    assert [type(each) for each in told] == [UsageError]


async def test_a_server_is_not_let_in_by_a_generator_either() -> None:
    """The function of a client that examines its server."""
    told: list[Exception] = []
    service = penstock.Service(authenticate=lambda *_: "alice")
    service.publish("numbers", [b"0"])
    shown = Credentials.bearer("s")
    async with penstock.serve(service, "memory://shop", credentials=shown):
        with pytest.raises(AuthRefused):
            async with penstock.connect(
                "memory://shop",
                credentials=shown,
                authenticate=lambda *_: _generator(),
                on_violation=told.append,
            ) as peer:
                async with peer.subscribe("numbers") as stream:
                    await anext(stream)
    assert [type(each) for each in told] == [UsageError]


@pytest.mark.parametrize("function", [_generator, _async_generator])
@pytest.mark.parametrize("what", ["authenticate", "authorize", "may_open"])
def test_a_function_with_yield_cannot_decide(what: str, function: Any) -> None:
    """It is refused before the first client comes."""
    with pytest.raises(UsageError, match=f"{what}=.* has a yield"):
        penstock.Service(**{what: function})
