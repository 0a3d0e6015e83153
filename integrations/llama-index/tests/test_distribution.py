from importlib import import_module, metadata
from pathlib import Path

from packaging.requirements import Requirement


def test_the_distribution_imports_under_its_version_and_accepts_the_installed_engine():
    module = import_module("llama_index.memory.memoranda")
    assert module.__version__ == metadata.version("llama-index-memory-memoranda")
    requirements = [Requirement(line) for line in metadata.requires("llama-index-memory-memoranda") or ()]
    assert {r.name for r in requirements} == {"llama-index-core", "memoranda"}
    for requirement in requirements:
        assert requirement.specifier.contains(metadata.version(requirement.name)), requirement


def test_the_folders_above_the_module_stay_a_namespace_shared_with_llama_index_core():
    package = Path(import_module("llama_index.memory.memoranda").__path__[0])
    assert not (package.parent / "__init__.py").exists()
    assert not (package.parent.parent / "__init__.py").exists()
    assert import_module("llama_index.core").__version__
