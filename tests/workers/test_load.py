"""The service that MODULE:NAME names is found, and only a function
that is documented to make one is called.
"""

import sys
from pathlib import Path

import pytest

from penstock.api import UsageError
from penstock.workers._load import load, taken_from
from tests.cli import _service


@pytest.mark.parametrize("name", ["service", "make", "make_in_quotes", "make_partial"])
def test_name_may_be_a_service_or_a_function_that_is_annotated_to_return_one(name: str) -> None:
    """The annotation may be in quotes, and then need not be imported;
    a partial function has that of its function.
    """
    assert load(f"tests.cli._service:{name}").names() == _service.service.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests.cli._service", "MODULE:NAME"),
        (":service", "MODULE:NAME"),
        ("tests.cli._service:", "MODULE:NAME"),
        ("no_such_module_here:service", "no module 'no_such_module_here'"),
        ("tests.cli._service:nothing", "must be a penstock.Service"),
        (
            "tests.cli._service:missing",
            "no 'missing' in 'tests.cli._service'; services there: service",
        ),
        ("tests.cli._service:with_argument", "cannot be called without arguments"),
        (
            "tests.cli._service:make_nothing",
            "'make_nothing' in 'tests.cli._service' returned a NoneType",
        ),
        ("tests.cli._service:make_later", "is an async function"),
        ("..:x", "MODULE:NAME, with dots in MODULE and without .py"),
        ("a/b:x", "MODULE:NAME, with dots in MODULE and without .py"),
        ("a..b:x", "MODULE:NAME, with dots in MODULE and without .py"),
        ("\udcff:x", "MODULE:NAME"),
        ("os.py:x", "leave out .py: os:NAME"),
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
    with pytest.raises(
        UsageError, match="'needs_more' imports 'no_such_module_here', which is not installed"
    ):
        load("needs_more:service")


def test_a_module_in_the_current_folder_is_found(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m` finds it as well."""
    (tmp_path / "here_it_is.py").write_text(
        "import penstock\nservice = penstock.Service()\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load("here_it_is:service").names() == []


def test_with_a_safe_path_the_current_folder_is_not_searched(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what to do instead."""
    (tmp_path / "only_here.py").write_text(
        "import penstock\nservice = penstock.Service()\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    with pytest.raises(UsageError, match=r"is not searched \(--safe-path\): install the module"):
        load("only_here:service", safe_path=True)
    assert str(tmp_path) not in sys.path
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert load("only_here:service", safe_path=True).names() == []


def test_what_a_folder_adds_to_a_program_is_named(tmp_path) -> None:
    """Modules in the place of libraries and plugins are named; the program's own modules and a
    folder that is not a package are not.
    """
    for name in ("json.py", "own_module.py", "trio/__init__.py", "email/notes.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    assert taken_from(tmp_path) == (
        "json.py takes the place of a library, trio takes the place of a library"
    )
    info = tmp_path / "evil-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[penstock]\nevil = evil\n[other]\nx = y\n")
    assert taken_from(tmp_path).endswith(", the plugin 'evil' is loaded from it")


@pytest.mark.parametrize("name", ["unannotated", "annotated_otherwise", "NotAService"])
def test_a_function_that_is_not_documented_to_make_a_service_is_not_called(name: str) -> None:
    """The message says which annotation is missing."""
    with pytest.raises(
        UsageError,
        match=rf"is not called, because .* annotate it: def {name}\(\) -> penstock.Service",
    ):
        load(f"tests.cli._service:{name}")
    assert _service.calls == []


def test_os_abort_is_not_called() -> None:
    """It would end the process. A function in C has no annotation."""
    with pytest.raises(UsageError, match="'abort' in 'os' is not called"):
        load("os:abort")


def test_a_class_of_services_is_called() -> None:
    """Its name says what it makes."""
    assert isinstance(load("tests.cli._service:OwnService"), _service.OwnService)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "x = = 1\n",
            r"cannot be imported: SyntaxError: invalid syntax \(faulty_module.py, line 1\)",
        ),
        (
            "\n1 / 0\n",
            r"cannot be imported: ZeroDivisionError: division by zero \(faulty_module.py, line 2\)",
        ),
        (
            "import json\njson.loads('')\n",
            r"cannot be imported: JSONDecodeError: .* \(faulty_module.py, line 2\)",
        ),
        (
            "import sys\nsys.exit(3)\n",
            r"cannot be imported: SystemExit: 3 \(faulty_module.py, line 2\)",
        ),
        (
            "from os import nothing\n",
            r"cannot be imported: ImportError: .* \(faulty_module.py, line 1\)",
        ),
        (
            "import no_such_module\n",
            r"imports 'no_such_module', which is not installed for this Python \(faulty_module.py, line 1\)",
        ),
        (
            "import penstock\ndef service() -> penstock.Service:\n    return [][1]\n",
            r"'service' in 'faulty_module' failed: IndexError: list index out of range \(faulty_module.py, line 3\)",
        ),
    ],
    ids=["syntax", "error", "error in a library", "exit", "import", "module", "factory"],
)
def test_an_error_in_the_module_is_told_with_its_file_and_line(
    source: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line is in the given module, not in a library which it calls."""
    (tmp_path / "faulty_module.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "faulty_module", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with pytest.raises(UsageError, match=message) as refused:
        load("faulty_module:service")
    assert "\n" not in str(refused.value)
    sys.modules.pop("faulty_module", None)
