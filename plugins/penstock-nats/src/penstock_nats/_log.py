"""A log whose elements JetStream keeps."""

import re
import ssl
from collections.abc import Iterable
from typing import Final

from penstock.api import UsageError, shown
from penstock.logs import BrokerLog, Retention
from penstock_nats._address import Address, parse_address
from penstock_nats._broker import WINDOW, JetStreamBroker

_NAME: Final = re.compile(r"[^\s.*>/\\=\x00-\x1f\x7f]{1,100}")


class JetStreamLog(BrokerLog):
    """A log on a server of NATS with JetStream, 2.12 or newer. Any number of programs append to it
    and read it.

    ::

        keep = Retention(max_count=1_000_000)
        async with JetStreamLog("nats://127.0.0.1:4222", "orders", retention=keep) as log:
            await log.append([b"first", b"second"])

    Each partition is a stream, ``orders=0``, with the subject ``orders.0``. One that is not there
    is made, with `replicas` copies, and the `retention` of the program that has opened the log last
    counts. `partitions` are added to those that the log has.

    An element whose append has returned survives the end of the server. JetStream syncs its disk
    every two minutes: a crash of the machine loses what is newer, unless the server has
    ``sync_interval: always``. A client cannot see that setting.

    A call waits for at most `timeout` seconds for a server that cannot be reached or does not
    answer, and goes on where it was if it is back by then: no element is appended twice by that.
    ``read_only=True`` opens a log that is there for reading. `tls` is for ``tls://``.

    Transactions are refused: an append of JetStream is atomic in one stream only.
    """

    def __init__(
        self,
        url: str,
        name: str,
        *,
        retention: Retention | None = None,
        partitions: Iterable[str] = ("0",),
        replicas: int = 1,
        timeout: float = 10.0,
        read_only: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._address: Address = parse_address(url, tls)
        names = tuple(partitions)
        for each in (name, *names):
            check_name(each)
        self._log_name = name
        self._read_only = read_only
        if read_only == (retention is not None):
            raise UsageError(
                "a log that is open for reading only drops nothing: leave retention out"
                if read_only
                else "JetStreamLog() needs retention=Retention(...), the bounds of what it keeps, "
                "as in Retention(max_count=1_000_000); or read_only=True"
            )
        broker = JetStreamBroker(
            self._address,
            name,
            retention=retention,
            replicas=replicas,
            timeout=check_seconds(timeout),
        )
        super().__init__(broker, partitions=names, retention=retention, refuses=["transactions"])

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
        return f"<JetStreamLog {self.name!r} at {self._address}: {len(self._names)} partitions>"


def check_name(name: object) -> None:
    """Raise UsageError for a text that cannot be the name of a log or a partition."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"{shown(name)} cannot be the name of a log or partition on JetStream: give a text of "
            "1 to 100 characters without spaces and . * > / \\ ="
        )


def check_seconds(timeout: object) -> float:
    """Return a timeout. Raises UsageError."""
    # `not > 0`, because `<= 0` is false for a NaN. True would be a second.
    if type(timeout) not in (int, float) or not 0 < timeout < WINDOW / 2:  # type: ignore[operator]  # a number
        raise UsageError(
            f"timeout={shown(timeout)}; give seconds, more than 0 and less than {WINDOW / 2:g}: "
            "the server knows for two minutes what was appended"
        )
    return float(timeout)  # type: ignore[arg-type]  # the same
