"""The examples of the READMEs and of the docstrings, executed.

A page's ```python blocks run top to bottom in one namespace and one empty folder. A block below
`<!-- not run: reason -->` is only compiled. Docstring examples are doctests; a module is imported only if it has one.
"""

import doctest
import importlib
import os
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memoranda.cli.app import app

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


def test_the_commands_of_the_readme_run_in_order(tmp_path, monkeypatch):
    """What the shell would do is done here: comments, quotes, and a file in place of standard input."""
    for name in [name for name in os.environ if name.startswith("MEMORANDA_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.jsonl").write_text('"Ana joins late."\n{"content": "Bo reports.", "importance": 7}\n')
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Command line")[2]
    block = re.search(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block
    seen, short_id = [], ""
    for line in block[1].splitlines():
        program, verb, *words = shlex.split(line, comments=True)
        if program != "memoranda" or verb not in ("write", "recall", "supersede", "history"):
            continue
        source: bytes | None = None
        if "<" in words:
            source = Path(words[words.index("<") + 1]).read_bytes()
            words = words[: words.index("<")]
        if verb in ("supersede", "history"):
            words[0] = short_id
        result = CliRunner().invoke(app, [verb, *words], input=source, prog_name="memoranda", catch_exceptions=False)
        assert result.exit_code == 0, (line, result.output)
        short_id = short_id or result.stdout.partition("[")[2].partition("]")[0]
        seen.append(verb)
    assert {"write", "recall", "supersede", "history"} <= set(seen)


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_hold(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results = doctest.testmod(importlib.import_module(module), optionflags=doctest.ELLIPSIS, verbose=False)
    assert results.attempted, f"{module} has an example that doctest does not reach"
    assert not results.failed
