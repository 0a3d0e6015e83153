"""LangChain's record manager in the database of the documents it keeps account of."""

from collections.abc import Sequence

from langchain_core.indexing import RecordManager

from memoranda.errors import InvalidInput
from memoranda.persona import Persona


class KnowledgeRecordManager(RecordManager):
    """What `index()` and `aindex()` have indexed, in the engine's own database and by its clock.

    Args:
        persona: Whose documents they are.
        namespace: What they are called, such as the name of the collection they are indexed into.

    Example:
        `index(documents, KnowledgeRecordManager(me, "handbook"), KnowledgeVectorStore(me, "handbook"), cleanup="full",
        source_id_key="source", key_encoder="sha256")`
    """

    def __init__(self, persona: Persona, namespace: str = "documents") -> None:
        super().__init__(namespace)
        self._keys = persona.record_keys(namespace)

    def create_schema(self) -> None:
        """Do nothing: the engine's tables are made when it is set up."""

    async def acreate_schema(self) -> None:
        """Async twin of `create_schema`."""

    def get_time(self) -> float:
        """Return the database's time, in seconds since 1970."""
        return self._keys.now()

    async def aget_time(self) -> float:
        """Async twin of `get_time`."""
        return await self._keys.anow()

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Note that keys are indexed, at the database's time.

        Raises:
            ValueError: there are more group ids than keys or fewer, or it is not yet `time_at_least`.
        """
        groups = _checked(keys, group_ids)
        try:
            self._keys.note(keys, groups=groups, not_before=time_at_least)
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    async def aupdate(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Async twin of `update`."""
        groups = _checked(keys, group_ids)
        try:
            await self._keys.anote(keys, groups=groups, not_before=time_at_least)
        except InvalidInput as error:
            raise ValueError(str(error)) from error

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Return for each key whether it is indexed."""
        return self._keys.exist(keys)

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """Async twin of `exists`."""
        return await self._keys.aexist(keys)

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Return keys: those noted before and after a moment, and of these groups, where any are named."""
        return self._keys.list(before=before, after=after, groups=group_ids or None, limit=limit or None)

    async def alist_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Async twin of `list_keys`."""
        return await self._keys.alist(before=before, after=after, groups=group_ids or None, limit=limit or None)

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Forget keys."""
        self._keys.delete(keys)

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """Async twin of `delete_keys`."""
        await self._keys.adelete(keys)


def _checked(keys: Sequence[str], group_ids: Sequence[str | None] | None) -> Sequence[str | None] | None:
    if group_ids and len(keys) != len(group_ids):
        raise ValueError("there must be as many group ids as keys")
    return group_ids or None
