"""The commands for the vectors of a store: `backfill`, `reembed`, `check`."""

from typing import Annotated

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, FAILED
from memoranda.cli.jobs import why_left
from memoranda.cli.options import Store, command, whole_store
from memoranda.cli.progress import progress
from memoranda.cli.wording import sentence
from memoranda.errors import EmbedderUnavailable, InvalidInput


@command(whole_store)
def backfill(store: Store) -> int:
    """Give a vector to every memory that was stored without one, of all personas and tenants.

    That is how an embedder that was down, or came later, catches up; jobs that
    were given up are tried again. The exit code is 3 when some are left,
    because it is down still.

    Examples:
        memoranda backfill
    """
    # Not inline: what is left to be done is done by `drain`, which says how far it has come.
    with store.engine(background="external") as engine, progress("embedding") as advance:
        engine.retry_jobs()
        queued = engine.backfill()
        engine.drain(progress=advance)
        left = engine.jobs(kind="embed")
    if store.as_json:
        output.print_json({"queued": queued, "left": left})
    elif left:
        print(f"not every memory has a vector: {why_left(left)}. See: memoranda jobs")
    elif queued:
        print(f"{output.counted(queued, 'memory', 'memories')} had no vector: now every memory has one")
    else:
        print("every memory has a vector")
    return FAILED if left else DONE


@command(whole_store)
def reembed(
    store: Store,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the vectors of other embedders at the end.")] = False,
) -> int:
    """Move the store to the embedder that --embedder names, while recall goes on with the old one.

    The new vectors are written beside the old; when every memory has one, reads
    switch at once. A run that was interrupted goes on where it was: type the
    same again. Programs that have the store open go on with the old vectors
    until they open it anew, so let them end before --prune. The exit code is 3
    when the embedder refuses single texts: the store moves without these.

    Examples:
        memoranda reembed --embedder wordllama
        memoranda reembed --embedder openai/text-embedding-3-small@512 --prune
    """
    if store.embedder in (None, "auto", "none"):
        raise InvalidInput("name the embedder to move to: --embedder NAME", field="embedder")
    so_far = ""
    with store.engine(background="external") as engine, progress("embedding") as advance:

        def told(done: int, total: int) -> None:
            nonlocal so_far
            so_far = f" {done:,} of {total:,} memories are done."
            advance(done, total)

        try:
            embedded = engine.reembed(prune=prune, progress=told)
        except EmbedderUnavailable as error:
            again = "The store goes on with its old vectors: type the same again to go on from here."
            raise type(error)(f"{sentence(error).rstrip('.')}.{so_far} {again}") from error
        refused = [job for job in engine.jobs(kind="embed", limit=1_000) if job.status == "failed"]
    if store.as_json:
        output.print_json({"embedded": embedded, "embedder": store.embedder, "refused": refused})
    elif embedded or refused:
        print(f"{output.counted(embedded, 'memory', 'memories')} embedded: the store goes by {store.embedder} now")
    else:
        print(f"the store goes by {store.embedder}, and every memory has its vector")
    if refused and not store.as_json:
        print(f"some texts were refused, and are found by their words: {why_left(refused)}. See: memoranda jobs")
    return FAILED if refused else DONE


@command(whole_store)
def check(store: Store) -> int:
    """Have the store's embedder embed one word, and say which model it is.

    An error says what to do: exit code 2 when it is not the one the store was
    made with, or lacks an extra; 3 when it does not answer or refuses the key.

    Examples:
        memoranda check
        memoranda check --embedder openai/text-embedding-3-small
    """
    with store.engine(background="external") as engine:
        model = engine.check()
    if store.as_json:
        output.print_json({"embedder": model})
    else:
        print(f"{model} answers" if model else "the store goes by words only: there is no embedder to ask")
    return DONE
