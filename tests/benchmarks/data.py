"""Read the public evaluation sets from a folder: what is to be remembered, and what is asked of it.

The sets are not part of this project and may not become part of it; their README says where they come from. Every
loader returns one `DataSet`: memories by scope, in order, and the questions with the scope they are asked of.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any


class DataMissing(Exception):
    """The folder does not hold the set that was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One memory of a set."""

    id: str
    text: str
    when: datetime
    session: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question, under the id by which the scorer knows it."""

    qid: str
    scope: str
    text: str
    right: frozenset[str] = frozenset()
    """The memories that hold the answer; empty where there is none, or the set does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Memories by scope and the questions asked of them."""

    scopes: dict[str, list[Item]]
    questions: list[Question]


def load(name: str, root: Path) -> DataSet:
    """Read one of the sets of `LOADERS`.

    Raises:
        DataMissing: a file of the set is not there; the message says which.
    """
    try:
        return LOADERS[name](root)
    except FileNotFoundError as error:
        raise DataMissing(
            f"{error.filename} is missing: --data must name the folder that holds the sets (locomo/, beam/, ...)"
        ) from error


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def _locomo_turns(conversation: dict[str, Any]) -> Iterator[Item]:
    """A turn is one memory, said a minute after the turn before it; its id "D3:7" is turn 7 of session 3."""
    sessions = {
        int(match[1]): turns
        for key, turns in conversation.items()
        if (match := re.fullmatch(r"session_(\d+)", key)) and isinstance(turns, list) and turns
    }
    for number, turns in sorted(sessions.items()):
        begin = datetime.strptime(conversation[f"session_{number}_date_time"].strip(), "%I:%M %p on %d %B, %Y")
        for minute, turn in enumerate(turns):
            picture = f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            session, position = turn["dia_id"].split(":")
            yield Item(
                id=turn["dia_id"],
                text=f"{turn['speaker']}: {turn['text']}{picture}",
                when=begin.replace(tzinfo=UTC) + timedelta(minutes=minute),
                session=session,
                position=int(position),
            )


def _locomo_evidence(asked: dict[str, Any]) -> frozenset[str]:
    """Read the turns that hold an answer, some of which are spelled "D8:6; D9:17", "D:11:26" or "D30:05"."""
    found = re.findall(r"D:?(\d+):(\d+)", str(asked.get("evidence") or ""))
    return frozenset(f"D{int(session)}:{int(turn)}" for session, turn in found)


def _locomo(root: Path) -> DataSet:
    samples = _json(root / "locomo" / "conversations.json")
    return DataSet(
        scopes={sample["sample_id"]: list(_locomo_turns(sample["conversation"])) for sample in samples},
        questions=[
            Question(
                qid=f"{sample['sample_id']}/{number}",
                scope=sample["sample_id"],
                text=asked["question"],
                right=_locomo_evidence(asked),
            )
            for sample in samples
            for number, asked in enumerate(sample["qa"])
        ],
    )


def _absent(root: Path) -> DataSet:
    """Each question three times: where its answer is, and twice where it is not."""
    questions, own = [], _locomo(root)
    right = {question.qid: question.right for question in own.questions}
    for row in _lines(root / "absent" / "questions.jsonl"):
        qid, text = row["qid"], row["text"]
        questions.append(Question(qid=qid, scope=row["scope"], text=text, right=right[qid]))
        questions.append(Question(qid=f"{qid}#other", scope=row["other"], text=text))
        questions.append(Question(qid=f"{qid}#renamed", scope=row["other"], text=row["renamed"]))
    return DataSet(scopes=own.scopes, questions=questions)


def _beam_messages(batches: list[dict[str, Any]]) -> Iterator[Item]:
    """A message is one memory, a batch one session; batches lie two weeks apart, turns an hour, messages a minute."""
    for batch_number, batch in enumerate(batches):
        begin, position = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(weeks=2 * batch_number), 0
        for hour, turn in enumerate(batch["turns"]):
            for minute, message in enumerate(turn):
                text = re.sub(r"\s*->->[\s\d,]*$", "", message["content"]).strip()
                yield Item(
                    id=str(message["id"]),
                    text=text or ".",
                    when=begin + timedelta(hours=hour, minutes=minute),
                    session=f"batch-{batch_number}",
                    position=position,
                )
                position += 1


def _numbers(value: Any) -> Iterator[int]:
    """Read the whole numbers of lists and objects inside each other."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _numbers(inner)
    elif isinstance(value, int):
        yield value


def _beam(root: Path) -> DataSet:
    chats = sorted((root / "beam").glob("*.chat.json"), key=lambda path: int(path.name.split(".")[0]))
    if not chats:
        raise FileNotFoundError(2, "missing", str(root / "beam"))
    scopes: dict[str, list[Item]] = {}
    questions: list[Question] = []
    for path in chats:
        number = path.name.split(".")[0]
        scope = f"beam-{number}"
        scopes[scope] = list(_beam_messages(_json(path)))
        for ability, probes in _json(path.with_name(f"{number}.probing.json")).items():
            questions.extend(
                Question(
                    qid=f"{scope}/{ability}/{k}",
                    scope=scope,
                    text=probe["question"],
                    right=frozenset(str(message) for message in _numbers(probe.get("source_chat_ids"))),
                )
                for k, probe in enumerate(probes)
            )
    return DataSet(scopes=scopes, questions=questions)


def _updates(root: Path, *, unrelated: bool = False, swapped: bool = False) -> DataSet:
    """Facts learned a day apart, and two months after the first the one that contradicts one of them ("new").

    `unrelated` adds a fact of another row that is newer than all. `swapped` lets the contradicted fact and "new" change
    their dates.
    """
    scopes: dict[str, list[Item]] = {}
    questions: list[Question] = []
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    rows = list(_lines(root / "updates" / "core_memory_update.jsonl"))
    for number, row in enumerate(rows):
        extra, scope = row["agent_args"]["extra"], f"row-{number}"
        facts = [Item(id=str(k), text=fact, when=begin + timedelta(days=k)) for k, fact in enumerate(extra["facts"])]
        correction = extra["contradicting_fact"].strip().strip('"').strip()
        new = Item(id="new", text=correction, when=begin + timedelta(days=60))
        if swapped:
            old = max(extra["supporting_fact_indices"], key=lambda k: _shared(facts[k].text, new.text))
            facts[old], new = replace(facts[old], when=new.when), replace(new, when=facts[old].when)
        scopes[scope] = [*facts, new]
        if unrelated:
            other = rows[(number + len(rows) // 2) % len(rows)]["agent_args"]["extra"]["facts"][0]
            scopes[scope].append(Item(id="unrelated", text=other, when=begin + timedelta(days=90)))
        questions.append(Question(qid=scope, scope=scope, text=row["input"], right=frozenset({"new"})))
    return DataSet(scopes=scopes, questions=questions)


def _shared(one: str, other: str) -> float:
    """Return the share of words that two facts have in common."""
    a, b = (set(re.findall(r"\w+", text.lower())) for text in (one, other))
    return len(a & b) / len(a | b)


LOADERS: dict[str, Callable[[Path], DataSet]] = {
    "locomo": _locomo,
    "beam": _beam,
    "updates": _updates,
    "updates-unrelated": partial(_updates, unrelated=True),
    "updates-swapped": partial(_updates, swapped=True),
    "absent": _absent,
}
