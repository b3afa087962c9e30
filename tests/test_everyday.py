"""The root package is lazy: it passes on every name,
and imports trio at the first use of a name that needs it.
"""

import importlib
import pickle
import subprocess
import sys

import pytest

import penstock

_NO_TRIO = (
    "import sys; assert 'trio' not in sys.modules, sorted(name for name in sys.modules if 'trio' "
    "in name)"
)


def _run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import penstock",
        "from penstock import ConnectionLost, Limits, UsageError",
        "import penstock.api, penstock.session, penstock.wire",
        "import penstock.protocols.rsio",
        (
            "from penstock.spi import Registry, Factory, TransportOptions, Tls, parse_url, "
            "resolve_serializer"
        ),
        "from penstock.elements import JsonSerializer",
        "from penstock.extensions import Auth, Keepalive",
    ],
)
def test_no_trio_is_imported(statement: str) -> None:
    """The statement runs in a new process, and `trio` is not among its modules."""
    _run(f"{statement}; {_NO_TRIO}")


@pytest.mark.parametrize(
    ("package", "name", "home"),
    [
        ("penstock", "JsonSerializer", "penstock.elements"),
        ("penstock", "LogLocked", "penstock.api"),
        ("penstock", "MessageList", "penstock.testing"),
        ("penstock", "Tls", "penstock.spi"),
        *((f"penstock.{each}", "DiskLog", "penstock") for each in ("streams", "api", "spi", "aio")),
        *((f"penstock.{each}", "connect", "penstock") for each in ("logs", "testing", "draft")),
        *((f"penstock.{each}", "Topic", "penstock") for each in ("blocking", "brokers")),
        *((f"penstock.{each}", "Tls", "penstock.spi") for each in ("transports", "extensions")),
        *((f"penstock.{each}", "Tls", "penstock.spi") for each in ("elements", "notebook")),
    ],
)
def test_an_import_of_a_name_of_another_package_says_which(
    package: str, name: str, home: str
) -> None:
    """And how to write the import. `hasattr` answers no, and a name that nothing has is told as
    Python does.
    """
    with pytest.raises(ImportError, match=f"it is in {home}; write `from {home} import {name}`"):
        exec(f"from {package} import {name}", {})
    assert not hasattr(importlib.import_module(package), name)
    with pytest.raises(ImportError, match=rf"^cannot import name 'Nothing' from '{package}' \("):
        exec(f"from {package} import Nothing", {})


def test_an_everyday_import_brings_no_plugin_of_penstock() -> None:
    """Protocols, serializers, extensions and transports are imported when a registry is made, and
    the command line when it runs.
    """
    later = {
        *(f"penstock.{name}" for name in ("protocols", "elements", "extensions", "transports")),
        *(f"penstock.{name}" for name in ("aio", "blocking", "cli", "draft", "testing")),
        *("argparse", "asyncio"),
    }
    _run(
        "from penstock import connect; import sys; "
        f"brought = {later} & sys.modules.keys(); assert not brought, sorted(brought)"
    )


@pytest.mark.parametrize("package", ["penstock", "penstock.spi"])
def test_every_public_name_is_found(package: str) -> None:
    """In a new process `from package import *` brings each name of `__all__`,
    and `dir` lists each before that.
    """
    _run(
        f"import {package} as package\n"
        "assert set(package.__all__) <= set(dir(package)), set(package.__all__) - "
        "set(dir(package))\n"
        f"names = {{}}; exec('from {package} import *', names)\n"
        "assert set(package.__all__) <= set(names), set(package.__all__) - set(names)\n"
        "assert all(getattr(package, name) is names[name] for name in package.__all__)"
    )


def test_a_layer_is_an_attribute() -> None:
    """`penstock.core` and the other layers that `import penstock` always brought are found at
    their first use.
    """
    _run(
        "import penstock; assert penstock.core.Stream is penstock.Stream; assert "
        "penstock.spi.Transport.connect"
    )


@pytest.mark.parametrize(
    ("package", "name"), [("penstock", "_nothing"), ("penstock.spi", "nothing")]
)
def test_an_unknown_name_is_an_attribute_error(package: str, name: str) -> None:
    """The error names the package and the name, and nothing is imported for it."""
    _run(_unknown(package, name) + _NO_TRIO)


def test_an_unknown_name_without_an_underscore_is_an_attribute_error() -> None:
    """The root package has to import the everyday names before it knows that this is not one."""
    _run(_unknown("penstock", "nothing"))


def _unknown(package: str, name: str) -> str:
    return (
        f"import {package} as package\n"
        f"try: package.{name}\n"
        "except AttributeError as error: text = str(error)\n"
        "else: raise SystemExit(1)\n"
        f"assert {name!r} in text and {package!r} in text, text\n"
    )


def test_an_operator_is_found_without_its_layer() -> None:
    """A program that imports `penstock.streams` alone can call the methods of `Source`
    that are operators.
    """
    _run("from penstock.streams import from_iterable; print(from_iterable([1]).map(str))")


def test_records_and_errors_are_pickled() -> None:
    """Pickle finds the classes by their modules, which the lazy root does not change."""
    reconnect = pickle.loads(pickle.dumps(penstock.Reconnect(attempts=3)))
    assert reconnect.attempts == 3
    assert isinstance(
        pickle.loads(pickle.dumps(penstock.ConnectionLost("gone"))), penstock.ConnectionLost
    )
