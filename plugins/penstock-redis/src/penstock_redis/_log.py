"""A log whose elements Redis keeps."""

import ssl
from collections.abc import Iterable

from penstock.api import UsageError, shown
from penstock.logs import BrokerLog, Retention
from penstock_redis._address import Address, parse_address
from penstock_redis._broker import Durability, RedisBroker

MOST_NAME_BYTES = 255


class RedisLog(BrokerLog):
    """A log on a server of Redis, 6.2 or newer. Any number of programs append to it and read it.

    ::

        keep = Retention(max_count=1_000_000)
        async with RedisLog("redis://127.0.0.1:6379/0", "orders", retention=keep) as log:
            await log.append([b"first", b"second"])

    `name` names the log on the server: its keys begin with ``{name}``. A log that is not there is
    made. `partitions` are added to those that it has. Each program that appends applies its own
    `retention`, with each append.

    `durability` says what an element survives whose append has returned, and opening raises
    UsageError if the server promises less:

    * ``"always"``: a crash of the machine. The server syncs its disk with each append
      (``appendonly yes``, ``appendfsync always``).
    * ``"everysec"``: the end of the server. A crash of the machine loses up to two seconds, and so
      may ``kill -9`` while its disk is slow.
    * ``"memory"``: nothing; the elements are gone when the server ends.
    * ``"unchecked"``: what you know of a server that does not show its settings.

    No level survives a failover to a replica: Redis replicates after it has answered.

    A call waits for at most `timeout` seconds for a server that cannot be reached or does not
    answer, and goes on where it was if it is back by then: no element is appended twice by that.
    ``read_only=True`` opens a log that is there for reading. `tls` is for ``rediss://``.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        retention: Retention | None = None,
        partitions: Iterable[str] = ("0",),
        durability: Durability = "always",
        timeout: float = 10.0,
        read_only: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address: Address = parse_address(url, tls)
        check_name(name)
        self._log_name = name
        self._read_only = read_only
        if read_only == (retention is not None):
            raise UsageError(
                "a log that is open for reading only drops nothing: leave retention out"
                if read_only
                else "RedisLog() needs retention=Retention(...), the bounds of what it keeps, as "
                "in Retention(max_count=1_000_000); or read_only=True"
            )
        if durability not in ("always", "everysec", "memory", "unchecked"):
            raise UsageError(
                f"durability={shown(durability)}; give 'always', 'everysec', 'memory' or "
                "'unchecked'"
            )
        broker = RedisBroker(
            self._address,
            name,
            retention=retention or Retention(max_count=2**63),
            durability="unchecked" if read_only else durability,
            timeout=check_seconds(timeout),
            read_only=read_only,
        )
        super().__init__(broker, partitions=partitions, retention=retention)

    @property
    def name(self) -> str:
        """The name of the log on its server."""
        return self._log_name

    def _check_writable(self) -> None:
        super()._check_writable()
        if self._read_only:
            raise UsageError(
                f"{self!r} is open for reading only: leave read_only=True out, and give retention, "
                "to append to it"
            )

    def __repr__(self) -> str:
        return f"<RedisLog {self._log_name!r} at {self._address}: {len(self._names)} partitions>"


def check_name(name: object) -> None:
    """Raise UsageError for a text that cannot be the name of a log."""
    if (
        not isinstance(name, str)
        or not 0 < len(name.encode(errors="replace")) <= MOST_NAME_BYTES
        or set("{}").intersection(name)
    ):
        raise UsageError(
            f"{shown(name)} cannot be the name of a log on Redis: give a text of 1 to "
            f"{MOST_NAME_BYTES} bytes without braces"
        )


def check_seconds(timeout: object) -> float:
    """Return a timeout. Raises UsageError."""
    # `not > 0`, because `<= 0` is false for a NaN. True would be a second.
    if type(timeout) not in (int, float) or not timeout > 0:  # type: ignore[operator]  # a number
        raise UsageError(f"timeout={shown(timeout)}; give seconds, more than 0")
    return float(timeout)  # type: ignore[arg-type]  # the same
