"""The cells of the example run in a kernel of Jupyter, and print what the file shows. Run by
`nox -s examples`.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests._real_time import HANGS_AFTER

NOTEBOOK = Path(__file__).parents[2] / "examples/notebook/prices.ipynb"

pytest.importorskip("ipykernel", reason="needs ipykernel: `nox -s examples` installs it")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient: `nox -s examples` installs it")
pytest.importorskip("anywidget", reason="needs anywidget: `nox -s examples` installs it")


def _texts(notebook: Any) -> list[list[str]]:
    """Return what each cell has printed, and its result. Jupyter shows a table by its widget."""
    return [
        [
            output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]
            for output in cell["outputs"]
        ]
        for cell in notebook.cells
        if cell["cell_type"] == "code"
    ]


# Jupyter itself warns of the loop that it makes, and of paths.
@pytest.mark.filterwarnings("ignore")
def test_each_cell_prints_what_the_notebook_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first to the last one, in a new kernel. Set PENSTOCK_WRITE_OUT to store the present
    outputs.
    """
    import nbformat  # noqa: PLC0415 (it comes with nbclient, which may be missing)

    monkeypatch.setenv("JUPYTER_PREFER_ENV_PATH", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        run, timeout=HANGS_AFTER, store_widget_state=False, record_timing=False
    )
    client.create_kernel_manager()
    # The Python of this test, and none of the kernels of this machine.
    client.km.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    asyncio.run(client.async_execute())
    for cell in run.cells:
        for output in cell.get("outputs", []):
            # The id of a widget is another one in each run.
            data = output.get("data", {})
            data.pop("application/vnd.jupyter.widget-view+json", None)
            data.pop("text/html", None)
    if "PENSTOCK_WRITE_OUT" in os.environ:
        nbformat.write(run, NOTEBOOK)
        stored = run
    assert _texts(run) == _texts(stored)
