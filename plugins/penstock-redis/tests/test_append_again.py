"""An append to a `RedisLog` that is made again and refused: the server may have it, and the error says
that this is not known.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

import pytest
from _redis_server import RedisServer
from penstock_redis import RedisLog, _broker
from penstock_redis._link import Link, Refused
from penstock_redis._scripts import APPEND, CONNECT, PUBLISH, Script

from penstock import Retention
from penstock.api import ConnectionLost, LogError, UsageError

PLENTY = Retention(max_count=1_000)
NAMES = count()
REFUSALS = [
    ("OOM command not allowed", LogError),
    ("NOREPLICAS Not enough good replicas to write", LogError),
    ("MISCONF Redis is configured to save", LogError),
    ("READONLY You can't write against a read only replica", UsageError),
    ("NOPERM this user has no permissions", UsageError),
    ("ERR anything else", LogError),
]
EACH = pytest.mark.parametrize(("text", "kind"), REFUSALS)


async def append(log: RedisLog, script: Script) -> None:
    """Append an element, by itself or in a transaction."""
    if script is APPEND:
        await log.append([b"x"])
    else:
        transaction = log.transaction("batch 7")
        await transaction.stage([b"x"])
        await transaction.publish()


def refuse(
    monkeypatch: pytest.MonkeyPatch, lost: Script | None, refused: Script, text: str
) -> None:
    """Let `refused` be refused with `text`, after the answer to `lost` was lost once."""
    evaluate, is_lost = _broker.evaluate, lost is None

    async def once(link: Link, script: Script, *words: Sequence[Any]) -> Any:
        nonlocal is_lost
        if is_lost and script is refused:
            raise Refused(text)
        reply = await evaluate(link, script, *words)  # type: ignore[arg-type]  # as they came
        if script is lost and not is_lost:
            is_lost = True
            raise ConnectionLost("the answer was lost")
        return reply

    monkeypatch.setattr(_broker, "evaluate", once)


@EACH
@pytest.mark.parametrize("script", [APPEND, PUBLISH], ids=["append", "publish"])
async def test_a_refusal_of_an_append_that_was_made_again_says_that_it_is_not_known(
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    text: str,
    kind: type[Exception],
) -> None:
    """The server has appended it at the first attempt."""
    log = RedisLog(redis.url, f"again{next(NAMES)}", retention=PLENTY)
    async with log:
        refuse(monkeypatch, script, script, text)
        with pytest.raises(kind, match="Whether it was appended is not known") as told:
            await append(log, script)
        assert text in str(told.value)
        assert "othing was appended" not in str(told.value)
        monkeypatch.undo()
        assert await log.latest(after={"0": 0}) == {"0": 1}


@EACH
async def test_a_server_that_refuses_the_next_connection_leaves_it_unknown(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch, text: str, kind: type[Exception]
) -> None:
    """The append was not made again, so no refusal is one of it."""
    log = RedisLog(redis.url, f"again{next(NAMES)}", retention=PLENTY, timeout=2)
    async with log:
        refuse(monkeypatch, APPEND, CONNECT, text)
        with pytest.raises(LogError, match="; whether it was appended is not known") as told:
            await append(log, APPEND)
        assert text in str(told.value)
        assert "othing was appended" not in str(told.value)


@EACH
@pytest.mark.parametrize("script", [APPEND, PUBLISH], ids=["append", "publish"])
async def test_an_append_that_was_refused_at_once_says_that_nothing_was_appended(
    redis: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    text: str,
    kind: type[Exception],
) -> None:
    """A script is refused before it has changed anything."""
    log = RedisLog(redis.url, f"again{next(NAMES)}", retention=PLENTY)
    async with log:
        refuse(monkeypatch, None, script, text)
        with pytest.raises(kind, match="Nothing was appended") as told:
            await append(log, script)
        assert "not known" not in str(told.value)
