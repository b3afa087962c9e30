"""Every bound of a connection and of a server, in one frozen record, safe by default.

Each field says what it bounds and on what evidence the default rests; "others" are gRPC, Go's x/net/http2, nghttp2, Envoy, NATS,
Centrifugo, websockets, libzmq, rsocket-java and Pekko, whose defaults and published weaknesses were compared.
Every table is bounded in three ways: count, bytes, age. Times are seconds, sizes bytes.

To change some: ``dataclasses.replace(Limits(), max_frame=65_536)``.
"""

from dataclasses import dataclass, fields

from penstock.api._errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one connection, and of the server that it belongs to."""

    # --- before anybody is known

    handshake_timeout: float = 10.0
    """From accept to both hellos, TLS and authentication included. Go, websockets and Centrifugo allow 10 s too."""

    tls_timeout: float = 5.0
    """The TLS part of it."""

    preauth_bytes: int = 4096
    """What a peer may send before its hello is complete. NATS' control line has the same bound."""

    hello_extensions: int = 64
    """Extension ids in a hello. A list without a bound was a weakness of rsocket-java."""

    max_pending_handshakes: int = 512
    """Connections at a time that have not said hello: the slots that silent connections can take."""

    # --- messages and elements

    max_frame: int = 1 << 20
    """The body of any one message. NATS, websockets and Go chose 1 MiB."""

    max_element: int = 4 << 20
    """An element, joined from its parts. gRPC's 4 MiB."""

    split_outbound_at: int = 16 << 10
    """Larger elements are sent in parts of this size, so that other streams get their turn in between; of four times that while no other
    stream has one. HTTP/2's frame size."""

    max_partials: int = 4
    """Elements of one stream that may be under way in parts at a time. Penstock itself never sends more than 1."""

    max_partials_in_all: int = 64
    """The same over a connection."""

    partial_bytes: int = 8 << 20
    """Bytes of unfinished elements over a connection: two of the largest."""

    max_parts: int = 8192
    """Parts of one element. The answer to HTTP/2's CONTINUATION flood."""

    partial_age: float = 30.0
    """How long an element may stay unfinished, and so may a single message."""

    tiny_part: int = 64
    """Smaller parts that are not the last are legal, and cost a glitch each: rsocket-java was flooded with them, and chose this bound."""

    max_name: int = 1024
    """A publisher's name."""

    max_error_text: int = 4096
    """An error's text."""

    max_reason: int = 1024
    """A goodbye's reason."""

    # --- subscriptions

    max_subscriptions: int = 1024
    """Streams that the peer may have open with us, those that are still ending included. Envoy's 1,024."""

    retired_ids: int = 65_536
    """Ids of ours whose end was not yet heard of after a cancel. They cannot be forgotten: a message for one must still be delimited."""

    churn_burst: int = 1000
    """Subscriptions that may be refused, or cancelled within a second of their beginning, at once. What publishers end does not count."""

    churn_rate: float = 33.0
    """And per second. nghttp2's answer to the rapid reset attack."""

    idle_subscription_age: float | None = None
    """How long a stream may be open without demand and without traffic; None is without bound, and a warning after an hour.

    A peer that opens streams and asks for nothing pins memory: HTTP/2 Bomb. `untrusted` bounds it to an hour.
    """

    idle_connection: float = 300.0
    """How long a connection without any stream is kept. Kafka keeps 10 minutes."""

    # --- what may be tolerated

    glitch_burst: int = 1000
    """Anomalies (legal because of races, or merely odd) at once."""

    glitch_rate: float = 33.0
    """And per second. A tenth of nghttp2's, because Python is about ten times as slow."""

    control_burst: int = 10_000
    """At once: requests that no element has earned, requests and cancels for nothing, pings. Go's 10,000."""

    control_rate: float = 2000.0
    """And per second. Envoy's 1,000, doubled."""

    # --- what waits to be sent

    outbound_high: int = 128 << 10
    """With more than this waiting, publishers are not pulled. What goes out at a time costs the same turns however much it is: with 64 KiB
    an element of 4 KiB cost half as much again (measured); above 128 KiB little is gained, and memory is held."""

    outbound_control: int = 64 << 10
    """Bytes of answers (errors, pongs) that may wait because the peer does not read."""

    outbound_control_count: int = 1000
    """And their number. Envoy's 1,000."""

    write_stall: float = 20.0
    """How long a peer may take for the next `min_drain` bytes; one that has been quick, for all that waits. NATS gives 10 s."""

    min_drain: int = 4096
    """Bytes that a slow peer must take in each `write_stall`. Taking one byte now and then is the data dribble attack on HTTP/2."""

    # --- time

    receive_chunk: int = 128 << 10
    """Bytes taken from the transport at a time: as many as a peer of the same kind sends at a time, and for the same reason."""

    turn: float = 0.005
    """How long decoding may go on before the neighbours get a turn: 64 KiB of the smallest messages take several times that."""

    goodbye_timeout: float = 2.0
    """How long to wait for the answer to a goodbye."""

    linger: float = 1.0
    """How long to read on after it, so that the peer can read it before the connection is reset. Go's GOAWAY second."""

    drain: float = 25.0
    """How long a server may take to shut down. Kubernetes kills after 30 s."""

    keepalive: float = 20.0
    """Silence after which the peer is asked for a sign of life, ±15 % so that a thousand connections do not ask at once."""

    keepalive_timeout: float = 20.0
    """How long it may take to answer."""

    keepalive_least: float = 5.0
    """Pings more frequent than this, less the ±15 %, are strikes, and cost a glitch each."""

    keepalive_strikes: int = 2
    """Strikes that are forgiven; a ping in good time forgives all. gRPC's 2."""

    # --- a server

    max_connections: int = 10_000
    """Connections at a time; the process's own limit on open files, less 256, if that is lower."""

    max_connections_per_address: int = 256
    """Connections at a time from one address."""

    accept_rate: float = 500.0
    """Connections accepted per second. trio accepts some 3,800 plain ones, or 350 with TLS, on two cores."""

    memory_budget: int = 256 << 20
    """Bytes in all buffers of a server: at 80 % it stops reading, at 90 % accepting, at 95 % the connection that holds most is cut."""

    @classmethod
    def untrusted(cls) -> "Limits":
        """Return the limits for strangers: the defaults, and streams without demand and traffic end after an hour."""
        return cls(idle_subscription_age=3600.0)

    def __post_init__(self) -> None:
        """Refuse what makes no sense: a bound of zero admits nothing, and one that is no number bounds nothing."""
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "idle_subscription_age" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise UsageError(f"{name}={value!r}; give a number above zero")
