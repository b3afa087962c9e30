"""A service that receives what Spark writes:
a server in a thread of the tests, with a log in a file.
"""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import trio

import penstock
from penstock.spi import PeerIdentity

Act = Callable[[], None]


class KillingLog(penstock.DiskLog):
    """Calls `before_publish`, and `after_publish` when a transaction is in the log
    and before its writer learns that.
    """

    before_publish: Act = staticmethod(lambda: None)
    after_publish: Act = staticmethod(lambda: None)

    def transaction(self, transaction_id: str, **bounds: int) -> Any:
        made = super().transaction(transaction_id, **bounds)
        publish = made.publish

        async def publish_and_act() -> bool:
            self.before_publish()
            is_first = await publish()
            self.after_publish()
            return is_first

        made.publish = publish_and_act  # type: ignore[method-assign]  # to act between its two steps
        return made


class Receiver:
    """Receives under ``orders``, at a Unix socket."""

    def __init__(
        self, folder: Path, *, target: Any = None, token: str | None = None, **options: Any
    ) -> None:
        self._folder = folder
        self._target = target
        self._token_of_writers = token
        self._options = options
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self.log: KillingLog
        self.url = f"unix://{folder}/socket"
        self.staged_by: list[int] = []
        """The processes that have staged, in order."""
        self.kill_writer_at: list[int] = []
        """The numbers of the stagings whose process is killed while it publishes."""
        self.kill_committer_at: list[int] = []
        """The numbers of the commits whose process is killed when the batch is in the log,
        and before it learns that.
        """
        self.kill: Callable[[int], None] = lambda pid: os.kill(pid, signal.SIGKILL)
        """Kills the process of a commit; a test may kill more than that."""
        self.commits = 0
        self._committer = 0

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="receiver")
        self._thread.start()
        self._ready.wait(30)
        if self._error is not None:
            raise self._error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        trio.from_thread.run_sync(self._scope.cancel, trio_token=self._token)
        self._thread.join(30)

    def contents(self, partition: str = "0") -> list[bytes]:
        """Return what the log has."""
        return trio.from_thread.run(self._collect, partition, trio_token=self._token)

    # --- inside

    async def _collect(self, partition: str) -> list[bytes]:
        return await penstock.collect(self.log.source(partition, stop="latest"))

    def _run(self) -> None:
        try:
            trio.run(self._serve)
        except BaseException as error:  # boundary: raised in the test's thread
            self._error = error
            self._ready.set()

    async def _serve(self) -> None:
        authenticate = None if self._token_of_writers is None else self._authenticate
        service = penstock.Service(may_open=self._note, authenticate=authenticate)
        with trio.CancelScope() as self._scope:
            async with KillingLog(
                self._folder / "orders.log", retention=penstock.Retention(max_count=10**9)
            ) as self.log:
                self.log.after_publish = self._after_publish
                penstock.receive(
                    service,
                    "orders",
                    self.log if self._target is None else self._target,
                    **self._options,
                )
                async with penstock.serve(service, self.url):
                    self._token = trio.lowlevel.current_trio_token()
                    self._ready.set()
                    await trio.sleep_forever()

    async def _authenticate(
        self, scheme: str, credentials: bytes, _peer: PeerIdentity
    ) -> str | None:
        return (
            "a writer"
            if scheme == "bearer" and credentials.decode() == self._token_of_writers
            else None
        )

    def _note(self, name: Any, peer: PeerIdentity) -> bool:
        if str(name).startswith("orders/stage") and peer.credentials is not None:
            self.staged_by.append(peer.credentials.pid)
            if len(self.staged_by) in self.kill_writer_at:
                os.kill(peer.credentials.pid, signal.SIGKILL)
        if str(name) == "orders/commit" and peer.credentials is not None:
            self._committer = peer.credentials.pid
        return True

    def _after_publish(self) -> None:
        self.commits += 1
        if self.commits in self.kill_committer_at:
            self.kill(self._committer)
