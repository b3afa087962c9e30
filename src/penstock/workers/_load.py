"""Finds the service that ``MODULE:NAME`` names: imports the module, and calls the function if it is
documented to make a service. Finds the function of a program in the same way.

Rules of this file:

* Only a function whose return annotation is `Service` is called, and a class that is one.
  ``os:abort`` must not end the program.
* The module is code of the user: any exception of it is told in one line, with its file
  and line there.
* The current folder is searched first, as Python does for a script. Its modules may take the place
  of libraries, and a distribution in it may be a plugin: `taken_from` says so. With `--safe-path`,
  and with Python's own `-P`, the folder is not searched.
* This runs before the run loop and its signal receiver exist, so
  that Ctrl-C also ends an import that takes long.
"""

import importlib
import importlib.machinery
import importlib.metadata
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from penstock.api import UsageError
from penstock.runtime import Service
from penstock.spi import hookimpl
from penstock.workers._place import named, place_of

EXAMPLE: Final = "examples.live_service:service"


def load(text: str, *, safe_path: bool = False) -> Service:
    """Return the service that MODULE:NAME names. `safe_path` leaves the current folder out.
    Raises UsageError that says what is missing, or what failed.
    """
    module_name, name = split(text)
    module = _import(module_name, safe_path=safe_path)
    try:
        found = getattr(module, name)
    except AttributeError:
        services = (
            ", ".join(key for key, value in vars(module).items() if isinstance(value, Service))
            or "none"
        )
        raise UsageError(
            f"there is no {name!r} in {module_name!r}; services there: {services}"
        ) from None
    where = f"{name!r} in {module_name!r}"
    if isinstance(found, Service):
        return found
    if not callable(found):
        raise UsageError(
            f"{where} is a {type(found).__name__}; it must be a penstock.Service, or a function "
            "that returns one"
        )
    return _made_by(found, name, where)


def split(text: str) -> tuple[str, str]:
    """Return MODULE and NAME. Raises UsageError for a text of another form."""
    module_name, colon, name = text.partition(":")
    if not colon or not name or not all(part.isidentifier() for part in module_name.split(".")):
        raise UsageError(
            f"{text!r} is not of the form MODULE:NAME, with dots in MODULE and without .py; write "
            f"for example {EXAMPLE}"
        )
    return module_name, name


def load_function(text: str, *, safe_path: bool = False) -> Callable[[Any], Any]:
    """Return the function that MODULE:NAME names. Raises UsageError as `load` does."""
    module_name, name = split(text)
    module = _import(module_name, safe_path=safe_path)
    found = getattr(module, name, None)
    if not callable(found):
        raise UsageError(f"there is no function {name!r} in {module_name!r}")
    return found  # type: ignore[no-any-return]  # a name of a module has any type


def taken_from(folder: Path) -> str:
    """Return what a folder that is searched first adds to a program: modules in the place of
    libraries, and plugins. Empty if there is nothing.
    """
    rest = [each for each in sys.path if each not in ("", str(folder))]
    names = sorted(
        each.name
        for each in folder.iterdir()
        if (each.suffix == ".py" or (each / "__init__.py").is_file())
        and _has_origin(importlib.machinery.PathFinder.find_spec(each.stem, rest))
    )
    plugins = sorted(
        {
            point.name
            for distribution in importlib.metadata.distributions(path=[str(folder)])
            for point in distribution.entry_points
            if point.group == hookimpl.project_name
        }
    )
    found = [f"{name} takes the place of a library" for name in names]
    found += [f"the plugin {name!r} is loaded from it" for name in plugins]
    return ", ".join(found)


def _has_origin(spec: importlib.machinery.ModuleSpec | None) -> bool:
    # A folder without __init__.py has none, and takes no place.
    return spec is not None and spec.origin is not None


def _import(name: str, *, safe_path: bool) -> ModuleType:
    here = str(Path.cwd())
    if not safe_path and here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        # The missing module is the given one or a parent of it;
        # or else a module that the given one imports.
        if missing.name is not None and f"{name}.".startswith(f"{missing.name}."):
            hint = (
                f"; leave out .py: {name.removesuffix('.py')}:NAME" if name.endswith(".py") else ""
            )
            if safe_path:
                raise UsageError(
                    f"there is no module {missing.name!r}; the current folder is not searched "
                    f"(--safe-path): install the module, or name its folder in PYTHONPATH{hint}"
                ) from None
            raise UsageError(
                f"there is no module {missing.name!r} in {here}; run this in a folder from which "
                f"it can be imported{hint}"
            ) from None
        raise UsageError(
            f"{name!r} imports {missing.name!r}, which is not installed for this Python "
            f"({place_of(missing)})"
        ) from missing
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # boundary: the module is code of the user; sys.exit() is a common last line of a script.
        _refuse(error, f"{name!r} cannot be imported")


def _made_by(function: Callable[[], object], name: str, where: str) -> Service:
    """Call `function` if it is documented to make a service, and return what it made."""
    if not _is_documented_to_make_a_service(function):
        raise UsageError(
            f"{where} is not called, because it is not documented to make a service; "
            f"if it does, annotate it: def {name}() -> penstock.Service"
        )
    if inspect.iscoroutinefunction(function):
        raise UsageError(
            f"{where} is an async function; a function that makes a service is a plain one, "
            "without async"
        )
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError):
        raise UsageError(
            f"{name!r} cannot be called without arguments; a function that makes a service takes "
            "none"
        ) from None
    try:
        made = function()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # boundary: the function is code of the user
        _refuse(error, f"{where} failed")
    if not isinstance(made, Service):
        raise UsageError(
            f"{where} returned a {type(made).__name__}; it must return a penstock.Service"
        )
    return made


def _is_documented_to_make_a_service(found: Any) -> bool:
    if isinstance(found, type):
        return issubclass(found, Service)
    try:
        try:
            annotation = inspect.signature(found, eval_str=True).return_annotation
        except (NameError, AttributeError, SyntaxError, TypeError):
            # An annotation in quotes, of a name that only type checkers import.
            annotation = inspect.signature(found).return_annotation
    except (TypeError, ValueError):  # a function in C, without a signature
        return False
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == Service.__name__
    return isinstance(annotation, type) and issubclass(annotation, Service)


def _refuse(error: BaseException, what: str) -> NoReturn:
    place = place_of(error)
    raise UsageError(f"{what}: {named(error)}{f' ({place})' if place else ''}") from error
