from importlib import metadata

from packaging.requirements import Requirement

import langchain_memoranda


def test_the_distribution_imports_under_its_version_and_accepts_the_installed_engine():
    assert langchain_memoranda.__version__ == metadata.version("langchain-memoranda")
    requirements = [Requirement(line) for line in metadata.requires("langchain-memoranda") or ()]
    assert {r.name for r in requirements} == {"langchain-core", "memoranda"}
    for requirement in requirements:
        assert requirement.specifier.contains(metadata.version(requirement.name)), requirement
