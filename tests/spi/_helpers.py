"""Distributions for one test: real metadata in a folder on the import path, found as
if they were installed.
"""

import importlib
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from penstock.spi import _finding


class Shelf:
    """A folder of distributions on the import path. The search finds these and penstock only, so
    other installed plugins do not disturb.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self._seen = {"penstock"}
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.setattr(_finding, "distributions", self._distributions)

    def _distributions(self) -> list[Distribution]:
        return [each for each in distributions() if each.metadata["Name"] in self._seen]

    def install(
        self,
        distribution: str,
        code: str,
        *,
        entry: str | None = None,
        module: str | None = None,
        version: str = "1.0",
        group: str = "penstock",
    ) -> None:
        """Install a distribution with one module and an entry point called `entry`, which may name
        an object of the module: ``hello:HELLO``.
        """
        self._seen.add(distribution)
        module = module or distribution.replace("-", "_")
        (self.folder / f"{module}.py").write_text(code, encoding="utf-8")
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n", encoding="utf-8"
        )
        name, colon, attribute = (entry or distribution).partition(":")
        (info / "entry_points.txt").write_text(
            f"[{group}]\n{name} = {module}{colon}{attribute}\n", encoding="utf-8"
        )
        importlib.invalidate_caches()
        # After the test, monkeypatch restores sys.modules.
        self.monkeypatch.delitem(sys.modules, module, raising=False)


SERIALIZER = """
from penstock.spi import Serializer, hookimpl

class Mine(Serializer):
    name = "{name}"
    def dumps(self, element, /): return b""
    def loads(self, data, /): return 1

@hookimpl
def penstock_serializers():
    return [Mine()]
"""
