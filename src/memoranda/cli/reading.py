"""The commands that ask: `recall`, `get`, `history`, `list`, `stats`."""

from typing import Annotated, Any, Literal, cast

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.options import Id, Store, command, filters, store

_PAGE = 20


@command(store, filters)
def recall(
    store: Store,
    filters: dict[str, Any],
    query: Annotated[list[str], typer.Argument(metavar="QUESTION...", help="In any words.", show_default=False)],
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", help="How many hits at most.", show_default=False)
    ] = None,
) -> int:
    """Ask a question: the memories that answer it, best first, each with its reasons.

    Where nothing stored answers it, the answer is an abstention that says why,
    and the exit code is 1. The confidence goes from 0 to 1.

    Examples:
        memoranda recall when did the release go out
        memoranda recall "what holds now?" --category project --limit 3
        memoranda recall "when is the release?" --as-of 2025-03-01
    """
    question = " ".join(query)
    with store.opened() as persona:
        found = persona.recall(question, limit=limit, **filters)
    if store.as_json:
        output.print_json(output.recall_document(question, found))
        return DONE if found.hits else NONE
    if found.degraded:
        print(f"(degraded: {found.degraded})")
    if found.hits:
        output.show(output.hits_table(found.hits))
        return DONE
    print(str(found).splitlines()[-1])  # the sentence that says there are none, and why
    return NONE


@command(store)
def get(store: Store, id: Id) -> int:
    """Show one memory whole: its text, its sources, what it replaced and what replaced it.

    Examples:
        memoranda get 7k2m9xqa
    """
    with store.opened() as persona:
        record = persona.memories.get(id)
    if store.as_json:
        empty: dict[str, Any] = {name: [] for name in ("sources", "supersedes", "versions")}
        nothing = {"memory": None, **empty, "superseded_by": None, "access_count": 0, "last_accessed_at": None}
        output.print_json(output.jsonable(record) if record else nothing)
    elif record:
        output.show(output.record_table(record))
    else:
        print("(not found)")
    return DONE if record else NONE


@command(store)
def history(store: Store, id: Id) -> int:
    """Show a memory with all it replaced and all that replaced it, oldest first.

    Examples:
        memoranda history 7k2m9xqa
    """
    with store.opened() as persona:
        chain = persona.memories.history(id)
    if store.as_json:
        output.print_json({"memories": chain})
    elif chain:
        output.show(output.history_table(chain))
    else:
        print("(not found)")
    return DONE if chain else NONE


@command(store, filters)
def list_memories(
    store: Store,
    filters: dict[str, Any],
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many at most, to 1,000.")] = _PAGE,
    order: Annotated[str, typer.Option(metavar="ORDER", help="newest or importance.")] = "newest",
    before: Annotated[
        str | None, typer.Option(metavar="ID", help="The last memory of the page before.", show_default=False)
    ] = None,
) -> int:
    """List memories, the newest first.

    Examples:
        memoranda list --limit 50
        memoranda list --type episodic --date 2025-03-12
        memoranda list --order importance --json
    """
    with store.opened() as persona:
        page = persona.memories.list(
            limit=limit, order=cast(Literal["newest", "importance"], order), before=before, **filters
        )
    following = page[-1].short_id if len(page) == limit else None
    if store.as_json:
        output.print_json({"memories": page, "next": following})
    elif page:
        output.show(output.memories_table(page))
        if following:
            print(f"there may be more: --before {following}")
    else:
        print("(no memories found)")
    return DONE if page else NONE


@command(store)
def stats(store: Store) -> int:
    """Show how much is stored, in numbers.

    Examples:
        memoranda stats --persona main
    """
    with store.opened() as persona:
        statistics = persona.stats()
    if store.as_json:
        output.print_json(output.jsonable(statistics))
    else:
        output.show(output.statistics_table(statistics))
    return DONE
