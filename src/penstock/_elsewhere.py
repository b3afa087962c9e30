"""Says where a public name is, if a program imports it from another public package of penstock.

A public package has at its end::

    if not _typing.TYPE_CHECKING:  # a checker would take each name for one of this package
        __getattr__ = _elsewhere.teller(__name__)
"""

import opcode
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, Final

HOMES: Final = (
    *("api", "logs", "streams", "spi", "elements", "testing", "extensions", "brokers"),
    *("transports", "aio", "blocking", "notebook", "draft"),
)
"""The packages in which a public name is looked for, the likely ones first."""


def teller(package: str) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package (PEP 562)."""

    def tell(name: str) -> Any:
        raise missing(package, name, sys._getframe(1))  # noqa: SLF001  # of the import

    return tell


def missing(package: str, name: str, caller: FrameType) -> Exception:
    """Return the error for a name that a package does not have, with the home of a public one."""
    # `from package import name` would hide the text of an AttributeError. Other look-ups,
    # as by `hasattr`, get one.
    if not name.startswith("_") and _is_import(caller) and (home := _home_of(name, package)):
        return ImportError(
            f"cannot import name {name!r} from {package!r}: it is in {home}; write `from {home} "
            f"import {name}`"
        )
    return AttributeError(f"module {package!r} has no attribute {name!r}")


def _is_import(frame: FrameType) -> bool:
    """Return whether the running instruction of a frame takes a name out of a module."""
    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and code[frame.f_lasti] == opcode.opmap["IMPORT_FROM"]


def _home_of(name: str, package: str) -> str:
    """Return the package that has a public name; empty if no other one has it."""
    homes = ["penstock", *(f"penstock.{each}" for each in HOMES)]
    for home in homes:
        if home != package and name in getattr(import_module(home), "__all__", ()):
            return home
    return ""
