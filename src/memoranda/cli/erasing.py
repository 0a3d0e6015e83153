"""The command `erase`, for whoever answers for the data: it asks for the name of what goes before anything does."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, FAILED, NONE
from memoranda.cli.options import Store, command, store
from memoranda.errors import InvalidInput

if TYPE_CHECKING:
    from memoranda.reports import Erased

_TARGET = "Target"


def _option(*names: str, metavar: str, help: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=_TARGET, show_default=False)


@command(store)
def erase(
    store: Store,
    context: typer.Context,
    memory: Annotated[str | None, _option("--memory", metavar="ID", help="One memory of the persona.")] = None,
    about: Annotated[
        str | None, _option("--about", metavar="SUBJECT", help="All memories about a subject, such as person:ana.")
    ] = None,
    chain: Annotated[
        bool,
        typer.Option(
            "--chain", help="With --memory: also what it replaced and what replaced it.", rich_help_panel=_TARGET
        ),
    ] = False,
    confirm: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="What you would be asked to type.", show_default=False),
    ] = None,
    finish: Annotated[
        bool, typer.Option("--finish", help="Remove the traces that an earlier erasure had to leave.")
    ] = False,
) -> int:
    """Erase for good: one memory, a user, a subject, or a whole persona.

    Name one of --memory, --user, --about, or --persona alone, on the command
    line; with --user and --about, --persona narrows it down to one. Versions,
    sources and vectors go too, and the file is written anew. What would go is
    counted first, and nothing goes until its name was typed.

    Where a trace cannot be removed yet, the exit code is 3: end what reads the
    store and type `memoranda erase --finish`. Backups are not reached.

    Examples:
        memoranda erase --memory 7k2m9xqa
        memoranda erase --user ana --confirm ana
        memoranda erase --about person:ana --persona main
        memoranda erase --persona diary
        memoranda erase --finish
    """
    typed = {name for name in ("persona", "user") if _was_typed(context, name)}
    if finish:
        if typed or memory or about:
            raise InvalidInput("--finish goes without a target")
        with store.engine() as engine, _working("removing traces"):
            erased = engine.finish_erasures()
        return _answer(erased, store, DONE)
    target = _target(store, typed, memory=memory, about=about, chain=chain)
    with store.engine() as engine:
        counted = engine.erase(**target, dry_run=True)
        if not counted.rows:
            return _answer(counted, store, NONE)
        _confirm(counted, target, confirm)
        with _working("erasing"):
            erased = engine.erase(**target)
    return _answer(erased, store, DONE)


def _was_typed(context: typer.Context, option: str) -> bool:
    # What the environment says is where commands work, not what one of them destroys.
    source = context.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _target(store: Store, typed: set[str], *, memory: str | None, about: str | None, chain: bool) -> dict[str, Any]:
    """Return the arguments of `MemoryEngine.erase`."""
    persona = store.persona if "persona" in typed or memory is not None else None
    if "user" in typed:
        return {
            "tenant": store.tenant,
            "persona": persona,
            "user": store.user,
            "about": about,
            "memory": memory,
            "chain": chain,
        }
    if persona is None and about is None:
        raise InvalidInput("say what to erase: --memory, --user, --about or --persona. Try: memoranda erase --help")
    from memoranda.scope import Scope

    # A user without a tenant works in their own, here as in every other command.
    tenant = store.tenant or Scope(user=store.user).tenant
    return {"tenant": tenant, "persona": persona, "about": about, "memory": memory, "chain": chain}


def _confirm(counted: "Erased", target: dict[str, Any], given: str | None) -> None:
    """Have the target's name typed.

    Raises:
        InvalidInput: something else was; nothing was changed.
    """
    kind = next(kind for kind in ("memory", "user", "about", "persona") if target.get(kind) is not None)
    name = str(target[kind])
    if given is None:
        tenant = f"tenant {target['tenant']}" if target["tenant"] else ""
        persona = f"persona {target['persona']}" if target["persona"] else "every persona"
        place = ", ".join(part for part in (tenant, persona) if part)
        sentence = f"{counted}: {kind} {name} in {place}. Nothing brings it back. Type {name} to go on: "
        print(output.one_line(sentence), end=" ", file=sys.stderr, flush=True)
        answer = sys.stdin.readline()
        if not answer:
            print(file=sys.stderr)
        given = answer.rstrip("\r\n")
    if given != name:
        raise InvalidInput(f"nothing was erased: type {name}, or give it with --confirm", field="confirm")


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Show that something is going on, if somebody is watching."""
    if not sys.stderr.isatty():
        yield
        return
    with output.console(sys.stderr).status(what):
        yield


def _answer(erased: "Erased", store: Store, code: int) -> int:
    if store.as_json:
        output.print_json(output.jsonable(erased))
    else:
        print(erased)
    return FAILED if erased.pending else code
