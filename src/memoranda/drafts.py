"""From what a caller gives to what is stored: completed by policy and scope, redacted, cut into index terms.

Pure: the clock's reading and everything else that varies comes in as an argument.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, tzinfo
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from memoranda.errors import InvalidInput
from memoranda.fields import MemoryFields
from memoranda.ids import new_ids
from memoranda.moments import day_of, read_moment
from memoranda.policies import MemoryType, Policies
from memoranda.records import Audience, Memory, SourceType
from memoranda.redaction import redact, redact_value
from memoranda.scope import Scope, author_cell, project_cell
from memoranda.text import Tokenizer, count_terms, join_terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything about the engine and the persona that a draft depends on."""

    scope: Scope
    policies: Policies
    tokenizer: Tokenizer
    zone: tzinfo
    now: datetime
    leaves_jobs: bool = False
    """Whether what cannot be done at once is left for later."""


class Owner(NamedTuple):
    """Who wrote a row, and whom it is shared with."""

    tenant: str
    persona: str
    author: str
    audience: Audience
    project: str


class Origin(NamedTuple):
    """Where a memory came from: the columns of its source, but those that are the memory's."""

    id: UUID
    type: SourceType
    session: str
    channel: str
    actor: str
    excerpt: str
    created_at: datetime

    def __repr__(self) -> str:
        """Show the id, never the excerpt."""
        return f"<Origin {self.id}>"


# Its terms are the words of the text. Frozen, each field of a batch's drafts would cost five times as much.
@dataclass(slots=True, kw_only=True, repr=False)
class Draft:
    """A memory as it is about to be stored, with its provenance and its index terms."""

    memory: Memory
    source: Origin
    cells: str
    """The index terms of who may see it, in the format of `join_terms`."""
    category_terms: str
    content_terms: str
    length: int
    """The number of indexed terms."""
    dedupe_key: str | None
    given_day: date | None
    """The day the caller named, which tells two memories of the same words apart."""
    given: frozenset[str]
    """The fields the caller named: what a revision changes."""

    @property
    def text(self) -> str:
        """What is embedded."""
        return embedded_text(self.memory.content, self.memory.title)


def embedded_text(content: str, title: str | None) -> str:
    """Return the text that stands for a memory in the vector space."""
    return f"{title}\n{content}" if title else content


def embedded_chunk(content: str, headings: Sequence[str]) -> str:
    """Return the text that stands for a chunk of a document: below those of its headings that it does not hold."""
    return "\n".join((*(heading for heading in headings if heading not in content), content))


def hidden(text: str, policies: Policies) -> str:
    """Return a text without its secrets, where the policy takes them out."""
    return redact(text) if text and policies.redaction.enabled else text


class _Common:
    """What the memories of one call have in common, worked out once: names without secrets, owners, the present day."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.hide = redact if setting.policies.redaction.enabled else str
        self.today = day_of(setting.now, setting.zone)
        self._names: dict[str, str] = {}
        self._owners: dict[tuple[str | None, Audience | None, MemoryType], tuple[Owner, str]] = {}

    def name(self, given: str | None) -> str:
        """Return a name without the secrets in it, "" for none."""
        if not given:
            return ""
        name = self._names.get(given)
        if name is None:
            name = self._names[given] = self.hide(given)
        return name

    def owner(self, fields: MemoryFields, kind: MemoryType, index: int | None) -> tuple[Owner, str]:
        """Return whose a memory is, and the index terms of who may see it; raises what `owner_of` does."""
        asked = fields.get("project"), fields.get("audience"), kind
        found = self._owners.get(asked)
        if found is None:
            owner = owner_of(*asked, self.setting, index=index)
            found = self._owners[asked] = owner, join_terms(cells(owner))
        return found


def draft(content: str, fields: MemoryFields, setting: Setting) -> Draft:
    """Complete a checked memory.

    Args:
        content: The cleaned text.
        fields: The parsed fields.
        setting: Scope, policies, tokenizer, zone and the present moment.

    Raises:
        InvalidInput: fields contradict each other.
    """
    [identifiers] = new_ids(1)
    return _draft(content, fields, identifiers, _Common(setting))


def draft_many(checked: Sequence[tuple[str, MemoryFields]], setting: Setting) -> list[Draft]:
    """Complete the checked memories of one call, each as `draft` does.

    Raises:
        InvalidInput: fields contradict each other; names the row.
    """
    common = _Common(setting)
    numbered = enumerate(zip(checked, new_ids(len(checked)), strict=True))
    return [_draft(text, fields, identifiers, common, index) for index, ((text, fields), identifiers) in numbered]


def _draft(
    content: str,
    fields: MemoryFields,
    identifiers: tuple[UUID, str, UUID],
    common: _Common,
    index: int | None = None,
) -> Draft:
    setting, hide, name = common.setting, common.hide, common.name
    scope, policies, now = setting.scope, setting.policies, setting.now
    event_time = read_moment(fields.get("event_time"), setting.zone, "event_time", index)
    valid_from = read_moment(fields.get("valid_from"), setting.zone, "valid_from", index)
    valid_to = read_moment(fields.get("valid_to"), setting.zone, "valid_to", index)
    if valid_from and valid_to and valid_to < valid_from:
        raise InvalidInput("valid_to lies before valid_from", field="valid_to", index=index)
    kind = fields.get("type", policies.write.type)
    owner, owner_cells = common.owner(fields, kind, index)
    if policies.visibility.about == "required":
        require_about(fields, index)
    given, title, source = fields.get("metadata", {}), fields.get("title"), fields.get("source", {})
    identifier, short_id, origin = identifiers
    memory = Memory(
        id=identifier,
        short_id=short_id,
        content=hide(content),
        type=kind,
        status="active",
        category=name(fields.get("category")) or None,
        title=hide(title) if title else None,
        importance=fields.get("importance", policies.write.importance),
        confidence=fields.get("confidence", policies.write.confidence),
        core=fields.get("core", False),
        day=fields.get("day") or (day_of(event_time, setting.zone, index) if event_time else common.today),
        event_time=event_time,
        valid_from=valid_from,
        valid_to=valid_to,
        tenant=owner.tenant,
        persona=owner.persona,
        author=owner.author,
        audience=owner.audience,
        project=owner.project,
        space=scope.space or "",
        about=name(fields.get("about")),
        session=name(fields.get("session")),
        position=fields.get("position"),
        metadata=redact_value(given) if given and policies.redaction.enabled else given,
        created_at=now,
        updated_at=now,
    )
    category_terms, content_terms, length = index_terms(memory, setting.tokenizer)
    return Draft(
        memory=memory,
        source=Origin(
            origin,
            source.get("type", "manual"),
            name(source.get("session")) or memory.session,
            name(source.get("channel")),
            name(source.get("actor") or scope.agent),
            hide(excerpt) if (excerpt := source.get("excerpt")) else "",
            now,
        ),
        cells=owner_cells,
        category_terms=category_terms,
        content_terms=content_terms,
        length=length,
        dedupe_key=dedupe_key(memory, fields.get("day")) if policies.dedupe.name != "none" else None,
        given_day=fields.get("day"),
        given=frozenset(fields),
    )


def owner_of(
    project: str | None, audience: Audience | None, kind: MemoryType, setting: Setting, *, index: int | None = None
) -> Owner:
    """Return who writes a row, and whom it is shared with: as the caller says, else as scope and policy do.

    Raises:
        InvalidInput: it is to be shared with a project that is not named, or the project's name looks like a secret.
    """
    scope, policies = setting.scope, setting.policies
    project = (scope.project if project is None else project) or ""
    if hidden(project, policies) != project:
        raise InvalidInput("project looks like a secret: give the project a name", field="project", index=index)
    audience = audience or _audience(policies, kind, project)
    if audience == "project" and not project:
        raise InvalidInput("audience 'project' needs a project", field="audience", index=index)
    return Owner(scope.tenant, scope.persona, scope.author, audience, project)


def require_about(fields: MemoryFields, index: int | None = None) -> None:
    """Refuse a statement that is about nobody.

    Raises:
        InvalidInput: `about` is missing.
    """
    if not fields.get("about"):
        raise InvalidInput(
            "about is missing: say whom it concerns, with everyone, person:NAME, agent:NAME or thread:NAME",
            field="about",
            index=index,
        )


def _audience(policies: Policies, kind: MemoryType, project: str) -> Audience:
    shares = policies.write.audience == "by_type" and kind != "preference"
    return "project" if shares and project else "private"


def index_terms(memory: Memory, tokenizer: Tokenizer) -> tuple[str, str, int]:
    """Return the index terms of the category and of title and content, in the format of `join_terms`, and how many."""
    category = join_terms(tokenizer.terms(memory.category)) if memory.category else ""
    content = join_terms(tokenizer.terms(embedded_text(memory.content, memory.title)))
    return category, content, count_terms(category) + count_terms(content)


def chunk_terms(source: str, content: str, headings: Sequence[str], tokenizer: Tokenizer) -> tuple[str, str, int]:
    """Return the index terms of a chunk's document and of its text, in the format of `join_terms`, and how many."""
    category = join_terms(tokenizer.terms(source))
    content = join_terms(tokenizer.terms(embedded_chunk(content, headings)))
    return category, content, count_terms(category) + count_terms(content)


def respell(draft: Draft, project: str) -> Draft:
    """Return the draft with another spelling of its project."""
    memory = replace(draft.memory, project=project)
    key = dedupe_key(memory, draft.given_day) if draft.dedupe_key else None
    return replace(draft, memory=memory, cells=join_terms(cells(memory)), dedupe_key=key)


def cells(row: Memory | Owner) -> list[str]:
    """Return the index terms that say who may see a row."""
    found = [author_cell(row.tenant, row.persona, row.author)]
    if row.audience == "project":
        found.append(project_cell(row.tenant, row.persona, row.project))
    return found


def dedupe_key(memory: Memory, day: date | None) -> str:
    """Return what two writes of the same memory have in common: text, place, audience, and the time that was given."""
    parts = (
        memory.author,
        memory.audience,
        memory.project,
        memory.space,
        memory.about,
        memory.session,
        "" if memory.position is None else str(memory.position),
        *("" if t is None else t.isoformat() for t in (day, memory.event_time, memory.valid_from, memory.valid_to)),
        " ".join((memory.title or "").split()),
        " ".join(memory.content.split()),
    )
    return sha256("\x1f".join(parts).encode()).hexdigest()[:32]
