"""The mapping, request by request, without I/O."""

import pytest
from _engine_client import Client, elements_of, header, request
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock_http._engine import AT_ONCE, MAX_TOMBSTONES, Subscribe, refused
from penstock_http._exchanges import Events, Poll, StreamedBatch
from penstock_http._messages import Response, refusal

from penstock.api import (
    UNBOUNDED,
    AuthRefused,
    LimitExceeded,
    NotAvailable,
    PublicError,
    PublisherFailed,
)
from penstock.testing import ManualPublisher


def test_the_life_cycle_of_the_draft() -> None:
    """Subscribe, an element, a batch, nothing, the completion, and the same answer again."""
    client = Client()
    path = client.subscribe(1)
    client.emit(b"zero")
    first = client.answer(path)
    assert (first.status, first.body, header(first, "Content-Encoding")) == (200, b"zero", None)
    assert isinstance(client.poll(f"{path}?request=3"), Poll)
    client.emit(b"one", b"", b"three")
    batch = client.answer(path)
    assert header(batch, "Content-Encoding") == "X-Rsio-LengthPrefixedElements"
    assert batch.body == b"\0\0\0\3one\0\0\0\0\0\0\0\5three"
    assert client.answer(path).status == 204
    client.publisher.complete()
    for _ in range(2):
        end = client.answer(path)
        assert (
            end.status,
            end.body,
            header(end, "X-Rsio-Position"),
            header(end, "X-Rsio-Error"),
        ) == (410, b"", "4", None)


def test_an_empty_element_is_an_answer_without_a_body() -> None:
    """It is not a 204: that says that nothing is there."""
    client = Client()
    path = client.subscribe(1)
    client.emit(b"")
    response = client.answer(path)
    assert (response.status, response.body) == (200, b"")


def test_a_failure_comes_behind_the_elements_and_is_repeated() -> None:
    """With the header that makes it final, and its public text."""
    client = Client()
    path = client.subscribe(5)
    client.emit(b"1", b"2")
    client.publisher.fail(PublisherFailed("out of stock"))
    assert elements_of(client.answer(path)) == [b"1", b"2"]
    for _ in range(2):
        failed = client.answer(path)
        assert (failed.status, header(failed, "X-Rsio-Error"), failed.body) == (
            500,
            "true",
            b"out of stock\n",
        )
        assert header(failed, "Content-Type") == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("no file \udcff", b"no file ?\n"),
        ("ü" * 100_000, "ü".encode() * 512 + b"\n"),
        ("x" + "ü" * 600, b"x" + "ü".encode() * 511 + b"\n"),
    ],
)
def test_the_text_of_a_failure_is_short_and_can_be_sent(text: str, body: bytes) -> None:
    """A name of `os.listdir` may have what UTF-8 has not, and a text may be long."""
    client = Client()
    path = client.subscribe(5)
    client.publisher.fail(PublisherFailed(text))
    assert client.answer(path).body == body


def test_a_refusal_with_what_utf_8_has_not_can_be_sent() -> None:
    """Its text may be that of a function of the program."""
    assert refusal(404, "no file \udcff").body == b"no file ?\n"


def test_demand_bounds_what_is_sent_and_what_the_publisher_is_asked_for() -> None:
    """Demand comes with the subscribe, with polls, and alone, as a segment or as an argument. The
    publisher is asked for one element until a size is known.
    """
    client = Client()
    path = client.subscribe()
    assert client.publisher.requested == 0
    assert client.answer(path).status == 204
    for query in ("/requestMore=2", "?requestMore=1"):
        more = client.send(f"{path}{query}")
        assert isinstance(more, Response)
        assert (more.status, more.body) == (200, b"")
    assert client.publisher.requested == 1
    client.emit(b"1")
    assert client.publisher.requested == 3
    client.emit(b"2", b"3")
    assert elements_of(client.answer(path)) == [b"1", b"2", b"3"]


def test_a_cancel_reaches_the_publisher_and_ends_the_subscription() -> None:
    """Cancelling again says that there is nothing: the client counts that as done."""
    client = Client()
    path = client.subscribe(3)
    assert client.send(f"{path}/cancel").status == 200  # type: ignore[union-attr]  # a Response
    assert client.publisher.cancelled
    for again in ("/cancel", "", "/requestMore=1"):
        response = client.answer(f"{path}{again}")
        assert (response.status, header(response, "X-Rsio-Error")) == (404, "true")


def test_a_name_keeps_its_own_arguments_and_escapes() -> None:
    """The argument `request` is the mapping's; the others belong to the name."""
    client = Client()
    for path, name in (
        ("/p/ticks/EURUSD?request=2&cents=7&note=a%26b", "ticks/EURUSD?cents=7&note=a%26b"),
        ("/p/a%20b/c%2Fd", "a b/c%2Fd"),
        ("/p/a%3Fb%25", "a%3Fb%25"),
    ):
        asked = client.send(path)
        assert isinstance(asked, Subscribe)
        assert asked.name == name


def test_the_location_is_relative_or_below_the_public_url() -> None:
    """A proxy may have taken a prefix off the path: a relative URL keeps it."""
    for public, location in (
        ("", "../../s/0000000000000000000000"),
        ("https://x.example/live", "https://x.example/live/s/0000000000000000000000"),
    ):
        client = Client(public=public)
        asked = client.send("/p/ticks/EURUSD")
        assert isinstance(asked, Subscribe)
        created = client.engine.opened(asked, request("/p/ticks/EURUSD"), None, lambda: None)
        assert (header(created, "Location"), header(created, "X-Rsio-Idle-Timeout")) == (
            location,
            "60",
        )


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/p/x?request=", 400),
        ("/p/x?request=-1", 400),
        ("/p/x?request=1.5", 400),
        ("/p/x?request=+1", 400),
        ("/p/x?request=1&request=2", 400),
        (f"/p/x?request={UNBOUNDED + 1}", 400),
        ("/p/x?request=" + "9" * 5000, 400),
        ("/p/x?" + "&" * 300, 400),
        ("/s/" + "0" * 22, 404),
        ("/s/short", 404),
        ("/s/" + "0" * 22 + "/cancel", 404),
        ("/elsewhere", 404),
        ("/", 404),
    ],
)
def test_a_wrong_request_has_an_answer_that_is_final(path: str, status: int) -> None:
    """No subscription is made. The answer says that no stream exists, and no cache keeps it."""
    client = Client()
    response = client.send(path)
    assert isinstance(response, Response)
    assert (
        response.status,
        header(response, "X-Rsio-Error"),
        header(response, "Cache-Control"),
    ) == (status, "true", "no-store")
    assert response.body
    assert len(client.engine) == 0


@pytest.mark.parametrize(
    "query",
    [
        "?request=x",
        "?request=-1",
        "/requestMore=0",
        "/requestMore=x",
        "?requestMore=0",
        f"?request={UNBOUNDED + 1}",
    ],
)
def test_a_wrong_demand_on_a_subscription_ends_its_stream(query: str) -> None:
    """Rule 3.9: the publisher is cancelled, and the answer says so;
    the next answers are the same.
    """
    client = Client()
    path = client.subscribe(1)
    for _ in range(2):
        response = client.answer(f"{path}{query}")
        assert (response.status, header(response, "X-Rsio-Error")) == (400, "true")
        assert client.publisher.cancelled


@pytest.mark.parametrize(
    "name", ["If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range"]
)
def test_a_conditional_request_changes_nothing(name: str) -> None:
    """412 without X-Rsio-Error: neither its demand nor its cancel is applied."""
    client = Client()
    path = client.subscribe(1)
    for target in (f"{path}?request=5", f"{path}/cancel", "/p/numbers?request=1"):
        response = client.answer(target, **{name: "x"})
        assert (response.status, header(response, "X-Rsio-Error")) == (412, None)
    assert client.publisher.requested == 1
    assert not client.publisher.cancelled


def test_a_range_is_ignored_and_a_post_is_a_put() -> None:
    """Other methods are refused with those that are allowed."""
    client = Client()
    path = client.subscribe(1)
    for method in ("GET", "DELETE", "PATCH", "OPTIONS", "HEAD", "BREW"):
        response = client.send(path, method)
        assert isinstance(response, Response)
        assert (response.status, header(response, "Allow"), header(response, "X-Rsio-Error")) == (
            405,
            "PUT, POST",
            None,
        )
    assert header(client.send(f"{path}/events"), "Allow") == "GET"  # type: ignore[arg-type]  # a Response
    client.emit(b"element")
    exchange = client.send(path, "POST", range="bytes=0-1")
    assert isinstance(exchange, Poll)
    exchange.begin(lambda: None)
    assert exchange.advance(0.0).body == b"element"  # type: ignore[union-attr]  # answered at once


def test_an_answer_that_was_lost_is_sent_again_whole() -> None:
    """To a client that knows the draft alone:
    batched in another way perhaps, and its demand is not used up twice.
    """
    client = Client()
    path = client.subscribe(3)
    client.emit(b"1", b"2")
    assert elements_of(client.answer(path, lost=True)) == [b"1", b"2"]
    client.emit(b"3")
    assert elements_of(client.answer(path)) == [b"1", b"2", b"3"]
    assert client.answer(path).status == 204
    assert client.publisher.requested == 3


def test_an_answer_that_is_still_written_is_sent_again_to_the_next_poll() -> None:
    """After some seconds: the client has given it up. When it fails later, that changes nothing."""
    client = Client()
    path = client.subscribe(2)
    client.emit(b"1", b"2")
    old = client.poll(path)
    assert isinstance(old, Response)
    client.now = 4.9
    assert client.answer(path).status == 204
    client.now = 5.0
    assert elements_of(client.answer(path)) == [b"1", b"2"]
    assert old.outcome is not None
    old.outcome.on_lost()
    assert client.answer(path).status == 204


@pytest.mark.parametrize("size", [100, 10_000, pytest.param(2_000_000, marks=pytest.mark.heavy)])
def test_events_of_any_size_go_on(size: int) -> None:
    """Those that are kept for a page that connects again once filled all that may be kept, after
    104 events of 10,000 bytes: then the stream stood still.
    """
    client = Client()
    events = client.send(f"{client.subscribe(UNBOUNDED)}/events", "GET")
    assert isinstance(events, Events)
    events.begin(lambda: None)
    for _ in range(500):
        client.emit(b"x" * size)
        assert events.advance(client.now)
    [entry] = client.engine._entries.values()
    kept = entry.subscription.kept_bytes()
    assert kept <= max(client.settings.max_bytes, 2 * size)


def test_a_client_that_has_taken_nothing_makes_the_server_keep_less() -> None:
    """64 KiB, and 1 MiB once it has taken an element."""
    client = Client()
    path = client.subscribe(UNBOUNDED)
    for _ in range(64):
        client.emit(b"x" * 1024)
    assert client.publisher.outstanding == 0
    client.answer(path, X_Rsio_Position="0")
    client.poll(path, X_Rsio_Position="64")
    assert client.publisher.outstanding == 1024


def test_polls_at_the_same_time_get_elements_of_their_own() -> None:
    """Twenty answers once had four distinct elements: an answer that was still being written was
    sent again to the next poll.
    """
    client = Client()
    path = client.subscribe(20)
    client.emit(b"0")
    client.emit(*[b"%d" % number for number in range(1, 20)])
    answers = [client.poll(path, accept_encoding="identity") for _ in range(20)]
    assert [answer.body for answer in answers if isinstance(answer, Response)] == [
        b"%d" % number for number in range(20)
    ]


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "after the others"])
def test_what_one_of_several_polls_loses_comes_again_alone(*, is_late: bool) -> None:
    """In its order if later elements were not answered yet; else before the elements that follow.
    None of the others come twice.
    """
    client = Client()
    path = client.subscribe(7)
    client.emit(b"0")
    client.emit(*[b"%d" % number for number in range(1, 6)])
    polls = [client.poll(path, accept_encoding="identity") for _ in range(4)]
    for number, answer in enumerate(polls):
        assert isinstance(answer, Response)
        assert answer.outcome is not None
        if number in (1, 2) and not is_late:
            answer.outcome.on_lost()
        elif number not in (1, 2):
            answer.outcome.on_written()
    if is_late:
        assert elements_of(client.answer(path, accept_encoding="identity")) == [b"4"]
        for number in (2, 1):
            polls[number].outcome.on_lost()  # type: ignore[union-attr]  # a Response with elements
    found: list[tuple[str | None, bytes]] = []
    for _ in range(3):
        answer = client.answer(path, accept_encoding="identity")
        found.append((header(answer, "X-Rsio-Position"), answer.body))
    rest = [("5", b"5")] if is_late else [("4", b"4"), ("5", b"5")]
    assert found[:2] == [("1", b"1"), ("2", b"2")]
    assert found[2] == rest[0]
    client.emit(b"6")
    client.publisher.complete()
    left = [] if is_late else [b"5"]
    assert [client.answer(path, accept_encoding="identity").body for _ in range(len(left) + 1)] == [
        *left,
        b"6",
    ]
    assert client.answer(path).status == 410
    assert client.answer(path).status == 410


def test_a_client_with_positions_gets_each_element_once() -> None:
    """It says what it has. The server forgets that, and goes on from there, also if it believed
    the answer to be delivered.
    """
    client = Client()
    path = client.subscribe(4, X_Rsio_Requested="4")
    client.emit(b"0", b"1", b"2", b"3")
    assert len(elements_of(client.answer(path, X_Rsio_Position="0", X_Rsio_Requested="4"))) == 4
    again = client.answer(path, X_Rsio_Position="2", X_Rsio_Requested="4")
    assert (elements_of(again), header(again, "X-Rsio-Position")) == ([b"2", b"3"], "2")
    assert client.answer(path, X_Rsio_Position="4", X_Rsio_Requested="4").status == 204
    assert client.publisher.requested == 4


@pytest.mark.parametrize(("position", "status"), [("5", 400), ("x", 400), ("-1", 400), ("1", 409)])
def test_a_position_that_cannot_be_ends_the_stream(position: str, status: int) -> None:
    """One that was not sent yet, and one whose elements are gone."""
    client = Client()
    path = client.subscribe(5)
    client.emit(b"0", b"1", b"2")
    client.answer(path)
    client.answer(path, X_Rsio_Position="2")
    response = client.answer(path, X_Rsio_Position=position)
    assert (response.status, header(response, "X-Rsio-Error")) == (status, "true")
    assert client.publisher.cancelled


def test_a_client_that_never_polls_makes_the_server_keep_nothing() -> None:
    """Whatever it requests, and however often: its publisher is asked for nothing. A poll asks for
    one element, whose size is not known.
    """
    client = Client()
    path = client.subscribe(1000, is_polled=False)
    for _ in range(3):
        client.send(f"{path}/requestMore=1000")
    assert client.publisher.requested == 0
    poll = client.send(path)
    assert isinstance(poll, Poll)
    assert client.publisher.requested == 0
    poll.begin(lambda: None)
    assert client.publisher.requested == 1


def test_a_client_that_polls_once_makes_the_server_keep_little() -> None:
    """Whatever it requests: a bounded number of elements, and of bytes if they are large."""
    client = Client(max_elements=100, max_bytes=10_000)
    client.subscribe(UNBOUNDED)
    kept = 0
    while client.publisher.outstanding:
        client.emit(b"x" * 10)
        kept += 1
    assert 50 < kept <= 100
    large = Client(max_elements=100, max_bytes=10_000)
    path = large.subscribe(UNBOUNDED)
    kept = 0
    while large.publisher.outstanding:
        large.emit(b"x" * 1000)
        kept += 1
    assert 8 <= kept <= 10
    assert len(large.answer(path).body) < 12_000
    large.poll(path, X_Rsio_Position=str(kept))
    assert 8 <= large.publisher.outstanding <= 10


def test_a_batch_has_a_bounded_size() -> None:
    """One element is sent whole, however long it is."""
    client = Client(max_elements=10, max_bytes=100)
    path = client.subscribe(100)
    client.emit(b"x")
    client.emit(*[b"x" * 30] * 8)
    assert len(elements_of(client.answer(path))) == 4
    long = Client(max_bytes=100)
    path = long.subscribe(1)
    long.emit(b"x" * 1000)
    assert long.answer(path).body == b"x" * 1000


@pytest.mark.parametrize(
    ("accepted", "codings"),
    [
        (None, "length"),
        ("gzip, deflate, br", "length"),
        ("*", "length"),
        ("identity", "single"),
        ("X-Rsio-LengthPrefixedElements;q=0", "single"),
        ("x-rsio-lengthprefixedelements", "length"),
        ("X-Rsio-FixedSizeElements, X-Rsio-LengthPrefixedElements", "fixed"),
    ],
)
def test_the_coding_is_one_that_the_client_reads(accepted: str | None, codings: str) -> None:
    """Pages cannot set Accept-Encoding, so a coding that is not mentioned is used.
    The one of fixed sizes must be named.
    """
    client = Client()
    path = client.subscribe(3)
    client.emit(b"1", b"2", b"3")
    response = client.answer(path, **({} if accepted is None else {"accept_encoding": accepted}))
    coding = {
        "length": "X-Rsio-LengthPrefixedElements",
        "fixed": "X-Rsio-FixedSizeElements",
        "single": None,
    }[codings]
    assert header(response, "Content-Encoding") == coding
    assert elements_of(response) == ([b"1"] if coding is None else [b"1", b"2", b"3"])


def test_a_poll_waits_for_an_element_and_no_longer_than_it_may() -> None:
    """25 s, or less if the client prefers that; then a 204 with the position."""
    client = Client()
    path = client.subscribe(1)
    woken: list[str] = []
    for wait, due in (
        (None, 25.0),
        ("wait=3", 3.0),
        ("wait=900", 25.0),
        ("respond-async, wait=0", 0.0),
    ):
        poll = client.send(path, **({} if wait is None else {"prefer": wait}))
        assert isinstance(poll, Poll)
        poll.begin(lambda: woken.append("woken"))
        assert poll.due == client.now + due
        assert poll.advance(client.now + due - 0.001) is None or due == 0
        nothing = poll.advance(client.now + due)
        assert nothing is not None
        assert (nothing.status, header(nothing, "X-Rsio-Position")) == (204, "0")
        poll.release(client.now)
    poll = client.send(path)
    assert isinstance(poll, Poll)
    poll.begin(lambda: woken.append("element"))
    client.emit(b"x")
    assert woken == ["element"]


def test_a_newer_poll_takes_the_place_of_an_older_one() -> None:
    """The client may have sent it again through a proxy that still holds the first."""
    client = Client()
    path = client.subscribe(1)
    woken: list[str] = []
    older = client.send(path)
    assert isinstance(older, Poll)
    older.begin(lambda: woken.append("older"))
    assert older.advance(0.0) is None
    newer = client.send(path)
    assert isinstance(newer, Poll)
    newer.begin(lambda: woken.append("newer"))
    assert woken == ["older"]
    answer = older.advance(0.0)
    assert answer is not None
    assert answer.status == 204
    older.release(0.0)
    client.emit(b"x")
    assert woken == ["older", "newer"]
    answer = newer.advance(0.0)
    assert answer is not None
    assert answer.body == b"x"


def test_a_shutdown_answers_a_poll_that_waits() -> None:
    """With an error that is final: the subscription ends with the server."""
    client = Client()
    poll = client.send(client.subscribe(1))
    assert isinstance(poll, Poll)
    poll.begin(lambda: None)
    response = poll.advance(0.0, draining=True)
    assert response is not None
    assert (response.status, header(response, "X-Rsio-Error")) == (503, "true")


def test_a_subscription_without_requests_ends() -> None:
    """After 60 s its publisher is cancelled, and it is unknown then. A poll that waits keeps it."""
    client = Client()
    path = client.subscribe(1)
    assert client.engine.expire(0.0) == 60.0
    client.now = 50.0
    poll = client.send(path)
    assert isinstance(poll, Poll)
    poll.begin(lambda: None)
    assert client.engine.expire(200.0) == 260.0
    poll.release(200.0)
    assert client.engine.expire(259.0) == 260.0
    assert client.engine.expire(260.0) is None
    assert client.publisher.cancelled
    assert client.answer(path).status == 404
    assert len(client.engine) == 0


def test_many_subscriptions_end_in_several_turns() -> None:
    """Each of them has a publisher to stop, and those who opened them may have done so at once."""
    client = Client()
    for _ in range(2 * AT_ONCE + 1):
        client.subscribe(1)
    for left in (AT_ONCE + 1, 1):
        assert client.engine.expire(60.0) == 60.0
        assert len(client.engine) == left
    assert client.engine.expire(60.0) is None
    assert len(client.engine) == 0


def test_a_place_is_free_when_nothing_is_held_for_the_client() -> None:
    """When the client has every element for certain, when it cancels, and
    when it does not come again.
    """
    client = Client()
    path = client.subscribe(2)
    client.emit(b"1", b"2")
    client.publisher.complete()
    client.answer(path, X_Rsio_Position="0")
    assert client.released == []
    client.answer(path, X_Rsio_Position="2")
    assert client.released
    cancelled, forgotten = Client(), Client()
    path = cancelled.subscribe(2)
    cancelled.answer(f"{path}/cancel")
    assert cancelled.released
    forgotten.subscribe(2)
    forgotten.emit(b"1")
    forgotten.publisher.complete()
    forgotten.engine.expire(60.0)
    assert forgotten.released


def test_ended_subscriptions_that_are_remembered_are_bounded() -> None:
    """The oldest are forgotten; one with elements that wait is not."""
    client = Client()
    keeper = client.subscribe(1)
    client.emit(b"1")
    kept = len(client.engine)
    for _ in range(2 * MAX_TOMBSTONES + 10):
        client.publisher = ManualPublisher()
        path = client.subscribe(1)
        client.answer(f"{path}/cancel")
    assert kept < len(client.engine) <= 2 * MAX_TOMBSTONES
    assert client.answer(keeper).body == b"1"
    assert client.answer(path).status == 404


def test_a_streamed_batch_grows_with_its_elements() -> None:
    """It ends with the demand; the positions are those of a batch."""
    client = Client()
    path = client.subscribe(3)
    stream = client.send(path, X_Rsio_Delivery="stream")
    assert isinstance(stream, StreamedBatch)
    stream.begin(lambda: None)
    assert stream.first(0.0) is None
    assert header(stream.head, "X-Rsio-Position") == "0"
    assert stream.advance(0.0) == b""
    client.emit(b"1", b"2")
    assert stream.advance(1.0) == b"\0\0\0\x011\0\0\0\x012"
    assert (stream.advance(1.0), stream.due) == (b"", 26.0)
    client.emit(b"3")
    assert stream.advance(20.0) == b"\0\0\0\x013"
    assert stream.advance(20.0) is None
    stream.on_written()
    stream.release(20.0)
    assert client.answer(path).status == 204


def test_a_streamed_batch_ends_if_nothing_comes_or_too_much_is_kept() -> None:
    """After the time of a poll; and when the client must first say what it has."""
    client = Client(max_elements=10)
    path = client.subscribe(100)
    stream = client.send(path, X_Rsio_Delivery="stream")
    assert isinstance(stream, StreamedBatch)
    stream.begin(lambda: None)
    assert stream.advance(24.9) == b""
    assert stream.advance(25.0) is None
    stream.release(25.0)
    stream = client.send(path, X_Rsio_Delivery="stream")
    assert isinstance(stream, StreamedBatch)
    stream.begin(lambda: None)
    sent = 0
    while client.publisher.outstanding:
        client.emit(b"x")
        assert stream.advance(30.0)
        sent += 1
    assert sent == 10
    assert stream.advance(30.0) is None
    stream.on_written()
    stream.release(30.0)
    client.poll(path, X_Rsio_Position="10")
    assert client.publisher.outstanding == 10


def test_a_streamed_batch_grows_while_the_system_of_its_client_takes_it() -> None:
    """64 KiB, as much more as was acknowledged, and 1 MiB for a client that reads."""
    client, element = Client(), bytes(10_000)
    stream = client.send(client.subscribe(1_000), X_Rsio_Delivery="stream")
    assert isinstance(stream, StreamedBatch)
    stream.begin(lambda: None)
    taken, counts = False, []

    def more() -> int:
        count = 0
        while client.publisher.outstanding:
            client.emit(*(element for _ in range(client.publisher.outstanding)))
            part = stream.advance(1.0, lambda: taken)
            assert part
            count += len(part) // len(element)
        return count

    counts.append(more())
    assert not stream.is_over
    now = 1.0
    for _ in range(3):
        assert stream.advance(now, lambda: taken) == b""
        assert now < stream.due < now + 0.1
        now = stream.due
    assert not client.publisher.outstanding
    taken = True
    while not stream.is_over:
        assert stream.advance(now, lambda: taken) == b""
        counts.append(more())
    assert counts == [6, 6, 92]


@pytest.mark.parametrize("reason", ["unread", "unknown", "draining", "ended"])
def test_a_streamed_batch_ends_if_its_client_takes_nothing(reason: str) -> None:
    """It ends after the last look at the acknowledgements. If they are unknown, or in a shutdown,
    or if the stream ends, it ends at once.
    """
    client, element = Client(), bytes(10_000)
    stream = client.send(client.subscribe(1_000), X_Rsio_Delivery="stream")
    assert isinstance(stream, StreamedBatch)
    stream.begin(lambda: None)

    def acknowledged() -> bool | None:
        return None if reason == "unknown" else False

    while client.publisher.outstanding:
        client.emit(*(element for _ in range(client.publisher.outstanding)))
        assert stream.advance(1.0, acknowledged)
    assert stream.is_over == (reason == "unknown")
    if reason == "ended":
        client.publisher.complete()
    now, looks = 1.0, 0
    while stream.advance(now, acknowledged, draining=reason == "draining") == b"":
        looks, now = looks + 1, stream.due
    assert (looks, round(now, 3)) == ((7, 1.635) if reason == "unread" else (0, 1.0))


def test_a_streamed_batch_that_is_due_to_nothing_is_a_plain_answer() -> None:
    """The end of the stream, and a stream without demand."""
    client = Client()
    path = client.subscribe()
    for status in (204, 410):
        stream = client.send(path, X_Rsio_Delivery="Stream")
        assert isinstance(stream, StreamedBatch)
        stream.begin(lambda: None)
        first = stream.first(0.0)
        assert first is not None
        assert first.status == status
        stream.release(0.0)
        if status == 204:
            client.publisher.complete()


def test_events_have_the_position_as_their_id_and_can_be_resumed() -> None:
    """Base64, or text if the client asks for it. A comment keeps the connection alive."""
    client = Client()
    path = client.subscribe(4)
    client.emit(b"\0\xff", b"two\nlines")
    events = client.send(f"{path}/events", "GET")
    assert isinstance(events, Events)
    events.begin(lambda: None)
    assert events.advance(0.0) == b"retry: 2000\nid: 0\ndata: AP8=\n\nid: 1\ndata: dHdvCmxpbmVz\n\n"
    assert events.advance(14.9) == b""
    assert events.advance(15.0) == b": \n\n"
    events.release(15.0)
    again = client.send(f"{path}/events?text=1", "GET", Last_Event_ID="0")
    assert isinstance(again, Events)
    again.begin(lambda: None)
    assert again.advance(16.0) == b"retry: 2000\nid: 1\ndata: two\ndata: lines\n\n"
    client.emit(b"\xff")
    assert b"event: rsio-error" in (again.advance(16.0) or b"")
    assert again.advance(16.0) is None


def test_events_end_with_the_stream() -> None:
    """With an event of their own; a page that connects again gets a status that stops it."""
    for fail, event in (
        (False, b"event: rsio-complete\ndata:\n\n"),
        (True, b"event: rsio-error\ndata: broken\n\n"),
    ):
        client = Client()
        path = client.subscribe(1)
        events = client.send(f"{path}/events", "GET")
        assert isinstance(events, Events)
        events.begin(lambda: None)
        assert events.advance(0.0) == b"retry: 2000\n: open\n\n"
        if fail:
            client.publisher.fail(PublisherFailed("broken"))
        else:
            client.publisher.complete()
        assert events.advance(0.0) == event
        assert events.advance(0.0) is None
        events.release(0.0)
        answer = client.send(f"{path}/events", "GET")
        if isinstance(answer, Poll):
            answer = answer.advance(0.0)
        assert isinstance(answer, Response)
        assert answer.status == (500 if fail else 410)


def test_events_do_not_need_positions_to_go_on() -> None:
    """A page cannot set headers: the sent events are forgotten, but for the last ones."""
    client = Client(max_elements=300)
    path = client.subscribe(UNBOUNDED)
    events = client.send(f"{path}/events", "GET")
    assert isinstance(events, Events)
    events.begin(lambda: None)
    for _ in range(2000):
        client.emit(b"x")
        assert events.advance(0.0)
    assert client.send(f"{path}/events", "GET", Last_Event_ID="1900")
    gone = client.send(f"{path}/events", "GET", Last_Event_ID="3")
    assert isinstance(gone, Response)
    assert gone.status == 409


def test_other_credentials_do_not_find_a_subscription() -> None:
    """Those of the subscribe need no second look;
    none at all are enough, because a page with EventSource can send none.
    """
    client = Client()
    path = client.subscribe(1, authorization="Bearer a")
    assert not client.engine.needs_credentials(request(path, authorization="Bearer a"))
    assert not client.engine.needs_credentials(request(path))
    other = request(path, authorization="Bearer b")
    assert client.engine.needs_credentials(other)
    assert client.engine.belongs_to(other, None)
    assert not client.engine.belongs_to(other, "bob")


def test_each_refusal_of_the_service_has_its_status() -> None:
    """Only the missing credentials may be remedied: that answer is not final."""
    answers = {
        AuthRefused("x"): (401, None),
        LimitExceeded("x", limit="max_subscriptions", value=1): (429, "true"),
        NotAvailable("secret"): (404, "true"),
        PublisherFailed("out of order"): (500, "true"),
        PublicError("out of order"): (500, "true"),
    }
    for error, (status, final) in answers.items():
        response = refused(error)
        assert (response.status, header(response, "X-Rsio-Error")) == (status, final)
        assert b"secret" not in response.body


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("request"), st.integers(1, 5)),
        st.tuples(st.just("emit"), st.integers(1, 5)),
        st.tuples(
            st.just("poll"), st.sampled_from(["written", "lost", "unfinished", "lost later"])
        ),
    ),
    max_size=40,
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(STEPS, st.booleans())
def test_every_order_of_losses_delivers_each_element_once(
    steps: list[tuple[str, object]], with_positions: bool
) -> None:
    """A client that counts, as the draft demands, or that sends positions, has each element once
    and in order: never one that it has not requested, and none is missing, if the server has seen
    each loss.
    """
    client = Client(max_elements=8)
    path, sent, received, demand = client.subscribe(0), 0, [], 0
    for step, value in steps:
        if step == "emit":
            for _ in range(min(int(str(value)), client.publisher.outstanding)):
                client.emit(b"%d" % sent)
                sent += 1
            continue
        headers = (
            {"X_Rsio_Position": str(len(received)), "X_Rsio_Requested": str(demand)}
            if with_positions
            else {}
        )
        if step == "request":
            demand += int(str(value))
            more = {**headers, "X_Rsio_Requested": str(demand)} if with_positions else {}
            client.answer(f"{path}/requestMore={value}", **more)
            continue
        response = client.poll(path, **headers)
        if isinstance(response, Poll):
            response.release(0.0)
            continue
        position = int(header(response, "X-Rsio-Position") or 0)
        elements = elements_of(response)
        assert position + len(elements) <= demand
        if response.outcome is not None and value != "unfinished":
            if value != "lost":
                response.outcome.on_written()
            if value != "written":
                response.outcome.on_lost()
        if value == "written":
            # Duplicates are dropped by their position.
            received += elements[len(received) - position :]
    final = {"X_Rsio_Position": str(len(received))} if with_positions else {}
    response = client.poll(path, **final)
    if isinstance(response, Response):
        received += elements_of(response)[
            len(received) - int(header(response, "X-Rsio-Position") or 0) :
        ]
    assert received == [b"%d" % number for number in range(len(received))]
    assert len(received) <= sent
