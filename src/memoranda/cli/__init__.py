"""The `memoranda` command: the engine's verbs in a terminal, for people and, with `--json`, for scripts.

Loading this package costs nothing; a command loads the engine when it runs, so that `--help` answers at once.
"""

import sys
from importlib.util import find_spec

__all__ = ["main"]


def main() -> None:
    """Run the command line of this process; ends by `SystemExit` with one of the codes in `memoranda.cli.exits`."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a Windows console or pipe would take another encoding
            stream.reconfigure(encoding="utf-8", errors="replace")
    if not (find_spec("typer") and find_spec("rich")):
        print('error: the command line needs its extra: pip install "memoranda[cli]"', file=sys.stderr)
        sys.exit(2)
    from memoranda.cli.app import app

    app(prog_name="memoranda")
