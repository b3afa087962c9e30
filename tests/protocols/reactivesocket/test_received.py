"""What a ReactiveSocket peer says, judged: what is out of place is ignored, and only what cannot be understood ends the connection."""

import pytest

from penstock.api import UNBOUNDED, ConnectionLost, Model, ProtocolError, Rejected, Role
from penstock.protocols import reactivesocket as wire
from penstock.session import ConnectionState
from tests.protocols.reactivesocket._pair import RawSocket
from tests.session._pair import Reader, limited

OPEN = ConnectionState.OPEN
REQUEST = wire.RequestStream(stream_id=1, demand=3, data=b"s")


def refused(raw: RawSocket) -> str:
    """Return the reason with which the session ends the connection."""
    (last,) = [each for each in raw.hear() if isinstance(each, wire.Error) and not each.stream_id]
    return last.data.decode()


FATAL: dict[str, tuple[wire.Frame | bytes, str]] = {
    "reserved-bit": (bytes.fromhex("80000010") + bytes(12), "protocol:reserved"),
    "length-under-16": (bytes.fromhex("0000000f") + bytes(12), "protocol:length 15"),
    "length-over-the-limit": (bytes.fromhex("00200010"), "limit:frame 2097152 > 1048576"),
    "another-version-later": (bytes.fromhex("00000010 01800016 0000000000000001".replace(" ", "")), "version 0"),
    "unknown-type": (bytes.fromhex("00000010 00000030 0000000000000001".replace(" ", "")), "protocol:type 0x0030"),
    "unknown-extension": (wire.Ext(stream_id=0, ignore=False, ext_type=9, data=b""), "protocol:extension 9"),
}


@pytest.mark.parametrize(("said", "reason"), FATAL.values(), ids=FATAL)
def test_what_cannot_be_understood_ends_the_connection(said: wire.Frame | bytes, reason: str) -> None:
    """With an error of the connection that gives the reason."""
    raw = RawSocket().greet()
    raw.say(said)
    assert refused(raw) == reason
    assert raw.session.is_closing


BEFORE: dict[str, wire.Frame | bytes] = {
    "request": REQUEST,
    "request-n": wire.RequestN(stream_id=1, demand=1),
    "cancel": wire.Cancel(stream_id=1),
    "response": wire.Response(stream_id=1, data=b"x"),
    "error": wire.Error(stream_id=0, data=b"x"),
    "extension": wire.Ext(stream_id=0, ignore=True, ext_type=1, data=b""),
    "unknown-that-may-be-ignored": bytes.fromhex("00000010 00800030 0000000000000001".replace(" ", "")),
    "setup-on-a-stream": bytes.fromhex("00000010 00000001 0000000000000001".replace(" ", "")),
}


@pytest.mark.parametrize("said", BEFORE.values(), ids=BEFORE)
def test_nothing_comes_before_the_setup(said: wire.Frame | bytes) -> None:
    """Whatever else is first ends the connection."""
    raw = RawSocket()
    raw.say(said)
    assert refused(raw) == "protocol:setup"


def test_a_setup_of_another_version_is_refused() -> None:
    """The reason says which version is spoken here."""
    raw = RawSocket()
    raw.say(wire.Setup(version=1))
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
    "unknown-that-may-be-ignored": bytes.fromhex("00000010 00800030 0000000000000001".replace(" ", "")),
}


@pytest.mark.parametrize("said", IGNORED.values(), ids=IGNORED)
def test_what_is_out_of_place_is_ignored_for_a_glitch(said: wire.Frame | bytes) -> None:
    """The streams go on; a flood of it ends the connection."""
    raw = RawSocket(limits=limited(glitch_burst=3, glitch_rate=1e-6)).greet()
    source = raw.serve()
    raw.serve("RESPONSE s")
    raw.say(REQUEST, wire.RequestResponse(stream_id=3, data=b"s"))
    raw.say(said)
    source.emit(b"still here")
    assert [each.data for each in raw.hear() if isinstance(each, wire.Response)] == [b"still here"]
    assert raw.session.state is OPEN
    raw.say(*[said] * 7)  # four requests and cancels might have crossed the ends of two streams
    assert refused(raw) == "limit:glitches"


def test_an_unknown_extension_that_may_be_ignored_is_counted_as_a_message_that_costs_us_work() -> None:
    """So it cannot be sent without end."""
    raw = RawSocket(limits=limited(control_burst=2, control_rate=1e-6)).greet()
    said = wire.Ext(stream_id=0, ignore=True, ext_type=9, data=b"")
    raw.say(said, said)
    assert raw.session.state is OPEN
    raw.say(said)
    assert refused(raw) == "limit:control"


@pytest.mark.parametrize("demand", [0, 1 << 63], ids=["zero", "bit-63"])
def test_illegal_demand_ends_its_stream(demand: int) -> None:
    """With an error on its id; the connection goes on."""
    raw = RawSocket().greet()
    source = raw.serve()
    raw.say(REQUEST)
    raw.hear()
    raw.say(bytes.fromhex("00000018 00000015 0000000000000001".replace(" ", "")) + demand.to_bytes(8))
    assert raw.hear() == [wire.Error(stream_id=1, data=b"illegal demand")]
    assert source.cancels == 1
    assert raw.session.state is OPEN


def test_illegal_initial_demand_is_refused_and_none_at_all_is_a_pause() -> None:
    """A stream may begin without demand."""
    raw = RawSocket().greet()
    source = raw.serve()
    raw.say(bytes.fromhex("00000019 00000013 0000000000000001 8000000000000000".replace(" ", "")) + b"s")
    assert raw.hear() == [wire.Error(stream_id=1, data=b"illegal demand")]
    raw.say(wire.RequestStream(stream_id=3, demand=0, data=b"s"))
    assert source.requests == []
    raw.say(wire.RequestN(stream_id=3, demand=UNBOUNDED))
    assert source.requests
    assert raw.hear() == []


def test_too_many_requests_at_a_time_are_refused() -> None:
    """Each on its own id."""
    raw = RawSocket(limits=limited(max_subscriptions=1)).greet()
    raw.serve()
    raw.say(REQUEST, wire.RequestStream(stream_id=3, demand=3, data=b"s"), wire.RequestFnf(stream_id=5, data=b"shot"))
    assert raw.hear() == [wire.Error(stream_id=3, data=b"refused")]
    assert raw.owner.shots == []


def part(data: bytes, *, begin: bool = False, end: bool = False, complete: bool = False) -> wire.Response:
    return wire.Response(stream_id=1, begin=begin, end=end, complete=complete, data=data)


def asking(model: Model = Model.STREAM, demand: int = 5) -> tuple[RawSocket, Reader]:
    raw = RawSocket(Role.CLIENT)
    raw.hear()
    return raw, raw.ask(model, demand)


RESPONSES: dict[str, tuple[Model, list[wire.Frame], list[bytes], bool]] = {
    "max_unsplit": (Model.STREAM, [part(b"x", begin=True, end=True)], [b"x"], False),
    "whole-without-flags": (Model.STREAM, [part(b"x"), part(b"y")], [b"x", b"y"], False),
    "fragments": (Model.STREAM, [part(b"a", begin=True), part(b"b"), part(b"c", end=True)], [b"abc"], False),
    "fragments-that-complete": (Model.STREAM, [part(b"a", begin=True), part(b"c", end=True, complete=True)], [b"ac"], True),
    "complete-too-early-is-nothing": (Model.STREAM, [part(b"a", begin=True, complete=True), part(b"c", end=True)], [b"ac"], False),
    "the-last-with-the-end": (Model.STREAM, [part(b"x", begin=True, end=True, complete=True)], [b"x"], True),
    "a-bare-end": (Model.STREAM, [part(b"", complete=True)], [], True),
    "an-empty-element-then-the-end": (Model.STREAM, [part(b"", begin=True, end=True), part(b"", complete=True)], [b""], True),
    "one-value": (Model.RESPONSE, [part(b"x", begin=True, end=True, complete=True)], [b"x"], True),
    "one-value-that-is-empty": (Model.RESPONSE, [part(b"", begin=True, end=True, complete=True)], [b""], True),
    "one-value-that-does-not-say-so": (Model.RESPONSE, [part(b"x"), part(b"", complete=True)], [b"x"], True),
    "one-value-in-fragments": (Model.RESPONSE, [part(b"a", begin=True), part(b"b", end=True)], [b"ab"], True),
    "a-subscription-that-completes": (Model.SUBSCRIPTION, [part(b"x"), part(b"", complete=True)], [b"x"], True),
}


@pytest.mark.parametrize(("model", "said", "elements", "ends"), RESPONSES.values(), ids=RESPONSES)
def test_responses_are_read_as_they_are_meant(model: Model, said: list[wire.Frame], elements: list[bytes], ends: bool) -> None:  # a column
    """Each shape of a stream, and how it ends."""
    raw, reader = asking(model)
    raw.say(*said)
    assert reader.elements == elements
    assert reader.ends == (["complete"] if ends else [])
    assert bool(raw.session.streams.opened) is not ends
    assert raw.session.state is OPEN


FAULTS: dict[str, tuple[int, list[wire.Frame], str]] = {
    "an-end-without-a-begin": (5, [part(b"x", end=True)], "ends that never began"),
    "a-begin-within-a-begin": (5, [part(b"x", begin=True), part(b"y", begin=True)], "begins within another"),
    "a-whole-within-a-begin": (5, [part(b"x", begin=True), part(b"y", begin=True, end=True)], "begins within another"),
    "more-than-was-asked-for": (1, [part(b"x"), part(b"y")], "not asked for"),
    "a-fragment-more-than-was-asked-for": (1, [part(b"x"), part(b"y", begin=True)], "not asked for"),
    "the-end-within-an-element": (5, [part(b"x", begin=True), part(b"y" * 70), part(b"y" * 70)], "so far"),
}


@pytest.mark.parametrize(("demand", "said", "words"), FAULTS.values(), ids=FAULTS)
def test_a_stream_that_breaks_its_contract_ends_alone(demand: int, said: list[wire.Frame], words: str) -> None:
    """It is cancelled there, and fails here; the connection goes on."""
    raw = RawSocket(Role.CLIENT, limits=limited(max_element=100))
    reader = raw.ask(Model.STREAM, demand)
    raw.say(*said)
    (end,) = reader.ends
    assert isinstance(end, ProtocolError)
    assert words in str(end)
    assert raw.hear() == [wire.Cancel(stream_id=1)]
    assert raw.session.state is OPEN
    assert not raw.session.streams.opened


def test_a_cancel_in_the_middle_of_fragments_drops_them() -> None:
    """Those that are still on their way are ignored."""
    raw, reader = asking()
    raw.say(part(b"a", begin=True))
    reader.cancel()
    raw.say(part(b"b"), part(b"c", end=True))
    assert reader.elements == reader.ends == []
    assert raw.session.channel.budgets.partials.count == 0
    assert raw.session.state is OPEN


def test_a_second_value_of_a_request_for_one_is_nothing_and_costs_nothing() -> None:
    """There are peers that send the value, and then a bare end: for each request."""
    raw = RawSocket(Role.CLIENT, limits=limited(glitch_burst=2, glitch_rate=1e-6))
    for number in range(20):
        reader = raw.ask(Model.RESPONSE, 1)
        stream_id = 2 * number + 1
        raw.say(wire.Response(stream_id=stream_id, data=b"x"), wire.Response(stream_id=stream_id, complete=True, data=b""))
        assert (reader.elements, reader.ends) == ([b"x"], ["complete"])
    assert raw.session.state is OPEN


def test_a_bare_end_that_no_value_has_earned_is_a_glitch() -> None:
    """One for each value that came without the end, and no more."""
    raw = RawSocket(Role.CLIENT, limits=limited(glitch_burst=2, glitch_rate=1e-6))
    raw.ask(Model.RESPONSE, 1)
    end = wire.Response(stream_id=1, complete=True, data=b"")
    raw.say(wire.Response(stream_id=1, data=b"x"), end, end, end)
    assert raw.session.state is OPEN
    raw.say(end)
    assert refused(raw) == "limit:glitches"


@pytest.mark.parametrize("cut", [1 << 20, 16, 100])
def test_a_setup_has_its_limit_however_it_is_cut(cut: int) -> None:
    """A whole one is no larger than one that comes in pieces."""
    fits, large = (wire.encode(wire.Setup(data=bytes(size))) for size in (84, 85))
    limits = limited(preauth_bytes=100)
    for said, reasons in ((fits, []), (large, ["limit:hello"])):
        raw = RawSocket(limits=limits)
        raw.say(*(said[start : start + cut] for start in range(0, len(said), cut)))
        assert [each.data.decode() for each in raw.hear() if isinstance(each, wire.Error)] == reasons


def test_an_error_of_the_connection_ends_everything() -> None:
    """After something was answered it is no refusal."""
    raw, reader = asking()
    raw.say(part(b"x"), wire.Error(stream_id=0, data=b"drain"))
    (end,), (over,) = reader.ends, raw.owner.ended
    assert isinstance(end, ConnectionLost)
    assert "'drain'" in str(end)
    assert (type(over), str(over)) == (type(end), str(end))


def test_an_error_text_is_cut_and_need_not_be_utf_8() -> None:
    """Whatever a peer writes."""
    raw = RawSocket(Role.CLIENT, limits=limited(max_error_text=4))
    reader = raw.ask()
    raw.say(wire.Error(stream_id=1, data=b"\xffabcdef"))
    assert str(reader.ends[0]) == "\ufffdabc"


def test_after_our_goodbye_nothing_that_is_asked_is_done() -> None:
    """It crossed on the wire."""
    raw = RawSocket().greet()
    raw.session.close("drain")
    raw.hear()
    raw.say(REQUEST, wire.RequestN(stream_id=1, demand=1), wire.Cancel(stream_id=1))
    assert raw.owner.served == []
    assert raw.hear() == []


def test_a_setup_is_bounded_by_what_anybody_may_say_before_it_is_accepted() -> None:
    """But not what comes right behind it."""
    raw = RawSocket()
    raw.say(wire.encode(wire.Setup(data=b"x" * 5000))[:4500])
    assert refused(raw) == "limit:hello"
    quick = RawSocket()
    source = quick.serve()
    quick.say(wire.encode(wire.Setup()) + wire.encode(REQUEST) + wire.encode(wire.RequestFnf(stream_id=3, data=b"x" * 10_000)))
    assert source.requests
    assert quick.session.state is OPEN


@pytest.mark.parametrize(("text", "kind"), [("shutdown", ConnectionLost), ("limit:churn", ConnectionLost), ("not you", Rejected)])
def test_an_end_that_only_the_accepted_are_told_is_no_refusal(text: str, kind: type[Exception]) -> None:
    """What was asked for may have been begun, though nothing was answered: `processed=False` would be a lie."""
    raw, reader = asking()
    raw.say(wire.Error(stream_id=0, data=text.encode()))
    (end,) = reader.ends
    assert type(end) is kind
    assert text in str(end)


def test_a_setup_that_comes_after_this_side_has_left_is_nothing() -> None:
    """They may cross: nobody is examined, and nothing raises."""
    raw = RawSocket()
    raw.session.close("shutdown")
    raw.say(wire.Setup(), REQUEST)
    assert raw.owner.introductions == []
    assert refused(raw) == "shutdown"


def test_an_error_text_is_made_safe_to_print_and_ours_say_what_to_try() -> None:
    """What a terminal would obey is escaped."""
    for text, told in ((b"\x1b[2J", r"\x1b[2J"), (b"the publisher failed", "only the text of a PublicError is sent")):
        raw, reader = asking()
        raw.say(wire.Error(stream_id=1, data=text))
        (end,) = reader.ends
        assert told in str(end)
        assert str(end).isprintable()


LAST = wire.Response(stream_id=1, complete=True, data=b"v")


def test_an_answer_to_a_request_for_one_value_is_the_value_and_the_end_once() -> None:
    """Its stream is gone then, and what follows on its id is nothing of ours."""
    raw = RawSocket(Role.CLIENT).greet()
    reader = raw.ask(Model.RESPONSE, 1)
    raw.say(LAST, LAST)
    assert (reader.elements, reader.ends) == ([b"v"], ["complete"])
    assert not raw.session.streams.opened
    assert raw.hear() == []


def test_who_cancels_on_the_answer_says_nothing_to_a_peer_that_is_done() -> None:
    """And hears of no end: it has ended it."""

    class Canceller(Reader):
        def on_next(self, element: bytes, /) -> None:
            super().on_next(element)
            self.cancel()

    raw = RawSocket(Role.CLIENT).greet()
    reader = Canceller(1)
    raw.ask(Model.RESPONSE, subscriber=reader)
    raw.say(LAST)
    assert reader.elements == [b"v"]
    assert not raw.session.streams.opened
    assert raw.hear() == []


def test_who_leaves_on_the_answer_hears_of_one_end() -> None:
    """The connection ends every stream that is open; this one has just been answered."""

    class Leaver(Reader):
        def on_next(self, element: bytes, /) -> None:
            super().on_next(element)
            raw.session.close("enough")

    raw = RawSocket(Role.CLIENT).greet()
    reader = Leaver(1)
    raw.ask(Model.RESPONSE, subscriber=reader)
    raw.say(LAST)
    assert (reader.elements, reader.ends) == ([b"v"], ["complete"])


def test_an_answer_passes_what_an_extension_makes_of_elements() -> None:
    """And one that ends the connection over it delivers nothing."""
    raw = RawSocket(Role.CLIENT).greet()
    raw.session.channel.incoming = bytes.upper
    reader = raw.ask(Model.RESPONSE, 1)
    raw.say(LAST)
    assert (reader.elements, reader.ends) == ([b"V"], ["complete"])

    def refuse(element: bytes) -> bytes:
        raw.session.close("enough")
        return element

    raw.session.channel.incoming = refuse
    other = raw.ask(Model.RESPONSE, 1)
    raw.say(wire.Response(stream_id=3, complete=True, data=b"v"))
    assert other.elements == []
    assert [type(end) for end in other.ends] == [ConnectionLost]


def test_an_answer_that_was_not_asked_for_is_none() -> None:
    """A subscriber that has asked for nothing yet gets nothing."""
    raw = RawSocket(Role.CLIENT).greet()
    reader = raw.ask(Model.RESPONSE, 0)
    raw.say(LAST)
    assert reader.elements == []
    assert [type(end) for end in reader.ends] == [ProtocolError]


def test_the_first_answer_tells_a_client_that_it_is_accepted() -> None:
    """As any other does."""
    raw = RawSocket(Role.CLIENT).greet()
    raw.ask(Model.RESPONSE, 1)
    assert not raw.owner.is_open
    raw.say(LAST)
    assert raw.owner.is_open
