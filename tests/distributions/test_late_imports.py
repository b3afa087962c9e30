"""What the plugins import when they are found: next to nothing. The libraries that they are built on
are imported when one of their URLs, encodings or elements is used, so that a program pays for what
it uses, and not for what is installed.
"""

import subprocess
import sys

import pytest

FOUND = """
import sys
from penstock.spi import build_registry
registry = build_registry(environ={"PENSTOCK_DISABLE_PLUGINS": %r})
assert not registry.problems, registry.problems
print(*sorted({name.partition(".")[0] for name in sys.modules} | {name for name in sys.modules if name.startswith("google.")}))
"""


def modules_with(disabled: str) -> set[str]:
    """Return the packages that a program has when it has made a registry."""
    done = subprocess.run(
        [sys.executable, "-c", FOUND % disabled], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_a_registry_imports_no_library_of_a_plugin() -> None:
    """Beside the plugins' own packages, and those that penstock has in any case."""
    brought = modules_with("") - modules_with("all")
    own = {name for name in brought if name.startswith("penstock_")}
    assert {"penstock_http", "penstock_protobuf", "penstock_metrics"} <= own
    standard = brought & sys.stdlib_module_names
    assert brought - own - standard == set()
    # Of the standard library these cost most. asyncio comes with many clients.
    assert not standard & {"asyncio", "http", "email", "multiprocessing", "concurrent", "sqlite3"}


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("penstock_http", ["AsgiApp", "HttpSource", "HttpTransport"]),
        ("penstock_kafka", ["Fetches", "KafkaAccess", "KafkaLog"]),
        ("penstock_metrics", ["PenstockCollector", "collect", "merged"]),
        ("penstock_nats", ["JetStreamLog"]),
        ("penstock_protobuf", ["ProtobufSerializer"]),
        ("penstock_redis", ["RedisLog"]),
        ("penstock_websocket", ["WebSocketConnection", "WebSocketTransport", "close_code"]),
    ],
)
def test_names_that_come_late_are_those_of_their_package(module: str, names: list[str]) -> None:
    """Each is found, is listed in `__all__`, and another name is an AttributeError."""
    package = pytest.importorskip(module)
    for name in names:
        assert getattr(package, name).__name__ == name
        assert name in package.__all__
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        package.Nothing  # noqa: B018  # the access is the test
