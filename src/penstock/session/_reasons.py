"""Every reason that crosses the wire, in one table: its token, its meaning, what its reader can do,
and whether the peer may have acted.

A reason is a fixed token that penstock itself sends: in a goodbye, or as the text of an error on a
stream. Rules of this file:

* A text on a stream is a text. RS.io and ReactiveSocket have no error codes, and a publisher may
  choose any words, "refused" among them. So a text never decides what kind of error it becomes; it
  only gets an explanation beside it that stays true if the text means something else.
* Unless the *protocol* says that nothing was done, the peer may have acted on what was asked. Only
  then is asking again safe without a look.
"""

from typing import Final

import attrs

from penstock.api import NO_SUCH, PRIVATE, TAKEN, TOO_SLOW, Rejected


@attrs.frozen
class Reason:
    """One row of the table."""

    token: str
    """The word on the wire, without its parameter."""
    meaning: str
    """The event that caused it. ``{sender}`` is the side that gives the reason, ``{receiver}`` the
    side that gets it.
    """
    advice: str = ""
    """Advice for the reader of the error."""
    parameter: str = ""
    """The text behind the token and a blank: N is a decimal number, T a type such as ``0x7f``,
    N > M a length and its limit.
    """
    # True unless a row says otherwise: a forgotten row must not promise that asking again is safe.
    may_have_acted: bool = True
    """The peer may have acted on what was asked before it gave this reason."""
    ends_accepted: bool = False
    """Given only to a peer that was let in: it ends a connection, and refuses no introduction."""
    is_temporary: bool = False
    """Refuses a connection for want of room: the same client may be let in later."""


# Texts and tokens that the code refers to have names;
# the others appear where they are raised, and here.
DRAINING: Final = "draining"
"""Refuses a stream: the server is shutting down."""
REFUSED: Final = "refused"
"""Refuses a stream: the connection has `Limits.max_subscriptions` streams."""
TOO_LONG: Final = "too long"
"""Ends a stream that the peer sent a longer message about than this side takes."""
ILLEGAL_DEMAND: Final = "illegal demand"
"""Ends a stream whose subscriber requested no element, or more than 2^63-1 (rule 3.9)."""
# In both tables: an idle stream and an idle connection have the same token.
IDLE: Final = "idle"
DEAD: Final = "keepalive"
"""Ends a connection whose peer gave no sign of life."""
NOT_SERVED: Final = "protocol:not-served"
VERSION: Final = "version"
"""Ends a connection whose two sides have no version of the protocol in common."""

STREAM_REASONS: Final = (
    # A name that leads nowhere and one that is forbidden read the same, so
    # that a peer cannot probe for names.
    Reason(
        NO_SUCH,
        "the name leads nowhere, its parameters do not fit, or the peer may not have it",
        (
            "check its name and its parameters; a publisher that you may not have is answered in "
            "the same words"
        ),
    ),
    Reason(
        DRAINING,
        "the server is shutting down and takes no new streams",
        "try another server, or the same one later",
    ),
    Reason(
        REFUSED,
        (
            "the server has no room for another stream of this connection (its "
            "Limits.max_subscriptions)"
        ),
        "cancel a stream, or open another connection",
    ),
    Reason(
        TOO_LONG,
        "one message about the stream was longer than Limits.max_frame",
        "send less data in one request, or in one text, or let the other side have a larger limit",
    ),
    Reason(
        TAKEN,
        (
            "the publisher reads one iterator or one generator, which gives each element once, "
            "and it had a subscriber before"
        ),
        (
            "ask the operator of the server to publish a function, so that each subscriber gets "
            "its own, or to share one stream"
        ),
    ),
    Reason(
        TOO_SLOW,
        (
            "the publisher has many subscribers, and this one requested nothing for longer than "
            "it waits (Limits.max_hold_up), or fell behind"
        ),
        "request more, or sooner; then subscribe again",
    ),
    Reason(
        PRIVATE,
        "the publisher raised an exception that is not a PublicError",
        "look into the log of the other side; only the text of a PublicError is sent",
    ),
    Reason(
        ILLEGAL_DEMAND,
        "a request asked for no element, or for more than 2^63-1",
        "request from 1 to 2^63-1 elements (rule 3.9)",
    ),
    Reason(
        IDLE,
        "the stream had neither demand nor elements for longer than Limits.idle_subscription_age",
        "subscribe again when you want elements",
    ),
)
"""Texts of errors on a stream that penstock itself sends."""

CONNECTIONS: Final = "places:connections"
"""Refuses a connection: the server has `Limits.max_connections`, or no files for another one."""
PER_ADDRESS: Final = "places:address"
"""Refuses a connection: its address, IPv6 network or user has
`Limits.max_connections_per_address`.
"""

AUTH: Final = "auth"
"""Refuses a connection: the credentials are wrong, or missing."""

ATTEMPTS: Final = "limit:attempts"
"""Refuses a connection: its credentials were not examined, because too many were wrong before."""

CONNECTION_REASONS: Final = (
    # Given to peers that were let in. If a ReactiveSocket client gets one of them before any
    # answer, it does not refuse its SETUP.
    Reason("", "{sender} is done", ends_accepted=True),
    Reason(
        "shutdown",
        "the program of {sender} closes the connection",
        "connect again, or to another server",
        ends_accepted=True,
    ),
    Reason(
        "drain",
        "{sender} is shutting down",
        "connect again, or to another server",
        ends_accepted=True,
    ),
    Reason(
        IDLE,
        (
            "the connection was not used for Limits.idle_connection seconds: there was no stream, "
            "request or message"
        ),
        "connect again when there is one",
        ends_accepted=True,
    ),
    # The peer is told no more: the text of the fault stays on the side that has it.
    Reason(
        "internal",
        "a fault of {sender}, or of an extension there",
        "look into the log of that side",
        ends_accepted=True,
    ),
    Reason(
        DEAD,
        (
            "{receiver} gave no sign of life (Limits.keepalive, Limits.keepalive_timeout); it "
            "hangs, or the network is gone"
        ),
        "something may keep the run loop of the silent side busy",
        ends_accepted=True,
    ),
    # The unread bytes are dropped before it is sent: they would keep it from the peer.
    Reason(
        "slow-reader",
        "answers piled up because {receiver} does not read (Limits.outbound_control)",
        "read faster, or ask for less",
        ends_accepted=True,
    ),
    Reason(
        "limit:memory",
        (
            "{receiver} made {sender} hold more bytes than any other connection, while all "
            "together, or those of its address, held too many (Limits.memory_budget)"
        ),
        "ask for fewer or smaller elements at a time",
        ends_accepted=True,
    ),
    Reason(
        "limit:partial",
        "{receiver} began a message and did not finish it within Limits.partial_age",
        "look at the network",
        ends_accepted=True,
    ),
    Reason(
        "limit:churn",
        "streams were opened and ended faster than Limits.churn_rate",
        "keep streams open for longer, or open fewer",
        ends_accepted=True,
    ),
    Reason(
        "limit:control",
        "requests, cancels and pings came faster than Limits.control_rate",
        "ask for more elements at a time (demand=)",
        ends_accepted=True,
    ),
    Reason(
        "limit:requests",
        "{receiver} sent many more requests than it received elements",
        "ask for more elements at a time (demand=)",
        ends_accepted=True,
    ),
    Reason(
        "limit:glitches",
        "too many oddities came in too short a time (Limits.glitch_burst, Limits.glitch_rate)",
        "report it to the author of that implementation",
        ends_accepted=True,
    ),
    Reason(
        "limit:ids",
        "{receiver} never ended too many of the streams that were cancelled (Limits.retired_ids)",
        ends_accepted=True,
    ),
    Reason(
        "limit:late",
        (
            "{receiver} went on with streams that were cancelled, beyond what was asked for or "
            "beyond Limits.late_bytes"
        ),
        (
            "raise Limits.late_bytes there if the line between the two holds more than that; "
            "otherwise report it to the author of the peer"
        ),
        ends_accepted=True,
    ),
    Reason(
        "limit:pings",
        (
            "{receiver} sent pings too soon after one another (Limits.keepalive_least, "
            "Limits.keepalive_strikes)"
        ),
        "give Limits.keepalive a larger value there",
        ends_accepted=True,
    ),
    # Without `ends_accepted`: these two are given before the hello is complete.
    Reason("limit:handshake", "{receiver} did not say hello within Limits.handshake_timeout"),
    Reason(
        "limit:hello",
        "{receiver} sent more than Limits.preauth_bytes before its hello was complete",
    ),
    # The limits are those of the side that gives the reason.
    # The two numbers show how far above the limit the message was.
    Reason(
        "limit:extensions",
        "{receiver} announced more extensions than Limits.hello_extensions",
        parameter="N > M",
    ),
    Reason(
        "limit:frame",
        "{receiver} announced an element, a part, packed elements (N is count x element size), an "
        "extension's body or an element size above Limits.max_frame",
        parameter="N > M",
    ),
    Reason(
        "limit:name",
        "{receiver} announced a publisher's name longer than Limits.max_name",
        parameter="N > M",
    ),
    Reason(
        "limit:text",
        "{receiver} announced an error's text longer than Limits.max_error_text",
        parameter="N > M",
    ),
    Reason(
        "limit:reason",
        "{receiver} announced a goodbye's reason longer than Limits.max_reason",
        parameter="N > M",
    ),
    # In the place of the first answer, to a client that is not let in.
    Reason(
        CONNECTIONS,
        (
            "{sender} has no room for another connection (its Limits.max_connections, or its "
            "limit on open files)"
        ),
        "try again later, or another server; the operator of the server can raise the limit",
        may_have_acted=False,
        is_temporary=True,
    ),
    Reason(
        PER_ADDRESS,
        (
            "the address, the IPv6 network or the user of {receiver} has too many connections to "
            "{sender} (Limits.max_connections_per_address)"
        ),
        (
            "close connections that are not needed, or use one for several streams; the operator "
            "of the server can raise the limit"
        ),
        may_have_acted=False,
        is_temporary=True,
    ),
    # `may_have_acted` stays true: the session before the loss may have acted on what was asked.
    Reason(
        "resume",
        (
            "{sender} cannot go on with the lost connection: its token is unknown, was used, is "
            "over, or belongs to another principal"
        ),
        (
            "connect again, and begin anew; Limits.resume_timeout of the two sides says how long "
            "a lost connection is kept"
        ),
    ),
    Reason(
        AUTH,
        "{sender} does not accept the credentials of {receiver}, or needs some",
        (
            "give credentials= that the server knows, with the scheme that it takes; the log of "
            "the server may say more"
        ),
    ),
    Reason(
        ATTEMPTS,
        (
            "{sender} did not examine the credentials of {receiver}: too many wrong ones came from "
            "its address, or for its name"
        ),
        "try again later, with credentials that are right",
        is_temporary=True,
    ),
    Reason(
        "limit:auth",
        "{receiver} sent more than Limits.preauth_bytes before it was let in",
        "wait for the verdict before you subscribe, or send shorter credentials",
        parameter="N > M",
    ),
    Reason(
        "limit:position",
        "{receiver} sent places for more streams than it subscribed to",
        "send the places of a stream right before its subscribe",
    ),
    # Mistakes of the peer. It may have been served for hours before,
    # so nothing is said about its requests.
    Reason("protocol", "{receiver} broke the protocol"),
    Reason(
        "protocol:hello",
        (
            "{receiver} began with a byte that is neither a hello nor a goodbye, or sent a second "
            "hello"
        ),
    ),
    Reason("protocol:setup", "the first frame was no SETUP, or the SETUP was malformed"),
    Reason(
        "protocol:type",
        "{receiver} sent a message type that does not exist, or whose extension is not active",
        parameter="T",
    ),
    Reason(
        "protocol:switch",
        "{receiver} changed to an encoding that was not agreed on, or a second time",
        parameter="N",
    ),
    Reason(
        "protocol:encoding",
        "{receiver} sent a field that the encoding of its direction does not have",
    ),
    Reason(
        "protocol:varint",
        "{receiver} sent a varint of more than 9 bytes, or one that is not the shortest",
    ),
    Reason("protocol:length", "a frame was shorter than its type allows", parameter="N"),
    Reason("protocol:reserved", "a reserved bit or stream id was used"),
    Reason(
        "protocol:packed",
        (
            "{receiver} sent packed elements on a stream without a fixed size, none of them, or "
            "not as many bytes as they have"
        ),
    ),
    Reason(
        "protocol:stream",
        "{receiver} sent a message for a stream that was never opened or has ended, an element "
        "before the acceptance, or a second acceptance",
        parameter="N",
    ),
    Reason(
        "protocol:subscribe",
        "{receiver} opened a stream with the id of one that is open",
        parameter="N",
    ),
    Reason(
        "protocol:request",
        "{receiver} sent a request whose fields cannot be read, or more data than it announced",
        parameter="N",
    ),
    Reason("protocol:demand", "an element came that was not asked for"),
    Reason(
        "protocol:extension",
        "a message of an unknown extension came that may not be ignored",
        parameter="N",
    ),
    Reason(
        "protocol:content",
        "{receiver} announced the serializer of a stream that was not opened, had begun or was "
        "announced before, or in a way that cannot be read",
        parameter="N",
    ),
    Reason(
        "protocol:drain", "{receiver} sent a message of the extension drain that cannot be read"
    ),
    Reason(
        "protocol:auth",
        (
            "{receiver} sent credentials that cannot be read, or twice, or a verdict that nothing "
            "had asked for"
        ),
    ),
    Reason(
        "protocol:position",
        (
            "{receiver} sent places or positions that cannot be read, twice for a stream, or for "
            "one without places"
        ),
    ),
    Reason(
        "protocol:resume",
        (
            "{receiver} acknowledged bytes that were never sent, or a message about a lost "
            "connection was malformed, or came twice"
        ),
        parameter="N",
    ),
    Reason("protocol:ping", "{receiver} sent a ping or a pong of more than 125 bytes"),
    # No client gets these four tokens: it is refused in its own protocol, or without a byte. They
    # are for the log of this side.
    Reason("protocol:http", "{receiver} speaks HTTP, which {sender} does not serve"),
    Reason("protocol:tls", "{receiver} speaks TLS, which {sender} does not serve"),
    Reason("protocol:rsocket", "{receiver} speaks RSocket 1.0, which {sender} does not serve"),
    Reason(
        "protocol:text",
        (
            "{receiver} speaks a text protocol that {sender} does not serve and cannot answer: "
            "SSH or SMTP, for example"
        ),
    ),
    Reason(
        NOT_SERVED,
        "{receiver} speaks another protocol than {sender} serves",
        (
            "a URL with tcp:// speaks RS.io, with reactivesocket+tcp:// ReactiveSocket, with "
            "rsocket+tcp:// RSocket"
        ),
    ),
    # The one place where a protocol says that nothing was done:
    # RS.io's goodbye in the place of the server's hello.
    Reason(
        VERSION,
        "the two sides have no version of the protocol in common",
        "update one of the two sides",
        parameter="N",
        may_have_acted=False,
    ),
)
"""Reasons of goodbyes (on ReactiveSocket: of errors on stream 0) that penstock itself sends."""

# Two dictionaries: "idle" is a reason of both, with different advice.
_OF_STREAMS: Final = {reason.token: reason for reason in STREAM_REASONS}
_OF_CONNECTIONS: Final = {reason.token: reason for reason in CONNECTION_REASONS}

SHOWN_CHARACTERS: Final = 200
"""How much of a peer's text goes into an error or a log line."""


def connection_reason(text: str) -> Reason | None:
    """Return the row for the reason of a goodbye, or None if penstock sends no such reason."""
    # The whole text first: a token never contains a blank, but a parameter may look like a token.
    if reason := _OF_CONNECTIONS.get(text):
        return reason
    reason = _OF_CONNECTIONS.get(text.partition(" ")[0])
    # Other implementations write sentences. One that begins like a token, such as "resume not
    # supported" of rsocket-java, is not that token.
    return reason if reason is not None and reason.parameter else None


def explain_own(token: str) -> str:
    """Return the meaning of a reason that this side gives, or the token itself
    if the table does not have it.
    """
    reason = connection_reason(token)
    return (
        token if reason is None else reason.meaning.format(sender="this side", receiver="the peer")
    )


def explain_connection_end(text: str) -> str:
    """Return the reason of a peer's goodbye, safe to print, with its meaning
    and with what to try, if the table has it.
    """
    if not text:
        return "no reason given"
    reason = connection_reason(text)
    shown = ascii(text[:SHOWN_CHARACTERS])
    if reason is None:
        return shown
    # The same row is read on both sides. For the reader the peer is the sender;
    # for explain_own it is this side.
    meaning = reason.meaning.format(sender="the peer", receiver="this side")
    return f"{shown} ({meaning}{f'; {reason.advice}' if reason.advice else ''})"


def no_room_refusal(text: str, *, processed: bool) -> Rejected | None:
    """Return the error of a client that is not let in for want of room;
    None if `text` is another reason.

    `processed` is what the protocol says about requests that the client has sent already.
    """
    reason = connection_reason(text)
    if reason is None or not reason.is_temporary:
        return None
    return Rejected(
        f"the server did not let this client in: {explain_connection_end(text)}",
        processed=processed,
        temporary=True,
    )


def draining_refusal(text: str, *, peer_drains: bool) -> Rejected | None:
    """Return the error of a stream that was refused before it began, with `text`; None unless the
    peer drains and refused it for that.

    A publisher may use the same word. So the text counts only if the peer has said in a message of
    its own that it drains: from then on it uses the word for nothing else.
    """
    if text != DRAINING or not peer_drains:
        return None
    return Rejected(
        f"the peer refused this stream: {explain_stream_end(text)}", processed=False, temporary=True
    )


def explain_stream_end(text: str) -> str:
    """Return the text of a peer's error, safe to print; if penstock itself sends this text, say
    when it does and what to try.

    A publisher's own error may have the same words. So the explanation says when penstock uses
    them, and claims no more than that.
    """
    reason = _OF_STREAMS.get(text)
    # A terminal obeys control characters in what it is told to print.
    shown = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return (
        shown
        if reason is None
        else f"{shown} (penstock says this if {reason.meaning}; {reason.advice})"
    )
