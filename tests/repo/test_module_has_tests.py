"""Each module has its own test module, at the same place: src/penstock/x/_y.py and tests/x/test_y.py."""

from pathlib import Path

from tests.repo._tree import ROOT, product_files, refuse

# Of the test kit, the checks of a peer have a test module each. Its other checks are tested by the saboteurs of tck/tests, one a check.
MIRRORS = {"src/penstock": "tests", "tck/src/penstock_tck/wire": "tck/tests/wire"}


def mirror_of(module: str) -> str | None:
    """Return the path of the test module that a module needs, None if it needs none."""
    for source, tests in MIRRORS.items():
        path = Path(module)
        if path.is_relative_to(source) and path.name.startswith("_") and not path.name.startswith("__"):
            return str(tests / path.relative_to(source).with_name(f"test{path.name}"))
    return None


def test_each_module_has_its_test_module() -> None:
    """The tests of a module are found by its path."""
    wanted = {str(path): mirror_of(str(path)) for path in product_files()}
    missing = [f"{module} needs {test}" for module, test in wanted.items() if test and not (ROOT / test).is_file()]
    refuse(missing, "these test modules are missing:")


def test_the_path_of_a_test_module_follows_from_the_path_of_its_module() -> None:
    """The folder stays, and the leading underscore becomes `test_`. A front door needs no test module."""
    assert mirror_of("src/penstock/protocols/rsio/_codec.py") == "tests/protocols/rsio/test_codec.py"
    assert mirror_of("src/penstock/runtime/service/_router.py") == "tests/runtime/service/test_router.py"
    assert mirror_of("tck/src/penstock_tck/wire/_line.py") == "tck/tests/wire/test_line.py"
    assert mirror_of("src/penstock/core/__init__.py") is None
    assert mirror_of("tck/src/penstock_tck/_runner.py") is None
