"""A Sphinx extension that makes the reference whole: each public name of each public package gets an entry.

Rules of this file:

* Sphinx finds the docstring of a constant only in the file that makes it; our packages pass constants on from private files.
  So these docstrings are read from there, and shown where the constant is offered.
* After a build, a public name without an entry is a warning, and warnings are errors (`nox -s docs`).
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _packages(root: str) -> Iterator[ModuleType]:
    """The public packages at and below `root`."""
    module = importlib.import_module(root)
    yield module
    for found in pkgutil.walk_packages(module.__path__, f"{root}."):
        if found.ispkg and not any(part.startswith("_") for part in found.name.split(".")):
            yield importlib.import_module(found.name)


def _is_constant(value: object) -> bool:
    return not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value))


def _documented_assignments(folder: Path) -> Iterator[tuple[str, str]]:
    """Each name that a file of `folder` assigns, with the string that stands below the assignment."""
    for path in sorted(folder.rglob("*.py")):
        for node, after in pairwise(ast.parse(path.read_text(encoding="utf-8")).body):
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, after.value.value


def _tell_of_constants(app: Sphinx) -> None:
    """Hand Sphinx the docstrings of constants, as if they stood in the package that offers them."""
    for module in (module for root in app.config.complete_reference_of for module in _packages(root)):
        says = dict(_documented_assignments(Path(module.__file__ or "").parent))
        analyzer = ModuleAnalyzer.for_module(module.__name__)
        analyzer.analyze()
        for name in getattr(module, "__all__", ()):
            if _is_constant(getattr(module, name)) and name in says:
                analyzer.attr_docs["", name] = [*inspect.cleandoc(says[name]).splitlines(), ""]


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    entered = {name for name, *_ in app.env.domains["py"].get_objects()}
    for module in (module for root in app.config.complete_reference_of for module in _packages(root)):
        for name in getattr(module, "__all__", ()):
            if f"{module.__name__}.{name}" not in entered:
                logger.warning("the reference lacks %s.%s: docs/reference/%s.md must show it", module.__name__, name, module.__name__)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("complete_reference_of", [], "env")
    app.connect("builder-inited", _tell_of_constants)
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}
