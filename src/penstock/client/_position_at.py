"""The question for the position of a time in a published log, and its answer."""

import json

from penstock.api import ProtocolError, Time, UsageError, seconds_of, shown


def position_question(name: str, time: Time) -> str:
    """Return the name to ask for. Raises UsageError for a value that is not a time."""
    # Nine digits after the point: more than a float of the seconds since 1970 has.
    words = f"positions&at={seconds_of(time):.9f}"
    return f"{name}{'&' if '?' in name else '?'}{words}"


def position_in(answer: bytes, name: str) -> int:
    """Return the position. Raises UsageError for the answer about several partitions, and
    ProtocolError for one that cannot be read.
    """
    try:
        found = {partition: int(each["at"]) for partition, each in json.loads(answer).items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ProtocolError(
            f"the peer sent {shown(answer)} as the position of a time in {shown(name)}; a penstock "
            "that knows no times of logs has to be updated"
        ) from None
    if len(found) != 1:
        raise UsageError(
            f"{shown(name)} has the partitions {shown(list(found))}, and each has a position of "
            f"its own: name one, as in {name}{'&' if '?' in name else '?'}"
            f"partition={next(iter(found), '0')}"
        )
    return next(iter(found.values()))
