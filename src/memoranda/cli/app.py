"""The commands put together, and the boundary at which every error becomes one line and an exit code."""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from memoranda import __version__
from memoranda.cli import (
    calibrate,
    conversations,
    correcting,
    database,
    demo,
    doctor,
    erasing,
    jobs,
    keeping,
    knowledge,
    members,
    moving,
    reading,
    upkeep,
    writing,
)
from memoranda.cli.exits import DONE, EPILOG, FAILED, INTERRUPTED, REFUSED, UNREAD, complain, report
from memoranda.errors import MemorandaError


class CommandLine(TyperGroup):
    """The group of all commands: runs one, and ends the process with its exit code."""

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run a command; takes what Typer's groups take."""
        given = options.get("args", args[0] if args else None)
        words = sys.argv[1:] if given is None else list(given)
        as_json = "--json" in (words[: words.index("--")] if "--" in words else words)
        options["standalone_mode"] = False
        try:
            code = self._outcome(args, options, as_json=as_json)
            sys.stdout.flush()
        except (BrokenPipeError, SystemExit):
            # Typer and Rich leave with 1 when the reader has gone; here that would read as "nothing found".
            _discard_output()
            code = UNREAD
        sys.exit(code)

    def _outcome(self, args: Sequence[Any], options: dict[str, Any], *, as_json: bool) -> int:
        """Run a command and return its exit code, whatever it raises."""
        try:
            code = super().main(*args, **options)
        except typer.Abort:
            return INTERRUPTED
        except BrokenPipeError:
            raise
        except MemorandaError as error:
            return report(error, as_json=as_json)
        except Exception as error:
            # Typer brings its own copy of Click or uses the installed one: usage errors are told by what they can do.
            if hasattr(error, "format_message"):
                return complain(_usage(error), kind="UsageError", code=REFUSED, as_json=as_json)
            return _report_defect(error, as_json=as_json)
        return code if isinstance(code, int) else DONE


def _discard_output() -> None:
    """Send what is still to be written nowhere, or the interpreter would complain about it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _usage(error: Any) -> str:
    """Return what is wrong with a command line, and what to type instead."""
    context: Any = getattr(error, "ctx", None)
    hint = f" Try: {context.command_path} --help" if context else ""
    message: str = error.format_message()
    takes = {parameter.name for parameter in context.command.params} if context else set()
    if "text" in takes and message.startswith("Got unexpected extra argument"):
        before = " ID" if "id" in _arguments(context) else ""
        return f'The text came as several words: put it in quotes, {context.command_path}{before} "TEXT".{hint}'
    option = getattr(error, "option_name", "") if hasattr(error, "possibilities") else ""
    if option and takes & {"text", "query"} and (" " in option or not error.possibilities):
        what = "text" if "text" in takes else "question"
        hint = f" If a {what} begins with a dash, type -- before it.{hint}"
    return f"{message if message.endswith(('.', '?')) else f'{message}.'}{hint}"


def _arguments(context: Any) -> set[str]:
    return {parameter.name for parameter in context.command.params if parameter.param_type_name == "argument"}


def _report_defect(error: Exception, *, as_json: bool) -> int:
    """Report an error nobody foresaw; Python's own exit code for it would read as "nothing found"."""
    from traceback import format_exception

    from memoranda.redaction import redact

    trace, name = redact("".join(format_exception(error))), type(error).__name__
    details = {"traceback": trace} if as_json else {}
    if not as_json:
        sys.stderr.write(trace)
    return complain(f"an unforeseen {name}: please report it", kind=name, code=FAILED, as_json=as_json, **details)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"memoranda {__version__}")
        raise typer.Exit()


def start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Long-term memory for agents: write memories, correct them, and ask.

    Every command takes --url (or MEMORANDA_URL) and prints JSON with --json. Start with `memoranda demo`.
    """
    _help_if_alone(context)


def start_database(context: typer.Context) -> None:
    """Create, upgrade and check the tables."""
    _help_if_alone(context)


def start_conversations(context: typer.Context) -> None:
    """List, show and search what was said."""
    _help_if_alone(context)


def start_knowledge(context: typer.Context) -> None:
    """Take in documents, which `recall` finds beside memories, and look at them."""
    _help_if_alone(context)


def start_projects(context: typer.Context) -> None:
    """Say who may read and write what a project shares."""
    _help_if_alone(context)


def start_spaces(context: typer.Context) -> None:
    """Open and archive the spaces in which statements are learned."""
    _help_if_alone(context)


def _help_if_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        if text := context.get_help():  # Rich prints by itself
            print(text)
        raise typer.Exit()


_SETTINGS: dict[str, Any] = {"add_completion": False, "pretty_exceptions_enable": False, "rich_markup_mode": "rich"}
_STORE, _TALKS = "Store", "Conversations"

app = typer.Typer(cls=CommandLine, **_SETTINGS)
app.callback(invoke_without_command=True, epilog=EPILOG)(start)
app.command("demo", epilog=EPILOG)(demo.demo)
for _panel, _verbs in (
    (
        "Write and correct",
        {
            "write": writing.write,
            "supersede": correcting.supersede,
            "mark": correcting.mark,
            "undo": correcting.undo,
            "delete": correcting.delete,
        },
    ),
    (
        "Ask",
        {
            "recall": reading.recall,
            "nearest": reading.nearest,
            "get": reading.get,
            "history": reading.history,
            "list": reading.list_memories,
            "stats": reading.stats,
        },
    ),
    (
        "Statements about somebody",
        {"keep": keeping.keep, "forget": keeping.forget, "core": keeping.core, "relevant": keeping.relevant},
    ),
    (
        _TALKS,
        {
            "prompt": conversations.prompt,
            "flush": conversations.flush,
            "compact": conversations.compact,
            "review": conversations.review,
        },
    ),
    (
        _STORE,
        {
            "export": moving.export,
            "import": moving.import_file,
            "backup": moving.backup,
            "doctor": doctor.doctor,
            "calibrate": calibrate.calibrate,
            "erase": erasing.erase,
        },
    ),
    (
        "Vectors and jobs",
        {
            "check": upkeep.check,
            "backfill": upkeep.backfill,
            "reembed": upkeep.reembed,
            "jobs": jobs.jobs,
            "worker": jobs.worker,
        },
    ),
):
    for _name, _verb in _verbs.items():
        app.command(_name, epilog=EPILOG, rich_help_panel=_panel)(_verb)
for _name, _start, _verbs in (
    (
        "conversations",
        start_conversations,
        {
            "list": conversations.list_conversations,
            "show": conversations.show,
            "search": conversations.search,
        },
    ),
    (
        "knowledge",
        start_knowledge,
        {
            "ingest": knowledge.ingest,
            "list": knowledge.list_documents,
            "show": knowledge.show,
            "delete": knowledge.delete,
        },
    ),
    ("projects", start_projects, {"add": members.add, "remove": members.remove, "members": members.members}),
    ("spaces", start_spaces, {"create": members.create, "archive": members.archive, "list": members.list_spaces}),
    (
        "db",
        start_database,
        {
            "upgrade": database.upgrade,
            "current": database.current,
            "check": database.check,
            "index": database.index,
        },
    ),
):
    _group = typer.Typer(**_SETTINGS)
    _group.callback(invoke_without_command=True, epilog=EPILOG)(_start)
    for _verb_name, _verb in _verbs.items():
        _group.command(_verb_name, epilog=EPILOG)(_verb)
    app.add_typer(_group, name=_name, rich_help_panel=_TALKS if _name == "conversations" else _STORE)
