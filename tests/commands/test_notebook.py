"""examples/notebook.ipynb, run as Jupyter runs it: in a kernel of its own, which has an event loop."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from processes import ROOT

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path, monkeypatch) -> None:
    pytest.importorskip("ipykernel")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    for name in ("MLFLOW_TRACKING_URI", "RAGAUGE_STORE"):
        monkeypatch.delenv(name, raising=False)
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copy(NOTEBOOK, tmp_path)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # it is committed without outputs
    client = nbclient.NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    said = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert [o for o in said if o["output_type"] == "stream" and o["name"] == "stdout"] == []
    shown = [o["data"] for o in said if "data" in o]
    html = [data["text/html"] for data in shown if "text/html" in data]
    assert "bm25 · N=20" in html[0]
    assert "1993" in html[0]
    assert "data:image/png;base64," in html[3]
    assert "image/png" in shown[4]  # the plot
    assert shown[-1]["text/plain"].endswith(", True)")
    assert len(list(tmp_path.glob("outputs/*/*/job.json"))) == 1
    assert len(list(tmp_path.glob("multirun/*/*/*/job.json"))) == 6
