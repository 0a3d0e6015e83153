"""The examples of the READMEs and of the docstrings, executed.

A page's ```python blocks run top to bottom in one namespace and one empty folder. A block below
`<!-- not run: reason -->` is only compiled. Docstring examples are doctests; a module is imported only if it has one.
"""

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("integrations/*/README.md")), *sorted(ROOT.glob("docs/**/*.md"))]
SOURCES = ROOT / "src"
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
]
BLOCK = re.compile(r"(?P<skip><!-- not run: .+? -->\s*\n)?^```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_pages_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    namespace = {"__name__": "__main__"}
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("code"))
        code = compile("\n" * line + block["code"], str(page), "exec")
        if not block["skip"]:
            exec(code, namespace)


def test_every_python_block_is_seen_by_the_runner():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(BLOCK.findall(text)) == text.count("```py"), page


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_hold(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS, verbose=False)
    assert results.attempted, f"{module} has an example that doctest does not reach"
    assert not results.failed
