"""What breaks for the clients of a service when its contract changes.

Rules of this file:

* A value goes from a writer to a reader. Elements and answers are written by the new service and
  read by clients of the old one; payloads and parameters the other way round. Something breaks if
  the reader refuses a value that the writer may send.
* A reader skips the fields that it does not know, unless its class is closed. An integer is read
  as a float. A field that may be missing breaks a reader that needs it.
* What is not known is not trusted: `ANY` as the writer breaks every reader but `ANY`.
* Both contracts come from peers: a pair of types is compared once, and `MOST` sentences are told.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import attrs

from penstock.cli._contract import (
    ANY,
    RAW,
    TEXT,
    Choice,
    Contract,
    DictOf,
    ListOf,
    Offer,
    OneOf,
    Parameter,
    Record,
    Scalar,
    TupleOf,
    Type,
)

MOST: Final = 1_000
"""Things that break, of one offer. More are not told."""

_LOWER: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_UPPER: Final = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


@attrs.frozen
class Break:
    """One thing that breaks."""

    name: str
    """The pattern of the publisher or the request in the old contract."""
    rule: str
    """A word for programs; the documentation has a table of them."""
    what: str
    """A sentence for a person."""


def breaks_of(old: Contract, new: Contract) -> list[Break]:
    """Return what breaks, by name."""
    offers = {_shape(each): each for each in new.offers}
    found: list[Break] = []
    for offer in old.offers:
        now = offers.get(_shape(offer))
        if now is None:
            what = "request" if offer.is_request else "publisher"
            found.append(Break(offer.name, "removed", f"the {what} is not offered any more"))
        else:
            found += islice(_Comparison(offer, now).breaks(), MOST)
    return found


def _shape(offer: Offer) -> tuple[str | None, ...]:
    """Return the name without those of its parameters, which no client sends."""
    return tuple(each if isinstance(each, str) else None for each in offer.segments)


class _Comparison:
    def __init__(self, old: Offer, new: Offer) -> None:
        self._old = old
        self._new = new

    def breaks(self) -> Iterator[Break]:
        old, new = self._old, self._new
        if old.is_request != new.is_request:
            was, now = ("request", "publisher") if old.is_request else ("publisher", "request")
            yield self._broken("kind", f"it was a {was}, and is a {now}")
            return
        if old.takes_channel != new.takes_channel:
            yield self._broken(
                "channel", f"it takes {'no' if old.takes_channel else 'a'} channel of elements now"
            )
        if old.has_positions and not new.has_positions:
            yield self._broken("positions", "its elements have no positions any more")
        if (was := _format(old)) != (now := _format(new)):
            yield self._broken("serializer", f"its format was {was}, and is {now}")
            return
        yield from self._parameters()
        yield from self._payload()
        where = "its answer" if old.is_request else "its elements"
        yield from self._types("value", new.value, old.value, where)

    def _broken(self, rule: str, what: str) -> Break:
        return Break(self._old.name, rule, what)

    def _types(self, rule: str, writer: Type, reader: Type, where: str) -> Iterator[Break]:
        for why in Reading().problems(writer, reader, where):
            yield self._broken(rule, why)

    def _payload(self) -> Iterator[Break]:
        old, new = self._old.payload, self._new.payload
        if new is not None and self._new.needs_payload and not self._old.needs_payload:
            yield self._broken("payload-required", "it needs a payload now")
        if old is not None and new is None:
            yield self._broken("payload-removed", "it takes no payload any more")
        if old is not None and new is not None:
            yield from self._types("payload", old, new, "its payload")

    def _parameters(self) -> Iterator[Break]:
        places = zip(self._old.segments, self._new.segments, strict=True)
        for was, now in places:
            if isinstance(was, Parameter) and isinstance(now, Parameter):
                yield from self._parameter(was, now)
        old = {each.name: each for each in self._old.query}
        new = {each.name: each for each in self._new.query}
        for name, was in old.items():
            if name not in new:
                yield self._broken("parameter-removed", f"it takes no parameter {name!r} any more")
            else:
                yield from self._parameter(was, new[name])
        for name, now in new.items():
            if now.is_required and not (name in old and old[name].is_required):
                yield self._broken("parameter-required", f"it needs the parameter {name!r} now")

    def _parameter(self, was: Parameter, now: Parameter) -> Iterator[Break]:
        # Parameters are texts: a service that takes any text takes what a client has sent so far,
        # and one that takes a list takes a single one.
        written, read = was.type, now.type
        if isinstance(written, ListOf) and not isinstance(read, ListOf):
            yield self._broken("parameter", f"its parameter {was.name!r} is given once now")
            return
        if isinstance(written, ListOf):
            written = written.item
        if isinstance(read, ListOf):
            read = read.item
        if read != TEXT:
            yield from self._types("parameter", written, read, f"its parameter {was.name!r}")


def _format(offer: Offer) -> str:
    """Return how elements or answers travel."""
    if offer.serializer:
        return offer.serializer
    if offer.value == RAW:
        return "bytes"
    return "text" if offer.value == TEXT else "json"


class Reading:
    """Whether a reader of one type reads all that a writer of another may send."""

    def __init__(self, verdicts: dict[tuple[Type, Type], bool] | None = None) -> None:
        self._seen: set[tuple[Type, Type]] = set()
        self._verdicts = {} if verdicts is None else verdicts

    def problems(self, writer: Type, reader: Type, where: str) -> Iterator[str]:
        """Yield a sentence for each value that the reader may refuse."""
        if reader == ANY or writer is reader:
            return
        if isinstance(writer, OneOf):
            for each in writer.members:
                yield from self.problems(each, reader, where)
        elif isinstance(reader, OneOf):
            yield from self._member(writer, reader, where)
        else:
            yield from self._pair(writer, reader, where)

    def _member(self, writer: Type, reader: OneOf, where: str) -> Iterator[str]:
        """A union reads what one of its members reads."""
        if any(self._reads(writer, each) for each in reader.members):
            return
        # What is wrong with the member that is meant says more than that none fits.
        alike = [each for each in reader.members if _is_alike(writer, each, reader.tag)]
        if len(alike) == 1:
            yield from self.problems(writer, alike[0], where)
        else:
            yield _differs(writer, reader, where)

    def _reads(self, writer: Type, reader: Type) -> bool:
        """Return whether there are no problems. Each pair is decided once: unions inside unions
        would take a time without bound.
        """
        pair = writer, reader
        if pair not in self._verdicts:
            before = set(self._verdicts)
            # A class that contains itself is read if all else of it is.
            self._verdicts[pair] = True
            inside = Reading(self._verdicts)
            if any(True for _ in inside.problems(writer, reader, "")):
                # A refusal stands. What was read on that assumption is decided again.
                for each in [each for each, reads in self._verdicts.items() if reads]:
                    if each not in before:
                        del self._verdicts[each]
                self._verdicts[pair] = False
        return self._verdicts[pair]

    def _pair(self, writer: Type, reader: Type, where: str) -> Iterator[str]:
        compare = self._comparisons().get((type(writer), type(reader)))
        if compare is None:
            yield _differs(writer, reader, where)
        else:
            yield from compare(writer, reader, where)

    def _comparisons(
        self,
    ) -> Mapping[tuple[type, type], Callable[[Any, Any, str], Iterator[str]]]:
        return {
            (Scalar, Scalar): _scalars,
            (Choice, Choice): _choices,
            (Choice, Scalar): _choice_as_scalar,
            (ListOf, ListOf): self._lists,
            (TupleOf, TupleOf): self._tuples,
            (TupleOf, ListOf): self._tuple_as_list,
            (DictOf, DictOf): self._dicts,
            (Record, Record): self._records,
            (Record, DictOf): self._record_as_dict,
        }

    def _lists(self, writer: ListOf, reader: ListOf, where: str) -> Iterator[str]:
        yield from _bounds(writer.bounds, reader.bounds, where)
        yield from self.problems(writer.item, reader.item, f"a part of {where}")

    def _tuples(self, writer: TupleOf, reader: TupleOf, where: str) -> Iterator[str]:
        if writer.least < reader.least or len(writer.items) > len(reader.items):
            yield (
                f"{where} may have {_span(writer.least, len(writer.items))} parts, and "
                f"{_span(reader.least, len(reader.items))} are read"
            )
        for number, (written, read) in enumerate(
            zip(writer.items, reader.items, strict=False), start=1
        ):
            yield from self.problems(written, read, f"part {number} of {where}")

    def _tuple_as_list(self, writer: TupleOf, reader: ListOf, where: str) -> Iterator[str]:
        for number, each in enumerate(writer.items, start=1):
            yield from self.problems(each, reader.item, f"part {number} of {where}")

    def _dicts(self, writer: DictOf, reader: DictOf, where: str) -> Iterator[str]:
        yield from self.problems(writer.key, reader.key, f"a key of {where}")
        yield from self.problems(writer.value, reader.value, f"a value of {where}")

    def _record_as_dict(self, writer: Record, reader: DictOf, where: str) -> Iterator[str]:
        if reader.key != TEXT:
            yield _differs(writer, reader, where)
        for field in writer.fields:
            yield from self.problems(field.type, reader.value, _field(where, field.key))

    def _records(self, writer: Record, reader: Record, where: str) -> Iterator[str]:
        # A class that contains itself: the pair is being compared already.
        if (writer, reader) in self._seen:
            return
        self._seen.add((writer, reader))
        written = {field.key: field for field in writer.fields}
        read = {field.key: field for field in reader.fields}
        for key, field in read.items():
            sent = written.get(key)
            if sent is None and field.is_required:
                yield f"{_field(where, key)} is needed, and is not sent"
            elif sent is not None:
                if field.is_required and not sent.is_required:
                    yield f"{_field(where, key)} is needed, and may be missing"
                yield from self.problems(sent.type, field.type, _field(where, key))
        if reader.is_closed:
            for key in written.keys() - read.keys():
                yield f"{_field(where, key)} is sent, and refused: its class takes no other fields"


def _scalars(writer: Scalar, reader: Scalar, where: str) -> Iterator[str]:
    if not _is_read_as(writer.kind, reader.kind):
        yield _differs(writer, reader, where)
    else:
        yield from _bounds(writer.bounds, reader.bounds, where)


TEXTS: Final = frozenset(
    {"bytes", "datetime", "date", "time", "timedelta", "Decimal", "UUID", "str"}
)
"""The scalars that are texts in JSON."""


def _is_read_as(writer: str, reader: str) -> bool:
    return (
        writer == reader
        or (writer == "int" and reader == "float")
        or (writer in TEXTS and reader == "str")
    )


def _choices(writer: Choice, reader: Choice, where: str) -> Iterator[str]:
    known = {(type(each), each) for each in reader.values}
    more = [each for each in writer.values if (type(each), each) not in known]
    if more:
        yield f"{where} may be {_listed(more)}, and {_listed(reader.values)} are read"


def _choice_as_scalar(writer: Choice, reader: Scalar, where: str) -> Iterator[str]:
    kinds = {"str" if isinstance(each, str) else "int" for each in writer.values}
    if reader.bounds or not all(_is_read_as(each, reader.kind) for each in kinds):
        yield _differs(writer, reader, where)


def _bounds(
    writer: tuple[tuple[str, Any], ...], reader: tuple[tuple[str, Any], ...], where: str
) -> Iterator[str]:
    sent = dict(writer)
    for word, bound in reader:
        has = sent.get(word)
        is_within = (
            has == bound
            or (word in _LOWER and _is_number(has, bound) and has > bound)
            or (word in _UPPER and _is_number(has, bound) and has < bound)
        )
        if not is_within:
            now = "no such bound" if has is None else f"{word} {has!r}"
            yield f"{where} is read within {word} {bound!r}, and is sent within {now}"


def _is_number(*values: Any) -> bool:
    return all(isinstance(each, int | float) for each in values)


def _is_alike(writer: Type, reader: Type, tag: str) -> bool:
    """Return whether the two are meant to be one: of one kind, and of one tag if they have any."""
    if isinstance(writer, Record) and isinstance(reader, Record):
        if not tag:
            return True
        tags = [
            next((field.type for field in each.fields if field.key == tag), None)
            for each in (writer, reader)
        ]
        return tags[0] == tags[1]
    if isinstance(writer, Scalar) and isinstance(reader, Scalar):
        return writer.kind == reader.kind
    return type(writer) is type(reader)


def name_of(kind: Type) -> str:
    """Return a type in words."""
    if isinstance(kind, Record):
        return kind.title
    if isinstance(kind, Choice):
        return _listed(kind.values)
    if isinstance(kind, OneOf):
        return " or ".join(map(name_of, kind.members))
    if isinstance(kind, Scalar):
        return {"any": "anything", "raw": "bytes", "null": "null"}.get(kind.kind, kind.kind)
    return {ListOf: "a list", TupleOf: "a list of fixed length"}.get(type(kind), "an object")


def _differs(writer: Type, reader: Type, where: str) -> str:
    return f"{where} may be {name_of(writer)}, and {name_of(reader)} is read"


def _field(where: str, key: str) -> str:
    return f"the field {key!r} of {where}"


def _listed(values: Any) -> str:
    shown = ", ".join(map(repr, values[:10]))
    return f"{shown} and {len(values) - 10} more" if len(values) > 10 else shown


def _span(least: int, most: int) -> str:
    return str(most) if least == most else f"{least} to {most}"
