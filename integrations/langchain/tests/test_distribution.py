import subprocess
import sys
from importlib import metadata

import pytest
from packaging.requirements import Requirement

import langchain_memoranda


def test_the_distribution_imports_under_its_version_and_accepts_what_is_installed():
    assert langchain_memoranda.__version__ == metadata.version("langchain-memoranda")
    requirements = [Requirement(line) for line in metadata.requires("langchain-memoranda") or ()]
    assert {r.name for r in requirements if r.marker is None} == {"langchain-core", "memoranda"}
    for requirement in requirements:
        if not requirement.extras:
            assert requirement.specifier.contains(metadata.version(requirement.name)), requirement


@pytest.mark.parametrize("name", langchain_memoranda.__all__)
def test_every_public_name_is_there(name):
    value = getattr(langchain_memoranda, name)
    assert name.startswith("__") or value.__doc__
    assert name in dir(langchain_memoranda)


def test_another_name_is_none():
    with pytest.raises(AttributeError, match="Nothing"):
        langchain_memoranda.Nothing  # noqa: B018


@pytest.mark.parametrize(("name", "extra"), [("MemoryMiddleware", "agents"), ("ClassicMemory", "classic")])
def test_a_name_that_needs_an_extra_says_which(name, extra):
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['langchain', 'langgraph', 'langchain_classic']))\n"
        "import langchain_memoranda\n"
        f"try: langchain_memoranda.{name}\n"
        "except ImportError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert f"langchain-memoranda[{extra}]" in told
