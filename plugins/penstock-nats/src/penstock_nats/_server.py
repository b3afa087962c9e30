"""What every connection to a server of NATS needs: a login, the API of JetStream, and texts for
refusals.
"""

import json
import random
import re
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Final, TypeVar

import trio

from penstock.api import ConnectionLost, LogError, UsageError, shown
from penstock_nats._address import Address
from penstock_nats._link import Link, Message

T = TypeVar("T")

OLDEST: Final = (2, 12)
"""The first release with atomic batches."""

NO_STREAM: Final = 10059
NO_CONSUMER: Final = 10014
NO_CLUSTER: Final = 10074  # more replicas than servers
NO_ROOM: Final = (10023, 10047, 10028)
NO_JETSTREAM: Final = (10076, 10039)
NO_RIGHTS: Final = 403
WRONG_LAST: Final = 10071
DUPLICATE: Final = 10201
TOO_LARGE: Final = 10054
TOO_MANY: Final = 10210  # unfinished batches of a stream, those of lost connections among them
NO_LEADER: Final = (10008, 10009, 10118, 10158)
"""Codes of errors of JetStream. 10158: an earlier attempt with these ids is not decided yet."""

LONGEST_ANSWER: Final = 2.0
"""Seconds for an answer of a cluster, as often as the time of a call has room for it."""

LONGEST_TRY: Final = 2.0
"""Seconds for one server, while others may answer."""


class Refused(Exception):
    """The server refused a request. `code` is that of JetStream."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class NoLeader(ConnectionLost):
    """A cluster elects a leader, and answers nothing until then."""

    def __init__(self) -> None:
        super().__init__(
            "the cluster has no leader for this now: look whether more than half of its servers run"
        )


async def connected(address: Address, nursery: trio.Nursery) -> Link:
    """Return a new connection to one of the servers, logged in. Raises OSError, ConnectionLost, and
    UsageError for a server that is too old, or that refuses the user.
    """
    link = await _logged_in(address)
    await nursery.start(link.run)
    return link


async def _logged_in(address: Address) -> Link:
    *others, last = random.sample(address.servers, len(address.servers))
    for host, port in others:
        # The next one may answer.
        with suppress(OSError, ConnectionLost), trio.move_on_after(LONGEST_TRY):
            return await _log_in(address, host, port)
    return await _log_in(address, *last)


async def _log_in(address: Address, host: str, port: int) -> Link:
    link = Link(await trio.open_tcp_stream(host, port), str(address))
    try:
        await link.log_in(address.login, address.tls, host)
        _check_version(link, address)
    except BaseException:
        await link.abandon()
        raise
    return link


def _check_version(link: Link, address: Address) -> None:
    version = re.match(r"(\d+)\.(\d+)", str(link.info.get("version", "")))
    if version is None or (int(version[1]), int(version[2])) < OLDEST:
        raise UsageError(
            f"{address} is NATS {shown(link.info.get('version'))}, and a log needs "
            f"{'.'.join(map(str, OLDEST))} or newer: upgrade the server"
        )


async def ask_api(link: Link, call: str, content: Mapping[str, Any] | None = None) -> Any:
    """Return what a call of the API of JetStream returns. Raises Refused and ConnectionLost."""
    text = b"" if content is None else json.dumps(content).encode()
    reply = await answered(link, link.request(f"$JS.API.{call}", text))
    return checked(reply, link, NO_JETSTREAM[0])


async def answered(link: Link, answer: Awaitable[T]) -> T:
    """Return `answer`. In a cluster a server that ends, or that has no leader, takes requests and
    answers none of them: then it raises ConnectionLost after `LONGEST_ANSWER`.
    """
    if not link.is_in_cluster:
        return await answer
    with trio.move_on_after(LONGEST_ANSWER):
        return await answer
    raise NoLeader


def checked(reply: Message, link: Link, nobody: int = NO_STREAM) -> Any:
    """Return the content of a reply of JetStream. Raises Refused, with the code `nobody` if nobody
    listens at the subject; and ConnectionLost if a cluster elects a leader now: then another
    connection may help, and the caller tries one.
    """
    if reply.status == "503" and link.is_in_cluster:
        raise NoLeader
    if reply.status == "503":
        raise Refused(nobody, "nobody answers")
    if reply.status:
        raise Refused(int(reply.status), reply.head.decode().strip())
    content = json.loads(reply.content)
    error = content.get("error")
    if error and error.get("err_code") in NO_LEADER:
        raise NoLeader
    if error:
        raise Refused(error.get("err_code") or error["code"], error.get("description", ""))
    return content


def explained(error: Refused, address: Address, name: str, outcome: str = "") -> Exception:
    """Return what a program is told about a refusal of the server. `outcome` is a sentence on the
    append that it was, if it was one.
    """
    text = f"{address} refused a request: {error}"
    said = f"{text}. {outcome}" if outcome else text
    if error.code == NO_RIGHTS:
        return UsageError(
            f"{said}. Give the user of the log the rights for its subjects, {name}.*, "
            "for $JS.API.STREAM.*.>, $JS.API.STREAM.LIST, $JS.API.DIRECT.GET.> and for _INBOX.>; "
            f"for a group also _penstock.members.{name}.>, $JS.API.CONSUMER.> and $JS.ACK.>"
        )
    if error.code in NO_JETSTREAM:
        return UsageError(f"{said}. Start the server with JetStream (-js), for this account")
    if error.code == NO_CLUSTER:
        return UsageError(
            f"{said}. The server is none of a cluster, or of one with too few servers: give "
            "replicas=1, or the address of a cluster"
        )
    if error.code in NO_ROOM:
        return LogError(
            f"{said}: give the server more room (max_file_store), or the log lower bounds in its "
            "Retention"
        )
    if error.code == TOO_MANY:
        return LogError(
            f"{said}: programs that append to the stream have more batches under way than the "
            "server takes, or have ended during theirs. Append it again after ten seconds"
        )
    return LogError(f"{text} (code {error.code}). {outcome or 'Look at the log of the server'}")
