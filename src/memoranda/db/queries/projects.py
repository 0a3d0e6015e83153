"""Projects: who is a member, and how a project is spelled."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from sqlalchemy import Connection, delete, select

from memoranda.db.queries import snapshots
from memoranda.db.queries.visibility import visible
from memoranda.db.schema import Tables
from memoranda.policies import VisibilityPolicy
from memoranda.scope import Scope, project_key


def add_member(conn: Connection, tables: Tables, scope: Scope, project: str, member: str, now: datetime) -> bool:
    """Let a user read and write what a project shares; returns False when they could already."""
    p = tables.project_members
    values = {"tenant": scope.tenant, "persona": scope.persona, "project": project, "member": member, "granted_at": now}
    added = conn.execute(tables.dialect.insert(p).values(values).on_conflict_do_nothing().returning(p.c.member))
    return added.first() is not None


def remove_member(conn: Connection, tables: Tables, scope: Scope, project: str, member: str) -> bool:
    """Take a user's membership away, and what they were shown of it; returns False when there was none."""
    p = tables.project_members
    own = (p.c.tenant == scope.tenant, p.c.persona == scope.persona, p.c.project == project, p.c.member == member)
    if conn.execute(delete(p).where(*own).returning(p.c.member)).first() is None:
        return False
    snapshots.end_of_member(conn, tables, scope, project, member)
    return True


def members(conn: Connection, tables: Tables, scope: Scope, project: str) -> list[str]:
    """Return the members of a project, in order of their names."""
    p = tables.project_members
    own = (p.c.tenant == scope.tenant, p.c.persona == scope.persona, p.c.project == project)
    return list(conn.scalars(select(p.c.member).where(*own).order_by(p.c.member)))


def projects_of(conn: Connection, tables: Tables, scope: Scope) -> Sequence[str]:
    """Return the projects the asking user is a member of."""
    if scope.user is None:
        return ()
    p = tables.project_members
    own = (p.c.tenant == scope.tenant, p.c.persona == scope.persona, p.c.member == scope.user)
    return list(conn.scalars(select(p.c.project).where(*own).order_by(p.c.project)))


def await_turn(conn: Connection, tables: Tables, scope: Scope, name: str) -> None:
    """Wait until nobody else introduces a project, for two writers that do so at once must agree on its spelling."""
    tables.dialect.advise_lock(conn, f"memoranda:project:{scope.tenant}:{scope.persona}:{project_key(name)}")


def spellings(
    conn: Connection, tables: Tables, scope: Scope, policy: VisibilityPolicy, names: Iterable[str], mine: Sequence[str]
) -> dict[str, str]:
    """Return for each name of a project the one spelling the scope uses: a membership's, its memories', or as given."""
    m, found = tables.memories, {}
    members = {project_key(project): project for project in reversed(mine)}
    # In one order, for two batches that introduce the same projects must not wait for each other.
    for name in sorted(set(names), key=project_key):
        key = project_key(name)
        if name in mine or key in members:
            found[name] = name if name in mine else members[key]
            continue
        if (same := next((spelled for other, spelled in found.items() if project_key(other) == key), None)) is not None:
            found[name] = same
            continue
        await_turn(conn, tables, scope, name)
        stored = conn.scalar(
            select(m.c.project)
            .where(visible(tables, scope, policy), m.c.project_key == key, m.c.project_key != "")
            .order_by(m.c.created_at, m.c.id)
            .limit(1)
        )
        found[name] = stored or name
    return found
