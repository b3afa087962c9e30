"""What the targets share: how they are run, pieces of an input, and a session whose streams are
served in every way.

Rules of this file:

* A target has a function `TestOneInput`, as atheris and OSS-Fuzz want it, and `SEEDS`. An exception
  out of `TestOneInput` is a finding.
* Without atheris, or with ``--replay``, a target runs its seeds and its corpus once each, in order.
  ``--seeds FOLDER`` writes them, each to a file.
* A target is a program, and this module lies beside it: OSS-Fuzz packs both into one file.
"""

import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

try:
    import atheris
except ImportError:
    atheris = None

CORPUS = Path(__file__).with_name("corpus")
REPLAY = "--replay"
WRITE = "--seeds"
INSTRUMENTED = [
    *("penstock", "penstock_http", "penstock_websocket", "penstock_msgpack"),
    *("penstock_protobuf", "penstock_arrow", "penstock_rsocket", "penstock_nats"),
    *("penstock_redis", "penstock_metrics", "h11", "h2", "hpack", "hyperframe", "wsproto"),
]
"""The packages whose branches guide atheris."""


def instrumented() -> AbstractContextManager[Any]:
    """Return a block in which imports are instrumented."""
    if _is_plain():
        return nullcontext()
    return atheris.instrument_imports(include=INSTRUMENTED)


def _is_plain() -> bool:
    return atheris is None or not {REPLAY, WRITE}.isdisjoint(sys.argv)


def inputs_of(name: str, seeds: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield the seeds of a target, and its corpus, each with a name."""
    for number, seed in enumerate(seeds):
        yield f"seed {number}", seed
    corpus = CORPUS / f"{name}.zip"
    if corpus.exists():
        with zipfile.ZipFile(corpus) as archive:
            for each in sorted(archive.namelist()):
                yield each, archive.read(each)


def fuzz(target: Callable[[bytes], None], seeds: Sequence[bytes]) -> None:
    """Run a target: with the arguments of libFuzzer, or over its seeds and its corpus."""
    if not _is_plain():
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
        return
    name = Path(sys.argv[0]).stem.removeprefix("fuzz_")
    if WRITE in sys.argv:
        for label, data in inputs_of(name, seeds):
            (Path(sys.argv[-1]) / label).write_bytes(data)
        return
    count = 0
    for label, data in inputs_of(name, seeds):
        try:
            target(data)
        except BaseException:
            print(f"{name}: {label} is a finding: {data!r}")
            raise
        count += 1
    print(f"{name}: {count} inputs")


def pieces_of(data: bytes, choice: int) -> list[bytes]:
    """Cut an input. `choice` says where: 0 nowhere, 1 after each byte, others at several sizes."""
    if not choice:
        return [data]
    pieces, at, step = [], 0, choice
    while at < len(data):
        size = 1 if choice == 1 else 1 + step % 13
        pieces.append(data[at : at + size])
        at, step = at + size, step * 5 + 3
    return pieces


def expect_equal(whole: object, cut: object) -> None:
    """Raise AssertionError if an input decodes otherwise when it comes in pieces."""
    if whole != cut:
        raise AssertionError(f"whole: {whole!r}\nin pieces: {cut!r}")


def decode_in_pieces(make: Callable[[], tuple[Any, list[Any]]], pieces: Iterable[bytes]) -> Any:
    """Feed a decoder that `make` returns with its list of messages. Return the messages, and the
    reason of its refusal.
    """
    from penstock.api import ProtocolError  # noqa: PLC0415  # after the block that instruments

    decoder, messages = make()
    fed = 0
    for piece in pieces:
        fed += len(piece)
        try:
            # One message in each call, as for a connection that gives others their turn.
            more = decoder.feed(piece, max_messages=1)
            while more:
                more = decoder.feed(b"", max_messages=1)
        except ProtocolError as refusal:
            return messages, refusal.reason
        assert decoder.held <= fed
    return messages, None


class Reader:
    """A subscriber that requests a few elements at a time, and leaves after some."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.is_over = False

    def on_subscribe(self, subscription: Any, /) -> None:
        """Request two elements."""
        self.subscription = subscription
        subscription.request(2)

    def on_next(self, element: bytes, /) -> None:
        """Request one more, or leave."""
        assert isinstance(element, bytes)
        assert not self.is_over
        self.most -= 1
        if self.most:
            self.subscription.request(1)
        else:
            self.subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        """Expect no other end."""
        self._end()

    def on_complete(self, /) -> None:
        """Expect no other end."""
        self._end()

    def _end(self) -> None:
        assert not self.is_over
        self.is_over = True


class Publisher:
    """Answers each demand, and completes after three elements, or fails."""

    def __init__(self, stream: Any, *, fails: bool) -> None:
        self.stream, self.left, self.fails = stream, 3, fails

    def request(self, n: int, /) -> None:
        """Send as many elements as are left."""
        for _ in range(min(n, self.left)):
            self.left -= 1
            self.stream.on_next(b"element")
        if self.left == 0:
            self.left = -1
            if self.fails:
                self.stream.on_error(ValueError("fails"))
            else:
                self.stream.on_complete()

    def cancel(self, /) -> None:
        """Send nothing more."""
        self.left = -1


class Delegate:
    """Serves each stream of a session, by its number: refuses it, completes it, or fails."""

    session: Any

    def __init__(self) -> None:
        self.ended = 0
        self.asked = 0

    def serve(self, stream: Any) -> None:
        """Refuse each third one."""
        self.asked += 1
        if self.asked % 3 == 0:
            stream.refuse("no such publisher")
        else:
            stream.accept()

    def attach(self, stream: Any) -> None:
        """Publish three elements."""
        stream.on_subscribe(Publisher(stream, fails=self.asked % 2 == 0))

    def stop_publishers(self, publishers: Iterable[Any]) -> None:
        """Cancel them."""
        for each in publishers:
            each.cancel()

    def on_introduction(self, _data: bytes) -> None:
        """Admit each client."""
        self.session.admit()

    def on_end(self, _error: Exception) -> None:
        """Count the end."""
        self.ended += 1

    def on_publisher_failed(self, _stream: Any, error: BaseException) -> None:
        """Pass on what no publisher here raises."""
        if str(error) != "fails":
            raise error

    def identify(self) -> Any:
        """Return an identity."""
        return "the peer"

    def await_result(self, awaitable: Any, then: Callable[[Any, Exception | None], None]) -> None:
        """Answer at once: nothing here awaits."""
        awaitable.close()
        then(None, None)

    def source_of(self, _stream: Any) -> Any:
        """Return no publisher of the program."""
        return SimpleNamespace()

    def __getattr__(self, name: str) -> Any:
        """Ignore all other calls of a session."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_arguments, **_options: None


HELD = 1 << 20
"""More bytes than a session holds of an input of these sizes."""


def play(
    dialect: Callable[[Any], Any],
    *,
    is_server: bool,
    opening: bytes,
    pieces: Iterable[bytes],
) -> None:
    """Let a session receive its opening, then the pieces, then the end. It raises nothing, holds
    little, and tells its end once.
    """
    from penstock.api import Limits, Role  # noqa: PLC0415  # after the block that instruments
    from penstock.session import Session  # noqa: PLC0415  # the same

    delegate = Delegate()
    limits = Limits(max_subscriptions=5, max_element=2_000, partial_bytes=4_000)
    role = Role.SERVER if is_server else Role.CLIENT
    session = Session(delegate, dialect, role=role, limits=limits, random=lambda: 0.5)
    delegate.session = session
    session.start(0.0)
    session.receive(opening, 0.0)
    if not is_server:
        for demand in range(1, 4):
            session.subscribe("a", Reader(demand))
    now = 0.0
    for piece in pieces:
        session.receive(piece, now)
        now += 0.01
        session.tick(now)
        session.take()
        assert session.held() < HELD
    session.end_of_input()
    session.take()
    assert delegate.ended == 1
