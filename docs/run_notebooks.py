"""Run the tutorials and store what they print and draw: `make notebooks`.

They run in a temporary folder, so that their files do not stay; times and warnings, which differ between machines, are
not stored.
"""

import os
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run(path: Path) -> None:
    """Execute a notebook in place."""
    notebook = nbformat.read(path, as_version=4)
    language = dict(notebook.metadata.language_info)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, record_timing=False, resources=resources).execute()
    notebook.metadata.language_info = language
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)


if __name__ == "__main__":
    os.environ["TQDM_DISABLE"] = "1"
    for found in sorted(Path(__file__).parent.glob("*.ipynb")):
        print(found.name)
        run(found)
