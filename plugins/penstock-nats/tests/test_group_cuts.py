"""A `JetStreamGroup` whose connection is cut: the elements that were under way come before those that
follow them.
"""

import json
from itertools import count
from typing import Any

import pytest
import trio
from _nats_server import NatsServer
from penstock_nats import JetStreamGroup, JetStreamLog
from penstock_nats._group import GROUP, JetStreamMember
from penstock_nats._link import Link, Message, Replies
from penstock_nats._server import ask_api

import penstock
from penstock import Retention
from penstock.api import ConnectionLost, LogError
from penstock.brokers import GroupRecord

PLENTY = Retention(max_count=1_000_000)
NAMES = count()


def is_pull(replies: Replies) -> bool:
    """Whether they are those to a pull of a group."""
    return replies.subject.startswith("$JS.API.CONSUMER.MSG.NEXT")


@pytest.mark.parametrize("demand", [1, 4])
async def test_a_pull_that_was_lost_is_not_made_again(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch, demand: int
) -> None:
    """Made again, it would get the elements after those that were sent and did not arrive."""
    name = f"cuts-{next(NAMES)}"
    take = Replies.take

    async def lost(replies: Replies) -> list[Message]:
        messages = await take(replies)
        if is_pull(replies) and messages[0].answer_to:
            monkeypatch.setattr(Replies, "take", take)
            raise ConnectionLost("cut")
        return messages

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(nats.url, name, group="g", hold=1) as group,
        penstock.subscribe(group, demand=demand) as stream,
    ):
        await log.append([b"x"] * 40)
        positions = [(await anext(stream)).position for _ in range(10)]
        monkeypatch.setattr(Replies, "take", lost)
        positions += [(await anext(stream)).position for _ in range(30)]
    assert positions == list(range(40))
    assert Replies.take is take


async def test_what_the_server_sends_over_a_lost_connection_comes_first(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does not know yet that the connection is lost, and a pull waits there. It gets no
    element any more when the member has asked again.
    """
    name = f"cuts-{next(NAMES)}"
    send, open_pull = Link.send, Link.open_pull
    waiting: list[Link] = []
    waits, has_asked = trio.Event(), trio.Event()

    def sent(link: Link, subject: str, content: bytes, *more: Any) -> None:
        send(link, subject, content, *more)
        if b'"expires"' in content:
            waiting.append(link)
            waits.set()

    def opened(link: Link, subject: str) -> Any:
        if link is not waiting[0]:
            has_asked.set()
        return open_pull(link, subject)

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(nats.url, name, group="g", hold=1) as group,
        penstock.subscribe(group, demand=2) as stream,
    ):
        await log.append([b"x"] * 4)
        positions = [(await anext(stream)).position for _ in range(4)]
        monkeypatch.setattr(Link, "send", sent)
        await waits.wait()
        monkeypatch.setattr(Link, "open_pull", opened)
        link = waiting[0]
        await link.request("$JS.API.INFO")  # the server has the pull
        link.close = lambda: None  # type: ignore[method-assign]  # the server keeps it
        link._is_lost = True
        for replies in link._requests.values():
            replies.lose()
        await has_asked.wait()
        await log.append([b"x"])
        await log.append([b"x"])
        positions += [(await anext(stream)).position for _ in range(2)]
    assert positions == list(range(6))


async def test_what_came_for_a_call_that_gave_up_comes_first(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is silent for `timeout`, and the stream ends. The next one gets all in order."""
    name = f"cuts-{next(NAMES)}"
    take = Replies.take

    async def silent(replies: Replies) -> list[Message]:
        messages = await take(replies)
        if is_pull(replies) and messages[0].answer_to:
            monkeypatch.setattr(Replies, "take", take)
            await trio.sleep_forever()
        return messages

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(
            nats.url, name, group="g", hold=8, timeout=3, acknowledge="by hand"
        ) as group,
    ):
        await log.append([b"x"] * 20)
        positions = []

        async def read(stream: penstock.Stream[GroupRecord]) -> None:
            record = await anext(stream)
            group.acknowledge(record)  # nothing is held, so nothing is given back
            positions.append(record.position)

        async with penstock.subscribe(group, demand=1) as stream:
            for _ in range(5):
                await read(stream)
            monkeypatch.setattr(Replies, "take", silent)
            with pytest.raises(LogError, match="has not answered for 3 seconds"):
                while True:
                    await read(stream)
        async with penstock.subscribe(group, demand=1) as stream:
            while len(positions) < 20:
                await read(stream)
    assert positions == list(range(20))


async def test_an_element_that_is_held_and_comes_again_is_none_of_those_that_were_lost(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives what it takes for not held, before what was lost has its time."""
    name = f"cuts-{next(NAMES)}"
    take = Replies.take

    async def lost(replies: Replies) -> list[Message]:
        messages = await take(replies)
        if is_pull(replies) and messages[0].answer_to:
            monkeypatch.setattr(Replies, "take", take)
            link = log._broker._connection.current  # type: ignore[attr-defined]  # it stays
            for record in held:
                link.send(record.receipt.decode(), b"-NAK")
            await link.request("$JS.API.INFO")
            raise ConnectionLost("cut")
        return messages

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(nats.url, name, group="g", hold=2, acknowledge="by hand") as group,
        penstock.subscribe(group, demand=2) as stream,
    ):
        await log.append([b"x"] * 10)
        held = [await anext(stream) for _ in range(4)]
        monkeypatch.setattr(Replies, "take", lost)
        positions = [(await anext(stream)).position for _ in range(6)]
    assert positions == list(range(4, 10))


async def test_an_element_whose_acknowledgement_is_under_way_is_not_held(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server counts it no more. Counted here, it would stand for one that was lost."""
    name = f"cuts-{next(NAMES)}"
    take, acknowledged = Replies.take, trio.Event()

    async def lost(replies: Replies) -> list[Message]:
        messages = await take(replies)
        if replies.subject.startswith("$JS.ACK."):
            acknowledged.set()
            await trio.sleep_forever()
        if is_pull(replies) and messages[0].answer_to:
            await acknowledged.wait()
            monkeypatch.setattr(Replies, "take", take)
            raise ConnectionLost("cut")
        return messages

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(nats.url, name, group="g", hold=1, acknowledge="by hand") as group,
        penstock.subscribe(group, demand=1) as stream,
    ):
        await log.append([b"x"] * 5)
        first = await anext(stream)
        monkeypatch.setattr(Replies, "take", lost)
        group.acknowledge(first)
        positions = [(await anext(stream)).position for _ in range(4)]
    assert positions == [1, 2, 3, 4]


async def pulled(link: Link, consumer: str, count: int, words: dict[str, object]) -> list[Message]:
    """Return elements of a consumer, as another member of the group gets them."""
    inbox, key, replies = link.open_pull("of another member")
    wanted = {"batch": count, "group": GROUP, "expires": 30_000_000_000, **words}
    link.send(f"$JS.API.CONSUMER.MSG.NEXT.{consumer}", json.dumps(wanted).encode(), inbox)
    found: list[Message] = []
    while len(found) < count:
        found += await replies.take()
    link.close_pull(key)
    return found


async def test_a_member_that_stalled_does_not_count_what_another_one_did(
    nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one did what this one held, and was gone with the elements after them. These come
    before the next ones.
    """
    name = f"cuts-{next(NAMES)}"
    consumer = f"{name}=0.g"

    async def stalls(_: JetStreamMember, held: object) -> None:
        await trio.sleep_forever()

    async with (
        JetStreamLog(nats.url, name, retention=PLENTY) as log,
        JetStreamGroup(nats.url, name, group="g", hold=2, acknowledge="by hand") as group,
    ):
        async with penstock.subscribe(group, demand=0) as stream:
            await log.append([b"x"] * 4)
            stream.request(4)
            positions = [(await anext(stream)).position for _ in range(4)]
            monkeypatch.setattr(JetStreamMember, "keep", stalls)
            link = log._broker._connection.current  # type: ignore[attr-defined]  # of another
            await ask_api(link, f"CONSUMER.UNPIN.{consumer}", {"group": GROUP})
            done = await pulled(link, consumer, 4, {})
            for each in done:
                await link.request(each.answer_to.decode(), b"+ACK")
            await log.append([b"x"] * 8)
            pin = done[0].header(b"Nats-Pin-Id").decode()
            await pulled(link, consumer, 4, {"id": pin})
            await ask_api(link, f"CONSUMER.UNPIN.{consumer}", {"group": GROUP})
            stream.request(8)
            positions += [(await anext(stream)).position for _ in range(8)]
    assert positions == list(range(12))
