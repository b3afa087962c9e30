"""How streams end: completed, failed, cancelled;
and requests to subscriptions that do not exist.
"""

import re
from typing import Final

import trio
import trio.lowlevel
from penstock_tck.wire import PRIVATE_TEXT, SLOW_ATTEMPTS, CheckContext, Level, Table, verify

from penstock_http.checks._http_peer import Answer
from penstock_http.checks._mapping_client import DRAFT, MappedStream, MappingClient

ENDS = Table(DRAFT)

AT_ONCE: Final = 0.2
"""Seconds, fewer than the slow publisher takes."""

GONE: Final = "410 is the `onComplete` of a stream."
COMPLETE: Final = "A client learns that its stream is complete when it asks for another element."
CANCEL: Final = "A client cancels with a PUT of `cancel` below the subscription's URL."
CANCEL_ANSWER: Final = "A cancel should be answered with 200."
CANCELED: Final = "An answer with `X-Rsio-Error` is an `onError`, and the subscription is over."
MARKED: Final = (
    "A server that ends a stream with an error MUST mark its answer with `X-Rsio-Error`."
)
MESSAGE: Final = "An answer with `X-Rsio-Error` SHOULD have a message in its body."
TEXT: Final = (
    "The body of an answer with `X-Rsio-Error` MUST be of a type text/*, and SHOULD be of "
    "the type text/plain."
)
PRIVATE: Final = (
    "The text of an exception that is no `PublicError` is not sent: the client is told that the "
    "publisher failed."
)
INSIDE: Final = "No answer has a traceback, or the name of an exception's class."
_INSIDE: Final = re.compile(
    rb"Traceback \(most recent call last\)"
    rb"|File \"[^\"\n]+\", line \d+"  # Python
    rb"|\bat [\w.$<>]+\([\w.]+(:\d+)?\)"  # Java
    rb"|\b(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b *[:(]"
)
UNKNOWN: Final = (
    "A request for a subscription that the server does not know SHOULD be answered with 404 "
    "and `X-Rsio-Error`."
)
UNKNOWN_MARKED: Final = "The 404 SHOULD have `X-Rsio-Error`, so that no client repeats the request."


@ENDS.row("complete", 124, GONE, needs=["three"])
async def complete(context: CheckContext) -> str:
    """After its three elements a stream is answered with 410, without X-Rsio-Error."""
    stream = await MappingClient(context).subscribe(context.target.three, 5)
    elements, answer = await stream.end()
    verify(len(elements) == 3, f"{len(elements)} of 3 elements came before the end")
    verify(
        answer.status == 410 and answer.header("x-rsio-error") is None,
        f"{answer}; 410 without X-Rsio-Error was due",
    )
    return "3 elements, 410"


@ENDS.row("complete-empty", 122, COMPLETE, level=Level.READING, needs=["empty"])
async def complete_empty(context: CheckContext) -> str:
    """The end of an empty stream needs no demand."""
    stream = await MappingClient(context).subscribe(context.target.empty)
    elements, answer = await stream.end()
    verify(
        not elements and answer.status == 410,
        f"{len(elements)} elements, then {answer}; 410 was due",
    )
    return "410"


@ENDS.row("complete-again", 122, COMPLETE, level=Level.READING, needs=["one"])
async def complete_again(context: CheckContext) -> str:
    """A client that has lost the 410 asks again, and is answered with 410 again."""
    stream = await MappingClient(context).subscribe(context.target.one, 2)
    await stream.end()
    answer = await stream.poll()
    verify(answer.status == 410, f"{answer}, after a 410")
    return "410, twice"


@ENDS.row("cancel", 134, CANCEL_ANSWER, level=Level.SHOULD, needs=["publisher"])
async def cancel(context: CheckContext) -> str:
    """A cancel is answered with 200."""
    stream = await MappingClient(context).subscribe(context.target.publisher, 5)
    answer = await stream.cancel()
    verify(answer.status == 200, f"{answer}; 200 was due")
    return "200"


@ENDS.row("cancelled", 130, CANCEL, needs=["publisher"])
async def cancelled(context: CheckContext) -> str:
    """After a cancel no element comes, neither one that was requested before nor one for a new
    demand. Another subscription goes on.
    """
    client = MappingClient(context)
    stream, other = (
        await client.subscribe(client.target.publisher, 5),
        await client.subscribe(client.target.publisher, 1),
    )
    await stream.take(5)
    await stream.request_more(5)
    await stream.cancel()
    answer = await stream.poll(1)
    verify(answer.is_error, f"{answer}, after a cancel; an error was due")
    await other.expect_exactly(1)
    return str(answer.status)


async def _cancelled_poll(context: CheckContext) -> tuple[Answer, float]:
    """Cancel a subscription of the slow publisher while a poll waits. Return the answer to the
    poll, and the seconds from before the subscribe to that answer.

    The publisher has its element a quarter of a second after the target has read the subscribe. So
    an answer that comes earlier did not wait for it.
    """
    client, other = MappingClient(context), MappingClient(context)
    began = trio.current_time()
    stream = await client.subscribe(client.target.slow, 1)
    peer = await client.begin(stream.path)
    await trio.lowlevel.checkpoint()
    await MappedStream(other, stream.path).cancel()
    return await peer.finish(), trio.current_time() - began


@ENDS.row("cancel-while-polling", 130, CANCEL, level=Level.READING, needs=["slow"])
async def cancel_while_polling(context: CheckContext) -> str:
    """A cancel over another connection ends a poll that waits. It is answered, with no element,
    before the slow publisher would have one.
    """
    answer, took = await _cancelled_poll(context)
    attempts = 1
    while took >= AT_ONCE and attempts < SLOW_ATTEMPTS:  # the machine may be busy
        answer, took = await _cancelled_poll(context)
        attempts += 1
    verify(answer.is_error or answer.status == 204, f"{answer}, after a cancel")
    verify(
        took < AT_ONCE,
        (
            f"a cancel left the poll waiting: {answer} {took:.2f} s after the subscribe, when the "
            "publisher had its element"
        ),
    )
    return str(answer.status)


async def _failure(context: CheckContext) -> tuple[MappedStream, Answer]:
    stream = await MappingClient(context).subscribe(context.target.failing, 20)
    _, answer = await stream.end()
    return stream, answer


@ENDS.row("error", 147, MARKED, level=Level.MUST, needs=["failing"])
async def error(context: CheckContext) -> str:
    """A stream that fails ends with a status from 400 to 599 and `X-Rsio-Error: true`."""
    _, answer = await _failure(context)
    verify(answer.is_error, f"{answer}; an error with X-Rsio-Error was due")
    return str(answer.status)


@ENDS.row("error-is-the-end", 145, CANCELED, needs=["failing"])
async def error_is_the_end(context: CheckContext) -> str:
    """After the error each poll gets an error with X-Rsio-Error, also one with more demand."""
    stream, _ = await _failure(context)
    answers = [await stream.poll(5), await stream.poll()]
    for answer in answers:
        verify(answer.is_error, f"{answer}, after the error")
    return str(answers[0].status)


async def _errors(context: CheckContext) -> list[Answer]:
    """Return the errors that a target can be made to send: of a publisher that fails, of one that
    does not exist, of a cancelled subscription, and of demands that are not numbers.
    """
    client = MappingClient(context)
    _, failed = await _failure(context)
    cancelled, refused = [await client.subscribe(client.target.failing) for _ in range(2)]
    await cancelled.cancel()
    answers = [
        failed,
        await client.ask(client.missing()),
        await cancelled.poll(),
        await client.ask(f"{client.publisher(client.target.failing)}?request=x"),
        await client.ask(refused.at("/requestMore=x")),
    ]
    return [answer for answer in answers if answer.is_error]


@ENDS.row("error-message", 149, MESSAGE, level=Level.SHOULD, needs=["failing"])
async def error_message(context: CheckContext) -> str:
    """The answers with X-Rsio-Error have a message in their body."""
    for answer in await _errors(context):
        verify(answer.body, f"{answer}, without a body")
    return "messages"


@ENDS.row("error-text", 149, TEXT, level=Level.MUST, needs=["failing"])
async def error_text(context: CheckContext) -> str:
    """The body of each answer with X-Rsio-Error has a Content-Type that begins with `text/`."""
    for answer in await _errors(context):
        kind = answer.header("content-type")
        verify(
            not answer.body or (kind or "").lower().startswith("text/"),
            f"{answer}, with Content-Type: {kind}",
        )
    return "text"


@ENDS.row("error-plain-text", 149, TEXT, level=Level.SHOULD, needs=["failing"])
async def error_plain_text(context: CheckContext) -> str:
    """The body of each answer with X-Rsio-Error has the Content-Type `text/plain`."""
    for answer in await _errors(context):
        kind = answer.header("content-type")
        verify(
            not answer.body or (kind or "").lower().startswith("text/plain"),
            f"{answer}, with Content-Type: {kind}",
        )
    return "text/plain"


@ENDS.row("error-private", 0, PRIVATE, level=Level.OWN, needs=["private"])
async def error_private(context: CheckContext) -> str:
    """The text of an exception that is not meant for clients is not in the answer, neither in its
    body nor in its headers.
    """
    stream = await MappingClient(context).subscribe(context.target.private, 20)
    _, answer = await stream.end()
    verify(answer.is_error, f"{answer}; an error with X-Rsio-Error was due")
    told = f"{answer.headers} {bytes(answer.body)!r}"
    verify(PRIVATE_TEXT not in told, f"{answer}, with the text of the exception: {told}")
    return str(answer.status)


@ENDS.row("error-inside", 0, INSIDE, level=Level.OWN, needs=["failing"])
async def error_inside(context: CheckContext) -> str:
    """No error shows the inside of the server: a traceback, or the name of a class of exceptions
    before its text, as of `ValueError: invalid literal`.
    """
    for answer in await _errors(context):
        found = _INSIDE.search(bytes(answer.body))
        verify(found is None, f"{answer}, with {found and found[0]!r} in its body")
    return "none"


async def _unknown(context: CheckContext) -> list[Answer]:
    """Return the answers to a poll, a requestMore and a cancel of a subscription
    that the target never made, and to a poll of one that was cancelled.
    """
    stream = await MappingClient(context).subscribe(context.target.publisher)
    await stream.cancel()
    cancelled = await stream.poll()
    path, mark, query = stream.path.partition("?")
    # The last characters turned round: a URL of the same form.
    stream.path = f"{path[:-6]}{path[-6:][::-1].swapcase()}0{mark}{query}"
    return [await stream.poll(), await stream.request_more(1), await stream.cancel(), cancelled]


@ENDS.row("unknown", 162, UNKNOWN, level=Level.SHOULD, needs=["publisher"])
async def unknown(context: CheckContext) -> str:
    """A poll, a requestMore and a cancel of a subscription that was never made are answered with
    404, and so is a poll of a cancelled one.
    """
    for answer in await _unknown(context):
        verify(answer.status == 404, f"{answer}; 404 was due")
    return "404"


@ENDS.row("unknown-marked", 167, UNKNOWN_MARKED, level=Level.SHOULD, needs=["publisher"])
async def unknown_marked(context: CheckContext) -> str:
    """These answers have X-Rsio-Error."""
    for answer in await _unknown(context):
        verify(answer.is_error, f"{answer}; X-Rsio-Error was due")
    return "X-Rsio-Error"
