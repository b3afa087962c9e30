"""A sink of the RS.io decoder that keeps each message as a record."""

from collections.abc import Sequence

from penstock.protocols import rsio
from penstock.testing._run_size import check_run_size


class MessageList:
    """An `RsioSink` that keeps each message as a record in `messages`. Pass `streams` as the
    stream table of its decoder.
    """

    def __init__(self) -> None:
        self.messages: list[rsio.Message] = []
        self.streams: dict[int, _RecordingStream] = {}

    @property
    def has_hello(self) -> bool:
        """Whether a hello is among the messages."""
        return any(isinstance(each, rsio.ClientHello | rsio.ServerHello) for each in self.messages)

    def receive_control(self, message: rsio.Message, /) -> None:
        """Keep a message for which the sink has no other method."""
        self.messages.append(message)

    def check_extension(self, code: int, length: int, /) -> None:
        """Accept the message, of any length."""

    def receive_request(self, subscriber: int, demand: int, /) -> None:
        """Keep a request(n)."""
        self.messages.append(rsio.Request(subscriber=subscriber, demand=demand))

    def receive_on_subscribe(self, subscriber: int, element_size: int, /) -> None:
        """Keep an onSubscribe, and enter the stream into the table:
        the decoder needs its element size.
        """
        self.streams[subscriber] = _RecordingStream(self.messages, subscriber, element_size)
        self.messages.append(rsio.OnSubscribe(subscriber=subscriber, element_size=element_size))

    def receive_on_complete(self, subscriber: int, /) -> None:
        """Keep an onComplete."""
        # The stream stays in the table: a trace may continue with elements
        # that a session would refuse.
        self.messages.append(rsio.OnComplete(subscriber=subscriber))


class _RecordingStream:
    """A `WireStream` that turns each element, pack and part back into its record."""

    def __init__(self, into: list[rsio.Message], subscriber: int, element_size: int) -> None:
        self._into = into
        self._id = subscriber
        self.element_size = element_size

    def receive_element(self, element: bytes, /) -> None:
        self._into.append(rsio.OnNext(subscriber=self._id, element=element))

    def receive_run(self, elements: Sequence[bytes], size: int = -1, /) -> None:
        check_run_size(elements, size)
        # One record for each element: that a run was delivered together is not visible on the wire.
        self._into += [rsio.OnNext(subscriber=self._id, element=element) for element in elements]

    def receive_packed(self, count: int, elements: bytes, /) -> None:
        self._into.append(rsio.OnNextPacked(subscriber=self._id, count=count, elements=elements))

    def receive_part(self, element: int, data: bytes, last: bool, /) -> None:  # noqa: FBT001  # as in the protocol
        kind = rsio.OnNextLastPart if last else rsio.OnNextPart
        self._into.append(kind(subscriber=self._id, element=element, data=data))
