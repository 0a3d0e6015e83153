"""How nodes are stored and found: drafted, embedded, written at once; proposed by two legs, fused and fetched."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from sqlalchemy import Connection

from memoranda.conditions import AllOf, AnyOf, Compare, Condition, Not
from memoranda.db.queries import node_search
from memoranda.db.queries import nodes as queries
from memoranda.db.queries.node_search import NodeQuestion, Scores
from memoranda.db.queries.nodes import Which
from memoranda.db.queries.vectors import GIVEN
from memoranda.db.schema import Tables
from memoranda.documents.drafts import check_source
from memoranda.drafts import Setting
from memoranda.effects import Steps, compute, read, wake, write
from memoranda.errors import EmbedderUnavailable, InvalidInput
from memoranda.nodes import Node, NodeDraft, NodeHit, SearchMode, check_key, drafts, matrix
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.pipelines.ingesting import embedded_at_once
from memoranda.pipelines.recalling import without_secrets
from memoranda.ranking.fusion import ALPHA, fused
from memoranda.ranking.mmr import mmr
from memoranda.scope import Scope, check_name

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memoranda.effects import MaybeVectors

    Vector: TypeAlias = NDArray[np.float32]

_log = logging.getLogger("memoranda.collections")

LIMIT = 10_000
"""The most nodes a search returns."""

_MODES = get_args(SearchMode)
_WIDTH, _REACH = 20, 2  # each leg proposes twice what is wanted, and never fewer than this
_POOL = 4  # what says different things is chosen from four times what is wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Which collection, of whom, and whose vectors its nodes have."""

    context: Context
    name: str
    model: str | None = None
    """What makes the vectors that the caller gives; None where the store's embedder makes them."""

    def stamp(self, dimensions: int) -> str:
        """Return what a caller's vectors are stamped with; those of the store's own embedder as it stamps them."""
        stamp = f"{self.model}@{dimensions}"
        return stamp if stamp == self.context.space.model else GIVEN + stamp


def shelf(context: Context, name: str, model: str | None) -> Shelf:
    """Return the collection of a name.

    Raises:
        InvalidInput: a name is none.
    """
    if model is not None:
        check_name("model", model)
    return Shelf(context=context, name=check_source(name, context.policies), model=model)


# -- storing


def add(kept: Shelf, nodes: Iterable[Node]) -> Steps[list[str]]:
    """Store nodes in place of those with the same keys."""
    context, setting = kept.context, kept.context.writing()
    given = list(nodes) if isinstance(nodes, Iterable) and not isinstance(nodes, Node) else nodes
    prepared = yield from compute(_drafted, given, kept, setting)
    if not prepared:
        return []
    yield from opened(context)
    vectors: MaybeVectors
    if kept.model is None:
        vectors, _ = yield from embedded_at_once(context, [draft.embedded for draft in prepared])
        stamp = context.space.model
    else:
        rows = yield from compute(matrix, [draft.node.vector for draft in prepared])
        vectors, stamp = list(rows), kept.stamp(rows.shape[1])
    current = context.space.model
    yield from write(queries.add, setting, kept.name, prepared, vectors, stamp, current)
    if setting.leaves_jobs and current is not None and (stamp != current or any(vector is None for vector in vectors)):
        yield from wake(context.scope.whose)
    return [node.key for node in given]


def _drafted(given: Any, kept: Shelf, setting: Setting) -> list[NodeDraft]:
    return drafts(given, setting, with_vectors=kept.model is not None)


def delete(kept: Shelf, keys: Sequence[str] | None, where: Condition | None) -> Steps[int]:
    """Delete nodes."""
    which, setting = _which(keys, where), kept.context.writing()
    if which == Which():
        raise InvalidInput("say which nodes: by keys or by a condition; `clear` deletes them all", field="keys")
    return (yield from write(queries.discard, setting, kept.name, which))


def clear(kept: Shelf) -> Steps[int]:
    """Delete the collection."""
    return (yield from write(queries.clear, kept.context.writing(), kept.name))


# -- reading


def get(
    kept: Shelf, keys: Sequence[str] | None, where: Condition | None, limit: int | None, with_vectors: bool
) -> Steps[list[Node]]:
    """Return nodes: in the order of the keys where keys are given, else in the order in which they were added."""
    which, context = _which(keys, where), kept.context
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInput("limit must be a whole number from 1", field="limit")
    yield from opened(context)
    found = yield from read(
        queries.get, context.scope, kept.name, which, None if keys else limit, context.space.model, with_vectors
    )
    if which.keys is None:
        return found
    by_key = {node.key: node for node in found}
    return [by_key[key] for key in dict.fromkeys(which.keys) if key in by_key][:limit]


def count(kept: Shelf, where: Condition | None) -> Steps[int]:
    """Count nodes."""
    return (yield from read(queries.count, kept.context.scope, kept.name, _which(None, where)))


def _which(keys: Sequence[str] | None, where: Condition | None) -> Which:
    if keys is not None:
        if isinstance(keys, str) or not isinstance(keys, Iterable):
            raise InvalidInput("keys must be a list of keys", field="keys")
        keys = tuple(check_key(key) for key in keys)
    if where is not None and not isinstance(where, Compare | AllOf | AnyOf | Not):
        raise InvalidInput("where must be a condition of memoranda.conditions", field="where")
    return Which(keys=keys, where=where)


# -- searching


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How what was proposed becomes what is shown."""

    limit: int
    alpha: float
    balance: float | None
    """See `memoranda.ranking.mmr`; None for the best in their order."""
    pool: int
    """How many of the best are chosen from, where the balance counts."""
    vector: "Vector | None" = field(default=None, repr=False)
    model: str | None = None


def search(
    kept: Shelf,
    text: str | None,
    vector: Sequence[float] | None,
    mode: SearchMode,
    limit: int,
    keys: Sequence[str] | None,
    where: Condition | None,
    alpha: float | None,
    text_limit: int | None,
    dense_limit: int | None,
    mmr_balance: float | None,
    mmr_pool: int | None,
) -> Steps[list[NodeHit]]:
    """Return the nodes that answer, best first."""
    context, which = kept.context, _which(keys, where)
    if mode not in _MODES:
        raise InvalidInput(f"mode must be one of {', '.join(_MODES)}", field="mode")
    if text is not None and not isinstance(text, str):
        raise InvalidInput("text must be a string", field="text")
    wanted = _number(limit, "limit", context.policies.limit)
    pool = max(wanted, _number(mmr_pool, "mmr_pool", _POOL * wanted)) if mmr_balance is not None else wanted
    width = max(_REACH * wanted, pool, _WIDTH) if mode == "hybrid" else pool
    ranking_alpha = _share(alpha, "alpha", ALPHA)
    balance = None if mmr_balance is None else _share(mmr_balance, "mmr_balance", 0.5)
    if text is None and (mode != "dense" or vector is None):
        raise InvalidInput("text is missing: what shall be looked for?", field="text")
    yield from opened(context)
    said = without_secrets(text or "", context)
    meant, model = (None, None) if mode == "text" and balance is None else (yield from _meant(kept, said, vector, mode))
    terms = None if mode == "dense" else tuple(context.tokenizer.query_terms(said))
    question = NodeQuestion(
        terms=terms,
        vector=None if mode == "text" else meant,
        model=model,
        text_limit=_number(text_limit, "text_limit", width),
        dense_limit=_number(dense_limit, "dense_limit", width),
        which=which,
    )
    ranking = Ranking(limit=wanted, alpha=ranking_alpha, balance=balance, pool=pool, vector=meant, model=model)
    return (yield from read(_found, context.scope, kept.name, question, ranking, context.space.model))


def _number(value: object, name: str, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LIMIT:
        raise InvalidInput(f"{name} must be a whole number from 1 to {LIMIT:,}", field=name)
    return value


def _share(value: object, name: str, default: float) -> float:
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and 0 <= value <= 1):
        raise InvalidInput(f"{name} must be a number from 0 to 1", field=name)
    return float(value)


def _meant(
    kept: Shelf, said: str, vector: Sequence[float] | None, mode: SearchMode
) -> "Steps[tuple[Vector | None, str | None]]":
    """Return the vector of a question and what it is stamped with; None where words must do."""
    context = kept.context
    if vector is not None:
        [given] = matrix([vector])
        if kept.model is not None:
            return given, kept.stamp(len(given))
        model = context.space.model
        if model is None or not model.endswith(f"@{len(given)}"):
            raise InvalidInput(f"vector has {len(given)} numbers, and the store's are of {model}", field="vector")
        return given, model
    if kept.model is not None:
        raise InvalidInput("vector is missing: the vectors of this collection are the caller's", field="vector")
    [made], why = (yield from vectors_of(context, [said], "query", asked=True)) if said.strip() else ([None], None)
    if made is None and why is not None:
        if mode == "dense":
            raise EmbedderUnavailable(why)
        _log.warning("nodes were looked for by words alone: %s", why)
    return made, context.space.model


def _found(
    conn: Connection,
    tables: Tables,
    scope: Scope,
    name: str,
    question: NodeQuestion,
    ranking: Ranking,
    current: str | None,
) -> list[NodeHit]:
    """Propose, rank and fetch, all in one turn of a database thread."""
    document, dense, text = node_search.propose(conn, tables, scope, name, question, current)
    if document is None:
        return []
    scores = fused(dense, text, ranking.alpha) if dense is not None and text is not None else _alone(dense, text)
    best = sorted(scores, key=lambda place: (-round(scores[place], 6), place))[: ranking.pool]
    if ranking.balance is not None and ranking.vector is not None:
        best = _apart(best, node_search.vectors_at(conn, tables, scope, document, best, ranking.model), ranking)
    shown = best[: ranking.limit]
    nodes = node_search.at(conn, tables, scope, document, shown)
    return [
        NodeHit(
            node=nodes[place],
            score=min(max(scores[place], 0.0), 1.0),
            cosine=dense.get(place) if dense else None,
            text=text.get(place) if text else None,
        )
        for place in shown
        if place in nodes
    ]


def _alone(dense: Scores | None, text: Scores | None) -> Scores:
    return dict(dense or text or {})


def _apart(best: Sequence[int], made: "Mapping[int, Vector]", ranking: Ranking) -> list[int]:
    """Return those of the best that say different things; what has no vector cannot be told apart, and is left out."""
    import numpy as np

    known = [place for place in best if place in made]
    if not known or ranking.vector is None or ranking.balance is None:
        return []
    rows = np.stack([np.asarray(made[place], np.float32) for place in known])
    return [known[place] for place in mmr(ranking.vector, rows, ranking.limit, ranking.balance)]
