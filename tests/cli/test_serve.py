"""`penstock serve`: a module's service, until a signal comes."""

import signal
import sys

import pytest

from penstock.api import UsageError
from penstock.cli._serve import load
from tests.cli import _service
from tests.cli._programs import line_of, penstock, served


@pytest.mark.parametrize("name", ["service", "make"])
def test_a_service_or_a_function_that_makes_one_will_do(name: str) -> None:
    """Both are found in the module."""
    assert load(f"tests.cli._service:{name}").names() == _service.service.names()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tests.cli._service", "MODULE:NAME"),
        (":service", "MODULE:NAME"),
        ("tests.cli._service:", "MODULE:NAME"),
        ("no_such_module_here:service", "no module 'no_such_module_here'"),
        ("tests.cli._service:nothing", "must be a penstock.Service"),
        ("tests.cli._service:missing", "no 'missing' in 'tests.cli._service'; services there: service"),
        ("tests.cli._service:needy", "cannot be called without arguments"),
    ],
)
def test_what_is_no_service_is_refused_with_what_is_missing(text: str, says: str) -> None:
    """In words that say what to write."""
    with pytest.raises(UsageError, match=says):
        load(text)


def test_a_module_that_lacks_another_is_told_apart_from_one_that_is_not_there(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name was right; what it imports is not installed."""
    (tmp_path / "needs_more.py").write_text("import no_such_module_here\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(UsageError, match="'needs_more' imports 'no_such_module_here', which is not installed"):
        load("needs_more:service")


def test_modules_are_found_from_here(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python would: the current folder counts."""
    (tmp_path / "here_it_is.py").write_text("import penstock\nservice = penstock.Service()\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load("here_it_is:service").names() == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_shuts_it_down_in_good_order(number: signal.Signals) -> None:
    """It says goodbye to whoever reads, and ends with status 0."""
    with served() as (server, address), penstock("cat", f"{address}/endless", "--quiet") as reader:
        assert reader.stdout is not None
        assert reader.stdout.read(6) == b"again\n"
        server.send_signal(number)
        assert line_of(server) == "shutting down\n"
        reader.stdout.close()
        assert server.wait(20) == 0


def test_with_standard_input_and_output_it_ends_with_their_one_connection() -> None:
    """Whoever started it has hung up, so nobody can come any more; without a word, and with status 0."""
    with penstock("serve", "--quiet", "tests.cli._service:service", "pipe:") as server:
        _, err = server.communicate(timeout=20)  # closes its input
    assert (server.returncode, err) == (0, b"")
