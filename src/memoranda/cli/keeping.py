"""The commands for statements about somebody: `keep`, `forget`, `core`, `relevant`.

Their answers are the sentences that an agent's tools give.
"""

from typing import Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.fields import memory_fields, scope
from memoranda.cli.options import Id, Project, Store, Text, Words, command, store
from memoranda.cli.rows import read_object
from memoranda.cli.wording import sentence
from memoranda.errors import InvalidInput, StoreError

_PAGE = 50


@command(store, scope, memory_fields)
def keep(
    store: Store,
    scope: dict[str, Any],
    fields: dict[str, Any],
    text: Text,
    id: Annotated[
        str | None,
        typer.Option(metavar="ID", help="The memory to give this text, whatever it says.", show_default=False),
    ] = None,
) -> int:
    """Remember a statement about somebody, once.

    What says nearly the same about the same subject, in the same space, is
    given the new text; the text it had stays in its history. --about is needed.

    Examples:
        memoranda keep "Ana takes her coffee black." --about person:Ana
        memoranda keep "Answers are short." --about everyone --core
        memoranda keep "Ana drinks tea now." --about person:Ana --id 7k2m9xqa
        echo '{"content": "Bo is on leave.", "about": "person:Bo"}' | memoranda keep -
    """
    if text == "-":
        fields = read_object("keep", "content", defaults=fields if id is None else {**fields, "id": id})
        text, id = fields.pop("content"), fields.pop("id", None)
        if id is not None and not isinstance(id, str):
            raise InvalidInput("id must be a string", field="id")
    with store.opened(scope, create=True) as persona:
        kept = persona.memories.keep(text, id=id, **fields)
    if store.as_json:
        output.print_json(
            {
                "answer": str(kept),
                "outcome": kept.outcome,
                "memory": kept.memory,
                "was": kept.was,
                "degraded": kept.degraded,
            }
        )
        return DONE
    print(output.plain(str(kept)))
    output.print_degraded(kept.degraded)
    return DONE


@command(store, scope)
def forget(store: Store, scope: dict[str, Any], id: Id) -> int:
    """Take one memory out of every answer, and say what it said; its history stays.

    Examples:
        memoranda forget 7k2m9xqa
    """
    with store.opened(scope) as persona:
        forgotten = persona.memories.forget(id)
    if store.as_json:
        output.print_json({"answer": str(forgotten), "memory": forgotten.memory})
    else:
        print(output.plain(str(forgotten)))
    return DONE


@command(store, scope)
def core(
    store: Store,
    scope: dict[str, Any],
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many at most, to 1,000.")] = _PAGE,
    project: Project = None,
) -> int:
    """List the memories that are always in mind, the most important first.

    Examples:
        memoranda core
        memoranda core --person Ana --person Bo --json
    """
    with store.opened({**scope, "project": project}) as persona:
        found = persona.memories.core(limit=limit)
    if store.as_json:
        output.print_json({"memories": found})
    elif found:
        output.show(output.memories_table(found))
    else:
        print("(no core memories)")
    return DONE if found else NONE


@command(store, scope)
def relevant(
    store: Store,
    scope: dict[str, Any],
    text: Words,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", help="How many at most.", show_default=False)
    ] = None,
    project: Project = None,
) -> int:
    """Show what is worth telling a model that did not ask, for a hook that runs before every turn.

    Core memories are left out: `memoranda core` has them. A store that cannot
    be reached fails no turn: the answer says (degraded: ...) and the exit code
    is 0; with 1 the memories were looked up, and none is worth it.

    Examples:
        memoranda relevant "Shall we book the flight for Ana?"
        memoranda relevant --person Ana --limit 3 -- "$PROMPT"
    """
    from memoranda.records import Recall

    said = " ".join(text)
    try:
        with store.opened({**scope, "project": project}) as persona:
            found = persona.memories.relevant(said, limit=limit)
    except StoreError as error:  # before the engine could take care of it: there is no such file
        found = Recall(abstained=True, degraded=sentence(error))
    if store.as_json:
        output.print_json(output.recall_document(said, found))
    else:
        output.show_recall(found)
    return DONE if found.hits or found.degraded else NONE
