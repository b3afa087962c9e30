"""The frames that wait to be sent on one connection, and the task that sends them.

Rules of this file:

* A frame that was begun is sent to its end, also if the task that wanted it sent is cancelled: a
  Close frame can follow only then. So the task in here sends, shielded, and `wait_left` can be
  cancelled.
* The task exists only while a socket takes no more. It ends when all is sent, or when `stop` is
  called, and it raises nothing into the nursery that it was started in.
"""

import trio

from penstock.spi import ByteConnection

CHUNK = 16 << 10
"""Bytes that are sent in one step if the socket was full: one record of TLS."""


class Outgoing:
    """The bytes of frames that were not sent yet. At most one message and some control frames:
    `wait_left` bounds them.
    """

    def __init__(self, below: ByteConnection, nursery: trio.Nursery) -> None:
        self._below = below
        self._nursery = nursery
        self._frames = bytearray()
        self._sent = 0  # of `_frames`
        self._scope: trio.CancelScope | None = None
        self._progress = trio.Event()
        self._is_stopped = False
        self._failure = ""

    @property
    def left(self) -> int:
        """Bytes that wait to be sent."""
        return len(self._frames) - self._sent

    def put(self, frame: bytearray) -> None:
        """Queue a frame, and send what goes without waiting. Raises BrokenResourceError if
        nothing can be sent any more.
        """
        self.check()
        if self.left:
            self._frames += frame
        else:
            self._frames, self._sent = frame, 0
        if self._scope is None:
            try:
                self._send_at_once()
            except trio.BrokenResourceError as error:
                self._fail(str(error))
                raise
            if self.left:
                self._scope = trio.CancelScope(shield=True)
                self._nursery.start_soon(self._run, self._scope, name="penstock websocket sender")

    async def wait_left(self, most: int) -> None:
        """Wait until at most `most` bytes are left. Raises BrokenResourceError. Checkpoints."""
        await trio.lowlevel.checkpoint()
        while self.left > most:
            self.check()
            await self._progress.wait()
        self.check()

    def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        self._frames, self._sent = bytearray(), 0
        if self._scope is not None:
            self._scope.cancel()
        self._note_progress()

    # --- inside

    def check(self) -> None:
        """Raise if nothing can be sent any more."""
        if self._is_stopped:
            raise trio.ClosedResourceError("this WebSocket was closed")
        if self._failure:
            raise trio.BrokenResourceError(self._failure)

    def _send_at_once(self) -> None:
        while self.left:
            with memoryview(self._frames) as frames, frames[self._sent :] as rest:
                sent = self._below.send_now(rest)
            if not sent:
                return
            self._sent += sent
        self._frames, self._sent = bytearray(), 0

    async def _run(self, scope: trio.CancelScope) -> None:
        try:
            with scope:
                while self.left:
                    # A copy: frames that are queued meanwhile are appended.
                    chunk = bytes(self._frames[self._sent : self._sent + CHUNK])
                    await self._below.send(chunk)
                    self._sent += len(chunk)
                    self._send_at_once()
                    self._note_progress()
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self._fail(str(error))
        finally:
            self._scope = None
            self._note_progress()

    def _fail(self, text: str) -> None:
        self._failure = text or "the connection is broken"
        self._note_progress()

    def _note_progress(self) -> None:
        self._progress.set()
        self._progress = trio.Event()
