"""The commands of `memoranda projects` and `memoranda spaces`: who shares what, and where statements are learned."""

from typing import Annotated

import typer

from memoranda.cli import output
from memoranda.cli.exits import DONE, NONE
from memoranda.cli.options import Store, command, store
from memoranda.errors import InvalidInput

Project = Annotated[
    str, typer.Argument(metavar="PROJECT", help="Its name, spelled as in the memories.", show_default=False)
]
Member = Annotated[str, typer.Argument(metavar="USER", help="The user's name.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The space's name.", show_default=False)]


@command(store)
def add(store: Store, project: Project, member: Member) -> int:
    """Let a user read and write what a project shares; users share within one tenant.

    Examples:
        memoranda projects add apollo ana --tenant acme
    """
    _check_tenant(store, member)
    with store.opened(create=True) as persona:
        added = persona.projects.add_member(project, member)
    if store.as_json:
        output.print_json({"project": project, "member": member, "added": added})
    else:
        print(output.one_line(f"{member} is a member of {project}{'' if added else ' already'}"))
    return DONE


@command(store)
def remove(store: Store, project: Project, member: Member) -> int:
    """Take a user's membership away; what they wrote stays theirs.

    The exit code is 1 when the user was no member.

    Examples:
        memoranda projects remove apollo ana --tenant acme
    """
    _check_tenant(store, member)
    with store.opened() as persona:
        removed = persona.projects.remove_member(project, member)
    if store.as_json:
        output.print_json({"project": project, "member": member, "removed": removed})
    else:
        print(output.one_line(f"{member} is no member of {project}{' any more' if removed else ''}"))
    return DONE if removed else NONE


@command(store)
def members(store: Store, project: Project) -> int:
    """List the members of a project.

    Examples:
        memoranda projects members apollo --tenant acme
    """
    _check_tenant(store)
    with store.opened() as persona:
        found = persona.projects.members(project)
    if store.as_json:
        output.print_json({"project": project, "members": found})
    elif found:
        output.show(output.names_table("member", found))
    else:
        print("(no members)")
    return DONE if found else NONE


def _check_tenant(store: Store, member: str | None = None) -> None:
    """Refuse a membership that nobody could ever make use of: a user without a tenant is a tenant of their own."""
    if not store.tenant and (store.user is None or member not in (None, store.user)):
        raise InvalidInput("users share within one tenant: name it with --tenant or MEMORANDA_TENANT", field="tenant")


@command(store)
def create(store: Store, name: Name) -> int:
    """Open a space, or open it again when it was archived.

    Examples:
        memoranda spaces create family
    """
    with store.opened(create=True) as persona:
        created = persona.spaces.create(name)
    if store.as_json:
        output.print_json({"space": name, "created": created})
    else:
        print(output.one_line(f"{name} is open{'' if created else ' already'}"))
    return DONE


@command(store)
def archive(store: Store, name: Name) -> int:
    """Let nothing more be written in a space; what was learned there stays.

    The exit code is 1 when no space of this name is open.

    Examples:
        memoranda spaces archive family
    """
    with store.opened() as persona:
        archived = persona.spaces.archive(name)
    if store.as_json:
        output.print_json({"space": name, "archived": archived})
    else:
        print(output.one_line(f"{name} is archived" if archived else f"(no space {name} is open)"))
    return DONE if archived else NONE


@command(store)
def list_spaces(store: Store) -> int:
    """List the spaces, open and archived.

    Examples:
        memoranda spaces list
    """
    with store.opened() as persona:
        found = persona.spaces.list()
    if store.as_json:
        output.print_json({"spaces": found})
    elif found:
        output.show(output.spaces_table(found))
    else:
        print("(no spaces)")
    return DONE if found else NONE
