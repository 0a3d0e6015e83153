"""Run in an environment that holds nothing but the built wheels: do they import, typed and light?"""

import sys
from importlib import import_module, resources
from importlib.metadata import version

HEAVY = {"sqlalchemy", "alembic", "numpy", "pydantic"}

engine = import_module("memoranda")
loaded = HEAVY & set(sys.modules)
assert not loaded, f"import memoranda loads {sorted(loaded)}"
assert "site-packages" in (engine.__file__ or ""), f"not the wheel: {engine.__file__}"

for module, distribution in {
    "memoranda": "memoranda",
    "langchain_memoranda": "langchain-memoranda",
    "llama_index.memory.memoranda": "llama-index-memory-memoranda",
}.items():
    imported = import_module(module)
    assert imported.__version__ == version(distribution), distribution
    assert resources.files(module).joinpath("py.typed").is_file(), f"{module} is not marked as typed"
    print(f"{distribution} {imported.__version__}")

for name in engine.__all__:
    getattr(engine, name)

with engine.MemoryEngine("sqlite:///:memory:", embedder="hash/words") as store:
    me = store.persona("main")
    me.memories.write("The wheel was built and installed.")
    assert len(me.recall("which wheel was built?")) == 1
print("a memory was written and recalled")
