"""The official OpenAI client, made so that it shows nobody a key or a text, and keeps to a time limit."""

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from memoranda.embedders.openai_wire import retry_after
from memoranda.errors import ConfigurationError

if TYPE_CHECKING:
    import openai

CONNECT_SECONDS = 5.0
BASE_URL_SETTING, KEY_SETTING = "OPENAI_BASE_URL", "OPENAI_API_KEY"

deadline: ContextVar[float] = ContextVar("memoranda_openai_deadline")
"""When the call that is made must be over, by `time.monotonic`; set it before every call."""


def address(base_url: str | None) -> str | None:
    """Return the address of a server, None for OpenAI's own.

    Raises:
        ConfigurationError: it is no address, or holds a password.
    """
    base_url = base_url or os.environ.get(BASE_URL_SETTING) or None
    if base_url is None:
        return None
    try:
        parts = urlsplit(base_url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError("base_url must be an address such as http://localhost:11434/v1.")
    if parts.username or parts.password:
        raise ConfigurationError("base_url must not hold a password: addresses are logged. Pass it as api_key=.")
    return base_url


def key_for(base_url: str | None, api_key: str | None, place: str) -> str:
    """Return the key for a server, empty for none.

    The key of the environment is never sent to a server that a caller names: it was not meant for that one.

    Raises:
        ConfigurationError: it holds what no key holds; the message says `place`, where to look, and not the key.
    """
    api_key = (api_key or (not base_url and os.environ.get(KEY_SETTING)) or "").strip()
    if not re.fullmatch(r"[!-~]*", api_key):
        raise ConfigurationError(f"The key holds characters that no key has: look at {place}.")
    return api_key


def client_maker(
    api_key: str, base_url: str | None, max_retries: int, headers: Mapping[str, str] | None = None
) -> "Callable[[], openai.AsyncOpenAI]":
    """Return what makes the client. A closure keeps the key: it is no attribute that a repr or a dump would show."""

    def make() -> "openai.AsyncOpenAI":
        import openai

        logging.getLogger("openai._base_client").addFilter(_holds_no_text)
        return openai.AsyncOpenAI(
            api_key=api_key or "none",  # a server without keys ignores it, the client insists on one
            base_url=base_url,
            max_retries=max_retries,
            default_headers=dict(headers or {}),
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [_refuse_long_wait]}),
        )

    return make


def plain_code(code: object) -> str:
    """Return the code of an error behind a comma, nothing where it is no plain word and may repeat a text."""
    return f", {code}" if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,64}", code) else ""


async def _refuse_long_wait(response: Any) -> None:
    """Tell the client not to wait for a further try that would come too late: the caller hears of it at once."""
    wait = retry_after(response.headers, time.time())
    if response.is_error and wait is not None and time.monotonic() + wait >= deadline.get():
        response.headers["x-should-retry"] = "false"


def _holds_no_text(record: logging.LogRecord) -> bool:
    """Drop what the client says at DEBUG about calls of ours: older releases repeat the texts."""
    return record.levelno > logging.DEBUG or deadline.get(None) is None
