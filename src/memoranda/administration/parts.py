"""What the verbs of an engine work with."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from memoranda.db.database import Database
from memoranda.effects import Runner
from memoranda.embedders.space import VectorSpace
from memoranda.jobs import Background
from memoranda.models.checked import CheckedModel
from memoranda.pipelines.context import Context
from memoranda.policies import Policies
from memoranda.rerankers import CheckedReranker
from memoranda.scope import Scope
from memoranda.text import Tokenizer


class EngineParts:
    """The parts of an opened engine, set by `MemoryEngine`."""

    _background: Background
    _clock: Callable[[], datetime]
    _database: Database
    _leaves_jobs: bool
    _model: CheckedModel
    _policies: Policies
    _reranker: CheckedReranker | None
    _runner: Runner
    _space: VectorSpace
    _tokenizer: Tokenizer
    _zone: ZoneInfo

    def _context(self, scope: Scope, policies: Policies) -> Context:
        return Context(
            scope=scope,
            policies=policies,
            tokenizer=self._tokenizer,
            zone=self._zone,
            clock=self._clock,
            space=self._space,
            leaves_jobs=self._leaves_jobs,
            model=self._model,
            reranker=self._reranker,
        )

    def _everything(self) -> Context:
        """Return the context of what is nobody's in particular."""
        return self._context(Scope(), self._policies)
