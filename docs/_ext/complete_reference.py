"""A Sphinx extension that completes the reference:
each public name of each public package has exactly one entry.

Rules of this file:

* The page of a layer shows its objects in full. `.. everyday-names::` lists the names that a root
  package passes on, with links there.
* Sphinx finds the docstring of a constant only in the file that assigns it. Packages of penstock
  pass constants on from private files.
  So this extension reads these docstrings from the private files, and adds them to the package.
* After a build, a public name without an entry is a warning,
  and warnings are errors (`nox -s docs`).
"""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


def _packages(root: str) -> Iterator[ModuleType]:
    """Yield `root` and the public packages below it, in the order of their names."""
    module = importlib.import_module(root)
    yield module
    for found in pkgutil.walk_packages(module.__path__, f"{root}."):
        if found.ispkg and _is_public(root, found.name):
            yield importlib.import_module(found.name)


def _is_public(root: str, name: str) -> bool:
    """Return True for a layer, and for a package inside a layer if the layer's `__all__` names
    it: others are parts of the layer.
    """
    parent, _, short = name.rpartition(".")
    return not short.startswith("_") and (
        parent == root or short in getattr(importlib.import_module(parent), "__all__", ())
    )


def _offers(module: ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


def _is_constant(value: object) -> bool:
    return not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value))


def _documented_assignments(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each name that a file in or below `folder` assigns,
    with the string below the assignment.
    """
    for path in sorted(folder.rglob("*.py")):
        for node, after in pairwise(ast.parse(path.read_text(encoding="utf-8")).body):
            if (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                targets = (
                    node.targets
                    if isinstance(node, ast.Assign)
                    else [node.target]
                    if isinstance(node, ast.AnnAssign)
                    else []
                )
                for target in targets:
                    if isinstance(target, ast.Name):
                        yield target.id, after.value.value


def _add_docstrings_of_constants(app: Sphinx) -> None:
    """Give Sphinx the docstrings of constants, as if they were in the package that offers them."""
    for module in (
        module for root in app.config.complete_reference_of for module in _packages(root)
    ):
        docstrings = dict(_documented_assignments(Path(module.__file__ or "").parent))
        analyzer = ModuleAnalyzer.for_module(module.__name__)
        analyzer.analyze()
        for name, value in _offers(module).items():
            if _is_constant(value) and name in docstrings:
                analyzer.attr_docs["", name] = [
                    *inspect.cleandoc(docstrings[name]).splitlines(),
                    "",
                ]


class EverydayNames(SphinxDirective):
    """``.. everyday-names:: penstock`` lists the names that the package passes on, by layer,
    with the first line of each docstring.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by Sphinx."""
        root, *layers = _packages(self.arguments[0])
        # `core` is last: a layer above it may pass on a name of `core`, and programs import that
        # layer.
        layers.sort(key=lambda layer: layer.__name__ == f"{root.__name__}.core")
        lines: list[str] = []
        listed: set[str] = set()
        for layer in layers:
            shared = [name for name in _passed_on(root, layer) if name not in listed]
            listed.update(shared)
            if shared:
                lines += ["", f"From `{layer.__name__}`:", ""]
                lines += [
                    f"* :py:obj:`~{layer.__name__}.{name}`: {_first_line(layer, name)}"
                    for name in shared
                ]
        return self.parse_text_to_nodes("\n".join(lines))


def _passed_on(root: ModuleType, layer: ModuleType) -> list[str]:
    """Return the names that `root` offers and `layer` owns.
    Two layers may use the same name, so the objects are compared.
    """
    own = _offers(layer)
    return [name for name, value in _offers(root).items() if name in own and own[name] is value]


def _first_line(layer: ModuleType, name: str) -> str:
    value = getattr(layer, name)
    if _is_constant(value):
        docstring = dict(_documented_assignments(Path(layer.__file__ or "").parent)).get(name, "")
    else:
        docstring = inspect.getdoc(value) or ""
    paragraph = " ".join(inspect.cleandoc(docstring).split("\n\n")[0].split())
    return paragraph.removesuffix("::").strip()


def _shown_by_others(
    package: ModuleType, packages: list[ModuleType], entered: set[str]
) -> set[str]:
    """Return the names of `package` that stand on the page of another package, which passes
    them on.
    """
    return {
        name
        for other in packages
        if other is not package
        for name in _passed_on(package, other)
        if f"{other.__name__}.{name}" in entered
    }


def _check(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    entered = {name for name, *_ in app.env.domains["py"].get_objects()}
    for root in app.config.complete_reference_of:
        packages = list(_packages(root))
        in_layers = {name for layer in packages[1:] for name in _passed_on(packages[0], layer)}
        for package in packages:
            known = (
                in_layers
                if package is packages[0]
                else _shown_by_others(package, packages[1:], entered)
            )
            for name, value in _offers(package).items():
                if (
                    f"{package.__name__}.{name}" not in entered
                    and name not in known
                    and not inspect.ismodule(value)
                ):
                    logger.warning(
                        "the reference lacks %s.%s: a page of docs/reference must show it",
                        package.__name__,
                        name,
                    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_config_value("complete_reference_of", [], "env")
    app.add_directive("everyday-names", EverydayNames)
    app.connect("builder-inited", _add_docstrings_of_constants)
    app.connect("build-finished", _check)
    return {"parallel_read_safe": True}
