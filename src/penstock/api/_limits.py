"""Every bound of a connection and of a server, in one frozen record, with safe defaults.

Each field says what it bounds, and the evidence for its default. The defaults and published
weaknesses of gRPC, Go's x/net/http2, nghttp2, Envoy, NATS, Centrifugo, websockets, libzmq,
rsocket-java and Pekko were compared.
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
    """Seconds from accept to both hellos, with TLS and authentication.

    Reached: goodbye `limit:handshake`; a client gets `ConnectionLost`.

    Why: a silent connection occupies a place; Go, websockets and Centrifugo allow the same.
    """

    tls_timeout: float = 5.0
    """Seconds of `handshake_timeout` that TLS may take.

    Reached: closed without a message: no protocol is agreed on yet.

    Why: the TLS part of `handshake_timeout`.
    """

    preauth_bytes: int = 4096
    """Bytes that a peer may send before its hello is complete.

    Reached: goodbye `limit:hello`.

    Why: a hello may never end; NATS has the same bound.
    """

    hello_extensions: int = 64
    """Extension ids in a hello.

    Reached: goodbye `limit:extensions`.

    Why: rsocket-java had a weakness: a list without a bound.
    """

    max_pending_handshakes: int = 512
    """Connections of a server at a time that have not sent their hello.

    Reached: the oldest of them is closed at once, and the newest takes its place. An address with
    more than an eighth of the places loses its own first.

    Why: silent connections use memory, and an attacker can open many. Because the oldest one gives
    way, they keep no other client out.
    """

    # --- messages and elements

    max_frame: int = 1 << 20
    """Bytes of a message's body.

    Reached: RS.io: goodbye `limit:frame`, on the announced length; on a framed transport the
    connection ends. ReactiveSocket: the stream of the frame ends, with CANCEL or ERROR `too long`,
    and its body is skipped.

    Why: NATS, websockets and Go chose the same.
    """

    max_element: int = 4 << 20
    """Bytes of an element, joined from its parts.

    Reached: in parts: cancel to the peer, `ProtocolError` to the subscriber; whole: goodbye
    `limit:frame`. A larger element of this side fails its stream.

    Why: gRPC's bound.
    """

    split_outbound_at: int = 16 << 10
    """Larger elements are sent in parts of this size, so that other streams can send in between.

    Reached: larger elements go in parts of this size;
    four times this size while no other stream has a large element.

    Why: other streams get their turn in between; HTTP/2's frame size.
    """

    max_partials: int = 4
    """Elements of one stream that may be incomplete at a time.

    Reached: cancel to the peer, `ProtocolError` to the subscriber.

    Why: penstock itself never has more than 1 unfinished element in a stream.
    """

    max_partials_in_all: int = 64
    """Elements of one connection that may be incomplete at a time.

    Reached: cancel to the peer, `ProtocolError` to the subscriber.

    Why: `max_partials` bounds one stream only; this side also begins no more elements at a time.
    """

    partial_bytes: int = 8 << 20
    """Bytes of incomplete elements of one connection: two of the largest.

    Reached: cancel to the peer, `ProtocolError` to the subscriber.

    Why: two of the largest elements; the begun elements of this side have no more either.
    """

    max_parts: int = 8192
    """Parts of one element.

    Reached: cancel to the peer, `ProtocolError` to the subscriber.

    Why: HTTP/2's CONTINUATION flood.
    """

    partial_age: float = 30.0
    """Seconds that an element, or a single message, may stay incomplete.

    Reached: cancel to the peer, `ProtocolError` to the subscriber; `ConnectionLost` if the peer has
    sent nothing for a quarter of it.
    For a single message that stays incomplete: goodbye `limit:partial`.

    Why: an unfinished element or message holds memory for this time only.
    """

    tiny_part: int = 64
    """Smaller parts that are not the last are legal, and each costs a glitch.

    Reached: a smaller part that is not the last costs a glitch, an empty one ten.

    Why: a flood of such parts is cheap to send and expensive to receive;
    rsocket-java chose this bound.
    """

    max_name: int = 1024
    """Bytes of a publisher's name.

    Reached: goodbye `limit:name`.

    Why: no known use needs longer names.
    """

    max_error_text: int = 4096
    """Bytes of an error's text.

    Reached: goodbye `limit:text`; a longer error of this side is cut.

    Why: a person does not read longer errors.
    """

    max_reason: int = 1024
    """Bytes of a goodbye's reason.

    Reached: goodbye `limit:reason`.

    Why: a reason is a token and some words.
    """

    # --- subscriptions

    window_bytes: int = 16 << 20
    """Bytes that a stream may have asked for and not read, by the size of the elements
    that have come.

    Reached: it asks for fewer elements, and for one at a time if they are larger than that.

    Why: 256 elements of 4 MiB are a GiB.
    16 MiB keep a line of 1 Gbit/s with a delay of 100 ms busy.
    """

    unread_bytes: int = 64 << 20
    """Bytes that the streams of one connection may hold unread,
    as far as their demand is automatic.

    Reached: the stream that holds the most ends: cancel to the peer, `LimitExceeded` to its reader.

    Why: elements may become large when many were asked for; four windows.
    """

    max_subscriptions: int = 1024
    """Streams that the peer may have open, including those that are still ending.

    Reached: onError "refused" for the new one, and a glitch.

    Why: Envoy's bound; a place is free when its publisher has stopped.
    """

    retired_ids: int = 65_536
    """Ids of streams that this side has cancelled and whose end the peer has not confirmed yet.

    Reached: goodbye `limit:ids`.

    Why: a cancelled stream cannot be forgotten before the peer has ended it: its messages must
    still be delimited. From half of it on, places of more than a minute are given up: a publisher
    need not confirm a cancel.
    """

    late_bytes: int = 32 << 20
    """Bytes of elements that may arrive after cancels, and of data
    that may arrive for requests that have ended.

    Reached: goodbye `limit:late`. Data of requests: each further part costs a glitch.

    Why: they were under way; an honest peer has two socket buffers (6 and 4 MiB on Linux) and
    `outbound_high` with an element on the way.
    """

    churn_burst: int = 1000
    """Subscriptions that may be refused, or cancelled within a second of their start, at once.

    Reached: goodbye `limit:churn`.

    Why: subscribing and cancelling at once is HTTP/2's rapid reset.
    """

    churn_rate: float = 1000.0
    """Subscriptions of that kind per second, once the burst is used up.

    Reached: goodbye `limit:churn`.

    Why: a request that is given up after 50 ms is legal, and 50 tasks give up 1,000 of them a
    second. With the 33 of nghttp2, 8 such tasks lost their connection.
    """

    idle_subscription_age: float | None = None
    """Seconds that a stream may be open without demand and without traffic;
    None is unbounded, with a warning after an hour.

    Reached: onError "idle" for that stream. With None: one warning to `on_violation` after an hour.

    Why: streams without demand occupy memory; `Limits.untrusted()` sets an hour.
    """

    idle_connection: float = 300.0
    """Seconds that a connection without a stream is kept after its last request, stream or message
    of an extension. While the keepalive is active, a client keeps the connection, and so does a
    server that publishes or has asked the client before.

    Reached: goodbye `idle`.

    Why: Kafka keeps connections for 10 minutes.
    """

    max_hold_up: float = 10.0
    """Seconds that a stream without demand may hold up all other subscribers of a topic, a `share`
    or a `processor` (`SlowPolicy.WAIT`).

    Reached: onError "too slow" for that stream, `SlowSubscriber` here, and the others go on.
    `Topic(max_hold_up=...)`, `share(max_hold_up=...)` and `processor(max_hold_up=...)` override it.

    Why: by default a topic waits for its slowest subscriber, and over a network that may be a
    stranger who requests nothing.
    """

    # --- tolerated anomalies

    glitch_burst: int = 1000
    """Anomalies at once: messages that are legal only because of races, or unusual and harmless.

    Reached: goodbye `limit:glitches`.

    Why: input that is legal because of races, or only odd, is ignored while the budget lasts.
    """

    glitch_rate: float = 33.0
    """Anomalies per second, once the burst is used up.

    Reached: goodbye `limit:glitches`.

    Why: a tenth of nghttp2's: Python is about ten times as slow.
    """

    control_burst: int = 10_000
    """Control messages at once: requests beyond what elements pay for, requests
    and cancels for ended streams, pings.

    Reached: goodbye `limit:control`.

    Why: messages that cost the peer little and are not earned by elements; Go's bound.
    """

    control_rate: float = 2000.0
    """Control messages per second, once the burst is used up.

    Reached: goodbye `limit:control`.

    Why: Envoy's 1,000, doubled.
    """

    # --- data that waits to be sent

    outbound_high: int = 128 << 10
    """With more bytes waiting, publishers are not pulled.

    Reached: publishers are not pulled until the writer has taken the waiting bytes.

    Why: with 64 KiB an element of 4 KiB costs half as much again; above 128 KiB little is gained.
    """

    outbound_control: int = 64 << 10
    """Bytes of answers (errors, pongs) that may wait while the peer does not read.

    Reached: goodbye `slow-reader`.

    Why: answers that the peer caused and does not read.
    """

    outbound_control_count: int = 1000
    """Number of answers that may wait while the peer does not read.

    Reached: goodbye `slow-reader`.

    Why: Envoy's bound.
    """

    write_stall: float = 20.0
    """Seconds that one send may take.
    A peer that is slower has this time for each `min_drain` bytes.

    Reached: the connection is cut, `ConnectionLost` here.

    Why: a peer that reads nothing must not hold its connection without end; NATS gives 10 s.
    """

    min_drain: int = 4096
    """Bytes that a slow peer must take in each `write_stall`.

    Reached: the connection is cut, `ConnectionLost` here.

    Why: HTTP/2's data dribble attack reads single bytes slowly.
    """

    # --- a lost connection that goes on

    resume_timeout: float = 60.0
    """Seconds that a lost connection is kept with ``resume=True``, until the client is back. The
    shorter time of the two sides counts.

    Reached: the streams and requests of the connection end with `ConnectionLost`
    (`resumable=False`), and its place is free.

    Why: a change of networks, or the restart of a proxy, takes less; a server keeps a connection
    for this time after a client that is dead.
    """

    resume_bytes: int = 1 << 20
    """Bytes that were sent on such a connection and are not acknowledged:
    they are kept, and sent again if it is lost.

    Reached: publishers are not pulled until the peer acknowledges. If the peer takes more and
    acknowledges nothing: goodbye `slow-reader`.

    Why: a peer acknowledges every 256 KiB, so this is 8 MB/s with 100 ms from one side to the other
    and back.
    """

    # --- time

    receive_chunk: int = 128 << 10
    """Bytes taken from the transport at a time: as many as `outbound_high`, for the same reason.

    Reached: the rest is read in the next turn.

    Why: large reads are faster; a peer sends this number of bytes at a time.
    """

    turn: float = 0.005
    """Seconds that decoding may go on before other tasks get a scheduler pass: one budget, shared
    by all connections of the program.

    Reached: other tasks get a turn, then decoding goes on. While several connections wait, each
    decodes 64 messages in its turn.

    Why: 64 KiB of the smallest messages take several times that,
    and 100 peers may send them at the same time.
    """

    goodbye_timeout: float = 2.0
    """Seconds to wait for the answer to a goodbye.

    Reached: the connection is closed, answered or not.

    Why: a dead peer does not answer.
    """

    linger: float = 1.0
    """Seconds to read on after a goodbye, so that the peer can read it before the connection is
    reset.

    Reached: the connection is closed, answered or not (for the side
    that waits for the other to close).

    Why: if a connection is closed too early, the goodbye can be lost;
    Go waits one second after GOAWAY.
    """

    drain: float = 25.0
    """Seconds that a server may take to shut down.

    Reached: the tasks of a connection that still run, also the cleanup of publishers,
    are cancelled.

    Why: Kubernetes kills after 30 s.
    """

    keepalive: float = 20.0
    """Seconds without input after which the peer gets a ping, ±15 % so that a thousand connections
    do not ping at the same time.

    Reached: the peer is asked for a sign of life, ±15 %.

    Why: a vanished peer sends no end.
    """

    keepalive_timeout: float = 20.0
    """Seconds that the peer may take to answer a ping.

    Reached: goodbye `keepalive`.

    Why: the time for its answer.
    """

    keepalive_least: float = 5.0
    """Seconds between two pings of a peer, less the ±15 %.

    Reached: a ping that comes sooner, less 15 %, is a strike and costs a glitch.

    Why: pings cost the peer little.
    """

    keepalive_strikes: int = 2
    """Strikes that are forgiven.

    Reached: one more, with no ping in good time between them: goodbye `limit:pings`.

    Why: gRPC's bound.
    """

    # --- a server

    max_connections: int = 10_000
    """Connections at a time; or as many as the process's limit on open files leaves room for,
    if that is lower.

    Reached: the oldest that has not sent its hello is closed at once, and the newest takes its
    place; if all have said hello, the newest is refused with `places:connections`, and closed.

    Why: each connection is a file. The files that are open when the server starts are subtracted,
    and a reserve: one in eight, at most 256.
    """

    max_connections_per_address: int = 256
    """Connections at a time from one IPv4 address, from one IPv6 network (/64),
    or on a Unix socket from one user.

    Reached: the oldest of them that has not sent its hello is closed at once, and the newest takes
    its place; if all have said hello, the newest is refused with `places:address`, and closed.

    Why: one address must not occupy all places, and an IPv6 subscriber has 2^64 addresses.
    """

    accept_rate: float = 500.0
    """Connections accepted per second. One that has left before it sent a byte does not count, and
    neither does one that is refused.

    Reached: the next connection waits to be accepted.

    Why: the connections of one second may come at once;
    accepting more would starve existing connections.
    """

    memory_budget: int = 256 << 20
    """Bytes that all peers of a server, or the peer of a client, make this side hold: buffers,
    streams, tasks, data of requests. Connections by themselves are not in it: they take 25 KiB
    each, and 47 to 56 KiB over TLS.

    Reached: at 80 % the connection that holds most is cut, and the next, until it is less:
    goodbye `limit:memory`. The connections of one address, IPv6 network or user are cut in the
    same way at a quarter.

    Why: every buffer has its bound, but ten thousand connections have ten thousand of each buffer.
    """

    @classmethod
    def untrusted(cls) -> "Limits":
        """Return the limits for unknown peers: the defaults, except that streams without demand
        and traffic end after an hour.
        """
        return cls(idle_subscription_age=3600.0)

    def __post_init__(self) -> None:
        """Refuse a bound of zero, which would admit nothing, and one that is not a number,
        which would bound nothing.
        """
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if name == "idle_subscription_age" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise UsageError(f"{name}={value!r}; give a number above zero")
