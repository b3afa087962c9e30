"""A conversation in both directions over connections that are cut, in virtual time: each side must
get every element, once and in order.

Rules of this file:

* Both sides publish and subscribe at the same time: small elements, elements in parts, elements of
  a fixed size, and requests.
* A run is compared with the elements that were published, and not with another run.
* A connection that is cut before the client has its token cannot go on. That, and nothing else, may
  end a run with ConnectionLost.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import attrs
import trio
import trio.testing

from campaigns.cuts._cuttable_transport import NETWORK, Cut, CutMode, Direction, Network
from campaigns.cuts._run_context import REGISTRY, URL
from penstock.api import ConnectionLost, Limits
from penstock.runtime import Peer, Server, Service, connect, serve
from penstock.testing import live_tasks, run_virtual

SMALL: Final = [b"%d" % number for number in range(12)]
LARGE: Final = [bytes([number]) * 300 for number in range(4)]
NAMES: Final = ("small", "large")
EXPECTED: Final = {"small": SMALL, "large": LARGE}
LIMITS: Final = replace(
    Limits(),
    split_outbound_at=100,
    keepalive=2.0,
    keepalive_timeout=2.0,
    keepalive_least=0.1,
    resume_timeout=30.0,
    resume_bytes=4096,
)


@attrs.define
class Run:
    """What one run has shown."""

    received: dict[str, list[bytes]] = attrs.Factory(dict)
    answers: list[str] = attrs.Factory(list)
    ends: dict[str, str] = attrs.Factory(dict)
    errors: list[Exception] = attrs.Factory(list)
    violations: list[str] = attrs.Factory(list)
    delivered: dict[Direction, int] = attrs.Factory(dict)
    connections: int = 0
    leaks: list[str] = attrs.Factory(list)

    @property
    def is_whole(self) -> bool:
        """Every stream has completed with its elements, and the request has its answer."""
        wanted = {
            f"{side} {name}": EXPECTED[name] for side in ("client", "server") for name in NAMES
        }
        return (
            self.received == wanted
            and self.answers == ["answer"]
            and set(self.ends.values()) == {"completed"}
            and len(self.ends) == 4
        )

    @property
    def is_honest(self) -> bool:
        """The elements that came are the first ones that were published: none is missing in
        between, and none came twice.
        """
        return all(
            elements == EXPECTED[key.split()[1]][: len(elements)]
            for key, elements in self.received.items()
        )


class CutNetwork(Network):
    """A network whose connections are cut as `cuts` says, by their number from 1."""

    def __init__(self, cuts: Sequence[Cut | None]) -> None:
        super().__init__(capacity=256)
        self.cuts = cuts

    def cut_of(self, number: int) -> Cut | None:
        return self.cuts[number - 1] if number <= len(self.cuts) else None


def _service() -> Service:
    service = Service()

    @service.publisher("small")
    async def small() -> AsyncIterator[bytes]:
        for element in SMALL:
            await trio.sleep(0.01)
            yield element

    @service.publisher("large")
    async def large() -> AsyncIterator[bytes]:
        for element in LARGE:
            yield element

    @service.request("ask")
    async def ask() -> str:
        await trio.sleep(0.05)
        return "answer"

    return service


async def _read(run: Run, side: str, peer: Peer, name: str) -> None:
    received = run.received[f"{side} {name}"] = []
    try:
        async with peer.subscribe(name, demand=3) as stream:
            async for element in stream:
                received.append(element)  # noqa: PERF401  # what has come must be there if the stream fails
        run.ends[f"{side} {name}"] = "completed"
    except ConnectionLost as lost:
        run.ends[f"{side} {name}"] = f"lost, resumable={lost.resumable}"
        run.errors.append(lost)


async def _read_all(run: Run, side: str, peer: Peer) -> None:
    async with trio.open_nursery() as nursery:
        for name in NAMES:
            nursery.start_soon(_read, run, side, peer, name)


async def _ask(run: Run, peer: Peer) -> None:
    try:
        run.answers.append(await peer.request("ask", type=str))
    except ConnectionLost as lost:
        run.errors.append(lost)


async def _serve_side(run: Run, server: Server) -> None:
    while not server.peers:  # noqa: ASYNC110  # no event reports a client, and the clock is virtual
        await trio.sleep(0.001)
    await _read_all(run, "server", server.peers[0])


async def _converse(
    cuts: Sequence[Cut | None], act: Callable[[Run, Peer, Server], Any] | None, seconds: float
) -> Run:
    run, network = Run(), CutNetwork(cuts)
    NETWORK.set(network)
    before = set(live_tasks())

    def note(error: BaseException) -> None:
        run.violations.append(repr(error))

    with trio.fail_after(seconds):
        async with serve(
            _service(), URL, limits=LIMITS, registry=REGISTRY, resume=True, on_violation=note
        ) as server:
            with trio.CancelScope() as of_server:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(_serve_side, run, server)
                    async with (
                        connect(
                            URL,
                            limits=LIMITS,
                            registry=REGISTRY,
                            resume=True,
                            service=_service(),
                            on_violation=note,
                        ) as peer,
                        trio.open_nursery() as reading,
                    ):
                        reading.start_soon(_read_all, run, "client", peer)
                        reading.start_soon(_ask, run, peer)
                        if act is not None:
                            reading.start_soon(act, run, peer, server)
                        # The client stays until the server has also read.
                        reading.start_soon(_wait_for_server, run, peer, of_server)
        run.delivered, run.connections = dict(network.delivered), network.connections
        await trio.testing.wait_all_tasks_blocked()
        run.leaks = [repr(task) for task in set(live_tasks()) - before]
    return run


async def _wait_for_server(run: Run, peer: Peer, of_server: trio.CancelScope) -> None:
    while len([key for key in run.ends if key.startswith("server")]) < len(NAMES):
        await trio.sleep(0.01)
        # The connection was never open, or is lost: the server has nothing to read.
        if any(end.startswith("lost") for end in run.ends.values()):
            of_server.cancel()
            return


def converse(
    *cuts: Cut | None,
    seed: int = 0,
    act: Callable[[Run, Peer, Server], Any] | None = None,
    seconds: float = 600.0,
) -> Run:
    """Run the conversation over connections that are cut as `cuts` says,
    one for each connection.
    """
    return run_virtual(_converse, cuts, act, seconds, seed=seed)


HANDSHAKE_BYTES: Final = 64
"""A cut behind these bytes finds both hellos exchanged, and the token with the client."""


def was_never_resumable(run: Run) -> bool:
    """Return whether the client had no token when its connection was cut."""
    return all(
        isinstance(error, ConnectionLost)
        and (error.resumable is None or "gave it a token" in str(error))
        for error in run.errors
    )


def faults_of(run: Run, cuts: Sequence[Cut]) -> list[str]:
    """Return what is wrong with a run whose connections were cut so."""
    faults = [] if run.is_honest else [f"elements are missing or repeated: {run.received}"]
    if not run.is_whole and (cuts[0].after >= HANDSHAKE_BYTES or not was_never_resumable(run)):
        faults.append(f"not whole: {run.ends}, answers {run.answers}, {run.errors[:1]}")
    return [
        f"{', '.join(map(str, cuts))}: {fault}" for fault in (*faults, *run.violations, *run.leaks)
    ]


def try_cuts(cuts: tuple[Cut, ...]) -> list[str]:
    """Return what is wrong with a conversation whose connections are cut so, also if it raises.
    For a pool of processes.
    """
    try:
        return faults_of(converse(*cuts), cuts)
    except Exception as error:  # each run is one line of the result
        return [f"{cuts}: raised {error!r}"]


def every_cut(*, every: int = 1, modes: Sequence[CutMode] = tuple(CutMode)) -> list[Cut]:
    """Return a cut at each place of an undisturbed conversation, or at one of `every` places."""
    whole = converse()
    if not whole.is_whole:
        raise AssertionError(f"an undisturbed conversation failed: {whole}")
    places = [
        Cut(direction=direction, after=after, mode=mode)
        for direction, count in whole.delivered.items()
        for after in range(count)
        for mode in modes
    ]
    return places[::every]


def every_second_cut(*, every: int = 1) -> list[tuple[Cut, ...]]:
    """Return pairs of cuts: of a connection at one place, and of the next one at each place of
    its handshake and a little behind.
    """
    first = Cut(direction=Direction.TO_CLIENT, after=700, mode=CutMode.RST)
    pairs = [
        (first, Cut(direction=direction, after=after, mode=mode))
        for direction in Direction
        for after in range(160)
        for mode in (CutMode.FIN, CutMode.SILENCE)
    ]
    return pairs[::every]
