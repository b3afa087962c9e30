"""A peer written from the reference page alone: sockets and the codec of the page.
It uses no code of penstock.
"""

from collections.abc import Callable

import trio

from penstock.spi import Url
from tests.protocols.rsio import _reference_codec as spec
from tests.protocols.rsio._reference_codec import Message


class SpecPeer:
    """One end of a connection: sends the messages it is given, and receives message by message."""

    def __init__(self, stream: trio.SocketStream, *, is_server: bool) -> None:
        self._stream = stream
        self._heard: list[Message] = []
        self.decoder = spec.Decoder(is_server)
        self.sizes: dict[int, int] = {}
        """The elementSize of each stream that this side has accepted."""

    async def say(self, *messages: Message) -> None:
        data = b""
        for message in messages:
            size = 0
            match message:
                case ("subscribe", _, stream_id, _):
                    self.decoder.on_subscribe_sent(stream_id)
                case ("onSubscribe", stream_id, element_size):
                    self.sizes[stream_id] = element_size
                case ("onNext" | "onNextPacked", stream_id, _):
                    size = self.sizes[stream_id]
                case ("onComplete" | "onError", stream_id, *_):
                    self.decoder.on_end_sent(stream_id)
            data += spec.encode(message, size)
        await self._stream.send_all(data)

    async def hear(self) -> Message | None:
        """Return the next message, or None if the transport has ended."""
        while not self._heard:
            data = await self._stream.receive_some(1000)
            if not data:
                return None
            self._heard += self.decoder.feed(data)
            assert self.decoder.refused is None, self.decoder.refused
        return self._heard.pop(0)

    async def part(self) -> list[Message]:
        """Say goodbye in good order: read until the goodbye of the other side, then close.
        Return the messages read.
        """
        await self.say(("goodbye", ""))
        heard = [message async for message in self]
        await self._stream.aclose()
        return heard

    async def answer_goodbye(self) -> None:
        """Answer the goodbye of the other side, which closes."""
        await self.say(("goodbye", ""))
        await self._stream.send_eof()
        assert await self.hear() is None
        await self._stream.aclose()

    def __aiter__(self) -> "SpecPeer":
        return self

    async def __anext__(self) -> Message:
        message = await self.hear()
        if message is None:
            raise StopAsyncIteration
        return message


async def call(address: Url) -> SpecPeer:
    """Return a client after both hellos."""
    peer = SpecPeer(await trio.open_tcp_stream(address.host, address.port), is_server=False)
    await peer.say(("clientHello", 0, ()))
    hello = await peer.hear()
    assert hello is not None
    assert hello[:2] == ("serverHello", 0)
    return peer


class SpecServer:
    """A minimal server: for each subscribe it runs the answer of that name, within its demand."""

    def __init__(self, answers: dict[str, Callable[["PendingAnswer"], None]]) -> None:
        self._answers = answers
        self.heard: list[Message] = []
        """What all clients have said."""

    async def listen(self, nursery: trio.Nursery) -> str:
        listeners = await nursery.start(trio.serve_tcp, self._serve, 0)
        return f"tcp://127.0.0.1:{listeners[0].socket.getsockname()[1]}"

    async def _serve(self, stream: trio.SocketStream) -> None:
        peer = SpecPeer(stream, is_server=True)
        streams: dict[int, PendingAnswer] = {}
        async for message in peer:
            self.heard.append(message)
            match message:
                case ("clientHello", 0, _):
                    await peer.say(("serverHello", 0, ()))
                case ("subscribe", name, stream_id, demand) if name in self._answers:
                    streams[stream_id] = PendingAnswer(stream_id, demand)
                    self._answers[name](streams[stream_id])
                case ("subscribe", _, stream_id, _):
                    await peer.say(("onError", stream_id, "no such publisher"))
                case ("request", stream_id, demand) if stream_id in streams:
                    streams[stream_id].demand += demand
                case ("cancel", stream_id):
                    streams.pop(stream_id, None)
                case ("goodbye", _):
                    await peer.answer_goodbye()
                    return
            for stream_id, answer in tuple(streams.items()):
                await peer.say(*answer.due())
                if not answer.script:
                    del streams[stream_id]


class PendingAnswer:
    """The messages of one stream that are still to be sent, and the demand for its elements."""

    def __init__(self, stream_id: int, demand: int) -> None:
        self.id = stream_id
        self.demand = demand
        self.script: list[tuple[int, Message]] = []
        """Messages, each behind the demand that it uses up."""

    def plan(self, name: str, *fields: object, costs: int = 0) -> None:
        self.script.append((costs, (name, self.id, *fields)))

    def due(self) -> list[Message]:
        said = []
        while self.script and self.script[0][0] <= self.demand:
            costs, message = self.script.pop(0)
            self.demand -= costs
            said.append(message)
        return said
