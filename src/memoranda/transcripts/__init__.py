"""Conversations that were had elsewhere, read from a file as it comes; what cannot be read is counted, never guessed.

Three forms are known, and told apart by their beginning: the `conversations.json` of a ChatGPT export (the `.zip` too),
messages as OpenAI's chat API has them in JSON or JSONL, and logs with lines such as `Ana: see you at six`. Pure: a
stream goes in, messages come out, and a file is never held as a whole unless it is one conversation.
"""

from memoranda.transcripts.reader import Transcript, TranscriptReader, opened
from memoranda.transcripts.skipped import Skipped

__all__ = ["Skipped", "Transcript", "TranscriptReader", "opened"]
