"""Faults that are planted in the session, one at a time: the walk must find each of them.

Each shows only if a step comes between two others,
so a test of one order of steps can pass with it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest.mock import patch

import attrs

from penstock.api import ProtocolError
from penstock.session import (
    ActiveResume,
    ConnectionState,
    ReceivingState,
    ReceivingStream,
    RetainedBytes,
    SendingState,
    SendingStream,
    Session,
    StreamTables,
)
from penstock.session import Fault as ProtocolFault
from penstock.session._cancelled_streams import CancelledStream, CancelledStreams
from penstock.session._outbox import Outbox
from penstock.session._resume import TOKEN
from penstock.session._states import SendingEvent


@attrs.frozen
class Fault:
    """A fault in one method."""

    owner: type
    method: str
    scenario: str
    """The scenario that finds it."""
    replace: Callable[[Callable[..., Any]], Callable[..., Any]]
    """Makes the faulty method from the right one."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the fault."""
        right = getattr(self.owner, self.method)
        with patch.object(self.owner, self.method, self.replace(right)):
            yield


def _forget_early_demand(right: Callable[..., Any]) -> Callable[..., Any]:
    def receive_request(self: SendingStream, n: int) -> None:
        if self.state is not SendingState.REQUESTED:
            right(self, n)

    return receive_request


def _replace_demand(_right: Callable[..., Any]) -> Callable[..., Any]:
    def grant(self: SendingStream, n: int) -> None:
        self.available = n

    return grant


def _send_demand_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def open_stream(self: Any, stream: ReceivingStream, target: Any) -> None:
        right(self, stream, target)
        if stream.outstanding:
            self._channel.send(self._channel.dialect.request(stream.id, stream.outstanding))

    return open_stream


def _keep_a_late_publisher(right: Callable[..., Any]) -> Callable[..., Any]:
    def on_subscribe(self: SendingStream, subscription: Any, /) -> None:
        if not self.is_ended:
            right(self, subscription)

    return on_subscribe


def _drop_gathered_elements(right: Callable[..., Any]) -> Callable[..., Any]:
    def detach(self: Any, event: SendingEvent) -> Any:
        self.run = None
        return right(self, event)

    return detach


def _refuse_late_elements(_right: Callable[..., Any]) -> Callable[..., Any]:
    def count_late(self: Any, count: int, size: int) -> None:
        self._channel.fail_connection(
            ProtocolError("an element behind a cancel", reason="limit:late")
        )

    return count_late


def _keep_the_id(right: Callable[..., Any]) -> Callable[..., Any]:
    def on_sending_ended(self: StreamTables, stream: SendingStream, /) -> None:
        if not stream.reserved:
            right(self, stream)

    return on_sending_ended


def _wait_for_another_goodbye(right: Callable[..., Any]) -> Callable[..., Any]:
    def receive_goodbye(self: Session, reason: str, error: Exception | None = None) -> None:
        if self.state is not ConnectionState.CLOSING:
            right(self, reason, error)

    return receive_goodbye


def _spare_the_undecided(right: Callable[..., Any]) -> Callable[..., Any]:
    def on_connection_end(self: ReceivingStream, error: Exception) -> None:
        if self.state is not ReceivingState.REQUESTED:
            right(self, error)

    return on_connection_end


def _forget_the_place(_right: Callable[..., Any]) -> Callable[..., Any]:
    def replace(self: Any, stream: ReceivingStream) -> None:
        del self._opened[stream.id]

    return replace


def _signal_behind_a_cancel(_right: Callable[..., Any]) -> Callable[..., Any]:
    def cancel(self: Any, /) -> None:
        self._channel.send(self._channel.dialect.cancel(self.id))

    return cancel


def _let_the_writer_sleep(_right: Callable[..., Any]) -> Callable[..., Any]:
    def gather(self: Any, sender: Any) -> None:
        self._gathering.append(sender)

    return gather


def _send_the_error_at_once(_right: Callable[..., Any]) -> Callable[..., Any]:
    def fail(self: Any, text: str, _code: int | None = None) -> None:
        if self.state is not SendingState.ENDED:
            self._cut(SendingEvent.CANCELLED, text, ProtocolFault.FAILED)

    return fail


def _forget_the_waiting(_right: Callable[..., Any]) -> Callable[..., Any]:
    def block(self: Outbox, sender: Any) -> None:
        """Do nothing."""

    return block


def _repeat_what_has_come(_right: Callable[..., Any]) -> Callable[..., Any]:
    def take_back(self: RetainedBytes, position: int) -> bytearray:
        tail = bytes(self._tail or b"")  # uncut: the acknowledgement takes off what has come
        self.acknowledge(position)
        data = bytearray().join((*(self._pieces or ()), tail))
        self._pieces = self._tail = None
        self.sent = self._first = position
        return data

    return take_back


def _count_twice(right: Callable[..., Any]) -> Callable[..., Any]:
    def take_back(self: RetainedBytes, position: int) -> bytearray:
        sent = self.sent
        data: bytearray = right(self, position)
        self.sent = sent
        return data

    return take_back


def _drop_what_is_on_its_way(_right: Callable[..., Any]) -> Callable[..., Any]:
    def acknowledge(self: RetainedBytes, position: int) -> bool:
        is_news = position > self.acknowledged
        if is_news:
            self._pieces = self._tail = None
            self.acknowledged, self._first = position, self.sent
        return is_news

    return acknowledge


def _resize_in_place(right: Callable[..., Any]) -> Callable[..., Any]:
    def resize(self: CancelledStreams, stream_id: int, element_size: int) -> None:
        place = self._opened.get(stream_id)
        if not isinstance(place, CancelledStream):
            right(self, stream_id, element_size)
            return
        self._by_size.pop(place.element_size, None)
        place.element_size = element_size
        self._by_size[element_size] = place

    return resize


def _let_small_elements_overtake(right: Callable[..., Any]) -> Callable[..., Any]:
    def send(self: Any, element: bytes) -> None:
        if self._large and len(element) <= self._channel.dialect.max_unsplit:
            self.commit()
            self._channel.outbox.put(self._channel.dialect.join_run(self.id, [element]))
        else:
            right(self, element)

    return send


def _tell_no_window(right: Callable[..., Any]) -> Callable[..., Any]:
    def receive_element(self: Any, element: bytes, /) -> None:
        before = 0 if self._window is None else self._window.received
        right(self, element)
        if self._window is not None and len(element) > 1:
            self._window.received = before

    return receive_element


def _take_any_run(right: Callable[..., Any]) -> Callable[..., Any]:
    def receive_run(self: Any, elements: Sequence[bytes], size: int = -1, /) -> None:
        self.outstanding = max(self.outstanding, len(elements))
        right(self, elements, size)

    return receive_run


def _pack_without_demand(_right: Callable[..., Any]) -> Callable[..., Any]:
    def receive_packed(self: Any, count: int, elements: bytes, /) -> None:
        if count > self.outstanding:
            self.fail_contract("too many")
            return
        size = self.element_size
        for at in range(0, count * size, size):
            self._subscriber.on_next(elements[at : at + size])

    return receive_packed


def _keep_the_publisher_waiting(right: Callable[..., Any]) -> Callable[..., Any]:
    def received(self: ActiveResume, type: int, body: bytes, now: float, /) -> None:  # noqa: A002  # the name of the right method
        session = self._session
        if type == TOKEN or session is None or session.outbox.retained is None:
            right(self, type, body, now)
            return
        self._acknowledgements += 1
        session.outbox.retained.acknowledge(int.from_bytes(body))

    return received


FAULTS: Final = {
    "demand before the decision is forgotten": Fault(
        SendingStream, "receive_request", "a late decision", _forget_early_demand
    ),
    "a request replaces what is outstanding": Fault(
        SendingStream, "grant", "three requests", _replace_demand
    ),
    "the demand of on_subscribe is sent twice": Fault(
        StreamTables, "_open", "a request inside on_subscribe", _send_demand_twice
    ),
    "a cancel before on_subscribe leaves the publisher": Fault(
        SendingStream, "on_subscribe", "a late on_subscribe", _keep_a_late_publisher
    ),
    "the end drops gathered elements": Fault(
        SendingStream, "_detach", "request, cancel, complete", _drop_gathered_elements
    ),
    "an element that crosses a cancel ends the connection": Fault(
        CancelledStreams, "count_late", "request, cancel, complete", _refuse_late_elements
    ),
    "a cancel with demand outstanding keeps the id": Fault(
        StreamTables, "on_sending_ended", "request, cancel, complete", _keep_the_id
    ),
    "a goodbye that crosses another is no answer": Fault(
        Session, "receive_goodbye", "goodbyes that cross", _wait_for_another_goodbye
    ),
    "the end of the connection spares a stream without an answer": Fault(
        ReceivingStream, "on_connection_end", "from the hello", _spare_the_undecided
    ),
    "a cancelled stream keeps no place": Fault(
        CancelledStreams, "replace", "request, cancel, complete", _forget_the_place
    ),
    "elements are delivered behind the cancel": Fault(
        ReceivingStream, "cancel", "request, cancel, complete", _signal_behind_a_cancel
    ),
    "the writer is not woken for gathered elements": Fault(
        Outbox, "gather", "request, cancel, complete", _let_the_writer_sleep
    ),
    "an error overtakes elements that go in parts": Fault(
        SendingStream, "_fail", "elements in parts, then an error", _send_the_error_at_once
    ),
    "a stream that waits for room is forgotten": Fault(
        Outbox, "block", "elements in parts", _forget_the_waiting
    ),
    "a resumed connection repeats a piece that has come by half": Fault(
        RetainedBytes, "take_back", "a link that is resumed", _repeat_what_has_come
    ),
    "a resumed connection counts what it sends again twice": Fault(
        RetainedBytes, "take_back", "a link that is resumed", _count_twice
    ),
    "an acknowledgement drops what is on its way": Fault(
        RetainedBytes,
        "acknowledge",
        "a link that is resumed, at the bound",
        _drop_what_is_on_its_way,
    ),
    "the size of a cancelled stream is that of another": Fault(
        CancelledStreams, "resize", "two cancelled streams", _resize_in_place
    ),
    "a small element overtakes a large one": Fault(
        SendingStream, "_send", "a large element and a small one", _let_small_elements_overtake
    ),
    "a window is not told of elements": Fault(
        ReceivingStream, "receive_element", "a window in bytes", _tell_no_window
    ),
    "a run beyond the demand is taken": Fault(
        ReceivingStream, "receive_run", "a peer that sends too many elements", _take_any_run
    ),
    "packed elements use no demand": Fault(
        ReceivingStream,
        "receive_packed",
        "a peer that packs too many elements",
        _pack_without_demand,
    ),
    "an acknowledgement lets no publisher go on": Fault(
        ActiveResume,
        "received",
        "a link that is resumed, at the bound",
        _keep_the_publisher_waiting,
    ),
}
