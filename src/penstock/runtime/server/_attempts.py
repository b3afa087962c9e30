"""Guesses: how often clients may show wrong credentials, over every protocol of a server.

Rules of this file:

* Wrong credentials count for the address of their client and, with the scheme ``basic``, for the
  name that they claim: one address may guess many names, and many addresses one name.
* Beyond `AT_ONCE` failures an address or a name has one examination in `1 / PER_SECOND` seconds.
  Others wait for it, `MOST_WAITING` at a time and `PATIENCE` seconds each, and are refused then
  without an examination: the client may try again.
* Right credentials use nothing up. While an address or a name has failures, an examination takes a
  place, and a success gives it back. So any number of right ones pass, one after the other.
* Credentials that an address has shown and that were right are examined at once: clients that share
  the address of an attacker can always come back.
* A client that shows nothing guesses nothing, and is not counted.
* Workers of one server tell each other what was wrong, in the hashes of one secret: an address gets
  the same number of guesses from all of them together, but for those that are examined at the same
  time.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from hashlib import blake2b
from inspect import isawaitable
from secrets import token_bytes
from typing import Any, Final, NoReturn

import trio

from penstock.api import Rejected
from penstock.runtime.server._origin import origin_of
from penstock.spi import PeerIdentity, verdict_of

AT_ONCE: Final = 30
"""Failures of an address or a name that cost it nothing: a fleet whose token has expired."""

PER_SECOND: Final = 2.0
"""Failures a second after that: 172,800 guesses a day."""

MOST_WAITING: Final = 256
"""Examinations of an address or a name that may wait: the connections of an address."""

PATIENCE: Final = 5.0
"""Seconds that an examination waits: half of `Limits.handshake_timeout`."""

MOMENT: Final = 0.01
"""The shortest wait."""

MOST_KEPT: Final = 4_096
"""Addresses and names with failures, and right credentials, that are remembered: about 1 MiB."""

Authenticate = Callable[[str, bytes, PeerIdentity], Any]
"""Returns the principal, or None or False to refuse; sync or async."""


class _Failures:
    """The examinations that one address or name may still have at once."""

    __slots__ = ("_left", "_since", "changed", "waiting")

    def __init__(self, now: float) -> None:
        self._left: float = AT_ONCE
        self._since = now
        self.waiting: int = 0
        self.changed: trio.lowlevel.ParkingLot = trio.lowlevel.ParkingLot()

    def left(self, now: float) -> float:
        """Return how many there are."""
        self._left = min(AT_ONCE, self._left + (now - self._since) * PER_SECOND)
        self._since = now
        return self._left

    def change(self, by: float, now: float) -> None:
        """Take one, or give one back."""
        # Below zero by those that run at the same time, which `left` has let in; not by more.
        self._left = self.left(now) + by
        if by > 0:
            self.changed.unpark()


class AttemptsShare:
    """The part of a worker's attempts that it has in common with the other workers."""

    def __init__(self, secret: bytes, tell: Callable[[Sequence[bytes]], object]) -> None:
        """`tell` is called with the keys of each failure."""
        self.secret: bytes = secret
        self.tell: Callable[[Sequence[bytes]], object] = tell
        self.on_failure: Callable[[Sequence[bytes]], None] = _tell_nobody
        """Counts a failure in another worker. Set by `Attempts`."""


class Attempts:
    """Examines the credentials of the clients of one server. Called as the function of the program
    is, and in its place.
    """

    def __init__(self, authenticate: Authenticate, share: "AttemptsShare | None" = None) -> None:
        """`share` joins the attempts of several processes; None for a server in one process."""
        self._authenticate = partial(verdict_of, authenticate)
        # Strangers choose the entries of the tables. Keyed hashes keep them from choosing the place
        # in a table, and no secret is kept.
        self._secret = token_bytes(16) if share is None else share.secret
        self._tell: Callable[[Sequence[bytes]], object] = (
            _tell_nobody if share is None else share.tell
        )
        if share is not None:
            share.on_failure = self._note_elsewhere
        self._failures: dict[Hashable, _Failures] = {}  # the one that failed last is the last
        self._right: dict[bytes, None] = {}  # the one that was shown last is the last

    def __call__(self, scheme: str, data: bytes, peer: PeerIdentity) -> Any:
        """Return the verdict of the program, or an awaitable of it. Raises, or fails with,
        Rejected if the client must wait.
        """
        if not data:
            return self._authenticate(scheme, data, peer)
        shown = self._hash(b"shown", repr((origin_of(peer), scheme)).encode(), data)
        keys = self._keys(scheme, data, peer)
        now = trio.current_time()
        if shown in self._right or self._empty(keys, now) is None:
            return self._examine(scheme, data, peer, shown, keys)
        return self._wait(scheme, data, peer, shown, keys)

    # --- inside

    def _note_elsewhere(self, keys: Sequence[bytes]) -> None:
        """Count a failure that another worker has seen."""
        now = trio.current_time()
        for key in keys:
            self._failures[key] = counted = self._failures.pop(key, None) or _Failures(now)
            counted.change(-1, now)
        _bound(self._failures)

    def _keys(self, scheme: str, data: bytes, peer: PeerIdentity) -> list[bytes]:
        """Return what the attempt counts for."""
        keys: list[bytes] = []
        # Clients of memory and of pipes have no origin.
        if (origin := origin_of(peer)) is not None:
            keys.append(origin.encode())
        if scheme == "basic":
            keys.append(self._hash(b"name", data.partition(b":")[0]))
        return keys

    def _hash(self, *parts: bytes) -> bytes:
        hashed = blake2b(key=self._secret, digest_size=16)
        for part in parts:
            hashed.update(len(part).to_bytes(8) + part)
        return hashed.digest()

    def _empty(self, keys: list[bytes], now: float) -> _Failures | None:
        """Return the failures of a key that has no examination left, or None."""
        for key in keys:
            failures = self._failures.get(key)
            if failures is not None and failures.left(now) < 1:
                return failures
        return None

    async def _wait(
        self, scheme: str, data: bytes, peer: PeerIdentity, shown: bytes, keys: list[bytes]
    ) -> Any:
        ends = trio.current_time() + PATIENCE
        while (failures := self._empty(keys, now := trio.current_time())) is not None:
            if now >= ends or failures.waiting >= MOST_WAITING:
                _refuse()
            failures.waiting += 1
            try:
                # Until the next one is there, or a right one has given its place back. A rounding
                # error must not make the wait end where it began.
                wait = max(MOMENT, (1 - failures.left(now)) / PER_SECOND)
                with trio.move_on_at(min(ends, now + wait)):
                    await failures.changed.park()
            finally:
                failures.waiting -= 1
        verdict = self._examine(scheme, data, peer, shown, keys)
        return await verdict if isawaitable(verdict) else verdict

    def _examine(
        self, scheme: str, data: bytes, peer: PeerIdentity, shown: bytes, keys: list[bytes]
    ) -> Any:
        # Taken before: examinations that run at the same time count.
        now = trio.current_time()
        taken = [self._failures[key] for key in keys if key in self._failures]
        for failures in taken:
            failures.change(-1, now)
        try:
            verdict = self._authenticate(scheme, data, peer)
        except BaseException:
            self._settle(shown, keys, taken, is_right=False)
            raise
        if isawaitable(verdict):
            return self._await(verdict, shown, keys, taken)
        self._settle(shown, keys, taken, is_right=_is_right(verdict))
        return verdict

    async def _await(
        self, awaitable: Any, shown: bytes, keys: list[bytes], taken: list[_Failures]
    ) -> Any:
        verdict: Any = None
        try:
            verdict = await awaitable
        finally:
            self._settle(shown, keys, taken, is_right=_is_right(verdict))
        return verdict

    def _settle(
        self, shown: bytes, keys: list[bytes], taken: list[_Failures], *, is_right: bool
    ) -> None:
        """Count a failure for each key, or give back what was `taken`."""
        now = trio.current_time()
        if not is_right:
            self._tell(keys)
        self._right.pop(shown, None)
        if is_right:
            self._right[shown] = None
            _bound(self._right)
            for failures in taken:
                failures.change(1, now)
        for key in keys:
            # Taken out and put in again: the last one of the table is the newest.
            known = self._failures.pop(key, None)
            if not is_right:
                self._failures[key] = counted = _Failures(now) if known is None else known
                if counted not in taken:
                    counted.change(-1, now)
            # Most addresses never fail, and leave nothing here.
            elif known is not None and (known.left(now) < AT_ONCE or known.waiting):
                self._failures[key] = known
        _bound(self._failures)


def _tell_nobody(_keys: Sequence[bytes]) -> None:
    """Do nothing: the server has one process."""


def _is_right(verdict: object) -> bool:
    return verdict is not None and verdict is not False


def _refuse() -> NoReturn:
    raise Rejected(
        "the credentials were not examined: too many wrong ones came from the address of this "
        f"client, or for its name. Try again later; one is examined every {1 / PER_SECOND:g} s",
        processed=False,
        temporary=True,
    )


def _bound(table: dict[Any, Any]) -> None:
    """Forget the oldest entry of a table that is too large."""
    while len(table) > MOST_KEPT:
        del table[next(iter(table))]
