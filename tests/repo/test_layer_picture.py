"""The picture of the layers shows the packages and imports of today."""

import importlib.util
from pathlib import Path

from tests.repo._tree import ROOT, layers, text_of

SCRIPT = Path("docs/_ext/layer_picture.py")
SPEC = importlib.util.spec_from_file_location("layer_picture", ROOT / SCRIPT)
assert SPEC is not None
assert SPEC.loader is not None
layer_picture = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(layer_picture)


def test_the_picture_is_drawn_from_the_code_of_today() -> None:
    """It is generated: `python docs/_ext/layer_picture.py` draws it again."""
    drawn = text_of(Path("docs/layers.svg"))
    assert drawn == layer_picture.picture(), f"run `python {SCRIPT}`"
    assert all(f">{name}</text>" in drawn for name in layers())


def test_an_import_that_follows_from_others_has_no_arrow() -> None:
    """If a imports b and c, and b imports c, the arrow from a to c is left out."""
    imports: dict[str, set[str]] = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert layer_picture.arrows(imports) == [("a", "b"), ("b", "c")]
