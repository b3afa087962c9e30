"""The line between session and protocol: dialects, their host, their settings."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import penstock.protocols
from penstock.api import Limits, PublicError, Role
from penstock.protocols import rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import Dialect, DialectFactory, DialectHost, DialectSettings, Fault, Session
from penstock.session import _dialect as module
from tests.protocols import _toy_protocol
from tests.session._pair import RecordingDelegate, RecordingSubscriber, ScriptedPublisher

# --- dialects


FOLDER = Path(module.__file__).parent
NAMING_PROTOCOLS = {"_handshake.py", "_request_data.py", "_reasons.py"}
CORE = sorted(
    path.name
    for path in FOLDER.glob("_*.py")
    if path.name not in {"__init__.py", "_dialect.py", *NAMING_PROTOCOLS}
)
"""All files of the session except the interface, and except three files that name protocols: the
choice of one, the targets of requests, and the reasons.
"""
METHODS = {
    name
    for name, value in vars(Dialect).items()
    if inspect.isfunction(value) and not name.startswith("_")
}
MEMBERS = METHODS | {
    name for name in [*vars(Dialect), *Dialect.__annotations__] if not name.startswith("_")
}
FOR_THE_RUNTIME = {"name", "models", "has_routes", "splits_requests"}


@pytest.mark.parametrize("kind", [RsioDialect, ReactiveSocketDialect])
def test_each_dialect_has_every_method(kind: type) -> None:
    """The parameters have the same names and order."""
    for name in METHODS:
        expected = list(inspect.signature(getattr(Dialect, name)).parameters)
        assert list(inspect.signature(getattr(kind, name)).parameters) == expected, name


@pytest.mark.parametrize("file", CORE)
def test_the_session_uses_only_members_of_the_interface(file: str) -> None:
    """The interface is the whole list for the author of another protocol."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(".dialect")
    }
    assert used <= MEMBERS


@pytest.mark.parametrize("file", CORE)
def test_the_session_imports_no_codec(file: str) -> None:
    """No file of the session imports penstock.wire."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("penstock.wire")
    ]


def test_every_member_of_the_interface_is_used() -> None:
    """An unused method would be needless work for the author of another protocol."""
    text = "".join((FOLDER / file).read_text(encoding="utf-8") for file in CORE)
    assert {name for name in MEMBERS if f"dialect.{name}" not in text} == FOR_THE_RUNTIME


class RecordingDialect(RsioDialect):
    """RS.io, noting each fault and each target."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.max_unsplit = 10
        self.faults: list[tuple[str, Fault]] = []
        self.targets: list[Any] = []

    def error(self, stream_id: int, text: str, fault: Fault) -> bytes:
        self.faults.append((text, fault))
        return super().error(stream_id, text, fault)

    def next_id(self, target: Any) -> int:
        self.targets.append(target)
        return super().next_id(target)


def recording(role: Role = Role.SERVER) -> tuple[RecordingDelegate, RecordingDialect]:
    delegate = RecordingDelegate(role)
    session = delegate.session = Session(
        delegate,
        RecordingDialect,
        role=role,
        limits=Limits(split_outbound_at=4),
        random=lambda: 0.5,
    )
    session.start(0.0)
    session.receive(
        rsio.encode(rsio.ClientHello() if role is Role.SERVER else rsio.ServerHello()), 0.0
    )
    assert isinstance(session.channel.dialect, RecordingDialect)
    return delegate, session.channel.dialect


def subscribe(delegate: RecordingDelegate, stream_id: int) -> ScriptedPublisher:
    source = delegate.publishers["s"] = ScriptedPublisher()
    delegate.session.receive(
        rsio.encode(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=3)), 0.0
    )
    return source


def test_a_dialect_is_told_why_a_stream_ends_with_an_error() -> None:
    """Fault says: refused untouched, publisher failed, or contract broken by the peer.
    A text could be a publisher's own.
    """
    delegate, dialect = recording()
    delegate.session.receive(rsio.encode(rsio.Subscribe(publisher="unknown", subscriber=0)), 0.0)
    subscribe(delegate, 1).fail(PublicError("refused"))
    subscribe(delegate, 2)
    delegate.session.receive(rsio.encode(rsio.Request(subscriber=2, demand=0)), 0.0)
    assert dialect.faults == [
        ("no such publisher", Fault.UNTOUCHED),
        ("refused", Fault.FAILED),
        ("illegal demand", Fault.INVALID),
    ]


def test_a_dialect_sets_the_length_above_which_elements_are_split() -> None:
    """An element of max_unsplit bytes is sent whole. One byte more, and it is sent in parts;
    here in one part, which is the last.
    """
    delegate, _ = recording()
    source = subscribe(delegate, 0)
    delegate.session.take()
    source.emit(bytes(10), bytes(11))
    sent = bytes(delegate.session.take())
    assert sent.startswith(rsio.next_header(0, 10) + bytes(10) + b"\x24")


def test_next_id_gets_the_target() -> None:
    """An answer to a stream of the peer may have to use that stream's id."""
    delegate, dialect = recording(Role.CLIENT)
    delegate.session.subscribe("s", RecordingSubscriber(1))
    assert dialect.targets == ["s"]


@pytest.mark.parametrize("file", CORE)
def test_the_session_names_no_protocol_and_no_message_of_one(file: str) -> None:
    """A sentence with such a word would be true for one protocol only."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    assert (
        re.findall(r"RS\.io|ReactiveSocket|\brsio\b|onSubscribe|onNext|SETUP|REQUEST_N", text) == []
    )


# --- the session as a dialect sees it


CODE = Path(penstock.protocols.__file__).parent  # in the installed wheel, too
DIALECTS = [
    CODE / "rsio/_dialect.py",
    CODE / "reactivesocket/_dialect.py",
    Path(inspect.getfile(_toy_protocol)),
]


def test_a_session_has_every_member_of_dialect_host() -> None:
    """The type checker proves the same; this test is for dialects that are not type-checked."""
    session: DialectHost = RecordingDelegate(Role.CLIENT).session
    names = {
        name
        for name in [*vars(DialectHost), *DialectHost.__annotations__]
        if not name.startswith("_")
    }
    assert [name for name in sorted(names) if not hasattr(session, name)] == []
    assert isinstance(session, Session)


def test_a_dialect_uses_nothing_else_of_its_session() -> None:
    """True for the two dialects of penstock and for the toy dialect of the tests."""
    allowed = {
        name
        for name in [*vars(DialectHost), *DialectHost.__annotations__]
        if not name.startswith("_")
    }
    for path in DIALECTS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and ast.unparse(node.value) in {"session", "self._session"}
        }
        assert used <= allowed, path


# --- settings


def test_settings_have_defaults() -> None:
    """No extensions, no introduction, a byte stream."""
    assert DialectSettings() == DialectSettings(extensions=(), setup=b"", framed=False)


@pytest.mark.parametrize("kind", [RsioDialect, ReactiveSocketDialect])
def test_the_class_of_a_dialect_is_its_factory(kind: DialectFactory) -> None:
    """A plugin may offer the class itself:
    it makes dialects, and recognises a client by its first bytes.
    """
    assert isinstance(kind.takes_extensions, bool)
    assert kind.alpn == f"{kind.name}/0"
    assert kind.recognises(b"", False) is not True
    assert kind.recognises(b"GET / HT", False) is False
