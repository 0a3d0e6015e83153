"""One plain test body for both halves of the API.

`Twin(engine, "sync")` calls `write`; `Twin(engine, "async")`, under the same name, runs `awrite` to its end on an event
loop that lasts as long as the test. Handles that come out of a call or an attribute are wrapped again, values are
handed over as they are.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Literal, TypeVar

Mode = Literal["sync", "async"]
T = TypeVar("T")


class Loop:
    """Run coroutines one after the other on one event loop, opened at the first use."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run `coroutine` to its end and return what it returns."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner.run(coroutine)

    def close(self) -> None:
        """Close the event loop, if one was opened."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None


class Twin:
    """Stand in for a handle (engine, persona, store) and call the half of each verb that `mode` names.

    In mode "async" a verb without an `a` twin may only return another handle (`engine.persona(...)`); anything else
    raises, so that a missing twin does not pass unseen. Arguments are unwrapped on their way in.
    """

    def __init__(self, handle: object, mode: Mode, loop: Loop | None = None) -> None:
        self._handle = unwrap(handle)
        self._mode: Mode = mode
        self._loop = loop or Loop()

    @property
    def handle(self) -> Any:
        """The wrapped object, for what a test must say to it directly."""
        return self._handle

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._handle, name)
        if is_handle(value):
            return self._wrap(value)
        return self._verb(name, value) if inspect.isroutine(value) else value

    def __enter__(self) -> "Twin":
        if self._mode == "sync":
            self._handle.__enter__()
        else:
            self._loop.run(self._handle.__aenter__())
        return self

    def __exit__(self, *exc_info: object) -> bool | None:
        if self._mode == "sync":
            return bool(self._handle.__exit__(*exc_info))
        return bool(self._loop.run(self._handle.__aexit__(*exc_info)))

    def __eq__(self, other: object) -> bool:
        return bool(self._handle == unwrap(other))

    def __hash__(self) -> int:
        return hash(self._handle)

    def __repr__(self) -> str:
        return f"Twin({self._handle!r}, {self._mode!r})"

    def _wrap(self, value: object) -> "Twin":
        return Twin(value, self._mode, self._loop)

    def _verb(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        twin = getattr(self._handle, f"a{name}", None) if self._mode == "async" else None

        def call(*args: object, **kwargs: object) -> Any:
            plain = [unwrap(arg) for arg in args]
            named = {key: unwrap(arg) for key, arg in kwargs.items()}
            if twin is not None and inspect.iscoroutinefunction(twin):
                result = self._loop.run(twin(*plain, **named))
            else:
                result = method(*plain, **named)
                if self._mode == "async" and not is_handle(result):
                    raise TypeError(f"{type(self._handle).__name__}.{name} has no async twin a{name}")
            return self._wrap(result) if is_handle(result) else result

        call.__name__ = name
        return call


def is_handle(value: object) -> bool:
    """Tell whether `value` is one of the engine's handles: objects whose verbs come in pairs."""
    return bool(getattr(type(value), "_memoranda_handle", False))


def unwrap(value: Any) -> Any:
    """Return the object behind a `Twin`, anything else unchanged."""
    return value.handle if isinstance(value, Twin) else value
