"""Say what a service offers, in full: each publisher and request with its parameters, the fields of
its types, the serializer, limits, and a command to try.

The service must say that it describes itself: penstock.Service(describe=True). It tells what this
client may open, so give the same credentials as for cat. NAME is one publisher or request, as a
pattern (ticks/{symbol}) or as a name that fits one (ticks/EURUSD); without it all are told.
penstock ls URL prints a line for each.
"""

import argparse
import importlib
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from penstock.api import UsageError
from penstock.cli._contexts import separator_of
from penstock.cli._credentials import credentials_arguments
from penstock.cli._description import fits, read_description, service_url
from penstock.cli._format import TEXTS
from penstock.cli._printable import printable
from penstock.cli._schema_example import example_of, fields_of
from penstock.cli._tls import tls_arguments
from penstock.cli._transports import transports_argument
from penstock.spi import Url, asyncapi_document

LABEL: Final = 12
"""Columns of the words at the beginning of a line."""

MOST_NAMES: Final = 20
"""Names that an error tells."""


def arguments(command: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    command.add_argument(
        "url",
        metavar="URL",
        help="the server: tcp://127.0.0.1:7000, reactivesocket+tcp://…, unix:///run/p.sock, …",
    )
    command.add_argument(
        "name", metavar="NAME", nargs="?", help="one publisher or request (default: all)"
    )
    form = command.add_mutually_exclusive_group()
    form.add_argument(
        "--json",
        action="store_true",
        help="print one object of JSON, with the schemas of the types",
    )
    form.add_argument(
        "--asyncapi", action="store_true", help="print a document of AsyncAPI 3, as JSON"
    )
    form.add_argument(
        "--python", action="store_true", help="print the module of a typed client in Python"
    )
    form.add_argument(
        "--typescript", action="store_true", help="print the module of a typed client in TypeScript"
    )
    command.add_argument(
        "--client",
        choices=["trio", "asyncio", "blocking"],
        default="trio",
        help="the client of penstock that --python is for (default: trio)",
    )
    credentials_arguments(command)
    transports_argument(command)
    tls_arguments(command, listens=False)


async def run(options: argparse.Namespace) -> int:
    """Print the description."""
    url = service_url(options.url)
    entries = chosen(await read_description(url, options), options.name)
    if options.json:
        # ASCII: a terminal shows the text of a server, and does not obey control characters in it.
        document: Mapping[str, Any] = {"url": str(url), "entries": entries}
        sys.stdout.write(f"{json.dumps(document, indent=1)}\n")
    elif options.asyncapi:
        sys.stdout.write(f"{json.dumps(asyncapi_of(entries, url), indent=1)}\n")
    elif options.python or options.typescript:
        write_client(entries, None if options.typescript else options.client)
    else:
        texts = ("".join(f"{line}\n" for line in lines_of(entry, url)) for entry in entries)
        sys.stdout.write("\n".join(texts))
    return 0


def chosen(entries: Sequence[Mapping[str, Any]], name: str | None) -> list[Mapping[str, Any]]:
    """Return the entries that a name means: that of the same name, or those that it fits. Raises
    UsageError if there is none.
    """
    if name is None:
        return list(entries)
    bare = name.partition("?")[0]
    same = [entry for entry in entries if entry["name"] == bare]
    found = same or [entry for entry in entries if fits(entry["name"], bare)]
    if not found:
        names = [entry["name"] for entry in entries]
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        raise UsageError(
            f"the server describes no {name!r} to this client; there are "
            f"{', '.join(names[:MOST_NAMES])}{more}"
        )
    return found


def write_client(entries: Sequence[Mapping[str, Any]], client: str | None) -> None:
    """Print a typed client: for a client of penstock in Python, or in TypeScript if that is None.
    What could not be typed is told on standard error.
    """
    # Imported here: no other form of the command reads the types.
    contracts = importlib.import_module("penstock.cli._contract")
    if client is None:
        writer = importlib.import_module("penstock.cli._contract_typescript")
        text, notes = writer.typescript_client(contracts.contract_of(entries))
    else:
        writer = importlib.import_module("penstock.cli._contract_python")
        text, notes = writer.python_client(contracts.contract_of(entries), client)
    sys.stdout.write(text)
    for note in notes:
        sys.stderr.write(f"{printable(note)}\n")


def asyncapi_of(entries: Sequence[Mapping[str, Any]], url: Url) -> dict[str, Any]:
    """Return the document of AsyncAPI for a service at `url`."""
    protocol = url.dialect or (url.transport if url.transport in ("http", "https") else "rsio")
    host = url.host or "localhost"
    if url.port is not None:
        host = f"[{host}]:{url.port}" if ":" in host else f"{host}:{url.port}"
    # `elements` and `answer` may be missing: then nothing is known of them.
    whole = ({"elements": "", "answer": "", "serializer": "", **entry} for entry in entries)
    return asyncapi_document(whole, host=host, path=url.path, protocol=protocol)


# --- as lines of text


def lines_of(entry: Mapping[str, Any], url: Url) -> Iterator[str]:
    """Yield the lines that tell of a publisher or a request, safe to print."""
    yield printable(f"{entry['name']}  ({entry['kind']})")
    if entry["summary"]:
        yield printable(f"  {entry['summary']}")
    label = "parameters"
    for each in entry["parameters"]:
        where = "in the name" if each.get("in") == "name" else "behind ?"
        needed = "" if each.get("in") == "name" or each.get("required") else ", may be left out"
        yield _line(label, f"{each.get('name')}: {each.get('type')}", f"{where}{needed}")
        label = ""
    serializer = entry.get("serializer")
    if "payload" in entry:
        needed = "" if entry.get("needs_payload") else "may be left out"
        yield _line("payload", _typed(entry["payload"], serializer), needed)
        yield from _fields(entry.get("payload_schema"))
    gives = "answer" if entry["kind"] == "request" else "elements"
    yield _line(gives, _typed(entry.get(gives), serializer))
    yield from _fields(entry.get(f"{gives}_schema"))
    label = "limits"
    for limit in _limits(entry):
        yield _line(label, limit)
        label = ""
    yield _line("example", example_command(entry, url))


def _line(label: str, text: str, remark: str = "") -> str:
    return printable(f"  {label:<{LABEL}}{text}{f'  ({remark})' if remark else ''}").rstrip()


def _typed(kind: object, serializer: object) -> str:
    """Return a type with the format that it travels in, if that is another word."""
    if not kind:
        return str(serializer or "unknown")
    return f"{kind}, as {serializer}" if serializer and serializer != kind else str(kind)


def _fields(schema: object) -> Iterator[str]:
    for name, kind, is_required in fields_of(schema):
        yield _line("", f"  {name}: {kind}", "" if is_required else "may be left out")


def _limits(entry: Mapping[str, Any]) -> Iterator[str]:
    size = entry.get("element_size")
    if isinstance(size, int) and size:
        yield f"each element has {size:,} bytes"
    if entry.get("positions"):
        yield "a log: --start and --stop take a position, earliest, latest or a time"


def example_command(entry: Mapping[str, Any], url: Url) -> str:
    """Return a command that opens the publisher or sends the request."""
    name = entry["name"]
    query = []
    for each in entry["parameters"]:
        value = _VALUES.get(str(each.get("type")), str(each.get("name")).upper())
        if each.get("in") == "name":
            name = name.replace(f"{{{each.get('name')}}}", value)
        elif each.get("required"):
            query.append(f"{each.get('name')}={value}")
    whole = f"{name}?{'&'.join(query)}" if query else name
    target = f"{str(url.address).rstrip('/')}{separator_of(str(url.address))}{_in_url(whole)}"
    if "channel" in entry:
        return f"penstock request --channel {shlex.quote(target)} < FILE"
    payload = f" {shlex.quote(_payload_text(entry))}" if "payload" in entry else ""
    if entry["kind"] != "request":
        if entry.get("needs_payload"):
            return f"penstock request --stream {shlex.quote(target)}{payload}"
        return f"penstock cat {shlex.quote(target)}"
    return f"penstock request {shlex.quote(target)}{payload}"


def _payload_text(entry: Mapping[str, Any]) -> str:
    if (schema := entry.get("payload_schema")) is None:
        return "PAYLOAD"
    example = example_of(schema)
    return example if isinstance(example, str) and _is_text(entry) else json.dumps(example)


def _is_text(entry: Mapping[str, Any]) -> bool:
    """Return whether a payload is a text that travels unchanged. Other values whose JSON is a text,
    a date for example, travel as JSON.
    """
    serializer = entry.get("serializer")
    if serializer in (None, "", "text") or (
        # That of a publisher is the one of its elements: the payload has its own.
        entry["kind"] != "request" and serializer in TEXTS
    ):
        return str(entry["payload"]) in ("str", "str | None", "Optional[str]")
    return False


def _in_url(name: str) -> str:
    """Return a name as a URL has it: percent-encoded are a character that has a meaning there, and
    one that a line cannot show.
    """
    return "".join(
        each if each.isprintable() and each not in "%#" else quote(each, safe="", errors="replace")
        for each in name
    )


_VALUES: Final = {"int": "1", "float": "1.0", "bool": "true", "date": "2026-07-01"}
"""A value of a parameter of this type. That of another type is its name in capitals."""
