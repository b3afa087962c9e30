"""The conditions that hold in every state, and those that hold when nothing is under way."""

from campaigns.model._parties import Broken, Publisher, Reader
from campaigns.model._scenarios import Ending
from penstock.session import ReceivingStream, Session

# Rejected: by its place, an ERROR on stream 0 refuses the SETUP of a ReactiveSocket client
# that has got no answer.
ENDS_OF_A_CONNECTION = {"ConnectionLost", "Rejected"}


def check_stream(reader: Reader, publisher: Publisher, *, is_ending: bool) -> None:
    """Check one stream, in any state. `is_ending` says that the connection was closed or lost."""
    if reader.window is not None and reader.window.received != reader.bytes:
        raise Broken(
            f"{reader.bytes} bytes came, and the window of the subscriber was told of "
            f"{reader.window.received}"
        )
    if publisher.requested > reader.requested:
        raise Broken(
            f"the publisher was asked for {publisher.requested} elements, and the subscriber for "
            f"{reader.requested} (rule 1.1)"
        )
    if publisher.forged:
        return  # what is delivered beyond the demand, or after the end, is refused by the subscriber
    if publisher.is_cancelled and not (reader.is_cancelled or is_ending):
        raise Broken("the publisher was cancelled, and its subscriber did not cancel")
    if reader.is_unprocessed and publisher.subscriber is not None:
        raise Broken("the error says that the request was not processed, and it was")
    if not reader.ended or (is_ending and reader.ended in ENDS_OF_A_CONNECTION):
        return
    if publisher.is_refused:
        expected = {"Rejected", "PublisherFailed"}
    else:
        expected = {"complete": {"complete"}, "fail": {"PublisherFailed"}}.get(
            publisher.ended, set()
        )
    if reader.ended not in expected:
        raise Broken(
            f"the subscriber's end is {reader.ended!r}, and the publisher's {publisher.ended!r}"
        )
    if reader.received < publisher.emitted:
        raise Broken(
            f"the end came with {reader.received} of {publisher.emitted} elements (rule 1.5)"
        )


def check_rest(reader: Reader, publisher: Publisher, *, is_ending: bool) -> None:
    """Check one stream when nothing is under way."""
    if not reader.is_subscribed:
        return
    if publisher.forged:
        sent = publisher.emitted + publisher.forged
        if not reader.ended and not reader.is_cancelled and reader.received < sent:
            raise Broken("elements were sent that nobody requested, and the stream goes on")
        if (reader.ended or reader.is_cancelled) and not publisher.is_cancelled:
            raise Broken("the stream of a peer that broke a rule was not cancelled")
        return
    if (
        not reader.is_cancelled
        and not reader.ended
        and (is_ending or publisher.ended or publisher.is_refused)
    ):
        raise Broken("the subscriber got no end")
    if (
        publisher.subscriber is not None
        and not publisher.ended
        and not publisher.is_cancelled
        and (is_ending or reader.is_cancelled)
    ):
        raise Broken("the publisher was not cancelled")
    if reader.is_cancelled or is_ending:
        return
    script = reader.script
    if script.ending is Ending.REFUSED:
        return
    due = min(reader.requested, script.elements)
    if reader.received != due:
        raise Broken(
            f"{reader.received} elements came, and {due} were due: demand or elements were lost"
        )
    if due == script.elements and script.ending is not Ending.NEVER and not reader.ended:
        raise Broken("the subscriber got no end")


def check_side(session: Session, *, is_ending: bool, reports: int) -> None:
    """Check what a session holds when nothing is under way."""
    who = session.channel.role.value
    streams, outbox, budgets = session.streams, session.outbox, session.channel.budgets
    if is_ending and not (session.state.is_over and reports == 1):
        raise Broken(
            f"the {who}'s session is in {session.state.name}, and its end was reported {reports} "
            "times"
        )
    live = {
        stream_id: stream
        for stream_id, stream in streams.opened.items()
        if isinstance(stream, ReceivingStream) and not stream.is_wanted
    }
    windows = [each for each in budgets.unread.windows.values() if each.is_wanted]
    left = {
        "windows of streams that are over": len(budgets.unread.windows) - len(windows),
        "ids of streams that are over": len(live),
        "ids of streams that are served": sum(
            stream.is_ended for stream in streams.serving.values()
        ),
        "bytes in the outbox": outbox.waiting,
        "bytes of gathered elements": outbox.gathered,
        "bytes of large elements": outbox.large,
        "large elements": outbox.large_elements,
        "bytes of unfinished elements": budgets.partials.bytes,
        # A session that is over decodes nothing more, and is released with what it has received.
        "undecoded bytes": 0 if session.state.is_over else session.channel.dialect.held(),
        "cancelled streams beyond the table": streams.cancelled.count - len(streams.opened),
    }
    if is_ending:
        left["streams that are served"] = len(streams.serving)
        left["streams that were opened"] = sum(
            isinstance(stream, ReceivingStream) for stream in streams.opened.values()
        )
    if not outbox.is_empty:
        raise Broken(f"the {who}'s outbox is not empty, and its writer was not woken")
    for what, count in left.items():
        if count > 0:
            raise Broken(f"the {who} keeps {count} {what}")
