"""Events reach their observers, and an observer's failure affects nothing else."""

import logging

import pytest

from penstock.spi import (
    ConnectionClosed,
    ConnectionOpened,
    Events,
    Outcome,
    PeerIdentity,
    ReconnectEvent,
    ReconnectStage,
    StreamEnded,
    StreamOpened,
)

OPENED = ConnectionOpened(
    connection=1,
    address="tcp://h:1",
    dialect="rsio",
    accepted=True,
    peer=PeerIdentity(address="h:2"),
)
CLOSED = ConnectionClosed(connection=1, reason="shutdown")
STREAM = StreamOpened(connection=1, stream=7, publisher="ticks", outbound=True)
ENDED = StreamEnded(connection=1, stream=7, outbound=True, outcome=Outcome.COMPLETED, elements=3)
RETRYING = ReconnectEvent(address="tcp://h:1", stage=ReconnectStage.RETRYING, attempt=2, wait=0.2)
ALL = [
    ("penstock_connection_opened", "connection_opened", OPENED),
    ("penstock_connection_closed", "connection_closed", CLOSED),
    ("penstock_stream_opened", "stream_opened", STREAM),
    ("penstock_stream_ended", "stream_ended", ENDED),
    ("penstock_reconnect", "reconnect", RETRYING),
]


@pytest.mark.parametrize(("hook", "method", "event"), ALL)
def test_an_event_reaches_the_observers_of_its_hook_only(
    hook: str, method: str, event: object
) -> None:
    """In the order of the plugins, once each."""
    seen = []
    observers = [
        (plugin, name, lambda each, p=plugin, n=name: seen.append((p, n, each)))
        for plugin in "ab"
        for name, _, _ in ALL
    ]
    getattr(Events.of(observers), method)(event)
    assert seen == [("a", hook, event), ("b", hook, event)]


@pytest.mark.parametrize(("hook", "method", "event"), ALL)
def test_an_observer_that_raises_affects_no_other_observer(
    hook: str, method: str, event: object
) -> None:
    """The next observer is called, and the caller gets no exception."""
    seen = []

    def broken(event: object) -> None:
        raise RuntimeError("mine")

    getattr(Events.of([("a", hook, broken), ("b", hook, seen.append)]), method)(event)
    assert seen == [event]


def test_the_first_failure_of_an_observer_is_logged_as_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With its traceback. Later failures are debug messages, so that they do not fill the log."""

    def broken(event: object) -> None:
        raise RuntimeError("mine")

    events = Events.of([("meter", "penstock_stream_opened", broken)])
    with caplog.at_level(logging.DEBUG, "penstock.spi"):
        for _ in range(3):
            events.stream_opened(STREAM)
    assert [record.levelno for record in caplog.records] == [
        logging.ERROR,
        logging.DEBUG,
        logging.DEBUG,
    ]
    assert "'meter' raised in its observer of StreamOpened" in caplog.text
    assert caplog.records[0].exc_info is not None


def test_ctrl_c_in_an_observer_is_not_caught() -> None:
    """KeyboardInterrupt reaches the caller."""

    def interrupted(event: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Events.of([("a", "penstock_connection_opened", interrupted)]).connection_opened(OPENED)


@pytest.mark.parametrize(
    ("hooks", "streams"),
    [
        ([], False),
        (["penstock_connection_opened"], False),
        (["penstock_connection_closed"], False),
        (["penstock_stream_opened"], True),
        (["penstock_stream_ended"], True),
    ],
)
def test_wants_says_whether_a_record_is_needed(hooks: list[str], streams: bool) -> None:
    """The runtime checks it before it makes a record."""
    events = Events.of([("a", hook, print) for hook in hooks])
    assert events.wants_streams is streams
