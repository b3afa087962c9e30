"""The contenders: each library with the defaults of its documentation, and once more with the best
setting that its documentation names for a reader that is slower than its producer.

Rules of this file:

* The best setting is one that a reader of the documentation finds: a parameter, or a pattern of the
  library's own calls. It is not a protocol that one could write on top of the library.
* `about` says what the setting is and which page names it. If none is named, it says so, and there
  is one row only.
"""

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import attrs

DEFAULT_DEMAND: Final = 256
ALLOWED: Final = 8
"""Elements that penstock may be ahead beyond the demand."""


@attrs.frozen(kw_only=True)
class Contender:
    """A library, its setting, and the functions that are its two sides."""

    name: str
    setting: str
    read: str
    """The function of the reader; of both sides if there is no `serve`."""
    serve: str = ""
    options: dict[str, Any] = attrs.field(factory=dict)
    about: str = ""
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    broker: Literal["", "nats", "jetstream", "kafka", "redis"] = ""
    is_shared: bool = False
    """The producer has one stream for all readers: one that comes later gets what is left of it."""
    child: Literal["", "reader", "producer"] = ""
    """Which side is a child of the other, if there is one program to start."""
    is_slow: bool = False
    """The short form leaves it out: it starts a large program."""
    demand: int | None = None
    """Of penstock: the bar."""

    @property
    def title(self) -> str:
        """The name and the setting."""
        return f"{self.name}, {self.setting}"

    def missing(self) -> str:
        """Return the libraries and programs that are not there, with commas between them."""
        found = [each for each in self.modules if importlib.util.find_spec(each) is None]
        return ", ".join([*found, *(each for each in self.programs if program(each) is None)])


def program(name: str) -> str | None:
    """Return where a program is: on the PATH, beside this Python, or in the folder of daemons."""
    folders = (Path(sys.executable).parent, Path("/usr/sbin"))
    found = shutil.which(name)
    return found or next((str(each / name) for each in folders if (each / name).exists()), None)


def _pair(
    name: str, kind: str, best: str, about: str, *, serve: str = "", read: str = "", **more: Any
) -> Iterator[Contender]:
    """Yield the row with the defaults, and the one with the best setting if there is one."""
    serve, read = serve or kind.replace("*", "serve"), read or kind.replace("*", "read")
    for setting in ("defaults", best):
        if setting:
            is_best = setting == best
            options = {"best": is_best, **more.get("options", {})}
            yield Contender(
                name=name,
                setting=setting,
                serve=serve,
                read=read,
                about=about if is_best or not best else "",
                **{**more, "options": options},
            )


def peers() -> list[Contender]:
    """Return the libraries of others."""
    grpc = (
        "the arguments of a channel `grpc.http2.lookahead_bytes`, `bdp_probe` and "
        "`write_buffer_size`; grpcio has no call that bounds elements"
    )
    return [
        *_pair(
            "grpcio, asyncio",
            "_network.*_grpc_aio",
            "smallest window",
            grpc,
            modules=("grpc",),
        ),
        *_pair(
            "grpcio, threads",
            "_network.*_grpc_threads",
            "smallest window",
            grpc,
            modules=("grpc",),
        ),
        *_pair(
            "websockets",
            "_network.*_websockets",
            "max_queue=1, write_limit=0",
            "both parameters of the page on memory and buffers, on both sides",
            modules=("websockets",),
        ),
        *_pair(
            "sse-starlette, httpx",
            "_network.*_sse_starlette",
            "send_timeout=1",
            "its documentation names no bound; `send_timeout` cuts a reader off that hangs",
            read="_network.read_events",
            modules=("sse_starlette", "uvicorn", "httpx"),
        ),
        *_pair(
            "Starlette, httpx",
            "_network.*_starlette",
            "",
            "its documentation names no bound",
            read="_network.read_events",
            modules=("starlette", "uvicorn", "httpx"),
        ),
        *_pair(
            "python-socketio",
            "_network.*_socketio",
            "call() for each element",
            "`call` in the place of `emit`: the server waits until the handler of the client has "
            "returned",
            modules=("socketio", "uvicorn", "aiohttp"),
        ),
        *_pair(
            "pyzmq, PUSH and PULL",
            "_network.*_zmq",
            "HWM=1, SNDBUF=RCVBUF=1",
            "the high-water marks of zmq_setsockopt, and the smallest buffers of the system",
            modules=("zmq",),
            is_shared=True,
        ),
        Contender(
            name="pyzmq, ROUTER and DEALER",
            setting="credit of 1",
            serve="_network.serve_zmq_credit",
            read="_network.read_zmq_credit",
            options={"best": True, "credit": 1},
            about="credit-based flow control, a pattern of the guide: the reader asks for each "
            "element",
            modules=("zmq",),
        ),
        *_pair(
            "rsocket-py",
            "_network.*_rsocket_py",
            "initial_request_n(1)",
            "RSocket has demand in its protocol; the default requests 2^31 - 1",
            modules=("rsocket",),
        ),
        *_pair(
            "rsocket-java",
            "java.*",
            "request(1)",
            "RSocket has demand in its protocol; `subscribe` of Reactor requests without bound "
            "unless the subscriber requests itself",
            programs=("java", "javac", "mvn"),
            is_slow=True,
        ),
        *_pair(
            "nats-py, core",
            "_brokers.*_nats",
            "request() for each element",
            "request and reply, which the page on slow consumers names first",
            modules=("nats",),
            programs=("nats-server",),
            broker="nats",
            is_shared=True,
        ),
        *_pair(
            "nats-py, JetStream pull",
            "_brokers.*_jetstream",
            "work queue, max_msgs=1, discard=new",
            "a full stream refuses the next element, and the producer tries again",
            modules=("nats",),
            programs=("nats-server",),
            broker="jetstream",
            is_shared=True,
        ),
        *_pair(
            "aiokafka",
            "_brokers.*_kafka",
            "max_partition_fetch_bytes=1",
            "nothing ties a producer to a reader; the setting keeps the reader's own memory small",
            modules=("aiokafka",),
            programs=("java", "mvn"),
            broker="kafka",
            is_shared=True,
            is_slow=True,
        ),
        *_pair(
            "redis-py, streams",
            "_brokers.*_redis",
            "MAXLEN=1",
            "nothing ties a producer to a reader; `MAXLEN` of XADD bounds the memory of the server, "
            "and drops the oldest elements, read or not",
            modules=("redis",),
            programs=("redis-server",),
            broker="redis",
            is_shared=True,
        ),
        *_pair(
            "asyncio.Queue, two tasks",
            "",
            "maxsize=1",
            "the parameter of the queue",
            read="_network.both_queue",
        ),
        *_pair(
            "reactivex, two threads",
            "",
            "",
            "RxPY has no backpressure, which its documentation says",
            read="_network.both_reactivex",
            modules=("reactivex",),
        ),
    ]


# --- penstock

PLUGINS: Final = {
    "ws": "penstock_websocket",
    "wss": "penstock_websocket",
    "h2": "penstock_http",
    "http": "penstock_http",
    "rsocket+tcp": "penstock_rsocket",
    "msgpack": "penstock_msgpack",
    "protobuf": "penstock_protobuf",
    "arrow": "penstock_arrow",
}
"""The module that a scheme, an encoding or a serializer needs."""

SCHEMES: Final = (
    *("tcp", "tls", "unix", "ws", "wss", "h2", "http", "rsocket+tcp", "reactivesocket+tcp"),
)
BLOCKING: Final = ("tcp", "tls", "unix", "rsocket+tcp", "reactivesocket+tcp")
READERS: Final = {
    "trio": "_penstock.read_penstock",
    "asyncio": "_penstock.read_penstock_on_asyncio",
    "blocking": "_penstock.read_penstock_blocking",
}


def _ways() -> Iterator[Contender]:
    """Yield each way of penstock, with its defaults."""
    for scheme in SCHEMES:
        for reader in READERS:
            if reader != "blocking" or scheme in BLOCKING:
                yield _way(f"{scheme}://, a reader on {reader}", scheme=scheme, reader=reader)
    for reader in READERS:
        yield _way(
            f"tcp://, a server on asyncio, a reader on {reader}",
            reader=reader,
            server_loop="asyncio",
        )
    yield _way(
        "AsgiApp under uvicorn",
        scheme="http",
        server_loop="asyncio",
        serve="_penstock.serve_asgi",
        modules=("starlette", "uvicorn"),
    )
    for encoding in ("msgpack", "protobuf"):
        yield _way(f"messages in {encoding}", encoding=encoding)
    for serializer in ("text", "json", "msgpack", "protobuf", "arrow"):
        yield _way(f"elements in {serializer}", serializer=serializer)
    yield _way("through five operators, over tcp://", operators=True)
    yield _inside("through five operators, in one program", "_penstock.both_inside", operators=True)
    yield _way("through a relay of bytes", via="relay")
    yield _way("through another server of penstock", via="penstock")
    for scheme in ("ws", "http"):
        yield _way(f"{scheme}:// through nginx", scheme=scheme, via="nginx", programs=("nginx",))
    yield _inside("memory://", "_penstock.both_in_memory")
    yield _inside("memory://, on asyncio", "_penstock.both_in_memory_on_asyncio", loop="asyncio")
    yield _inside("exec:", "_penstock.both_exec", child="producer")
    yield _inside("exec:, on asyncio", "_penstock.both_exec_on_asyncio", "producer", "asyncio")
    yield attrs.evolve(
        _inside("a page in Chromium", "_penstock.both_browser", child="reader"),
        modules=("penstock_websocket", "trio_websocket"),
        programs=("chromium",),
        is_slow=True,
    )
    yield attrs.evolve(
        _inside("a query of Spark", "_penstock.both_spark", child="producer"),
        modules=("penstock_spark", "pyspark"),
        programs=("java",),
        is_slow=True,
    )


def _way(
    name: str,
    *,
    scheme: str = "tcp",
    reader: str = "trio",
    server_loop: str = "trio",
    serve: str = "",
    modules: tuple[str, ...] = (),
    programs: tuple[str, ...] = (),
    **options: Any,
) -> Contender:
    on_trio = "_penstock.serve_penstock"
    served = serve or (on_trio if server_loop == "trio" else f"{on_trio}_on_asyncio")
    needed = {PLUGINS[each] for each in (scheme, *options.values()) if each in PLUGINS}
    return Contender(
        name=f"penstock, {name}",
        setting="defaults",
        serve=served,
        read=READERS[reader],
        options={"scheme": scheme, "loop": reader, "server_loop": server_loop, **options},
        modules=(*modules, *sorted(needed)),
        programs=programs,
        demand=DEFAULT_DEMAND,
    )


def _inside(
    name: str,
    function: str,
    child: Literal["", "reader", "producer"] = "",
    loop: str = "trio",
    **options: Any,
) -> Contender:
    return Contender(
        name=f"penstock, {name}",
        setting="defaults",
        read=function,
        options={"scheme": "memory", "loop": loop, "server_loop": loop, **options},
        child=child,
        demand=DEFAULT_DEMAND,
    )


def penstocks() -> list[Contender]:
    """Return each way of penstock, with its default demand and with a demand of one."""
    found: list[Contender] = []
    for way in _ways():
        best = {**way.options, "demand": 1}
        found += [way, attrs.evolve(way, setting="demand=1", options=best, demand=1)]
    return found


def contenders() -> list[Contender]:
    """Return all of them."""
    return [*peers(), *penstocks()]
