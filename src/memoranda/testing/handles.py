"""The handles of the package: the classes whose verbs come twice, `verb` and its async twin `averb`."""

import importlib
import inspect
import pkgutil

import memoranda


def handles() -> list[type]:
    """Return every class of the package that is a handle, by name."""
    found: set[type] = set()
    for module in pkgutil.walk_packages(memoranda.__path__, "memoranda."):
        if module.name.startswith(("memoranda.testing", "memoranda.cli")) or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and getattr(value, "_memoranda_handle", False):
                found.add(value)
    return sorted(found, key=lambda cls: cls.__name__)
