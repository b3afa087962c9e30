"""Where tests stand: each package has a test folder at its place,
and each long module a test module.

A test is a contract of a package. A private module
that is short is tested through its package's door:
a test module for each of them would name private modules that no other code needs.
"""

from pathlib import Path

from tests.repo._tree import ROOT, product_files, refuse

MIRRORS = {"src/penstock": "tests", "tck/src/penstock_tck/wire": "tck/tests/wire"}
LONG = 150
"""Lines from which on a module has a test module, so that its tests are found by its path."""

TESTED_ELSEWHERE: dict[str, str] = {
    f"tck/src/penstock_tck/wire/_{rows}_rows.py": "tck/tests/wire/test_faults.py"
    for rows in (
        *("rs_demand", "rs_framing", "rs_id", "rs_relay", "rs_request", "rs_setup"),
        *("rsio_extension", "rsio_hello", "rsio_relay", "rsio_stream"),
    )
}
"""Long modules without a test module of their own, each with the test that stands for it."""


def mirror_of(module: str) -> str | None:
    """Return the path of the test module for a module, None if its folder is not mirrored."""
    for source, tests in MIRRORS.items():
        path = Path(module)
        if (
            path.is_relative_to(source)
            and path.name.startswith("_")
            and not path.name.startswith("__")
        ):
            return str(tests / path.relative_to(source).with_name(f"test{path.name}"))
    return None


def test_each_package_has_a_folder_of_tests() -> None:
    """The tests of a package stand at its place: src/penstock/x and tests/x."""
    wanted = {
        Path(test).parent for path in product_files() if (test := mirror_of(str(path))) is not None
    }
    missing = [folder for folder in sorted(wanted) if not any((ROOT / folder).rglob("test_*.py"))]
    refuse(missing, "these folders of tests are missing:")


def test_each_long_module_has_a_test_module() -> None:
    """The tests of a module of more than LONG lines are found by its path,
    or TESTED_ELSEWHERE names them.
    """
    long = [
        str(path)
        for path in product_files()
        if len((ROOT / path).read_text(encoding="utf-8").splitlines()) > LONG
    ]
    wanted = {module: TESTED_ELSEWHERE.get(module) or mirror_of(module) for module in long}
    missing = [
        f"{module} needs {test}"
        for module, test in wanted.items()
        if test and not (ROOT / test).exists()
    ]
    refuse(missing, "these test modules are missing:")
    refuse(
        sorted(set(TESTED_ELSEWHERE) - set(long)),
        "these modules are short or gone, and need no entry:",
    )


def test_the_path_of_a_test_module_follows_from_the_path_of_its_module() -> None:
    """The folder stays, and the leading underscore becomes `test_`.
    A front door needs no test module.
    """
    assert (
        mirror_of("src/penstock/protocols/rsio/_codec.py") == "tests/protocols/rsio/test_codec.py"
    )
    assert (
        mirror_of("src/penstock/runtime/service/_router.py")
        == "tests/runtime/service/test_router.py"
    )
    assert mirror_of("tck/src/penstock_tck/wire/_line.py") == "tck/tests/wire/test_line.py"
    assert mirror_of("src/penstock/core/__init__.py") is None
    assert mirror_of("tck/src/penstock_tck/_runner.py") is None
