"""Commands to type after the demo: for this shell, this folder and the way the command was started."""

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memoranda.cli.options import Store


def next_steps(kept: Path | None, store: "Store", *, named: bool) -> list[str]:
    """Return commands that can be typed as they stand.

    Args:
        kept: The file that keeps the story, if any.
        store: Where it was told.
        named: Whether that is an address of the user's own, which may hold a password and is not repeated.
    """
    program = _program()
    lines = [] if kept or named else [f"{program} demo --keep heron.db"]
    place = "--url " + shlex.quote(f"sqlite:///{kept or 'heron.db'}")
    if named:
        place = f'--url "$MEMORANDA_URL" --persona {shlex.quote(store.persona)}'
        place += "" if store.schema == "memoranda" else f" --schema {shlex.quote(store.schema)}"
    elif store.persona != "main":
        place += f" --persona {shlex.quote(store.persona)}"
        lines = [f"{line} --persona {shlex.quote(store.persona)}" for line in lines]
    return [
        *lines,
        f'{program} recall "who paid for the damage?" {place}',
        f"{program} list --date 2025-02-24 {place}",
        f'{program} write "The first thing to remember." && {program} recall "what is there to remember?"',
    ]


def _program() -> str:
    """Return what somebody types to run this command again, in this folder."""
    if shutil.which("memoranda"):
        return "memoranda"
    running = Path(sys.argv[0])
    if running.stem == "memoranda":
        return shlex.quote(_from_here(running))
    return f"{shlex.quote(_from_here(Path(sys.executable)))} -m memoranda.cli"


def _from_here(path: Path) -> str:
    path, here = path.absolute(), Path.cwd()
    if not path.is_relative_to(here):
        return str(path)
    below = path.relative_to(here)
    return str(below) if len(below.parts) > 1 else f".{os.sep}{below}"
