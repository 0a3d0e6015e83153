"""A bar on standard error while something takes its time, where somebody is watching."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memoranda.cli import output
from memoranda.protocols import Progress


@contextmanager
def progress(doing: str, *, above: int = 0) -> Iterator[Progress]:
    """Show how far something has come, from the first report on.

    Args:
        doing: What is being done, in one word.
        above: How few there may be for a bar not to be worth it.
    """
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=output.console(sys.stderr), transient=True) as bar:
        task = bar.add_task(doing, visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=total > above)
