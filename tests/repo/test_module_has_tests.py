"""Each module has its own test module, at the same place: src/penstock/x/_y.py and tests/x/test_y.py."""

import pytest

from tests.repo._tree import ROOT, python_files


def _modules() -> list[str]:
    return [str(path) for path in python_files("src") if path.name.startswith("_") and path.name not in {"__init__.py", "__main__.py"}]


def _test_of(module: str) -> str:
    folder, name = module.removeprefix("src/penstock/").rsplit("/", 1) if module.count("/") > 2 else ("", module.rsplit("/", 1)[1])
    return "/".join(part for part in ("tests", folder, f"test{name}") if part)


@pytest.mark.parametrize("module", _modules())
def test_a_module_has_its_test_module(module: str) -> None:
    """Who changes a module finds its tests without a search."""
    assert (ROOT / _test_of(module)).is_file(), f"{module} needs {_test_of(module)}"


def test_the_mirror_is_what_the_guide_says() -> None:
    """The rule of names itself: a leading underscore becomes `test_`, the folder stays."""
    assert _test_of("src/penstock/core/_sources.py") == "tests/core/test_sources.py"
    assert _test_of("src/penstock/_front.py") == "tests/test_front.py"
