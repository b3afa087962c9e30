"""What every connection to a server of Redis needs: a login, scripts, and texts for refusals."""

import re
from collections.abc import Sequence
from typing import Any, Final

import trio

from penstock.api import LogDamaged, LogError, UsageError
from penstock_redis._address import Address
from penstock_redis._link import Link, Refused, Word
from penstock_redis._scripts import Script

OLDEST: Final = (6, 2)
"""The first release with `XTRIM MINID` and ranges without their first entry."""

MISTAKES: Final = {"NOAUTH", "WRONGPASS", "NOPERM", "WRONGTYPE", "MOVED", "READONLY"}
"""Refusals that come again until the program or the server is changed."""

ADVICE: Final = {
    "NOAUTH": "It wants a password: give redis://user:password@host",
    "WRONGPASS": "Give the user and the password that the server has: redis://user:password@host",
    "NOPERM": "Give the user of the log the rights for its keys, {name}*, and for the categories "
    "@read @write @stream @scripting @connection (ACL SETUSER)",
    "WRONGTYPE": "A key of the log has a value of another program: give the log another name",
    "MOVED": "This server is a node of a cluster, and another node has the log: give its address",
    "READONLY": "This server is a replica: give the address of its master",
    "OOM": "The server has no memory for it: give it a higher maxmemory, or the log lower bounds "
    "in its Retention",
    "MISCONF": "The server cannot write to its disk: make room there",
    "NOREPLICAS": "The server has too few replicas: start them, or give it a lower "
    "min-replicas-to-write",
    "LOADING": "The server is reading its file after a start: try again",
    "BUSY": "A script of another program blocks the server: SCRIPT KILL ends it",
    "unknown": "A log needs scripts (EVALSHA), streams and CONFIG GET: use another server",
}


LOOK: Final = "Look at the log of the server"

LOGIN: Final = {
    "without any password": "The server has no password: leave user:password@ out of the URL",
    "DB index is out of range": "The server has fewer databases (16 by default): give the number "
    "of one that it has at the end of the URL, as in redis://127.0.0.1:6379/0",
}
"""What to do about a login that is refused, by a part of the text of the server."""


async def connected(address: Address, nursery: trio.Nursery) -> Link:
    """Return a new connection, logged in. Raises OSError, ConnectionLost, LogError, UsageError."""
    link = Link(await address.connect(), str(address))
    await nursery.start(link.run)
    try:
        if address.password:
            user = [address.username] if address.username else []
            await link.call("AUTH", *user, address.password)
        if address.database:
            await link.call("SELECT", address.database)
        # A server that reads its file after a start takes connections, and refuses commands.
        await link.call("PING")
    except Refused as error:
        link.close()
        for part, advice in LOGIN.items():
            if part in str(error):
                raise UsageError(f"{address} refused the login: {error}. {advice}") from None
        raise explained(error, address) from None
    except BaseException:
        link.close()
        raise
    return link


async def check_version(link: Link, address: Address) -> None:
    """Raise UsageError if the server is too old."""
    info = (await link.call("INFO", "server")).decode()
    version = re.search(r"redis_version:(\d+)\.(\d+)", info)
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise UsageError(
            f"{address} is Redis {version[0].partition(':')[2] if version else '?'}, and "
            f"a log needs {'.'.join(map(str, OLDEST))} or newer: upgrade the server"
        )


def gone(what: str, address: Address) -> LogDamaged:
    """Return the error about keys that are not as the log has left them."""
    return LogDamaged(
        f"{what} at {address}: another program has deleted or changed keys of the log, or the "
        "server came back without what it had. Restore them from a backup, or open a log of "
        "another name"
    )


def foreign(what: str, address: Address) -> LogDamaged:
    """Return the error about an entry that the log has not made."""
    return LogDamaged(
        f"{what} at {address}: nothing is appended after it. Let that program write to a key of "
        "another name, and delete the entry (XDEL); or open a log of another name"
    )


def explained(error: Refused, address: Address, outcome: str = "") -> Exception:
    """Return what a program is told about a refusal of the server. `outcome` is a sentence on the
    append that it was, if it was one. The error code does not have it: an attempt before may have
    appended.
    """
    text = str(error)
    if error.code == "GONE":
        return gone(text.removeprefix("GONE "), address)
    if error.code == "FOREIGN":
        return foreign(text.removeprefix("FOREIGN "), address)
    advice = ADVICE.get(error.code)
    if error.code == "ERR" and "unknown command" in text:
        advice = ADVICE["unknown"]
    kind: type[Exception] = UsageError if error.code in MISTAKES else LogError
    said = f"{text}. {outcome}" if outcome else text
    return kind(f"{address} refused a command: {said}. {advice or LOOK}")


async def evaluate(link: Link, script: Script, keys: Sequence[str], words: Sequence[Word]) -> Any:
    """Return what a script returns. Raises Refused, and ConnectionLost."""
    try:
        return await link.call("EVALSHA", script.digest, len(keys), *keys, *words)
    except Refused as error:
        if error.code != "NOSCRIPT":
            raise
    # The first call of this script: EVAL lets the server know it.
    return await link.call("EVAL", script.text, len(keys), *keys, *words)


def fields(reply: Sequence[bytes]) -> dict[str, str]:
    """Return names and values that came one after the other."""
    texts = [each.decode() for each in reply]
    return dict(zip(texts[::2], texts[1::2], strict=True))
