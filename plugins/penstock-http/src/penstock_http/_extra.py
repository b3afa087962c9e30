"""The values of `TransportOptions.extra`, read by plain functions: texts, origins of pages,
seconds, and names that are not known.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from penstock.api import UsageError

_ORIGIN: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:\[[0-9a-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?", re.ASCII
)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


def check_names(extra: Mapping[str, object], prefix: str, known: Iterable[str]) -> None:
    """Raise UsageError for an option that begins with `prefix` and is not known."""
    for name in extra:
        if name.startswith(prefix) and name not in known:
            raise UsageError(f"the option {name!r} is not known; there are {', '.join(known)}")


def normal_origin(text: str) -> str:
    """Return an origin as browsers write it: in small letters, without the default port."""
    origin = text.strip().lower()
    return origin.removesuffix(_DEFAULT_PORTS.get(origin.partition("://")[0], "-"))


def is_origin(text: str) -> bool:
    """Return whether `text` is a scheme and a host, with or without a port, and nothing else."""
    return _ORIGIN.fullmatch(text) is not None


def origins_of(extra: Mapping[str, object], name: str) -> frozenset[str]:
    """Return the origins of pages that an option names.
    Raises UsageError for a text that is not an origin.
    """
    origins = frozenset(map(normal_origin, texts_of(extra, name)))
    for origin in origins:
        if not is_origin(origin):
            raise UsageError(
                f"{name} has {origin!r}, which is no origin; write for example https://app.example "
                "or http://localhost:8000"
            )
    return origins


def texts_of(extra: Mapping[str, object], name: str) -> list[str]:
    """Return the values of an option:
    a text with commas, as on the command line, or several texts.
    """
    value = extra.get(name, ())
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable):
        values = list(value)
        if all(isinstance(each, str) for each in values):
            return values
    raise UsageError(f"{name}={value!r}; give a text, or several")


def seconds_of(extra: Mapping[str, object], name: str, default: float) -> float:
    """Return the seconds that an option gives, or `default`.
    Raises UsageError unless they are more than 0.
    """
    value = extra.get(name, default)
    try:
        seconds = float(value)  # type: ignore[arg-type]  # anything else raises TypeError
    except (TypeError, ValueError):
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{name}={value!r}; give seconds, more than 0")
    return seconds
