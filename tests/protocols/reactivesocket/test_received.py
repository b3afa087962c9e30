"""Received frames: a frame out of place is ignored, and a frame
that cannot be decoded ends the connection.
"""

import pytest

from penstock.api import UNBOUNDED, ConnectionLost, Model, ProtocolError, Rejected, Role
from penstock.protocols import reactivesocket as wire
from penstock.session import ConnectionState
from penstock.session._extensions import WithheldOutput
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import RecordingSubscriber, limits_with

OPEN = ConnectionState.OPEN
REQUEST = wire.RequestStream(stream_id=1, demand=3, data=b"s")


def refused(raw: RawSocket) -> str:
    """Return the reason with which the session ends the connection."""
    (last,) = [
        each for each in raw.receive() if isinstance(each, wire.Error) and not each.stream_id
    ]
    return last.data.decode()


FATAL: dict[str, tuple[wire.Frame | bytes, str]] = {
    "reserved-bit": (bytes.fromhex("80000010") + bytes(12), "protocol:reserved"),
    "length-under-16": (bytes.fromhex("0000000f") + bytes(12), "protocol:length 15"),
    "length-over-every-limit": (bytes.fromhex("20000010"), "limit:frame 536870912 > 1048576"),
    "extension-without-a-type": (
        bytes.fromhex("00000010 0000ffff 0000000000000000".replace(" ", "")),
        "protocol:length 16",
    ),
    "another-version-later": (
        bytes.fromhex("00000010 01800016 0000000000000001".replace(" ", "")),
        "version 0",
    ),
    "unknown-type": (
        bytes.fromhex("00000010 00000030 0000000000000001".replace(" ", "")),
        "protocol:type 0x0030",
    ),
    "unknown-extension": (
        wire.Ext(stream_id=0, ignore=False, ext_type=9, data=b""),
        "protocol:extension 9",
    ),
}


@pytest.mark.parametrize(("said", "reason"), FATAL.values(), ids=FATAL)
def test_a_frame_that_cannot_be_decoded_ends_the_connection(
    said: wire.Frame | bytes, reason: str
) -> None:
    """With an ERROR on stream 0 that has the reason."""
    raw = RawSocket().handshake()
    raw.send(said)
    assert refused(raw) == reason
    assert raw.session.state.is_closing


BEFORE: dict[str, wire.Frame | bytes] = {
    "request": REQUEST,
    "request-n": wire.RequestN(stream_id=1, demand=1),
    "cancel": wire.Cancel(stream_id=1),
    "response": wire.Response(stream_id=1, data=b"x"),
    "error": wire.Error(stream_id=0, data=b"x"),
    "extension": wire.Ext(stream_id=0, ignore=True, ext_type=1, data=b""),
    "unknown-that-may-be-ignored": bytes.fromhex(
        "00000010 00800030 0000000000000001".replace(" ", "")
    ),
    "setup-on-a-stream": bytes.fromhex("00000010 00000001 0000000000000001".replace(" ", "")),
}


@pytest.mark.parametrize("said", BEFORE.values(), ids=BEFORE)
def test_a_frame_before_the_setup_ends_the_connection(said: wire.Frame | bytes) -> None:
    """Any frame but a SETUP on stream 0."""
    raw = RawSocket()
    raw.send(said)
    assert refused(raw) == "protocol:setup"


def test_a_setup_of_another_version_is_refused() -> None:
    """The reason names the version of this side."""
    raw = RawSocket()
    raw.send(wire.Setup(version=1))
    assert refused(raw) == "version 0"


IGNORED: dict[str, wire.Frame | bytes] = {
    "a-second-setup": wire.Setup(),
    "a-request-on-stream-0": wire.RequestStream(stream_id=0, demand=1, data=b"s"),
    "a-request-on-a-live-id": REQUEST,
    "request-n-for-nothing": wire.RequestN(stream_id=9, demand=1),
    "request-n-for-one-value": wire.RequestN(stream_id=3, demand=1),
    "cancel-for-nothing": wire.Cancel(stream_id=9),
    "a-response-to-nothing": wire.Response(stream_id=9, data=b"x"),
    "an-error-for-nothing": wire.Error(stream_id=9, data=b"x"),
    "unknown-that-may-be-ignored": bytes.fromhex(
        "00000010 00800030 0000000000000001".replace(" ", "")
    ),
}


@pytest.mark.parametrize("said", IGNORED.values(), ids=IGNORED)
def test_a_frame_out_of_place_is_ignored_and_counted(said: wire.Frame | bytes) -> None:
    """The streams continue. A flood of such frames ends the connection."""
    raw = RawSocket(limits=limits_with(glitches=3)).handshake()
    source = raw.serve()
    raw.serve("RESPONSE s")
    raw.send(REQUEST, wire.RequestResponse(stream_id=3, data=b"s"))
    raw.send(said)
    source.emit(b"still here")
    assert [each.data for each in raw.receive() if isinstance(each, wire.Response)] == [
        b"still here"
    ]
    assert raw.session.state is OPEN
    # four cancels, or 29 requests beside one element, might have crossed the ends of two streams.
    raw.send(*[said] * 40)
    assert refused(raw) == (
        "limit:requests" if said == IGNORED["request-n-for-nothing"] else "limit:glitches"
    )


def test_an_unknown_extension_with_the_ignore_flag_counts_as_a_control_message() -> None:
    """More of them than the limit end the connection."""
    raw = RawSocket(limits=limits_with(controls=2)).handshake()
    said = wire.Ext(stream_id=0, ignore=True, ext_type=9, data=b"")
    raw.send(said, said)
    assert raw.session.state is OPEN
    raw.send(said)
    assert refused(raw) == "limit:control"


@pytest.mark.parametrize("demand", [0, 1 << 63], ids=["zero", "bit-63"])
def test_illegal_demand_ends_its_stream(demand: int) -> None:
    """With an ERROR on its id. The connection continues."""
    raw = RawSocket().handshake()
    source = raw.serve()
    raw.send(REQUEST)
    raw.receive()
    raw.send(
        bytes.fromhex("00000018 00000015 0000000000000001".replace(" ", "")) + demand.to_bytes(8)
    )
    assert raw.receive() == [wire.Error(stream_id=1, data=b"illegal demand")]
    assert source.cancels == 1
    assert raw.session.state is OPEN


def test_illegal_initial_demand_is_refused_and_zero_is_legal() -> None:
    """A stream with an initial demand of 0 waits for REQUEST_N."""
    raw = RawSocket().handshake()
    source = raw.serve()
    raw.send(
        bytes.fromhex("00000019 00000013 0000000000000001 8000000000000000".replace(" ", "")) + b"s"
    )
    assert raw.receive() == [wire.Error(stream_id=1, data=b"illegal demand")]
    raw.send(wire.RequestStream(stream_id=3, demand=0, data=b"s"))
    assert source.requests == []
    raw.send(wire.RequestN(stream_id=3, demand=UNBOUNDED))
    assert source.requests
    assert raw.receive() == []


def test_requests_above_max_subscriptions_are_refused() -> None:
    """With an ERROR on the id of each. Fire and forget is dropped."""
    raw = RawSocket(limits=limits_with(max_subscriptions=1)).handshake()
    raw.serve()
    raw.send(
        REQUEST,
        wire.RequestStream(stream_id=3, demand=3, data=b"s"),
        wire.RequestFnf(stream_id=5, data=b"shot"),
    )
    assert raw.receive() == [wire.Error(stream_id=3, data=b"refused")]
    assert raw.delegate.fired_targets == []


def part(
    data: bytes, *, begin: bool = False, end: bool = False, complete: bool = False
) -> wire.Response:
    return wire.Response(stream_id=1, begin=begin, end=end, complete=complete, data=data)


def asking(model: Model = Model.STREAM, demand: int = 5) -> tuple[RawSocket, RecordingSubscriber]:
    raw = RawSocket(Role.CLIENT)
    raw.receive()
    return raw, raw.ask(model, demand)


RESPONSES: dict[str, tuple[Model, list[wire.Frame], list[bytes], bool]] = {
    "max_unsplit": (Model.STREAM, [part(b"x", begin=True, end=True)], [b"x"], False),
    "whole-without-flags": (Model.STREAM, [part(b"x"), part(b"y")], [b"x", b"y"], False),
    "fragments": (
        Model.STREAM,
        [part(b"a", begin=True), part(b"b"), part(b"c", end=True)],
        [b"abc"],
        False,
    ),
    "fragments-that-complete": (
        Model.STREAM,
        [part(b"a", begin=True), part(b"c", end=True, complete=True)],
        [b"ac"],
        True,
    ),
    "complete-too-early-is-nothing": (
        Model.STREAM,
        [part(b"a", begin=True, complete=True), part(b"c", end=True)],
        [b"ac"],
        False,
    ),
    "the-last-with-the-end": (
        Model.STREAM,
        [part(b"x", begin=True, end=True, complete=True)],
        [b"x"],
        True,
    ),
    "a-bare-end": (Model.STREAM, [part(b"", complete=True)], [], True),
    "an-empty-element-then-the-end": (
        Model.STREAM,
        [part(b"", begin=True, end=True), part(b"", complete=True)],
        [b""],
        True,
    ),
    "one-value": (Model.RESPONSE, [part(b"x", begin=True, end=True, complete=True)], [b"x"], True),
    "one-value-that-is-empty": (
        Model.RESPONSE,
        [part(b"", begin=True, end=True, complete=True)],
        [b""],
        True,
    ),
    "one-value-that-does-not-say-so": (
        Model.RESPONSE,
        [part(b"x"), part(b"", complete=True)],
        [b"x"],
        True,
    ),
    "one-value-in-fragments": (
        Model.RESPONSE,
        [part(b"a", begin=True), part(b"b", end=True)],
        [b"ab"],
        True,
    ),
    "a-subscription-that-completes": (
        Model.SUBSCRIPTION,
        [part(b"x"), part(b"", complete=True)],
        [b"x"],
        True,
    ),
}


@pytest.mark.parametrize(("model", "said", "elements", "ends"), RESPONSES.values(), ids=RESPONSES)
# A column.
def test_responses_are_read_in_every_shape(
    model: Model, said: list[wire.Frame], elements: list[bytes], ends: bool
) -> None:
    """Whole elements, parts, ends, and elements with the end."""
    raw, reader = asking(model)
    raw.send(*said)
    assert reader.elements == elements
    assert reader.ends == (["complete"] if ends else [])
    assert bool(raw.session.streams.opened) is not ends
    assert raw.session.state is OPEN


FAULTS: dict[str, tuple[int, list[wire.Frame], str]] = {
    "an-end-without-a-begin": (5, [part(b"x", end=True)], "ends that never began"),
    "a-begin-within-a-begin": (
        5,
        [part(b"x", begin=True), part(b"y", begin=True)],
        "begins within another",
    ),
    "a-whole-within-a-begin": (
        5,
        [part(b"x", begin=True), part(b"y", begin=True, end=True)],
        "begins within another",
    ),
    "more-than-was-asked-for": (1, [part(b"x"), part(b"y")], "not asked for"),
    "a-fragment-more-than-was-asked-for": (
        1,
        [part(b"x"), part(b"y", begin=True)],
        "not asked for",
    ),
    "the-end-within-an-element": (
        5,
        [part(b"x", begin=True), part(b"y" * 70), part(b"y" * 70)],
        "so far",
    ),
}


@pytest.mark.parametrize(("demand", "said", "words"), FAULTS.values(), ids=FAULTS)
def test_a_stream_that_breaks_its_contract_ends_alone(
    demand: int, said: list[wire.Frame], words: str
) -> None:
    """The peer gets a CANCEL, the subscriber a ProtocolError. The connection continues."""
    raw = RawSocket(Role.CLIENT, limits=limits_with(max_element=100))
    reader = raw.ask(Model.STREAM, demand)
    raw.send(*said)
    (end,) = reader.ends
    assert isinstance(end, ProtocolError)
    assert words in str(end)
    assert raw.receive() == [wire.Cancel(stream_id=1)]
    assert raw.session.state is OPEN
    assert not raw.session.streams.opened


def test_a_cancel_drops_the_parts_of_an_unfinished_element() -> None:
    """Parts that are still on their way are ignored."""
    raw, reader = asking()
    raw.send(part(b"a", begin=True))
    reader.cancel()
    raw.send(part(b"b"), part(b"c", end=True))
    assert reader.elements == reader.ends == []
    assert raw.session.channel.budgets.partials.count == 0
    assert raw.session.state is OPEN


def test_a_bare_end_behind_the_value_of_a_request_is_not_counted() -> None:
    """There are peers that send the value and then a bare end, for each request for one value."""
    raw = RawSocket(Role.CLIENT, limits=limits_with(glitches=2))
    for number in range(20):
        reader = raw.ask(Model.RESPONSE, 1)
        stream_id = 2 * number + 1
        raw.send(
            wire.Response(stream_id=stream_id, data=b"x"),
            wire.Response(stream_id=stream_id, complete=True, data=b""),
        )
        assert (reader.elements, reader.ends) == ([b"x"], ["complete"])
    assert raw.session.state is OPEN


def test_more_bare_ends_than_values_are_counted() -> None:
    """One bare end for each value without C is free."""
    raw = RawSocket(Role.CLIENT, limits=limits_with(glitches=2))
    raw.ask(Model.RESPONSE, 1)
    end = wire.Response(stream_id=1, complete=True, data=b"")
    raw.send(wire.Response(stream_id=1, data=b"x"), end, end, end)
    assert raw.session.state is OPEN
    raw.send(end)
    assert refused(raw) == "limit:glitches"


LATE: dict[str, tuple[Model, list[wire.Frame]]] = {
    "an-error": (Model.STREAM, [wire.Error(stream_id=1, data=b"x")]),
    "a-completion": (Model.STREAM, [wire.Response(stream_id=1, complete=True, data=b"")]),
    "elements-and-a-completion": (
        Model.STREAM,
        [wire.Response(stream_id=1, data=b"x")] * 5
        + [wire.Response(stream_id=1, complete=True, data=b"")],
    ),
    "the-last-element-with-the-end": (
        Model.STREAM,
        [wire.Response(stream_id=1, complete=True, data=b"x")],
    ),
    "a-value": (Model.RESPONSE, [wire.Response(stream_id=1, complete=True, data=b"x")]),
    "an-empty-value": (Model.RESPONSE, [wire.Response(stream_id=1, complete=True, data=b"")]),
    "a-value-and-its-end-apart": (
        Model.RESPONSE,
        [
            wire.Response(stream_id=1, data=b"x"),
            wire.Response(stream_id=1, complete=True, data=b""),
        ],
    ),
    "the-failure-of-a-value": (Model.RESPONSE, [wire.Error(stream_id=1, data=b"x")]),
    "a-value-in-fragments": (
        Model.RESPONSE,
        [
            wire.Response(stream_id=1, begin=True, end=False, data=bytes(100)),
            *[wire.Response(stream_id=1, begin=False, end=False, data=bytes(100))] * 20,
            wire.Response(stream_id=1, begin=False, end=True, complete=True, data=b"x"),
        ],
    ),
}


@pytest.mark.parametrize(("model", "late"), LATE.values(), ids=LATE)
def test_frames_that_cross_a_cancel_cost_nothing(model: Model, late: list[wire.Frame]) -> None:
    """A hundred requests are cancelled, and all that was due for each comes after it. The budget
    of oddities has room for one.
    """
    raw = RawSocket(Role.CLIENT, limits=limits_with(glitches=1))
    for _ in range(100):
        raw.ask(model).cancel()
        raw.receive()
        raw.send(*late)
    assert not raw.session.state.is_closing


def test_ends_beyond_one_for_each_cancel_are_odd() -> None:
    """Three ERRORs come after one CANCEL:
    one may have crossed it, one is odd, and the last one ends the connection.
    """
    raw = RawSocket(Role.CLIENT, limits=limits_with(glitches=1))
    raw.ask().cancel()
    raw.send(*[wire.Error(stream_id=1, data=b"x")] * 2)
    assert not raw.session.state.is_closing
    raw.send(wire.Error(stream_id=1, data=b"x"))
    assert refused(raw) == "limit:glitches"


@pytest.mark.parametrize("cut", [1 << 20, 16, 100])
def test_the_limit_of_a_setup_does_not_depend_on_its_chunks(cut: int) -> None:
    """In one chunk and in several, `preauth_bytes` is the largest SETUP."""
    fits, large = (wire.encode(wire.Setup(data=bytes(size))) for size in (84, 85))
    limits = limits_with(preauth_bytes=100)
    for said, reasons in ((fits, []), (large, ["limit:hello"])):
        raw = RawSocket(limits=limits)
        raw.send(*(said[start : start + cut] for start in range(0, len(said), cut)))
        assert [
            each.data.decode() for each in raw.receive() if isinstance(each, wire.Error)
        ] == reasons


def test_an_error_on_stream_0_ends_all_streams() -> None:
    """After an answer it is a lost connection, not a refusal."""
    raw, reader = asking()
    raw.send(part(b"x"), wire.Error(stream_id=0, data=b"drain"))
    (end,), (over,) = reader.ends, raw.delegate.ended
    assert isinstance(end, ConnectionLost)
    assert "'drain'" in str(end)
    assert (type(over), str(over)) == (type(end), str(end))


def test_the_text_of_an_error_is_cut_and_may_not_be_utf_8() -> None:
    """Bytes that are not UTF-8 are shown as U+FFFD."""
    raw = RawSocket(Role.CLIENT, limits=limits_with(max_error_text=4))
    reader = raw.ask()
    raw.send(wire.Error(stream_id=1, data=b"\xffabcdef"))
    assert str(reader.ends[0]) == "\ufffdabc"


def test_requests_after_close_are_ignored() -> None:
    """They may cross it on the wire."""
    raw = RawSocket().handshake()
    raw.session.close("drain")
    raw.receive()
    raw.send(REQUEST, wire.RequestN(stream_id=1, demand=1), wire.Cancel(stream_id=1))
    assert raw.delegate.served == []
    assert raw.receive() == []


def test_a_setup_is_bounded_by_preauth_bytes_and_later_frames_are_not() -> None:
    """Frames in the same chunk behind the SETUP have the limit of frames."""
    raw = RawSocket()
    raw.send(wire.encode(wire.Setup(data=b"x" * 5000))[:4500])
    assert refused(raw) == "limit:hello"
    quick = RawSocket()
    source = quick.serve()
    quick.send(
        wire.encode(wire.Setup())
        + wire.encode(REQUEST)
        + wire.encode(wire.RequestFnf(stream_id=3, data=b"x" * 10_000))
    )
    assert source.requests
    assert quick.session.state is OPEN


@pytest.mark.parametrize(
    ("text", "kind"),
    [("shutdown", ConnectionLost), ("limit:churn", ConnectionLost), ("not you", Rejected)],
)
def test_a_reason_for_accepted_clients_only_is_not_a_refusal(
    text: str, kind: type[Exception]
) -> None:
    """The server may have begun to act on the requests, though it has answered none:
    `processed=False` would be wrong.
    """
    raw, reader = asking()
    raw.send(wire.Error(stream_id=0, data=text.encode()))
    (end,) = reader.ends
    assert type(end) is kind
    assert text in str(end)


def test_a_setup_after_close_is_ignored() -> None:
    """They may cross: the client is not examined, and no exception is raised."""
    raw = RawSocket()
    raw.session.close("shutdown")
    raw.send(wire.Setup(), REQUEST)
    assert raw.delegate.introductions == []
    assert refused(raw) == "shutdown"


def test_the_text_of_an_error_is_escaped_and_known_texts_get_advice() -> None:
    """A terminal must not obey the text of a peer."""
    for text, told in (
        (b"\x1b[2J", r"\x1b[2J"),
        (b"the publisher failed", "only the text of a PublicError is sent"),
    ):
        raw, reader = asking()
        raw.send(wire.Error(stream_id=1, data=text))
        (end,) = reader.ends
        assert told in str(end)
        assert str(end).isprintable()


LAST = wire.Response(stream_id=1, complete=True, data=b"v")


def test_an_answer_right_behind_the_goodbye_changes_nothing() -> None:
    """Both come in one chunk. The request has ended with the connection."""
    raw, first = asking()
    raw.send(part(b"x"))  # the session is open
    reader = raw.ask(Model.RESPONSE, 1)
    raw.send(
        wire.encode(wire.Error(stream_id=0, data=b"bye"))
        + wire.encode(wire.Response(stream_id=3, complete=True, data=b"v"))
    )
    assert (reader.elements, [type(end) for end in reader.ends]) == ([], [ConnectionLost])
    assert [type(end) for end in first.ends] == [ConnectionLost]


def test_an_answer_that_comes_while_the_client_closes_changes_nothing() -> None:
    """A program that leaves the block of `connect` while a request is under way; the server
    answers before it has read the goodbye.
    """
    raw = RawSocket(Role.CLIENT).handshake()
    reader = raw.ask(Model.RESPONSE, 1)
    raw.session.close("")
    raw.receive()
    raw.send(LAST)
    assert (reader.elements, [type(end) for end in reader.ends]) == ([], [ConnectionLost])
    assert raw.session.state is ConnectionState.CLOSING
    raw.session.end_of_input()
    assert raw.session.state.is_over


def test_an_answer_that_crosses_a_cancel_which_an_extension_holds_is_dropped() -> None:
    """The cancel is sent when the extension lets the output go, and costs nothing."""
    raw = RawSocket(Role.CLIENT, limits=limits_with(glitches=1)).handshake()
    raw.ask(Model.STREAM)
    raw.send(part(b"x"))  # the session is open
    reader = raw.ask(Model.RESPONSE, 1)
    withheld = WithheldOutput(raw.session.channel)
    reader.cancel()
    late = wire.Response(stream_id=3, complete=True, data=b"late")
    raw.send(late)
    withheld.put_back()
    assert raw.receive() == [wire.Cancel(stream_id=3)]
    assert (reader.elements, reader.ends) == ([], [])
    assert raw.session.state is OPEN


def test_the_answer_to_a_request_for_one_value_ends_its_stream() -> None:
    """A second answer on the same id is ignored."""
    raw = RawSocket(Role.CLIENT).handshake()
    reader = raw.ask(Model.RESPONSE, 1)
    raw.send(LAST, LAST)
    assert (reader.elements, reader.ends) == ([b"v"], ["complete"])
    assert not raw.session.streams.opened
    assert raw.receive() == []


def test_cancel_during_the_answer_sends_nothing() -> None:
    """The peer has completed the stream, and the subscriber gets no end after its cancel."""

    class Canceller(RecordingSubscriber):
        def on_next(self, element: bytes, /) -> None:
            super().on_next(element)
            self.cancel()

    raw = RawSocket(Role.CLIENT).handshake()
    reader = Canceller(1)
    raw.ask(Model.RESPONSE, subscriber=reader)
    raw.send(LAST)
    assert reader.elements == [b"v"]
    assert not raw.session.streams.opened
    assert raw.receive() == []


def test_close_during_the_answer_reports_one_end() -> None:
    """`close` ends every open stream, and this stream is already completed."""

    class Leaver(RecordingSubscriber):
        def on_next(self, element: bytes, /) -> None:
            super().on_next(element)
            raw.session.close("enough")

    raw = RawSocket(Role.CLIENT).handshake()
    reader = Leaver(1)
    raw.ask(Model.RESPONSE, subscriber=reader)
    raw.send(LAST)
    assert (reader.elements, reader.ends) == ([b"v"], ["complete"])


def test_an_extension_may_change_the_answer() -> None:
    """If it ends the connection instead, the element is not delivered."""
    raw = RawSocket(Role.CLIENT).handshake()
    raw.session.channel.incoming = bytes.upper
    reader = raw.ask(Model.RESPONSE, 1)
    raw.send(LAST)
    assert (reader.elements, reader.ends) == ([b"V"], ["complete"])

    def refuse(element: bytes) -> bytes:
        raw.session.close("enough")
        return element

    raw.session.channel.incoming = refuse
    other = raw.ask(Model.RESPONSE, 1)
    raw.send(wire.Response(stream_id=3, complete=True, data=b"v"))
    assert other.elements == []
    assert [type(end) for end in other.ends] == [ConnectionLost]


def test_an_answer_without_demand_is_a_protocol_error() -> None:
    """The subscriber has not called `request`, and gets no element."""
    raw = RawSocket(Role.CLIENT).handshake()
    reader = raw.ask(Model.RESPONSE, 0)
    raw.send(LAST)
    assert reader.elements == []
    assert [type(end) for end in reader.ends] == [ProtocolError]


def test_the_answer_to_a_request_for_one_value_accepts_the_client() -> None:
    """Like any other first answer."""
    raw = RawSocket(Role.CLIENT).handshake()
    raw.ask(Model.RESPONSE, 1)
    assert not raw.delegate.is_open
    raw.send(LAST)
    assert raw.delegate.is_open
