"""Every bound of a connection and of a server, in one frozen record, with safe defaults.

Each field says what it bounds, and the evidence for its default. The defaults and published weaknesses of gRPC, Go's x/net/http2,
nghttp2, Envoy, NATS, Centrifugo, websockets, libzmq, rsocket-java and Pekko were compared.
Every table is bounded in three ways: count, bytes, age. Times are in seconds, sizes in bytes.

To change some: ``dataclasses.replace(Limits(), max_frame=65_536)``.
"""

from dataclasses import dataclass, fields

from penstock.api._errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of one connection, and of its server."""

    # --- before the hello

    handshake_timeout: float = 10.0
    """Seconds from accept to both hellos, with TLS and authentication. Go, websockets and Centrifugo allow 10 s too."""

    tls_timeout: float = 5.0
    """Seconds of these for TLS."""

    preauth_bytes: int = 4096
    """Bytes that a peer may send before its hello is complete. NATS' control line has the same bound."""

    hello_extensions: int = 64
    """Extension ids in a hello. An unbounded list was a weakness of rsocket-java."""

    max_pending_handshakes: int = 512
    """Connections at a time that have not sent their hello: the slots that silent connections can occupy."""

    # --- messages and elements

    max_frame: int = 1 << 20
    """Bytes of a message's body. NATS, websockets and Go chose 1 MiB."""

    max_element: int = 4 << 20
    """Bytes of an element, joined from its parts. gRPC's 4 MiB."""

    split_outbound_at: int = 16 << 10
    """Larger elements are sent in parts of this size, so that other streams can send in between. HTTP/2's frame size.

    The parts are four times as large while no other stream sends a large element.
    """

    max_partials: int = 4
    """Elements of one stream that may be incomplete at a time. Penstock itself never sends more than 1."""

    max_partials_in_all: int = 64
    """Elements of one connection that may be incomplete at a time."""

    partial_bytes: int = 8 << 20
    """Bytes of incomplete elements of one connection: two of the largest."""

    max_parts: int = 8192
    """Parts of one element. Prevents what was the CONTINUATION flood in HTTP/2."""

    partial_age: float = 30.0
    """Seconds that an element, or a single message, may stay incomplete."""

    tiny_part: int = 64
    """Smaller parts that are not the last are legal, and each costs a glitch. rsocket-java was flooded with them, and chose 64."""

    max_name: int = 1024
    """Bytes of a publisher's name."""

    max_error_text: int = 4096
    """Bytes of an error's text."""

    max_reason: int = 1024
    """Bytes of a goodbye's reason."""

    # --- subscriptions

    max_subscriptions: int = 1024
    """Streams that the peer may have open, including those that are still ending. Envoy's 1,024."""

    retired_ids: int = 65_536
    """Ids of streams that this side has cancelled and whose end the peer has not confirmed yet.

    They cannot be forgotten: without an id's element size, a later message for it could not be delimited.
    """

    churn_burst: int = 1000
    """Subscriptions that may be refused, or cancelled within a second of their start, at once. Ends by publishers do not count."""

    churn_rate: float = 33.0
    """The same per second. nghttp2's answer to the rapid reset attack."""

    idle_subscription_age: float | None = None
    """Seconds that a stream may be open without demand and without traffic; None is unbounded, with a warning after an hour.

    A peer that opens streams without demand occupies memory: HTTP/2 Bomb. `untrusted` bounds it to an hour.
    """

    idle_connection: float = 300.0
    """Seconds that a connection without a stream is kept. Kafka keeps it for 10 minutes."""

    # --- tolerated anomalies

    glitch_burst: int = 1000
    """Anomalies at once: messages that are legal only because of races, or unusual and harmless."""

    glitch_rate: float = 33.0
    """The same per second. A tenth of nghttp2's rate, because Python is about ten times as slow."""

    control_burst: int = 10_000
    """Control messages at once: requests beyond what elements pay for, requests and cancels for ended streams, pings. Go's 10,000."""

    control_rate: float = 2000.0
    """The same per second. Twice Envoy's 1,000."""

    # --- data that waits to be sent

    outbound_high: int = 128 << 10
    """With more bytes waiting, publishers are not pulled.

    A send of any size costs the same scheduler passes. With 64 KiB an element of 4 KiB cost 1.5 times as much (measured); above
    128 KiB the gain is small, and more memory is occupied.
    """

    outbound_control: int = 64 << 10
    """Bytes of answers (errors, pongs) that may wait while the peer does not read."""

    outbound_control_count: int = 1000
    """The number of such answers. Envoy's 1,000."""

    write_stall: float = 20.0
    """Seconds that a peer may take for the next `min_drain` bytes; a peer that has been quick, for all waiting bytes. NATS gives 10 s."""

    min_drain: int = 4096
    """Bytes that a slow peer must take in each `write_stall`. To take one byte at a time was the data dribble attack on HTTP/2."""

    # --- time

    receive_chunk: int = 128 << 10
    """Bytes taken from the transport at a time: as many as `outbound_high`, for the same reason."""

    turn: float = 0.005
    """Seconds that decoding may go on before other tasks get a scheduler pass. 64 KiB of the smallest messages take several times 5 ms."""

    goodbye_timeout: float = 2.0
    """Seconds to wait for the answer to a goodbye."""

    linger: float = 1.0
    """Seconds to read on after a goodbye, so that the peer can read it before the connection is reset. Go's GOAWAY second."""

    drain: float = 25.0
    """Seconds that a server may take to shut down. Kubernetes kills after 30 s."""

    keepalive: float = 20.0
    """Seconds without input after which the peer gets a ping, ±15 % so that a thousand connections do not ping at the same time."""

    keepalive_timeout: float = 20.0
    """Seconds that the peer may take to answer a ping."""

    keepalive_least: float = 5.0
    """Seconds between two pings of a peer, less the ±15 %. A more frequent ping is a strike, and costs a glitch."""

    keepalive_strikes: int = 2
    """Strikes that are forgiven. A ping at the right time sets the count back to 0. gRPC's 2."""

    # --- a server

    max_connections: int = 10_000
    """Connections at a time; or the process's limit on open files less 256, if that is lower."""

    max_connections_per_address: int = 256
    """Connections at a time from one address."""

    accept_rate: float = 500.0
    """Connections accepted per second. trio accepts some 3,800 plain ones, or 350 with TLS, on two cores."""

    memory_budget: int = 256 << 20
    """Bytes in all buffers of a server. At 80 % it stops reading, at 90 % accepting; at 95 % it closes the connection that holds most."""

    @classmethod
    def untrusted(cls) -> "Limits":
        """Return the limits for unknown peers: the defaults, except that streams without demand and traffic end after an hour."""
        return cls(idle_subscription_age=3600.0)

    def __post_init__(self) -> None:
        """Refuse a bound of zero, which would admit nothing, and one that is not a number, which would bound nothing."""
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "idle_subscription_age" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise UsageError(f"{name}={value!r}; give a number above zero")
