"""The commands for what is done in the background: `jobs` shows it, `worker` does it."""

import logging
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, FAILED, NONE
from memoranda.cli.options import Store, command, whole_store
from memoranda.cli.progress import progress
from memoranda.cli.wording import sentence, typed
from memoranda.errors import EmbedderRefused, EmbedderUnavailable

if TYPE_CHECKING:
    from rich.table import Table

    from memoranda.engine import MemoryEngine
    from memoranda.reports import Job

_PAGE = 50


@command(whole_store)
def jobs(
    store: Store,
    retry: Annotated[bool, typer.Option("--retry", help="Have those tried again that were given up.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many at most, to 1,000.")] = _PAGE,
) -> int:
    """List what is left to be done in the background and what was given up, whoever's, the oldest first.

    A job that failed waits for its next attempt, and is given up after five, or
    at once when the embedder refuses the call; nothing is lost by that, for the
    memories are found by their words. `memoranda worker` does jobs, and so does
    every program that has the store open and was not told otherwise. The exit
    code is 1 when there are none.

    Examples:
        memoranda jobs
        memoranda jobs --retry
    """
    with store.engine(background="external") as engine:
        retried = engine.retry_jobs() if retry else None
        found = engine.jobs(limit=limit)
    if store.as_json:
        output.print_json({"jobs": found, "retried": retried})
        return DONE if found else NONE
    if found:
        output.show(_table(found))
    else:
        print("(no jobs)")
    if retried:
        print(f"{output.counted(retried, 'job', 'jobs')} will be tried again")
    elif any(job.status == "failed" for job in found):
        print("to have those tried again that were given up: --retry")
    if len(found) == limit:
        print("there may be more: --limit")
    return DONE if found else NONE


def _table(found: "Sequence[Job]") -> "Table":
    table = output.table(("state", 8), ("kind", 8), ("tries", 5), ("due (UTC)", 16))
    table.add_column("whose, and what went wrong", overflow="fold", ratio=1)
    for job in found:
        state = "given up" if job.status == "failed" else "running" if job.running else "waiting"
        text = output.styled(output.one_line("/".join(filter(None, (job.tenant, job.persona)))))
        if job.error:
            text.append(f"\n{output.one_line(typed(job.error))}", style="dim italic")
        due = job.due_at.strftime("%Y-%m-%d %H:%M") if state == "waiting" else ""
        table.add_row(state, job.kind, str(job.attempts), due, text)
    return table


@command(whole_store)
def worker(
    store: Store,
    once: Annotated[bool, typer.Option("--once", help="Do what can be begun now, and end.")] = False,
) -> int:
    """Do what writes leave for later, such as embedding, for all personas and tenants, until it is told to end.

    With SIGTERM or Ctrl-C the job it is at is the last, and the exit code is 0.
    Several workers may run at once, on several machines: each job is done by
    one, and what a killed one held is done by another two minutes later. What
    it does is said on standard error, in ids and counts. An embedder that sends
    texts out has to be named. With --once the exit code is 3 when something is
    left.

    Examples:
        memoranda worker --embedder openai/text-embedding-3-small
        memoranda worker --once
    """
    with store.engine(background="external") as engine:
        model = _checked(engine, store)
        if once:
            return _drain(engine, store, model)
        with _signals() as stop, _log_on_standard_error():
            embedder = f"embeds with {model}" if model else "the store goes by words only"
            _say(f"at work, {embedder}; ends with SIGTERM or Ctrl-C")
            engine.work(stop)
            _say("ended")
    if store.as_json:
        output.print_json({"embedder": model})
    return DONE


def _checked(engine: "MemoryEngine", store: Store) -> str | None:
    """Return the store's model; an embedder that may be down for a while keeps no worker from waiting for it."""
    try:
        return engine.check()
    except EmbedderUnavailable as error:
        lacking = store.embedder in (None, "auto")  # then it is not at hand here, and will not come by waiting
        if lacking or isinstance(error, EmbedderRefused):
            raise
        _say(f"warning: {sentence(error)} Jobs wait until it answers.")
        return store.embedder


def _drain(engine: "MemoryEngine", store: Store, model: str | None) -> int:
    begun = 0
    with progress("working") as advance:

        def count(done: int, total: int) -> None:
            nonlocal begun
            begun += 1
            advance(done, total)

        engine.drain(progress=count)
    left = engine.jobs(limit=1_000)
    if store.as_json:
        output.print_json({"embedder": model, "begun": begun, "left": left})
    else:
        print(f"{output.counted(begun, 'job', 'jobs')} begun; {_outcome(left)}")
    return FAILED if left else DONE


def _outcome(left: "Sequence[Job]") -> str:
    if not left:
        return "nothing is left to be done"
    return f"not everything is done: {why_left(left)}. See: memoranda jobs"


def why_left(left: "Sequence[Job]") -> str:
    """Return what the newest of these jobs that failed was told."""
    why = next((job.error for job in reversed(left) if job.error), "") or "somebody else is at it"
    return output.one_line(typed(why)).rstrip(".")


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Set an event at the first signal that asks for an end; a second one ends the process as it does elsewhere."""
    stop = threading.Event()

    def ask(number: int, frame: object) -> None:
        restore()
        stop.set()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    before: dict[int, Any] = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        restore()


@contextmanager
def _log_on_standard_error() -> Iterator[None]:
    """Print what the engine logs, which is ids, counts and errors."""
    logger, handler = logging.getLogger("memoranda"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


def _say(line: str) -> None:
    print(output.one_line(f"memoranda worker: {line}"), file=sys.stderr, flush=True)
