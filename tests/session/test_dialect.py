"""What a dialect is: RS.io is one, and the session core asks nothing else of it."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.api import Limits, PublicError, Role
from penstock.protocols import rsio
from penstock.protocols.reactivesocket import ReactiveSocketDialect
from penstock.protocols.rsio import RsioDialect
from penstock.session import Dialect, Fault, Session
from penstock.session import _dialect as module
from tests.session._pair import RecordingDelegate, RecordingSubscriber, ScriptedPublisher

FOLDER = Path(module.__file__).parent
CORE = sorted(
    path.name for path in FOLDER.glob("_*.py") if path.name not in {"__init__.py", "_dialect.py", "_detect_protocol.py", "_reasons.py"}
)
"""All files but the dialect itself, and two that speak of protocols: which one a client speaks, and what reasons mean."""
METHODS = {name for name, value in vars(Dialect).items() if inspect.isfunction(value) and not name.startswith("_")}
OFFERED = METHODS | {name for name in [*vars(Dialect), *Dialect.__annotations__] if not name.startswith("_")}
FOR_THE_OWNER = {"name", "models"}


@pytest.mark.parametrize("kind", [RsioDialect, ReactiveSocketDialect])
def test_each_dialect_offers_all_that_one_must(kind: type) -> None:
    """With the same parameters, in the same order."""
    for name in METHODS:
        asked = list(inspect.signature(getattr(Dialect, name)).parameters)
        assert list(inspect.signature(getattr(kind, name)).parameters) == asked, name


@pytest.mark.parametrize("file", CORE)
def test_the_core_asks_a_dialect_for_nothing_else(file: str) -> None:
    """So that a second protocol has a list to go by."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value).endswith(".dialect")}
    assert asked <= OFFERED


@pytest.mark.parametrize("file", CORE)
def test_the_core_does_not_know_the_bytes_of_any_protocol(file: str) -> None:
    """Only the dialect imports the wire."""
    tree = ast.parse((FOLDER / file).read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and str(node.module).startswith("penstock.wire")]


def test_everything_that_is_offered_is_asked_for() -> None:
    """A method that nobody calls would be a burden to the next protocol."""
    text = "".join((FOLDER / file).read_text(encoding="utf-8") for file in CORE)
    assert {name for name in OFFERED if f"dialect.{name}" not in text} == FOR_THE_OWNER


class Noting(RsioDialect):
    """Notes what the core says and why."""

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


def noting(role: Role = Role.SERVER) -> tuple[RecordingDelegate, Noting]:
    delegate = RecordingDelegate(role)
    session = delegate.session = Session(delegate, Noting, role=role, limits=Limits(split_outbound_at=4), random=lambda: 0.5)
    session.start(0.0)
    session.receive(rsio.encode(rsio.ClientHello() if role is Role.SERVER else rsio.ServerHello()), 0.0)
    assert isinstance(session.dialect, Noting)
    return delegate, session.dialect


def ask(delegate: RecordingDelegate, stream_id: int) -> ScriptedPublisher:
    source = delegate.publishers["s"] = ScriptedPublisher()
    delegate.session.receive(rsio.encode(rsio.Subscribe(publisher="s", subscriber=stream_id, demand=3)), 0.0)
    return source


def test_a_dialect_is_told_why_a_stream_ends_with_an_error() -> None:
    """It never began, its publisher failed, or the peer broke its contract: a text alone could be anybody's."""
    delegate, dialect = noting()
    delegate.session.receive(rsio.encode(rsio.Subscribe(publisher="nobody", subscriber=0)), 0.0)
    ask(delegate, 1).fail(PublicError("refused"))
    ask(delegate, 2)
    delegate.session.receive(rsio.encode(rsio.Request(subscriber=2, demand=0)), 0.0)
    assert dialect.faults == [("no such publisher", Fault.REFUSED), ("refused", Fault.FAILED), ("illegal demand", Fault.INVALID)]


def test_a_dialect_says_up_to_what_length_an_element_goes_as_a_whole() -> None:
    """One byte more, and it goes in parts; here in one that is the last one, too."""
    delegate, _ = noting()
    source = ask(delegate, 0)
    delegate.session.take()
    source.emit(bytes(10), bytes(11))
    said = bytes(delegate.session.take())
    assert said.startswith(rsio.next_header(0, 10) + bytes(10) + b"\x24")


def test_a_dialect_knows_what_it_is_asked_an_id_for() -> None:
    """An answer to a stream of the peer's may have the id of that."""
    delegate, dialect = noting(Role.CLIENT)
    delegate.session.subscribe("s", RecordingSubscriber(1))
    assert dialect.targets == ["s"]


@pytest.mark.parametrize("file", CORE)
def test_the_core_names_no_protocol_and_none_of_its_messages(file: str) -> None:
    """What has to be said with such a word is true of that protocol alone."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    assert re.findall(r"RS\.io|ReactiveSocket|\brsio\b|onSubscribe|onNext|SETUP|REQUEST_N", text) == []
