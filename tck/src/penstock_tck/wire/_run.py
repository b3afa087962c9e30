"""Checks a target against every requirement of its protocol, one after the other. Each check opens
new connections and has a deadline.

Rules of this file:

* A check cannot hang. If an expected message does not come within `Target.patience`, the check
  fails and names it. A whole check ends after `ROW_PATIENCE_FACTOR` times that time.
* If the target cannot be reached at all, `ConnectionLost` is raised. A table in which every row has
  failed would hide the reason.
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeAlias

import trio

from penstock.api import ConnectionLost, PenstockError, UsageError
from penstock.spi import Registry, TransportOptions, Url, build_registry, check_permitted, parse_url
from penstock_tck.wire import rsio as io
from penstock_tck.wire._check_context import CheckContext
from penstock_tck.wire._missing_publishers import MissingPublishers, missing_text
from penstock_tck.wire._requirement import Requirement
from penstock_tck.wire._rsio_forms import FORMS, Form
from penstock_tck.wire._target import OFFERS, Target
from penstock_tck.wire._verdict import Failed, NotSupported, Result, Verdict
from penstock_tck.wire._wire_table import DEFAULT, WireTable, table_for, table_named

ROW_PATIENCE_FACTOR: Final = 10
"""A whole check may take this many times `Target.patience`."""

COMPACT: Final = "compact"
"""The name of the encoding that every peer has."""

MakeContext: TypeAlias = Callable[[trio.Nursery], CheckContext]


def requirements(protocol: str) -> Sequence[Requirement]:
    """Return the requirements of a protocol: ``rsio``, ``reactivesocket``, or one of a plugin
    (``http``). Raises UsageError without any.
    """
    return table_named(protocol).rows


async def check_target(  # noqa: PLR0913 (each says one thing of the run, and has a default)
    url: str,
    target: Target | None = None,
    *,
    only: Sequence[str] = (),
    encoding: str | None = None,
    registry: Registry | None = None,
    options: TransportOptions | None = None,
    transports: Collection[str] | None = None,
    table: WireTable | None = None,
    on_result: Callable[[Requirement, Result], object] = lambda _requirement, _result: None,
) -> list[Result]:
    """Check the server at `url` against the requirements of its protocol; return one result per
    requirement, in the order of the table.

    `target` names the publishers that the server has. `only` names the requirements to check;
    if it is empty, all are checked.
    `encoding` is that of RS.io's messages, ``"msgpack"`` or ``"protobuf"``: the transport chooses
    it if it can, or the hellos agree on it. A URL with ``?encoding=`` has chosen it before the
    first byte.
    `transports` are the names of the transports that `url` may use; None permits all. `table` has
    the requirements; None: those for `url`. `on_result` is called after each check.
    Raises UsageError for arguments that cannot be used, and ConnectionLost
    if the server cannot be reached. Checkpoints.
    """
    parsed = parse_url(url)
    check_permitted(parsed, transports)
    if parsed.publisher is not None:
        raise UsageError(
            f"{url!r} names a publisher; give the address alone, and publishers by their options"
        )
    table = table_for(parsed) if table is None else table
    rows = table.rows
    picked = chosen(rows, only)
    form = _form(parsed, encoding)
    target = target or Target()
    registry = build_registry() if registry is None else registry
    if table.connect is None:
        registry.transport(parsed.transport)  # raises UsageError for an unknown one
    elif form is not None:
        raise UsageError(
            f"the messages of {parsed.scheme} have one encoding; leave out {form.name!r}"
        )
    make_context = partial(
        CheckContext,
        parsed,
        target,
        registry,
        options or TransportOptions(),
        form=form,
        connect=table.connect,
    )
    await _require_reachable(make_context)
    publishers = MissingPublishers(target, make_context, table.refusal)
    results = []
    for row in picked:
        result = await _check_needs(row, target, make_context, publishers)
        on_result(row, result)
        results.append(result)
    return results


def chosen(rows: Sequence[Requirement], only: Collection[str]) -> list[Requirement]:
    """Return the requirements that `only` names, all if it names none. Raises UsageError."""
    unknown = set(only) - {row.name for row in rows}
    if unknown:
        raise UsageError(
            f"there is no requirement {', '.join(sorted(unknown))}; there are: "
            f"{', '.join(row.name for row in rows)}"
        )
    return [row for row in rows if not only or row.name in only]


def _form(url: Url, encoding: str | None) -> Form | None:
    """Return the encoding of the run, None for the compact one.
    Raises UsageError for one that the checks do not know.
    """
    name = encoding or url.encoding
    if name is None or name == COMPACT:
        return None
    if url.encoding not in (None, name):
        raise UsageError(
            f"the URL asks for the encoding {url.encoding!r}, and the option for {name!r}; leave "
            "one of them out"
        )
    if (url.dialect or DEFAULT) != DEFAULT:
        raise UsageError(f"the messages of {url.dialect} have one encoding; leave out {name!r}")
    if name not in FORMS:
        raise UsageError(
            f"the checks do not know the encoding {name!r}; they know "
            f"{', '.join((COMPACT, *FORMS))}"
        )
    return FORMS[name]


async def _require_reachable(make_context: MakeContext) -> None:
    """Raise ConnectionLost, before any check, if no connection can be made, and UsageError if
    the server lacks the encoding of the run.
    """
    # raised after the nursery has ended, which would wrap it in an ExceptionGroup.
    error: PenstockError | None = None
    async with trio.open_nursery() as nursery:
        context = make_context(nursery)
        try:
            await _connect_once(context)
        except Failed as failed:
            error = ConnectionLost(str(failed))
        except PenstockError as raised:
            error = raised
        finally:
            with trio.move_on_after(context.target.patience, shield=True):
                await context.close()
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error


async def _connect_once(context: CheckContext) -> None:
    form = context.form
    if form is None:
        await context.connect()
        return
    peer = await context.connect_rsio()
    await peer.wait_until(lambda: peer.of_type(io.SERVER_HELLO) or peer.ending, "a serverHello")
    if not peer.outgoing.is_changed and form.id not in peer.listed:
        raise UsageError(
            f"the server does not have the encoding {form.name!r}: its hello lacks the id {form.id}"
        )


async def _check_needs(
    row: Requirement, target: Target, make_context: MakeContext, publishers: MissingPublishers
) -> Result:
    declared = [name for name in row.needs if not getattr(target, name)]
    if declared:
        lacking = "; ".join(f"the target has no {name!r}: {OFFERS[name]}" for name in declared)
        return Result(name=row.name, verdict=Verdict.NOT_SUPPORTED, seen=lacking)
    # Without the check if it is known to lack one: each wait for it would take `patience`.
    result = None if publishers.known(row.needs) else await check_row(row, target, make_context)
    if result is not None and result.verdict is not Verdict.FAIL:
        return result
    missing = await publishers.find(row.needs)
    if result is not None and not missing:
        return result
    return Result(
        name=row.name,
        verdict=Verdict.NOT_SUPPORTED,
        seen=missing_text(target, missing),
        lacks=tuple(missing),
    )


async def check_row(row: Requirement, target: Target, make_context: MakeContext) -> Result:
    """Run the check of one requirement, with its deadline, and close what it has opened."""
    seconds = ROW_PATIENCE_FACTOR * target.patience
    # The result if `move_on_after` cancels the check. A single wait ends earlier;
    # many waits may add up to this time.
    verdict, seen = Verdict.FAIL, f"the check did not end within {seconds} s"
    async with trio.open_nursery() as nursery:
        context = make_context(nursery)
        with trio.move_on_after(seconds):
            verdict, seen = await _run_check(row, context)
        with trio.move_on_after(target.patience, shield=True):
            await context.close()
        nursery.cancel_scope.cancel()
    return Result(name=row.name, verdict=verdict, seen=seen)


async def _run_check(row: Requirement, context: CheckContext) -> tuple[Verdict, str]:
    try:
        return Verdict.PASS, await row.check(context)
    except Failed as failed:
        return Verdict.FAIL, str(failed)
    except NotSupported as lacking:
        return Verdict.NOT_SUPPORTED, str(lacking)
    except PenstockError as error:  # raised by the transport: the target broke the connection
        return Verdict.FAIL, str(error)
