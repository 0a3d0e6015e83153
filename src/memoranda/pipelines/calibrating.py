"""How a store measures its own floor: sample rows, ask for each with and without it, see where the two part."""

from collections.abc import Sequence

from sqlalchemy import Connection

from memoranda.db.queries import candidates, sampling, store
from memoranda.db.queries.candidates import Question
from memoranda.db.schema import Tables
from memoranda.effects import Steps, read, write
from memoranda.errors import EmbedderUnavailable, InvalidInput
from memoranda.filters import Filters
from memoranda.pipelines.context import Context, opened, vectors_of
from memoranda.policies import RankingPolicy
from memoranda.protocols import Progress
from memoranda.ranking import Measured, floors, measured_for, rank
from memoranda.ranking import calibration as calibrated
from memoranda.ranking.calibration import Row, Trial
from memoranda.reports import Calibration
from memoranda.text import words

LEAST_ROWS = 30
"""Of fewer rows one more or less would move the floor by more than it is known."""
MOST_ROWS = 10_000

_BATCH = 16


def calibrate(context: Context, sample: int, apply: bool, progress: Progress | None) -> Steps[Calibration]:
    """Measure where answered and unanswerable questions part on this scope's rows, and record it if that is wanted.

    Raises:
        InvalidInput: the sample is no number that can be used, or there are too few rows.
        EmbedderUnavailable: nothing can be measured without vectors in a store that has them.
    """
    if isinstance(sample, bool) or not isinstance(sample, int) or not LEAST_ROWS <= sample <= MOST_ROWS:
        raise InvalidInput(f"sample must be a whole number from {LEAST_ROWS} to {MOST_ROWS:,}", field="sample")
    yield from opened(context)
    if context.space.problem:
        raise EmbedderUnavailable(context.space.problem)
    rows = yield from read(sampling.sample, context.setting(), sample)
    asked = calibrated.questions(rows, context.tokenizer, embedded=context.space.model is not None)
    _require_enough(len(asked))
    trials: list[Trial] = []
    for start in range(0, len(asked), _BATCH):
        batch = asked[start : start + _BATCH]
        prepared = yield from _prepared(context, batch)
        trials += yield from read(_tried, [row for row, _ in batch], prepared)
        if progress:
            progress(start + len(batch), len(asked))
    _require_enough(len(trials))
    found = calibrated.proposed(trials)
    before = context.space.measured or measured_for(context.space.name, embedded=context.space.model is not None)
    if apply:
        yield from write(store.set_floor, floors.to_store(found, context.space.model))
        context.space.measured = found
    return _result(context, trials, found, before, applied=apply)


def _require_enough(rows: int) -> None:
    if rows < LEAST_ROWS:
        raise InvalidInput(
            f"Calibration needs {LEAST_ROWS} memories that say enough to be asked for, and finds {rows} here: store "
            "more first, or name another persona or user."
        )


def _prepared(context: Context, batch: Sequence[tuple[Row, str]]) -> Steps[list[Question]]:
    texts = [text for _, text in batch]
    vectors, why = yield from vectors_of(context, texts, "query")
    if why and all(vector is None for vector in vectors):
        raise EmbedderUnavailable(why)
    policies, now = context.policies, context.setting().now
    # `overlap` has a scale of its own, and presets that use it say what their floor is.
    ranking = RankingPolicy() if policies.ranking.name == "overlap" else policies.ranking
    return [
        Question(
            text=text,
            terms=tuple(context.tokenizer.query_terms(text)),
            words=words(text),
            vector=vector if vector is not None and vector.any() else None,
            model=context.space.model,
            scope=context.scope,
            visibility=policies.visibility,
            ranking=ranking,
            filters=Filters(),
            now=now,
            texts=True,
        )
        for text, vector in zip(texts, vectors, strict=True)
    ]


def _tried(conn: Connection, tables: Tables, rows: Sequence[Row], questions: Sequence[Question]) -> list[Trial]:
    trials = []
    for row, question in zip(rows, questions, strict=True):
        query, found = candidates.gather(conn, tables, question)
        own = next((candidate for candidate in found if candidate.id == row.id), None)
        if own is not None and own.cosine is None and question.vector is not None:
            continue  # its vector is still to come: it says nothing about distances
        answers = {c.id for c in found if calibrated.answers_too(row, c, question.terms)}
        others = [candidate for candidate in found if candidate.id not in answers]
        with_row, without = rank(query, found, question.ranking), rank(query, others, question.ranking)
        trials.append(
            Trial(
                answered=max((s.confidence for s in with_row if s.id in answers), default=0.0),
                absent=max((s.confidence for s in without), default=0.0),
                distance=None if own is None or own.cosine is None else 1 - own.cosine,
                wrong_distance=min((1 - c.cosine for c in others if c.cosine is not None), default=None),
            )
        )
    return trials


def _result(
    context: Context, trials: Sequence[Trial], found: Measured, before: Measured, *, applied: bool
) -> Calibration:
    answered, absent = [trial.answered for trial in trials], [trial.absent for trial in trials]
    return Calibration(
        embedder=context.space.model,
        questions=len(trials),
        floor=found.least,
        distance=found.dense_max if context.space.model else None,
        auroc=calibrated.auroc(answered, absent),
        answered=calibrated.share(answered, found.least),
        absent_answered=calibrated.share(absent, found.least),
        floor_before=before.least,
        answered_before=calibrated.share(answered, before.least),
        absent_answered_before=calibrated.share(absent, before.least),
        answered_histogram=calibrated.histogram(answered),
        absent_histogram=calibrated.histogram(absent),
        applied=applied,
    )
