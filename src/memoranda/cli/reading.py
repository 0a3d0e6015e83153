"""The commands that ask: `recall`, `nearest`, `get`, `history`, `list`, `stats`."""

from typing import Annotated, Any, Literal, cast

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.fields import filters, scope
from memoranda.cli.options import Id, IdOrInput, Project, Store, Words, command, store
from memoranda.cli.rows import read_object

_PAGE = 20


@command(store, scope, filters)
def recall(
    store: Store,
    scope: dict[str, Any],
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
    with store.opened(scope) as persona:
        found = persona.recall(question, limit=limit, **filters)
    if store.as_json:
        output.print_json(output.recall_document(question, found))
    else:
        output.show_recall(found)
    return DONE if found.hits else NONE


@command(store, scope)
def nearest(store: Store, scope: dict[str, Any], text: Words, project: Project = None) -> int:
    """Show the one memory that means most nearly the same, whatever the distance.

    Ask before you write: it may be there already, in other words.

    Examples:
        memoranda nearest "The release is on the 12th of March."
    """
    with store.opened(scope) as persona:
        hit = persona.memories.nearest(" ".join(text), project=project)
    if store.as_json:
        output.print_json({"hit": hit})
    elif hit:
        output.show(output.hits_table([hit]))
    else:
        print("(no memories found)")
    return DONE if hit else NONE


@command(store, scope)
def get(
    store: Store,
    scope: dict[str, Any],
    id: IdOrInput,
    as_of: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="What of its chain held then; a day alone means its beginning.", show_default=False
        ),
    ] = None,
) -> int:
    """Show one memory whole: its text, its sources, what it replaced and what replaced it.

    With --as-of it is the memory of the same chain that held then, in the words
    it had, with what replaced it and where that change came from.

    Examples:
        memoranda get 7k2m9xqa
        memoranda get 7k2m9xqa --as-of 2025-03-01
        echo '{"id": "7k2m9xqa"}' | memoranda get -
    """
    if id == "-":
        given = read_object("get", "id", optional=("as_of",), defaults={} if as_of is None else {"as_of": as_of})
        id, as_of = given["id"], given.get("as_of")
    with store.opened(scope) as persona:
        record = persona.memories.get(id, as_of=as_of)
    if store.as_json:
        output.print_json(output.record_document(record))
    elif record:
        output.show(output.record_table(record))
    else:
        print("(not found)")
    return DONE if record else NONE


@command(store, scope)
def history(store: Store, scope: dict[str, Any], id: Id) -> int:
    """Show a memory with all it replaced and all that replaced it, oldest first.

    Examples:
        memoranda history 7k2m9xqa
    """
    with store.opened(scope) as persona:
        chain = persona.memories.history(id)
    if store.as_json:
        output.print_json({"memories": chain})
    elif chain:
        output.show(output.history_table(chain))
    else:
        print("(not found)")
    return DONE if chain else NONE


@command(store, scope, filters)
def list_memories(
    store: Store,
    scope: dict[str, Any],
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
    with store.opened(scope) as persona:
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


@command(store, scope)
def stats(store: Store, scope: dict[str, Any]) -> int:
    """Show how much is stored, in numbers.

    Examples:
        memoranda stats --persona main
    """
    with store.opened(scope) as persona:
        statistics = persona.stats()
    if store.as_json:
        output.print_json(output.jsonable(statistics))
    else:
        output.show(output.statistics_table(statistics))
    return DONE
