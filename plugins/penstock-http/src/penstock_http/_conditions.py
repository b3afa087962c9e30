"""The headers and arguments of a request that the mapping gives a meaning,
read by plain functions.
"""

import re
from typing import Final

from penstock.api import UNBOUNDED
from penstock_http._messages import (
    FIXED_SIZE,
    LENGTH_PREFIXED,
    Malformed,
    Request,
)

CONDITIONAL: Final = frozenset(
    {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"}
)
_NUMBER: Final = re.compile(r"[0-9]{1,19}", re.ASCII)
_WAIT: Final = re.compile(r"\s*wait\s*=\s*\"?([0-9]{1,6})\"?\s*", re.ASCII | re.IGNORECASE)


def is_conditional(request: Request) -> bool:
    """Return whether a request has an If-* header: the mapping answers it with 412."""
    return not CONDITIONAL.isdisjoint(request.headers)


def number(text: str, what: str, *, least: int = 0) -> int:
    """Return a decimal number from `least` to 2^63-1. Raises Malformed for anything else."""
    value = int(text) if _NUMBER.fullmatch(text) else -1
    if not least <= value <= UNBOUNDED:
        raise Malformed(f"{what} is no decimal number from {least} to {UNBOUNDED}")
    return value


def demand_of(arguments: list[tuple[str, str]], name: str = "request", *, least: int = 0) -> int:
    """Return the argument `name` of a query, 0 if it is missing.
    Raises Malformed if it is wrong, or given twice.
    """
    given: str | None = None
    for key, value in arguments:
        if key == name:
            if given is not None:
                raise Malformed(f"the query has {name!r} more than once")
            given = value
    return 0 if given is None else number(given, f"the argument {name!r}", least=least)


def header_number(request: Request, name: str) -> int | None:
    """Return the number that a header has, or None if the client does not send it. Raises Malformed
    if it is wrong, or there twice.
    """
    values = request.headers.get(name.lower())
    if values is None:
        return None
    if len(values) > 1:
        raise Malformed(f"the header {name} is there more than once")
    return number(values[0].strip(), f"the header {name}")


def accepts(request: Request, coding: str) -> bool:
    """Return whether the client reads a coding.

    A page cannot set Accept-Encoding, so a coding that the header does not mention is read, unless
    the header permits nothing but ``identity``. A client that reads no batch requests one element
    at a time, or says so.
    """
    header = request.header("accept-encoding")
    weights = {} if header is None else _weights(header)
    weight = weights.get(coding.lower())
    if weight is not None:
        return weight > 0
    if not weights:
        return True
    return any(weight > 0 for name, weight in weights.items() if name != "identity")


def names_fixed_size(request: Request) -> bool:
    """Return whether the client asks for the coding of elements of one size:
    without that, all batches have one coding.
    """
    return _names(request, FIXED_SIZE)


def names_batches(request: Request) -> bool:
    """Return whether the client asks for the coding of batches: an answer that it has not asked
    for should need no knowledge of it.
    """
    return _names(request, LENGTH_PREFIXED)


def _names(request: Request, coding: str) -> bool:
    return _weights(request.header("accept-encoding") or "").get(coding.lower(), 0.0) > 0


def reads_batches(request: Request) -> bool:
    """Return whether the client reads batches of any sizes."""
    return accepts(request, LENGTH_PREFIXED)


def wait_of(request: Request, most: float) -> float:
    """Return how many seconds a poll may be held:
    `most`, or less if the client prefers that (RFC 7240).
    """
    for preference in (request.header("prefer") or "").split(","):
        found = _WAIT.fullmatch(preference.partition(";")[0])
        if found:
            return min(most, float(found[1]))
    return most


def _weights(header: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in header.split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip() == "q":
                weight = _weight(value)
        if name:
            weights[name] = weight
    return weights


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
