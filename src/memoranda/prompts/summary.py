"""Sum up messages that are folded away, in prose, together with the summary of what was folded before."""

from collections.abc import Sequence

from memoranda import salvage
from memoranda.fencing import fence
from memoranda.prompts.material import DATA, Said, ended, transcript
from memoranda.protocols import Completion, PromptMessage

VERSION = "summary/1"

_TASK = """\
You keep the running summary of a conversation. Its oldest messages are about to be taken out of sight, and your \
summary will stand in their place: the assistant goes on from it as if it had read them.

{data}

Write one new summary that holds what the block `summary` says, so far as it still matters, and what the transcript \
adds: what the user wants and why, what was decided, done and found out, what is still open, and every name, number, \
path and date that will be needed. Where something was corrected, say how it stands now. Say who said what where it \
matters. Give absolute dates: each line of the transcript begins with its number, the day it was said, and who said \
it. Leave out small talk, repetitions, secrets, and whatever was not said.

Plain prose in the language of the conversation, at most {limit} characters, and nothing but the summary."""


def build_messages(
    said: Sequence[Said], *, nonce: str, characters: int, limit: int, before: str = ""
) -> list[PromptMessage]:
    """Return what the model is asked.

    Args:
        said: The messages, redacted.
        nonce: Of the tags around what is data.
        characters: Of the messages, at most.
        limit: Of the summary, in characters.
        before: The summary so far.
    """
    parts = [
        fence("summary", before or "(nothing was folded yet)", nonce=nonce),
        transcript(said, nonce, characters=characters),
    ]
    return [
        {"role": "system", "content": _TASK.format(data=DATA, limit=f"{limit:,}")},
        {"role": "user", "content": "\n\n".join(parts)},
    ]


def read(completion: Completion, limit: int) -> str:
    """Return the summary, cut at the end of a sentence; empty where the model gave none."""
    text = salvage.prose(completion.text)
    if completion.cut and len(text) <= limit:
        text = ended(text, len(text) - 1) if text else ""  # its last sentence is not whole
    return ended(text, limit)
