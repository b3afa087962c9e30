"""The URL of a publisher, parsed by a plain function into a frozen record.

::

    tcp://127.0.0.1:7000/ticks/EURUSD         everything after the authority is the publisher's name
    unix:///run/p.sock#ticks/EURUSD           the path belongs to the transport, so the name follows a '#'
    exec:python3 "my server.py"#ticks         the same; the command is split as a shell would, without a shell
    reactivesocket+tcp://127.0.0.1:7000       a dialect before the '+', the transport after it
    tcp://127.0.0.1:7000?encoding=msgpack#ticks   the encoding of both directions, at the end of the path

Rules of this file:

* With a '#', the path belongs to the transport and the name follows the '#'. Without a '#', and
  with an authority, the path is the name.
* In a URL without '//', quotes protect a '#', so that a command may contain one.
* A name is percent-decoded, because it is opaque text. A path stays as written, because each
  transport interprets it differently.
"""

import re
import shlex
from collections.abc import Collection
from typing import Final
from urllib.parse import quote, unquote

import attrs

from penstock.api import UsageError, shown

_SCHEME: Final = re.compile(
    r"(?:(?P<dialect>[a-z][a-z0-9.-]*)\+)?(?P<transport>[a-z][a-z0-9.-]*)", re.ASCII
)
_AUTHORITY: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|(?P<host>[^\x00-\x20\x7f:\[\]@]*))(?::(?P<port>[0-9]{0,5}))?",
    re.ASCII,
)
# Only at the end of a path without a name: after a name, "?encoding=…" is a parameter of the
# publisher.
_ENCODING: Final = re.compile(
    r"(?P<path>.*)\?encoding=(?P<encoding>[a-z][a-z0-9.-]*)", re.ASCII | re.DOTALL
)
_UNESCAPED_IN_NAMES: Final = "/?=&:@!$'()*,;+~"
_HIGHEST_PORT: Final = 65_535


@attrs.frozen(kw_only=True)
class Url:
    """A parsed URL. `parse_url` makes one; `str` returns the text of an equal one."""

    transport: str
    """The scheme of the transport, in lower case: ``tcp``."""

    dialect: str | None = None
    """The protocol that the URL asks for (before the '+'), or None for the default."""

    host: str | None = None
    """The host without brackets; empty as in ``unix:///path``; None if the URL has no '//'."""

    port: int | None = None
    """The port, or None if the URL names no port."""

    path: str = ""
    """The transport's part after the authority, as written:
    a file, a command, a resource on a host.
    """

    encoding: str | None = None
    """The encoding of the protocol's messages (``?encoding=msgpack`` behind the path),
    or None for the protocol's own.
    """

    publisher: str | None = None
    """The publisher's name, percent-decoded, or None if the URL names no publisher."""

    @property
    def scheme(self) -> str:
        """The whole scheme, the dialect included: ``reactivesocket+tcp``."""
        return self.transport if self.dialect is None else f"{self.dialect}+{self.transport}"

    @property
    def address(self) -> "Url":
        """The same URL without the publisher's name."""
        return attrs.evolve(self, publisher=None)

    def at(self, host: str, port: int) -> "Url":
        """Return the same URL with this host and port. A listener uses it to report the port
        that the system has chosen.
        """
        return attrs.evolve(self, host=host, port=port)

    def command(self) -> tuple[str, ...]:
        """Return the path as a command, split as a shell would, without a shell. Raises
        UsageError if the path is empty.
        """
        if self.host is not None:
            raise UsageError(
                f"{self.address} has '//' before its command; write for example "
                f"{self.scheme}:python3 server.py"
            )
        try:
            words = tuple(shlex.split(self.path))
        except ValueError as error:
            raise UsageError(
                f"the command {self.path!r} cannot be split into words: {error}"
            ) from None
        if not words:
            raise UsageError(
                f"'{self.scheme}:' lacks a command; write for example {self.scheme}:python3 "
                "server.py"
            )
        if any("\0" in word for word in words):
            raise UsageError(
                f"the command {self.path!r} contains a NUL character, which no program can be given"
            )
        return words

    def file(self) -> str:
        """Return the path as the name of a file, percent-decoded. Raises UsageError if the path
        is empty, or if the URL has a host.
        """
        if self.host:
            raise UsageError(
                f"{self.address} has {self.host!r} where a host would stand; write "
                f"{self.scheme}:///… with three slashes"
            )
        path = _decoded(self.path, "the path")
        if not path or "\0" in path:
            raise UsageError(
                f"{self.scheme!r} needs the path of a file, got {path!r}; write for example "
                f"{self.scheme}:///run/name.sock"
            )
        return path

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __str__(self) -> str:
        name = "" if self.publisher is None else quote(self.publisher, safe=_UNESCAPED_IN_NAMES)
        if self._authority and not self.path and self.encoding is None:
            return f"{self.scheme}://{self._authority}" + (f"/{name}" if name else "")
        before = self.scheme + (":" if self.host is None else f"://{self._authority}") + self.path
        before += "" if self.encoding is None else f"?encoding={self.encoding}"
        # A path behind an authority would be a name without the mark.
        has_mark = name or (self._authority and self.path)
        return f"{before}#{name}" if has_mark else before

    @property
    def _authority(self) -> str:
        host = f"[{self.host}]" if self.host and ":" in self.host else self.host or ""
        return host if self.port is None else f"{host}:{self.port}"


def parse_url(text: str | Url) -> Url:
    """Parse a URL. Raises UsageError that names the error and shows a correct URL. It does not
    check whether a server exists. A URL that is parsed already is returned.
    """
    if isinstance(text, Url):
        return text
    if not isinstance(text, str):
        raise UsageError(f"{text!r} is not a URL; write a text, for example 'tcp://127.0.0.1:7000'")
    scheme, colon, rest = text.partition(":")
    found = _SCHEME.fullmatch(scheme.lower())
    if not colon or found is None:
        raise UsageError(
            f"{text!r} is not a URL; write for example tcp://127.0.0.1:7000/name or "
            "unix:///run/name.sock#name"
        )
    dialect, transport = found["dialect"], found["transport"]
    if not rest.startswith("//"):
        path, name = _split_outside_quotes(rest)
        return Url(transport=transport, dialect=dialect, path=path, publisher=_name(name))
    authority, tail = _split_authority(rest[2:])
    host, port = _host_and_port(authority)
    before, mark, name = tail.partition("#")
    is_path = mark or not authority or before.startswith("?")
    asked = _ENCODING.fullmatch(before) if is_path else None
    encoding = None
    if asked is not None:
        before, encoding = asked["path"], asked["encoding"]
    elif authority and not mark:
        before, name = "", before.removeprefix("/")
    path = "" if authority and before == "/" else before
    return Url(
        transport=transport,
        dialect=dialect,
        host=host,
        port=port,
        path=path,
        encoding=encoding,
        publisher=_name(name),
    )


def check_permitted(url: Url, transports: Collection[str] | None) -> None:
    """Raise UsageError if `transports` is given and lacks the transport of `url`.

    Call it for a URL that others can write, before you open it: ``exec:`` starts a program.
    None permits every transport.
    """
    if transports is None:
        return
    # A text is a collection of letters: "tcp" would permit "t", "c" and "p".
    if isinstance(transports, str) or not isinstance(transports, Collection):
        raise UsageError(
            f"transports={transports!r}; give the names of those that are permitted, for example "
            "('tcp', 'tls')"
        )
    if url.transport not in transports:
        permitted = ", ".join(sorted(map(str, transports))) or "none"
        raise UsageError(
            f"{str(url)!r} uses the transport {url.transport!r}, and transports= permits "
            f"{permitted}; correct the URL where it comes from, "
            "or permit its transport as well"
        )


def check_one_encoding(url: Url, encoding: object) -> None:
    """Raise UsageError if ``encoding=`` and the ``?encoding=`` of `url` name two encodings.
    None names none.
    """
    if encoding is not None and url.encoding not in (None, encoding):
        raise UsageError(
            f"encoding={shown(encoding)}, and {str(url)!r} asks for {url.encoding!r}; leave one of "
            "them out"
        )


def _split_authority(rest: str) -> tuple[str, str]:
    end = re.search(r"[/?#]", rest)
    return (rest, "") if end is None else (rest[: end.start()], rest[end.start() :])


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        # The message does not repeat the text: it may contain a password, and messages are logged.
        raise UsageError(
            "a URL must not hold a user or a password (the part before '@'): URLs are logged; pass "
            "them as options"
        )
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise UsageError(
            f"{authority!r} is not a host and port; write for example 127.0.0.1:7000, [::1]:7000 "
            "or name.example:7000"
        )
    port = int(found["port"]) if found["port"] else None
    if port is not None and port > _HIGHEST_PORT:
        raise UsageError(f"port {port} does not exist; the highest is {_HIGHEST_PORT}")
    return found["six"] or found["host"] or "", port


def _split_outside_quotes(text: str) -> tuple[str, str]:
    """Split at the first '#' that is neither in quotes nor after a backslash."""
    quoted = ""
    escaped = False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\" and quoted != "'":
            escaped = True
        elif quoted:
            quoted = "" if character == quoted else quoted
        elif character in "'\"":
            quoted = character
        elif character == "#":
            return text[:position], text[position + 1 :]
    return text, ""


def _name(text: str) -> str | None:
    name = _decoded(text, "the publisher's name")
    try:
        name.encode()
    except UnicodeEncodeError:
        # A shell passes on any bytes. Python reads those that are not UTF-8 as halves of surrogate
        # pairs: a path may have them, a name not.
        raise UsageError(
            f"the publisher's name {name!r} is not UTF-8; write it in UTF-8, as it is or "
            "percent-encoded"
        ) from None
    return name or None


def _decoded(text: str, role: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise UsageError(f"{role} {text!r} is percent-encoded, but not as UTF-8") from None
