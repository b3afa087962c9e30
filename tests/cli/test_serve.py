"""`penstock serve` serves a module's service until a signal arrives."""

import signal
import sys

import pytest

from penstock.api import UsageError
from penstock.cli._serve import load
from tests._real_time import HANGS_AFTER
from tests.cli import _service
from tests.cli._programs import line_of, penstock, served


@pytest.mark.parametrize("name", ["service", "make"])
def test_name_may_be_a_service_or_a_function_that_returns_one(name: str) -> None:
    """Both are found in the module."""
    assert load(f"tests.cli._service:{name}").names() == _service.service.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests.cli._service", "MODULE:NAME"),
        (":service", "MODULE:NAME"),
        ("tests.cli._service:", "MODULE:NAME"),
        ("no_such_module_here:service", "no module 'no_such_module_here'"),
        ("tests.cli._service:nothing", "must be a penstock.Service"),
        ("tests.cli._service:missing", "no 'missing' in 'tests.cli._service'; services there: service"),
        ("tests.cli._service:with_argument", "cannot be called without arguments"),
    ],
)
def test_an_argument_that_names_no_service_is_refused(text: str, message: str) -> None:
    """The message says what is missing."""
    with pytest.raises(UsageError, match=message):
        load(text)


def test_a_missing_import_of_the_module_is_named(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error differs from the one for a module that does not exist."""
    (tmp_path / "needs_more.py").write_text("import no_such_module_here\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(UsageError, match="'needs_more' imports 'no_such_module_here', which is not installed"):
        load("needs_more:service")


def test_a_module_in_the_current_folder_is_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `python -m`."""
    (tmp_path / "here_it_is.py").write_text("import penstock\nservice = penstock.Service()\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load("here_it_is:service").names() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_shuts_it_down(number: signal.Signals) -> None:
    """Its peers receive a goodbye, and its status is 0."""
    with served() as (server, address), penstock("cat", f"{address}/endless", "--quiet") as reader:
        assert reader.stdout is not None
        assert reader.stdout.read(6) == b"again\n"
        server.send_signal(number)
        assert line_of(server) == "shutting down\n"
        reader.stdout.close()
        assert server.wait(HANGS_AFTER) == 0


def test_with_pipe_it_ends_with_its_only_connection() -> None:
    """When the parent process closes the pipe, no other connection is possible: the status is 0, without a message."""
    with penstock("serve", "--quiet", "tests.cli._service:service", "pipe:") as server:
        _, err = server.communicate(timeout=HANGS_AFTER)  # closes its input
    assert (server.returncode, err) == (0, b"")
