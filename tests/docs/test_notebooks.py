"""The notebooks of the cookbook, executed: offline, each in a kernel and a folder of its own."""

import os
import tempfile
from pathlib import Path

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "cookbook").glob("*.ipynb"))

# The kernel is another process: it closes the network for itself, and takes warnings for errors as the tests do.
FIRST = """
import warnings
import matplotlib.font_manager  # the first time anywhere it lists the fonts, and says so
from memoranda.testing import NetworkGuard
warnings.simplefilter("error")
warnings.filterwarnings("ignore", module="ipykernel|IPython")
_guard = NetworkGuard().__enter__()
"""
LAST = "assert not _guard.attempts, _guard.attempts"


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A kernel that is reached through sockets in a folder: no port is opened, and no key is in its environment."""
    for name in [name for name in os.environ if name.startswith(("MEMORANDA_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has at most 107 bytes
        yield AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{short}/kernel")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
async def test_a_notebook_runs_offline(path, kernel, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(FIRST))
    notebook.cells.append(nbformat.v4.new_code_cell(LAST))
    client = NotebookClient(notebook, km=kernel, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    await client.async_execute(cleanup_kc=True)
    printed = [output for cell in notebook.cells[1:] for output in cell.get("outputs", ())]
    assert not [output.text for output in printed if output.get("name") == "stderr"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_a_run_leaves(path):
    for cell in nbformat.read(path, as_version=4).cells:
        assert not cell.get("outputs") and cell.get("execution_count") is None, cell.source
