"""The commands of `memoranda db`: the tables and the indexes, for whoever runs the database."""

from pathlib import Path

from memoranda.cli import output
from memoranda.cli.exits import DONE, FAILED, NONE
from memoranda.cli.options import Store, command, store
from memoranda.errors import StoreUnavailable


@command(store)
def upgrade(store: Store) -> int:
    """Create or upgrade the tables; safe to run again.

    A SQLite file needs this only to be made ahead of its first use.

    Examples:
        memoranda db upgrade --url postgresql://memo@localhost/app
    """
    with store.engine(create=True) as engine:
        applied = engine.setup()
        revision = engine.revision()
    if store.as_json:
        output.print_json({"applied": applied, "revision": revision})
    else:
        print(f"applied {', '.join(applied)}" if applied else f"up to date: {revision}")
    return DONE


@command(store)
def current(store: Store) -> int:
    """Show the revision of the tables, and that of this release.

    The exit code is 1 when there are no tables.

    Examples:
        memoranda db current
    """
    revision, head = _revisions(store)
    if store.as_json:
        output.print_json({"revision": revision, "head": head})
    else:
        print(f"revision {revision or '(none)'}, this release {head}")
    return DONE if revision else NONE


@command(store)
def check(store: Store) -> int:
    """Say whether the tables are those of this release: exit code 0, or 3 where something is to be done.

    Examples:
        memoranda db check && start-the-agent
    """
    from memoranda.db.migrations import REVISIONS

    revision, head = _revisions(store)
    states = {
        None: ("missing", "there are no tables yet: run `memoranda db upgrade`"),
        head: ("up to date", f"up to date: {head}"),
    }
    outdated = ("outdated", f"outdated: {revision}, this release needs {head}: run `memoranda db upgrade`")
    too_new = ("too new", f"too new: {revision}, this release knows {head}: upgrade the memoranda package")
    state, sentence = states.get(revision, outdated if revision in REVISIONS else too_new)
    if store.as_json:
        output.print_json({"state": state, "revision": revision, "head": head})
    else:
        print(sentence)
    return DONE if revision == head else FAILED


@command(store)
def index(store: Store) -> int:
    """Build the approximate vector index where the store is large enough for it to pay.

    Readers and writers go on meanwhile. SQLite compares every vector and needs none.

    Examples:
        memoranda db index --url postgresql://memo@localhost/app
    """
    with store.engine() as engine:
        # Asking for anything first lets the engine learn which embedder the store was made with.
        engine.persona(store.persona, tenant=store.tenant, user=store.user).stats()
        built = engine.build_indexes()
    if store.as_json:
        output.print_json({"index": built})
    else:
        print("the vector index is there" if built else "no index is needed: every vector is compared")
    return DONE


def _revisions(store: Store) -> tuple[str | None, str]:
    from memoranda.db.dialects import parse_url
    from memoranda.db.migrations import HEAD

    with store.engine(create=True) as engine:  # asking for the revision makes no file
        if engine.is_new and store.url and not Path(parse_url(store.url).database or "").parent.is_dir():
            raise StoreUnavailable("There is no such folder as the one of this address: check the address.")
        return engine.revision(), HEAD
