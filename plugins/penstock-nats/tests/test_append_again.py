"""An append to a `JetStreamLog` that is made again: the server may have what it refuses then, and an
error says so.
"""

from itertools import count
from typing import Any
from uuid import uuid4

import pytest
import trio
from _nats_server import NatsServer
from penstock_nats import JetStreamLog
from penstock_nats._broker import JetStreamBroker
from penstock_nats._server import TOO_MANY, Refused

import penstock
from penstock import Retention
from penstock.api import ConnectionLost, LogError, UsageError

PLENTY = Retention(max_count=1_000_000)
NAMES = count()
NO_RIGHTS = 403
SEALED = 10109


def new_log(nats: NatsServer, **options: Any) -> JetStreamLog:
    """A log of its own name."""
    return JetStreamLog(nats.url, f"again{next(NAMES)}", retention=PLENTY, **options)


def refuse_again(
    monkeypatch: pytest.MonkeyPatch, size: int, code: int, *, arrives: bool = True
) -> None:
    """Let the answer to the next append be lost, and each attempt after it be refused with `code`.
    Without `arrives` the server does not get the first one.
    """
    name = "_publish_element" if size == 1 else "_publish_batch"
    publish, attempts = getattr(JetStreamBroker, name), count()

    async def once(broker: JetStreamBroker, *args: Any) -> int:
        if next(attempts):
            raise Refused(code, "not now")
        if arrives:
            await publish(broker, *args)
        raise ConnectionLost("the answer was lost")

    monkeypatch.setattr(JetStreamBroker, name, once)


@pytest.mark.parametrize("code", [TOO_MANY, SEALED, NO_RIGHTS])
@pytest.mark.parametrize("size", [1, 3])
async def test_an_append_that_is_refused_when_it_is_made_again_is_found(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch, size: int, code: int
) -> None:
    """The server has appended it at the first attempt."""
    async with new_log(nats) as log:
        await log.append([b"before"] * 2)
        refuse_again(monkeypatch, size, code)
        assert await log.append([b"x"] * size) == range(2, 2 + size)
        monkeypatch.undo()
        assert await log.append([b"after"]) == range(2 + size, 3 + size)


@pytest.mark.parametrize(("code", "kind"), [(SEALED, LogError), (NO_RIGHTS, UsageError)])
@pytest.mark.parametrize("size", [1, 3])
async def test_a_refusal_does_not_say_what_is_not_known(
    nats: NatsServer,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    code: int,
    kind: type[Exception],
) -> None:
    """The first attempt is not there. It may be on its way."""
    async with new_log(nats) as log:
        refuse_again(monkeypatch, size, code, arrives=False)
        with pytest.raises(kind, match=r"not now.*\. Whether it was appended is not known") as told:
            await log.append([b"x"] * size)
        assert "Nothing was appended" not in str(told.value)


async def test_a_search_that_is_refused_leaves_it_unknown(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without room may have a part of a batch."""

    async def refused(*_: Any) -> None:
        raise Refused(10023, "insufficient")

    async with new_log(nats) as log:
        monkeypatch.setattr(JetStreamBroker, "_publish_batch", refused)
        monkeypatch.setattr(JetStreamBroker, "_find_batch", refused)
        with pytest.raises(LogError, match="Whether it was appended is not known: give") as told:
            await log.append([b"x"] * 3)
        assert "Nothing was appended" not in str(told.value)


async def test_an_append_waits_while_the_stream_has_too_many_unfinished_batches(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that have ended leave them, and the server drops them after ten seconds."""
    log, other = new_log(nats), uuid4().hex
    publish, is_refused = JetStreamBroker._publish_batch, trio.Event()

    async def noted(broker: JetStreamBroker, *args: Any) -> int:
        try:
            return await publish(broker, *args)
        except Refused:
            is_refused.set()
            raise

    async def finish() -> None:
        await is_refused.wait()
        head = _head(f"{other}.0", 2) + b"Nats-Batch-Commit: 1\r\n"
        await link.request(f"{log.name}.0", b"other", head + b"\r\n")

    async with log, trio.open_nursery() as nursery:
        link = log._broker._connection.current  # type: ignore[attr-defined]  # for another program
        for number in range(50):
            await link.request(f"{log.name}.0", b"other", _head(f"{other}.{number}", 1) + b"\r\n")
        monkeypatch.setattr(JetStreamBroker, "_publish_batch", noted)
        nursery.start_soon(finish)
        assert await log.append([b"x", b"y"]) == range(2, 4)
        assert await penstock.collect(log.source(start=2, stop="latest")) == [b"x", b"y"]


def _head(batch: str, number: int) -> bytes:
    return f"NATS/1.0\r\nNats-Batch-Id: {batch}\r\nNats-Batch-Sequence: {number}\r\n".encode()


async def test_too_many_unfinished_batches_are_told_after_the_timeout(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt was refused, so nothing was appended."""

    async def refused(*_: Any) -> int:
        await trio.lowlevel.checkpoint()
        raise Refused(TOO_MANY, "atomic publish too many inflight")

    async with new_log(nats, timeout=2) as log:
        monkeypatch.setattr(JetStreamBroker, "_publish_batch", refused)
        with pytest.raises(LogError, match="Nothing was appended by it: programs that append"):
            await log.append([b"x"] * 3)
