"""Which database it is, and SQL at all, are nobody's business outside `memoranda/db`."""

import ast
import re
from pathlib import Path

import pytest

import memoranda

SOURCE = Path(memoranda.__file__).parent
OUTSIDE = sorted(
    path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] not in ("db", "testing", "cli")
)
EVERYWHERE = sorted(path for path in SOURCE.rglob("*.py") if path.relative_to(SOURCE).parts[0] != "testing")
SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|SCHEMA)|DROP\s+TABLE)\b"
)


def name(path):
    return str(path.relative_to(SOURCE))


def strings_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("path", OUTSIDE, ids=name)
def test_no_sql_stands_outside_the_database_package(path):
    assert not [string for string in strings_of(path) if SQL.search(string)]


@pytest.mark.parametrize("path", EVERYWHERE, ids=name)
def test_no_code_outside_the_dialects_asks_which_database_it_is(path):
    if "db/dialects" in path.as_posix() or path.name == "types.py":  # a column type is told by SQLAlchemy, not by us
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    compared = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare) and re.search(r"dialect\.name|backend_name|drivername", ast.unparse(node))
    ]
    assert not compared


PURE = (
    "text",
    "ranking",
    "redaction",
    "novelty",
    "fencing",
    "suspicion",
    "blocks",
    "documents",
    "messages",
    "dimensions",
    "tokens",
    "prompts",
    "transcripts",
    "salvage",
    "rendering",
    "scope",
    "candidates",
    "policies",
    "errors",
)


@pytest.mark.parametrize(
    "path", [path for path in OUTSIDE if name(path).split("/")[0].removesuffix(".py") in PURE], ids=name
)
def test_pure_code_imports_no_database(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names} | {
        node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }
    assert not [module for module in imported if module.startswith(("sqlalchemy", "alembic", "memoranda.db"))]
