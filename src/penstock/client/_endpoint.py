"""One connection of a client without I/O: a session with its deadlines, its output, and the
publishers that its peer has subscribed to.

The owner reads and writes the transport, reads the clock, and calls the methods here. All of them
are plain calls that never wait.

Rules of this file:

* Received bytes go to `receive`, and a call with no bytes goes on with what is left.
  `end_of_input` ends the connection.
* `take` returns the bytes to send. `check_stall` gets their count that the transport has not taken,
  and gives up a peer that takes none.
* `tick` does what is due; call it again at the time that it returns, after `receive`, and at a time
  that `on_earlier` gets. An owner that ticks before each wait need not set `on_earlier`.
* Code of the program runs in `run_publishers` only: never while received bytes are acted on.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from penstock.api import ByteWindow, ConnectionLost, PenstockError, Role, Subscriber
from penstock.client._delegate import ClientDelegate
from penstock.client._failures import not_made
from penstock.client._live_streams import SessionStreams
from penstock.client._outcomes import AwaitWith, Outcomes, Then
from penstock.client._published import PublishedIterator, name_of
from penstock.client._reports import report
from penstock.client._settings import EndpointSettings
from penstock.session import (
    CUT,
    CUT_EARLY,
    ConnectionState,
    SendingStream,
    Session,
    SessionCounts,
    own_copy,
)
from penstock.spi import LiveStream, PeerIdentity, PeerStatistics, direction_statistics

LINGER_BYTES: Final = 1 << 20
"""Bytes that are still read after this side's goodbye. Elements that were asked for may be under
way; more of them is an attack.
"""

_PARTED: Final = frozenset({ConnectionState.CLOSED, ConnectionState.CLOSED_BY_PEER})

PublishTo = Callable[["Endpoint", SendingStream], None]
"""Attaches the publisher that the program offers under the name of a stream."""


def publish_iterator(endpoint: "Endpoint", stream: SendingStream) -> None:
    """Attach an iterable, which `Endpoint.run_publishers` pulls."""
    publisher = PublishedIterator(
        endpoint.settings.publishers[name_of(stream.target) or ""], stream, endpoint.add_runnable
    )
    stream.on_subscribe(publisher)


class Endpoint(ClientDelegate):
    """One connection of a client. It is the delegate of its session."""

    def __init__(
        self,
        settings: EndpointSettings,
        identity: PeerIdentity,
        now: float,
        *,
        agreed: str | None = None,
        publish: PublishTo = publish_iterator,
        await_with: AwaitWith | None = None,
    ) -> None:
        """`agreed` is the name of the protocol that TLS has negotiated.

        `await_with` lets an awaitable of an extension run in a task.
        Without it, `run_publishers` runs it.
        Raises PluginError if a dialect or an extension raises; then close the transport.
        """
        super().__init__(settings, identity)
        self._outcomes = Outcomes()
        self._await_with: AwaitWith = await_with or self._outcomes.add
        self._publish = publish
        # Ordered: each publisher gets one turn before any gets the next.
        self._runnable: dict[PublishedIterator, None] = {}
        self._lingered = 0
        self._is_released = False
        self._stall = _StallWatch(settings.limits.write_stall, settings.limits.min_drain)
        dialect, dialect_settings = settings.spoken(agreed)
        try:
            self.session: Session = Session(
                self,
                lambda session: dialect(session, dialect_settings),
                role=Role.CLIENT,
                limits=settings.limits,
                random=random.random,
            )
            # Looked up at each call: the owner sets it later.
            self.session.outbox.wake = self._wake_owner
            self.session.streams.use.publishes = lambda: bool(settings.publishers)
            self._counts = SessionCounts(self.session)
            self._streams: SessionStreams | None = None  # made with the first look
            self.session.channel.deadlines.on_earlier = self._hasten_owner
            self.session.start(now)
        # Our own errors say who must act already.
        except PenstockError:
            raise
        except Exception as error:
            # boundary: the constructor and the start of a dialect, which may be a plugin.
            raise not_made(dialect, error) from error

    # --- facts

    @property
    def is_over(self) -> bool:
        """Nothing is sent or received any more, except an answer to the peer's goodbye in the
        outbox.
        """
        return self.session.state.is_over

    @property
    def is_closing(self) -> bool:
        """One side has said goodbye, or the connection is over."""
        return self.session.state.is_closing

    @property
    def has_room(self) -> bool:
        """A request may be queued. On a closing connection the request itself raises."""
        return self.session.outbox.room() > 0 or self.session.state.is_closing

    @property
    def has_work(self) -> bool:
        """`run_publishers` has something to do."""
        return bool(self._runnable) or bool(self._outcomes)

    @property
    def has_output(self) -> bool:
        """`take` returns something."""
        return not self.session.outbox.is_empty

    @property
    def is_quiet(self) -> bool:
        """Nothing runs, and nothing waits to be taken."""
        return self.session.is_quiet and not self.has_work

    @property
    def has_parted(self) -> bool:
        """Both sides have said goodbye: the transport is closed in good order, and not aborted."""
        return self.session.state in _PARTED

    @property
    def has_left(self) -> bool:
        """The peer goes on sending after the goodbye of this side:
        it is not worth waiting for its answer.
        """
        return self._lingered > LINGER_BYTES

    def statistics(self, now: float, *, unsent: int) -> PeerStatistics:
        """Return the counts of the connection, and the bytes that it holds now; `unsent` bytes were
        taken and wait in the transport.
        """
        session = self.session
        return PeerStatistics(
            protocol=session.channel.dialect.name,
            transport=self.settings.url.transport,
            is_open=self.opened_at is not None and not session.state.is_closing,
            age=None if self.opened_at is None else now - self.opened_at,
            sending=direction_statistics(self.identity, self._counts.sending(now)),
            receiving=direction_statistics(self.identity, self._counts.receiving(now)),
            sent_bytes=session.outbox.taken_bytes,
            received_bytes=session.received_bytes,
            buffered_bytes=0 if self._is_released else session.held() + unsent,
        )

    def streams(self, now: float, *, unsent: int) -> list[LiveStream]:
        """Return a record for each stream and request that is open; `unsent` bytes were taken and
        wait in the transport.
        """
        if self._is_released or self.opened_at is None:
            return []
        if self._streams is None:
            self._streams = SessionStreams(self.session)
        opened = self._streams.take(
            now,
            number=0,
            peer=self.identity,
            local="",
            transport=self.settings.url.transport,
            in_flight=unsent,
        )
        return [each.record() for each in opened]

    # --- for the owner: bytes and time

    def receive(self, data: bytes, now: float, *, most: int | None = None) -> bool:
        """Act on received bytes, at most `most` messages. Return whether there is more to do:
        then call again with no bytes.
        """
        if self.session.state.is_closing:
            self._lingered += len(data)
        return (
            self.session.receive(data, now)
            if most is None
            else self.session.receive(data, now, most=most)
        )

    def end_of_input(self, cause: OSError | None = None, *, error: Exception | None = None) -> None:
        """End the connection: the transport has ended, with `cause` if it failed."""
        if error is None and cause is not None:
            how = CUT_EARLY if self.opened_at is None else f"{CUT}."
            error = ConnectionLost(f"{how} The system says: {cause}")
        self.session.end_of_input(error, is_clean=cause is None and error is None)

    def take(self) -> bytearray:
        """Return bytes to send, perhaps none."""
        return self.session.take()

    def tick(self, now: float) -> float | None:
        """Do what is due. Return when to call again, None for never."""
        return self.session.tick(now)

    def check_stall(self, sent: int, unsent: int, now: float) -> float | None:
        """Give up a peer that takes next to nothing. `sent` bytes have left this side in all, and
        `unsent` bytes wait in the transport.

        Return when to call again, None if nothing waits.
        """
        due = self._stall.look(sent, unsent, now)
        if due is None or now < due:
            return due
        limits = f"{self.settings.limits.write_stall:g} s (Limits.write_stall, Limits.min_drain)"
        text = (
            f"the peer took next to nothing of what was sent to it for {limits}, which ended the "
            "connection"
        )
        self.session.end_of_input(ConnectionLost(text))
        return None

    def run_publishers(self, clock: Callable[[], float]) -> None:
        """Give each publisher with demand one turn, and run what extensions wait for.
        Call `tick` afterwards.
        """
        self._outcomes.run()
        # Taken out first: a publisher that has more to do joins the next turn, behind all others.
        runnable, self._runnable = self._runnable, {}
        for publisher in runnable:
            self._run(publisher, clock)

    # --- for the owner: streams

    def subscribe(
        self, target: Any, subscriber: Subscriber[Any], window: ByteWindow | None = None
    ) -> None:
        """Open a stream to a publisher of the peer."""
        self.session.streams.subscribe(target, subscriber, window)

    def raise_reason(self) -> None:
        """Raise why the connection is over, if it is."""
        if self.reason is not None:
            # A copy: each block and each call may raise the reason, and an exception that is raised
            # twice collects the frames of both.
            raise own_copy(self.reason)

    def add_runnable(self, publisher: PublishedIterator) -> None:
        """Let a publisher run in the next `run_publishers`."""
        self._runnable[publisher] = None
        self.wake()

    def attach(self, stream: SendingStream, /) -> None:
        self._publish(self, stream)

    def source_of(self, stream: SendingStream, /) -> None:
        """Return None: extensions that look at sources are not used here."""

    def await_result(self, awaitable: Awaitable[Any], then: Then) -> None:
        """Let the owner run what an extension waits for."""

        def finish(result: Any, error: Exception | None) -> None:
            if not self.session.state.is_closing:
                then(result, error)

        self._await_with(awaitable, finish)

    # --- for the owner: the end

    def close(self) -> None:
        """Say goodbye: every stream ends now, in both directions."""
        self.session.close("")

    def release(self) -> None:
        """End at once if the connection is not over, and break the circles of references: the
        transport is closed. Call it once or more.
        """
        if self._is_released:
            return
        self._is_released = True
        # Forgotten before the signals of the end: the transport is closed, and they must not call
        # its owner.
        self.forget_owner()
        self.session.channel.deadlines.on_earlier = None
        self._outcomes.close()
        if not self.session.state.is_over:
            self.session.end_of_input()
        # The end has cancelled the publishers.
        # Their iterators are closed here, because no `run_publishers` follows.
        runnable, self._runnable = self._runnable, {}
        for publisher in runnable:
            self._close(publisher)
        self.session.release()

    # --- inside

    def _wake_owner(self) -> None:
        self.wake()

    def _hasten_owner(self, due: float) -> None:
        self.on_earlier(due)

    def _run(self, publisher: PublishedIterator, clock: Callable[[], float]) -> None:
        try:
            if publisher.run(clock):
                self._runnable[publisher] = None
        except Exception as error:  # boundary: the cleanup of the program's iterator
            report(self.settings.on_violation, error)

    def _close(self, publisher: PublishedIterator) -> None:
        try:
            publisher.close()
        except Exception as error:  # boundary: the cleanup of the program's iterator
            report(self.settings.on_violation, error)


class _StallWatch:
    """Tells when a peer takes less than `least` bytes within `seconds`,
    although bytes wait for it.
    """

    def __init__(self, seconds: float, least: int) -> None:
        self._seconds = seconds
        self._least = least
        self._since: float | None = None
        self._sent = 0

    def look(self, sent: int, unsent: int, now: float) -> float | None:
        """Return when the peer counts as stalled, None if nothing waits for it."""
        if not unsent:
            self._since = None
            return None
        # Anew with each `least` bytes: a slow peer that goes on taking is not given up.
        if self._since is None or sent - self._sent >= self._least:
            self._since, self._sent = now, sent
        return self._since + self._seconds
