"""Nodes: texts that a caller has cut, each under a key of the caller's, and kept as they are given.

A node's text and metadata come back as they were; what is indexed of it, and sent to an embedder, is without secrets.
Pure, as `memoranda.drafts` is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import UUID

from memoranda import metadata as codec
from memoranda.drafts import Setting, hidden
from memoranda.errors import InvalidInput
from memoranda.fields import CONTENT_LIMIT
from memoranda.ids import new_id
from memoranda.text import Tokenizer, clean, join_terms

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

KEY_LIMIT = 500
"""Characters of a key, which may have twice as many bytes: it stands in an index beside three others."""

SearchMode: TypeAlias = Literal["hybrid", "dense", "text"]
"""By what nodes are found: by words and meaning together, by meaning, or by words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A text under a key, with what its owner knows of it."""

    key: str
    """What it is called and replaced under, within its collection."""
    content: str = field(repr=False)
    metadata: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)
    vector: Sequence[float] | None = field(default=None, repr=False, compare=False)
    """Its vector, where the caller makes the vectors of the collection, and where it was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHit:
    """A node that answers a search."""

    node: Node
    score: float
    """What orders the hits, 0..1, higher is better: of a hybrid search the two parts as `fused` adds them, else the
    cosine (0 where it is negative) or the score of the words."""
    cosine: float | None = None
    """-1..1, where the node was among the nearest."""
    text: float | None = None
    """Postgres' `ts_rank` of the question's words, 0..1, where the node was among those that say most of them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)  # it holds a text
class NodeDraft:
    """A node as it is about to be stored."""

    id: UUID
    node: Node
    embedded: str
    """What is embedded: the text without its secrets, of a node without text its key."""
    content_terms: str
    length: int


def drafts(nodes: Iterable[Node], setting: Setting, *, with_vectors: bool) -> list[NodeDraft]:
    """Return what is stored of nodes, the last of those with the same key.

    Raises:
        InvalidInput: something cannot be stored; says which node.
    """
    if isinstance(nodes, Node) or not isinstance(nodes, Iterable):
        raise InvalidInput("nodes must be a list of nodes", field="nodes")
    found: dict[str, NodeDraft] = {}
    for index, node in enumerate(nodes):
        if not isinstance(node, Node):
            raise InvalidInput("a node is made with memoranda.nodes.Node", field="nodes", index=index)
        try:
            checked = _checked(node)
            if (node.vector is None) == with_vectors:
                raise InvalidInput(_VECTOR_MISSING if with_vectors else _VECTOR_GIVEN, field="vector")
        except InvalidInput as error:
            raise InvalidInput(str(error), field=error.field, index=index) from None
        text = hidden(checked.content, setting.policies)
        terms, length = node_terms(text, setting.tokenizer)
        found[checked.key] = NodeDraft(
            id=new_id(),
            node=checked,
            embedded=embedded_node(text, checked.key),
            content_terms=terms,
            length=length,
        )
    return list(found.values())


_VECTOR_MISSING = "vector is missing: the vectors of this collection are the caller's"
_VECTOR_GIVEN = "vector is given, but nobody has said what made it: name it with persona.collection(..., model=...)"


def _checked(node: Node) -> Node:
    check_key(node.key)
    content: object = node.content
    if not isinstance(content, str):
        raise InvalidInput("content must be a string", field="content")
    if len(content) > CONTENT_LIMIT:
        raise InvalidInput(f"content has more than {CONTENT_LIMIT:,} characters", field="content")
    if not isinstance(node.metadata, Mapping):
        raise InvalidInput("metadata must be a mapping", field="metadata")
    codec.encode(dict(node.metadata))
    return Node(key=node.key, content=clean(content), metadata=node.metadata, vector=node.vector)


def check_key(key: object) -> str:
    """Return a key.

    Raises:
        InvalidInput: it is no text, empty, too long, or nothing that a database can hold.
    """
    if not isinstance(key, str) or not key:
        raise InvalidInput("a key must be a string that is not empty", field="key")
    if len(key) > KEY_LIMIT or len(key.encode("utf-8", "replace")) > 2 * KEY_LIMIT:
        raise InvalidInput(f"a key must have at most {KEY_LIMIT} characters", field="key")
    if clean(key) != key:
        raise InvalidInput("a key must not contain NUL or half of a surrogate pair", field="key")
    return key


def node_terms(text: str, tokenizer: Tokenizer) -> tuple[str, int]:
    """Return the index terms of a text that holds no secret, in the format of `join_terms`, and how many."""
    terms = tokenizer.terms(text)
    return join_terms(terms), len(terms)


def embedded_node(text: str, key: str) -> str:
    """Return the text that stands for a node in the vector space."""
    return text if text.strip() else key


def matrix(vectors: Sequence[Any]) -> "NDArray[np.float32]":
    """Return vectors of a caller's as rows of one length.

    Raises:
        InvalidInput: they are of different lengths, or not of finite numbers.
    """
    import numpy as np

    try:
        if len({len(vector) for vector in vectors}) != 1:
            raise InvalidInput("vectors must all have the same length", field="vector")
        with np.errstate(over="ignore"):  # what overflows is found as not finite
            rows = np.asarray(vectors, dtype=np.float32)
        if rows.ndim == 2 and rows.shape[1] and np.isfinite(rows).all():
            return rows
    except (TypeError, ValueError):
        pass
    raise InvalidInput("a vector is a list of finite numbers", field="vector")
