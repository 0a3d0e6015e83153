"""Who is asking: the scope inside which every read and write happens.

`db/queries/visibility.py` turns a scope into the one SQL predicate; nothing else decides what a scope may see.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from memoranda.errors import InvalidInput

_USER_TENANT = "user:"
_NARROWING = ("project", "space", "agent", "thread", "people")
_NAME_LIMIT = 200  # and 400 bytes, which keep an index entry of several names under the limit of either database


def check_name(axis: str, value: object) -> None:
    """Refuse what cannot name anything.

    Raises:
        InvalidInput: it is empty, too long, of more than one line, or holds control characters.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{axis} must be a string", field=axis)
    if not value.strip():
        raise InvalidInput(f"{axis} must not be empty: leave it out if there is none", field=axis)
    if len(value) > _NAME_LIMIT or len(value.encode("utf-8", "replace")) > 2 * _NAME_LIMIT:
        raise InvalidInput(f"{axis} must have at most {_NAME_LIMIT} characters", field=axis)
    if any(ord(c) < 32 or 0xD800 <= ord(c) <= 0xDFFF for c in value) or len(value.splitlines()) > 1:
        raise InvalidInput(f"{axis} must not contain line breaks or other control characters", field=axis)


def check_project(project: object) -> None:
    """Refuse what cannot name a project.

    Raises:
        InvalidInput: as for every name, or it has neither a letter nor a digit.
    """
    check_name("project", project)
    if not project_key(str(project)):
        raise InvalidInput("project must have a letter or a digit", field="project")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The axes that decide what is seen and where it is written.

    `user` is the identity that asks; rows carry it as their `author`. A user without a tenant is a tenant of their own,
    so that nothing is shared by accident; users who name the same tenant can share rows by project.

    Raises:
        InvalidInput: a name is empty, too long or holds control characters.
    """

    persona: str = "main"
    tenant: str = ""
    user: str | None = None
    project: str | None = None
    space: str | None = None
    agent: str | None = None
    thread: str | None = None
    people: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Check every name, and give a user without a tenant their own."""
        check_name("persona", self.persona)
        if self.project is not None:
            check_project(self.project)
        for axis in ("user", "space", "agent", "thread"):
            if (value := getattr(self, axis)) is not None:
                check_name(axis, value)
        if self.people is not None:
            people: object = self.people
            if isinstance(people, str) or not isinstance(people, Iterable):
                raise InvalidInput("people must be a list of names", field="people")
            object.__setattr__(self, "people", tuple(self.people))
            for person in self.people:
                check_name("people", person)
        own = f"{_USER_TENANT}{self.user}" if self.user else ""
        if not self.tenant:
            object.__setattr__(self, "tenant", own)
        elif self.tenant != own:
            check_name("tenant", self.tenant)
            if self.tenant.startswith(_USER_TENANT):
                raise InvalidInput(f"{_USER_TENANT!r} begins the tenant of a single user only", field="tenant")

    @property
    def whose(self) -> tuple[str, str]:
        """Tenant and persona, which no statement goes beyond."""
        return self.tenant, self.persona

    @property
    def author(self) -> str:
        """What a row written in this scope carries as its author; empty without a user."""
        return self.user or ""

    @property
    def narrowing(self) -> dict[str, Any]:
        """What narrows it inside persona and user, as JSON: the axes that are not left out."""
        values = {axis: getattr(self, axis) for axis in _NARROWING}
        return {
            axis: list(value) if isinstance(value, tuple) else value
            for axis, value in values.items()
            if value is not None
        }

    def narrowed(self, axes: Mapping[str, Any]) -> "Scope":
        """Return the same persona and user, narrowed by these axes and no others; see `narrowing`."""
        narrowed: dict[str, Any] = {axis: axes.get(axis) for axis in _NARROWING}
        return replace(self, **narrowed)

    @property
    def subjects(self) -> tuple[str, ...] | None:
        """The values of `about` that concern this scope, or None when it names nobody."""
        if self.people is None and self.agent is None and self.thread is None:
            return None
        named = [f"person:{p}" for p in self.people or ()]
        if self.agent is not None:
            named.append(f"agent:{self.agent}")
        if self.thread is not None:
            named.append(f"thread:{self.thread}")
        return ("everyone", *named)


def owner_of(tenant: str) -> str | None:
    """Return the user whose own tenant it is, None for one that users share."""
    return tenant.removeprefix(_USER_TENANT) if tenant.startswith(_USER_TENANT) else None


def project_key(project: str) -> str:
    """Return what spellings of one project have in common: case, dashes, underscores and spaces do not count."""
    return project.casefold().translate(_SEPARATORS)


_SEPARATORS = str.maketrans("", "", "-_ \t")


def author_cell(tenant: str, persona: str, author: str) -> str:
    """Return the index term that marks the rows of one author, so that a text search starts inside a scope."""
    return _cell("author", tenant, persona, author)


def project_cell(tenant: str, persona: str, project: str) -> str:
    """Return the index term that marks the rows shared with the members of one project."""
    return _cell("project", tenant, persona, project)


def namespace_cell(tenant: str, persona: str, author: str, namespace: str) -> str:
    """Return the index term that marks the texts of an author's items below a namespace."""
    return _cell("namespace", tenant, persona, author, namespace)


@lru_cache(maxsize=4096)
def _cell(*parts: str) -> str:
    # 80 bits: a clash would only cost a wasted look at a row, for the predicate decides what is seen.
    return "c" + sha256("\x1f".join(parts).encode("utf-8", "replace")).hexdigest()[:20]
