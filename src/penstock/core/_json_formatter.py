"""Lines of a log as JSON, one object each.

Rules of this file:

* A line of the access log becomes an object with its fields. Each other line has its text as
  ``message``, and the traceback as ``traceback``.
* The output is ASCII: characters that would control a terminal are escapes of JSON.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Final

_VALUE: Final = r'(?:"(?:[^"\\]|\\.)*"|[^ "]+)'
_LINE: Final = re.compile(
    rf"(?P<event>[a-z]+)(?P<fields>(?: [a-z]+={_VALUE})+)"
    r"(?: \((?P<left_out>[\d,]+) lines like this one were left out before it\))?"
)
_FIELD: Final = re.compile(rf" ([a-z]+)=({_VALUE})")
_NUMBER: Final = re.compile(r"-?\d{1,18}(?:\.\d{1,9})?")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_LETTERS: Final = {"n": "\n", "r": "\r", "t": "\t"}


class JsonFormatter(logging.Formatter):
    """Formats the records of penstock's loggers as lines of JSON: ``time`` in UTC, ``level``,
    ``logger``, and the fields of a line of the access log, or ``message``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line: dict[str, object] = {
            "time": _time_of(record),
            "level": record.levelname,
            "logger": record.name,
        }
        text = record.getMessage()
        line |= _fields_of(text) or {"message": text}
        # The text that bounds a traceback, if the record has it.
        traceback = record.exc_text or (
            self.formatException(record.exc_info) if record.exc_info else ""
        )
        if traceback:
            line["traceback"] = traceback
        return json.dumps(line, default=str)


def _time_of(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields_of(text: str) -> dict[str, object] | None:
    """Return the fields of a line of the access log; None for another line."""
    found = _LINE.fullmatch(text)
    if found is None:
        return None
    fields: dict[str, object] = {"event": found["event"]}
    fields |= {name: _value_of(value) for name, value in _FIELD.findall(found["fields"])}
    if found["left_out"]:
        fields["left_out"] = int(found["left_out"].replace(",", ""))
    return fields


def _value_of(text: str) -> str | float | int:
    if text.startswith('"'):
        return _ESCAPE.sub(_character_of, text[1:-1])
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def _character_of(escape: re.Match[str]) -> str:
    name = escape[1]
    if len(name) == 1:
        return _LETTERS.get(name, name)
    number = int(name[1:], 16)
    return chr(number) if number < 0x110000 else escape[0]
