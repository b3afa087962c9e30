"""Large elements are held, written in parts and in turns, and bounded over the connection."""

import pytest

from penstock.protocols import rsio
from penstock.testing import MessageList
from tests.session._pair import Pair, ScriptedPublisher, limits_with, open_stream


def test_large_elements_are_split_and_take_turns() -> None:
    """A smaller element of another stream is whole before the large one."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    large, subscriber = open_stream(pair, 5)
    small = pair.server.publishers["t"] = ScriptedPublisher()
    other = pair.subscribe("t", 5)
    pair.settle()
    large.emit(bytes(1000))
    small.emit(bytes(101))
    small.complete()
    first = bytes(pair.server.session.take())
    messages = MessageList()
    for stream in (0, 1):
        messages.receive_on_subscribe(stream, 0)
    rsio.RsioDecoder(messages, messages.streams).feed(first)
    order = [
        message.subscriber
        for message in messages.messages[2:]
        if isinstance(message, rsio.OnNextPart | rsio.OnNextLastPart)
    ]
    assert order[:4] == [0, 1, 0, 1]
    pair.client.session.receive(first, 0.0)
    pair.settle()
    assert subscriber.elements == [bytes(1000)]
    assert other.elements == [bytes(101)]
    assert other.ends == ["complete"]


def test_small_elements_wait_behind_a_large_one_of_their_stream() -> None:
    """The order within a stream is kept, and the completion comes last."""
    pair = Pair(limits=limits_with(split_outbound_at=100))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(250), b"a", bytes(101))
    source.complete()
    pair.settle()
    assert subscriber.elements == [bytes(250), b"a", bytes(101)]
    assert subscriber.ends == ["complete"]


def test_large_elements_of_all_streams_together_have_a_hard_bound() -> None:
    """The bound is the high-water mark plus one element. Above it no publisher is asked, and
    each goes on when there is room again.
    """
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=500, max_element=1000))
    scripts = [ScriptedPublisher() for _ in range(5)]
    subscribers = []
    for each, script in enumerate(scripts):
        pair.server.publishers[f"s{each}"] = script
        subscribers.append(pair.subscribe(f"s{each}", 0))
    pair.settle()
    server = pair.server.session
    for script, subscriber in zip(scripts, subscribers, strict=True):
        subscriber.request(3)
        server.receive(bytes(pair.client.session.take()), 0.0)
        if script.demand:
            script.emit(bytes(800))
    assert [script.demand for script in scripts] == [1, 1, 0, 0, 0]
    assert server.outbox.large == server.channel.held_by_streams() == 1600
    pair.settle()
    assert server.outbox.large == 0
    assert [len(subscriber.elements) for subscriber in subscribers] == [1, 1, 0, 0, 0]
    assert all(script.demand for script in scripts)


def test_large_elements_of_a_stream_that_ends_hold_nothing() -> None:
    """The stream is cancelled within an element, with another element after it."""
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=250))
    source, subscriber = open_stream(pair, 5)
    source.emit(bytes(1000), b"small", bytes(500))
    pair.client.session.receive(bytes(pair.server.session.take()), 0.0)
    assert 0 < pair.server.session.outbox.large < 1505
    # The whole of the first is held until its last part is written.
    assert pair.server.session.channel.held_by_streams() == 1505
    subscriber.cancel()
    pair.settle()
    assert pair.server.session.outbox.large == 0


@pytest.mark.parametrize("bound", [{"max_partials_in_all": 2}, {"partial_bytes": 2000}])
def test_no_more_elements_begin_than_a_peer_with_the_same_limits_takes(
    bound: dict[str, int],
) -> None:
    """Ten streams have large elements at once. All arrive, and no stream ends because of the
    others' unfinished elements.
    """
    pair = Pair(limits=limits_with(split_outbound_at=100, **bound))
    for number in range(10):
        pair.server.publishers[f"s{number}"] = ScriptedPublisher()
    subscribers = [pair.subscribe(f"s{number}", 5) for number in range(10)]
    pair.settle()
    for source in pair.server.publishers.values():
        source.emit(bytes(900), bytes(200))
        source.complete()
    pair.settle()
    assert [(subscriber.elements, subscriber.ends) for subscriber in subscribers] == [
        ([bytes(900), bytes(200)], ["complete"])
    ] * 10


def test_a_stream_that_ends_with_large_elements_waiting_lets_the_others_go_on() -> None:
    """They wait for room, and dropped elements make room:
    the writer sends nothing that would tell them.
    """
    pair = Pair(limits=limits_with(max_element=200_000))
    large, reader = open_stream(pair, 100)
    small, waiting = open_stream(pair, 0)
    # More than the outbox takes beside one element: from here on no stream is asked for elements.
    large.emit(*[bytes(200_000)] * 3)
    waiting.request(1)
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert small.demand == 0
    reader.cancel()
    pair.server.session.receive(bytes(pair.client.session.take()), 0.0)
    assert small.demand == 1


def test_two_large_elements_wait_whatever_the_number_of_streams() -> None:
    """Streams are asked again in turn as elements are written, and each gets its elements."""
    pair = Pair(limits=limits_with(split_outbound_at=100, outbound_high=500))
    scripts = {f"s{each}": ScriptedPublisher() for each in range(20)}
    pair.server.publishers.update(scripts)
    subscribers = [pair.subscribe(name, 1) for name in scripts]
    pair.settle()
    for script in scripts.values():
        script.emit(bytes(900))
    pair.settle()
    server = pair.server.session
    for subscriber in subscribers:
        subscriber.request(3)
    server.receive(bytes(pair.client.session.take()), 0.0)
    most, emitted = 0, dict.fromkeys(scripts, 1)
    for _ in range(2000):
        for name, script in scripts.items():
            if script.demand > emitted[name]:
                script.emit(bytes(900))
                emitted[name] += 1
        most = max(most, server.outbox.large_elements)
        if server.outbox.is_empty and server.outbox.needs_turn:
            server.outbox.take_turn()
        else:
            pair.client.session.receive(bytes(server.take()), 0.0)
    assert most == 2
    assert [len(subscriber.elements) for subscriber in subscribers] == [4] * 20
    assert server.outbox.large_elements == 0
