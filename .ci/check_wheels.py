"""Look into the built wheels: `check_wheels.py FOLDER`."""

import sys
import zipfile
from pathlib import Path

PACKAGES = {
    "memoranda": "memoranda",
    "langchain_memoranda": "langchain_memoranda",
    "llama_index_memory_memoranda": "llama_index/memory/memoranda",
}

wheels = {path.name.partition("-")[0]: path for path in Path(sys.argv[1]).glob("*.whl")}
assert set(wheels) == set(PACKAGES), f"built: {sorted(wheels)}"

for distribution, wheel in wheels.items():
    package = PACKAGES[distribution]
    names = zipfile.ZipFile(wheel).namelist()
    modules = [name for name in names if ".dist-info/" not in name]
    strays = [name for name in modules if not name.startswith(f"{package}/")]
    assert not strays, f"{wheel.name} holds more than {package}: {strays[:5]}"
    for needed in ("__init__.py", "py.typed"):
        assert f"{package}/{needed}" in modules, f"{wheel.name} lacks {package}/{needed}"
    litter = [name for name in modules if "__pycache__" in name or name.endswith((".db", ".log"))]
    assert not litter, f"{wheel.name}: {litter[:5]}"
    print(f"{wheel.name}: {len(modules)} files, {wheel.stat().st_size // 1024} KiB")
