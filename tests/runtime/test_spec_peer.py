"""Peers written from the reference page alone talk to a real server and a real client, over TCP."""

from collections.abc import AsyncIterator

import pytest
import trio

from penstock.api import PublicError, PublisherFailed, Rejected
from penstock.runtime import Service, connect, serve
from tests.protocols.rsio import _reference_codec as spec
from tests.runtime._spec_peer import PendingAnswer, SpecPeer, SpecServer, call

LOCAL = "tcp://127.0.0.1:0"
LARGE = bytes(range(256)) * 1000


def service(closed: trio.Event | None = None) -> Service:
    made = Service()

    @made.publisher("words")
    async def words() -> AsyncIterator[bytes]:
        for word in (b"one", b"", b"three", b"four"):
            yield word

    @made.publisher("fixed", element_size=4)
    async def fixed() -> AsyncIterator[bytes]:
        yield b"aaaa"
        yield b"bbbbccccdddd"

    @made.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        yield LARGE
        yield b"small"

    @made.publisher("failing")
    async def failing() -> AsyncIterator[bytes]:
        yield b"one"
        raise PublicError("out of stock")

    @made.publisher("endless")
    async def endless() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            if closed is not None:
                closed.set()

    return made


async def hears(peer: SpecPeer, *expected: spec.Message) -> None:
    for message in expected:
        assert await peer.hear() == message


async def elements_of(
    peer: SpecPeer, stream_id: int, demand: int
) -> tuple[list[bytes], list[str], spec.Message]:
    """Read a stream to its end; return its elements, the kinds of their messages, and the end."""
    incoming, elements, kinds = spec.Incoming(demand), [], []
    async for message in peer:
        assert message[1] == stream_id
        elements += incoming.accept(message)
        kinds.append(message[0])
        if message[0] in ("onComplete", "onError"):
            return elements, kinds, message
    raise AssertionError("the connection ended before the stream")


# ---- a client from the page, a server of penstock's


async def test_a_client_written_from_the_page_reads_what_it_requested() -> None:
    """Subscribe, demand, elements, more demand, completion, goodbye."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "words", 7, 2))
        await hears(peer, ("onSubscribe", 7, 0), ("onNext", 7, b"one"), ("onNext", 7, b""))
        # Answers come in order: a refusal would come after a third element.
        await peer.say(("subscribe", "nobody", 8, 1))
        await hears(peer, ("onError", 8, "no such publisher"))
        await peer.say(("request", 7, spec.WITHOUT_BOUND))
        await hears(peer, ("onNext", 7, b"three"), ("onNext", 7, b"four"), ("onComplete", 7))
        assert await peer.part() == [("goodbye", "")]


async def test_a_client_written_from_the_page_may_use_an_id_again_after_its_end() -> None:
    """As if it had never been opened."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        for _ in range(2):
            await peer.say(("subscribe", "words", 0, 10))
            assert (await elements_of(peer, 0, 10))[0] == [b"one", b"", b"three", b"four"]
        assert await peer.part() == [("goodbye", "")]


async def test_a_client_written_from_the_page_reads_elements_of_fixed_size() -> None:
    """Packed, and the part of a piece that was requested."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "fixed", 300, 3), ("request", 300, 2))
        elements, kinds, end = await elements_of(peer, 300, 5)
        assert elements == [b"aaaa", b"bbbb", b"cccc", b"dddd"]
        assert kinds[0] == "onSubscribe"
        assert "onNextPacked" in kinds
        assert end == ("onComplete", 300)
        await peer.part()


async def test_a_client_written_from_the_page_joins_large_elements() -> None:
    """They come in parts, and later elements come after them."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "large", 0, 3))
        elements, kinds, _ = await elements_of(peer, 0, 3)
        assert elements == [LARGE, b"small"]
        assert kinds.count("onNextPart") > 1
        assert kinds.count("onNextLastPart") == 1
        await peer.part()


async def test_a_client_written_from_the_page_gets_failures() -> None:
    """With the text of the PublicError."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "failing", 0, 2))
        assert await elements_of(peer, 0, 2) == (
            [b"one"],
            ["onSubscribe", "onNext", "onError"],
            ("onError", 0, "out of stock"),
        )
        await peer.say(("subscribe", "words", 1, 0), ("request", 1, 0))
        await hears(peer, ("onSubscribe", 1, 0), ("onError", 1, "illegal demand"))
        await peer.part()


async def test_a_client_written_from_the_page_cancels() -> None:
    """The publisher stops; elements under way can be delimited; nothing comes after that."""
    closed = trio.Event()
    async with serve(service(closed), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "endless", 0, 2))
        await hears(peer, ("onSubscribe", 0, 0), ("onNext", 0, b"x"), ("onNext", 0, b"x"))
        await peer.say(("cancel", 0), ("request", 0, 5))
        await closed.wait()
        assert await peer.part() == [("goodbye", "")]


async def test_a_client_written_from_the_page_is_told_that_the_server_leaves() -> None:
    """It answers, and leaves the closing to the server."""
    async with trio.open_nursery() as nursery:
        async with serve(service(), LOCAL) as server:
            peer = await call(server.addresses[0])
            await peer.say(("subscribe", "endless", 0, 1))
            await hears(peer, ("onSubscribe", 0, 0), ("onNext", 0, b"x"))
            nursery.start_soon(_until_goodbye, peer)


async def _until_goodbye(peer: SpecPeer) -> None:
    heard = await peer.hear()
    assert heard is not None
    assert heard[0] == "goodbye"
    assert heard[1].startswith("shutdown")
    await peer.answer_goodbye()


async def test_a_client_written_from_the_page_gets_the_token_of_its_mistake() -> None:
    """In a goodbye; and the transport ends."""
    async with serve(service(), LOCAL) as server:
        peer = await call(server.addresses[0])
        await peer.say(("subscribe", "words", 0, 0))
        await hears(peer, ("onSubscribe", 0, 0))
        await peer.say(("subscribe", "words", 0, 0))
        await hears(peer, ("goodbye", "protocol:subscribe 0"))
        await peer.answer_goodbye()


# ---- a server from the page, a client of penstock's


def answer_words(answer: PendingAnswer) -> None:
    answer.plan("onSubscribe", 0)
    for word in (b"one", b"", b"three"):
        answer.plan("onNext", word, costs=1)
    answer.plan("onComplete")


def answer_fixed(answer: PendingAnswer) -> None:
    answer.plan("onSubscribe", 4)
    answer.plan("onNext", b"aaaa", costs=1)
    answer.plan("onNextPacked", (b"bbbb", b"cccc"), costs=2)
    answer.plan("onNextPart", 9, b"d", costs=1)
    answer.plan("onNextLastPart", 9, b"ddd")
    answer.plan("onComplete")


def answer_large(answer: PendingAnswer) -> None:
    """Two elements in parts that are interleaved: the second is complete first."""
    answer.plan("onSubscribe", 0)
    answer.plan("onNextPart", 0, LARGE[:60_000], costs=1)
    answer.plan("onNextPart", 1, b"y" * 100, costs=1)
    answer.plan("onNextLastPart", 1, b"z")
    for start in range(60_000, 180_000, 60_000):
        answer.plan("onNextPart", 0, LARGE[start : start + 60_000])
    answer.plan("onNextPart", 0, LARGE[180_000:])
    answer.plan("onNextLastPart", 0, b"")
    answer.plan("onNextLastPart", 0, b"alone", costs=1)
    answer.plan("onComplete")


def answer_failing(answer: PendingAnswer) -> None:
    answer.plan("onSubscribe", 0)
    answer.plan("onNext", b"one", costs=1)
    answer.plan("onError", "boom")


def answer_endless(answer: PendingAnswer) -> None:
    answer.plan("onSubscribe", 0)
    for _ in range(10_000):
        answer.plan("onNext", b"x", costs=1)


ANSWERS = {
    "words": answer_words,
    "fixed": answer_fixed,
    "large": answer_large,
    "failing": answer_failing,
    "endless": answer_endless,
}
READ = {
    "words": [b"one", b"", b"three"],
    "fixed": [b"aaaa", b"bbbb", b"cccc", b"dddd"],
    "large": [b"y" * 100 + b"z", LARGE, b"alone"],
}


@pytest.mark.parametrize(("name", "elements"), READ.items(), ids=READ)
@pytest.mark.parametrize("demand", [3, 100])
async def test_our_client_reads_from_a_server_written_from_the_page(
    name: str, elements: list[bytes], demand: int
) -> None:
    """Each element, complete and in order, with a small demand that is renewed
    and with a large one.
    """
    server = SpecServer(ANSWERS)
    async with trio.open_nursery() as nursery:
        async with (
            connect(await server.listen(nursery)) as peer,
            peer.subscribe(name, demand=demand) as stream,
        ):
            assert [bytes(element) async for element in stream] == elements
        nursery.cancel_scope.cancel()
    assert server.heard[0][0] == "clientHello"
    assert server.heard[1][:3] == ("subscribe", name, 0)


async def test_our_client_raises_refusals_and_failures_of_a_server_written_from_the_page() -> None:
    """Each has its exception, and the connection goes on."""
    async with trio.open_nursery() as nursery:
        async with connect(await SpecServer(ANSWERS).listen(nursery)) as peer:
            async with peer.subscribe("nobody") as stream:
                with pytest.raises(Rejected, match="no such publisher"):
                    await anext(stream)
            async with peer.subscribe("failing") as stream:
                assert await anext(stream) == b"one"
                with pytest.raises(PublisherFailed, match="boom"):
                    await anext(stream)
            async with peer.subscribe("words") as stream:
                assert [element async for element in stream] == READ["words"]
        nursery.cancel_scope.cancel()


async def test_our_client_cancels_and_leaves_a_server_written_from_the_page_in_good_order() -> None:
    """Cancel at the end of the stream's block;
    goodbye, with an empty reason, at the end of the connection's.
    """
    server = SpecServer(ANSWERS)
    async with trio.open_nursery() as nursery:
        async with connect(await server.listen(nursery)) as peer:
            async with peer.subscribe("endless", demand=5) as stream:
                for _ in range(20):
                    assert await anext(stream) == b"x"
            async with peer.subscribe("words") as stream:
                assert [element async for element in stream] == READ["words"]
        nursery.cancel_scope.cancel()
    kinds = [message[0] for message in server.heard]
    assert kinds.count("cancel") == 1
    assert kinds.count("request") >= 3
    assert server.heard[-1] == ("goodbye", "")
