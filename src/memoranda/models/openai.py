"""Chat completions: the OpenAI API, and every server that speaks it (Ollama, vLLM, llama.cpp, a gateway)."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from memoranda import openai_client
from memoranda.embedders.openai_wire import retry_after
from memoranda.errors import ConfigurationError, ExtraMissing, ModelRefused, ModelUnavailable
from memoranda.loop_thread import LoopThread
from memoranda.models.messages import TIMEOUT, with_schema
from memoranda.protocols import Completion, PromptMessage

if TYPE_CHECKING:
    import openai

_log = logging.getLogger("memoranda.models")


class OpenAIModel:
    """Asks with the official client, at temperature 0; one object serves threads, event loops and forked children.

    Where a JSON schema is given, the server is asked to keep to it; one that refuses is asked again in words, and from
    then on at once. So it is with the temperature and the name of the limit of tokens, which some models refuse. Key
    and texts are in no repr, log or error. An Ollama that was not told otherwise reads the first 4,096 tokens of the
    messages only: set its OLLAMA_CONTEXT_LENGTH.

    Args:
        model: Its name on the server.
        base_url: `OPENAI_BASE_URL`, else OpenAI's own, when left out. Ollama: `http://localhost:11434/v1`.
        api_key: `OPENAI_API_KEY` when left out, but never for a server that is given as `base_url`: such a server is
            sent no key that was not meant for it.
        timeout: Seconds a call may take, further tries and waits included.
        max_retries: Further tries after a 429, a 5xx, or a connection that failed.
        name: `openai/MODEL` when left out.

    Raises:
        ExtraMissing: the `openai` extra is not installed.
        ConfigurationError: an argument cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = TIMEOUT,
        max_retries: int = 2,
        name: str | None = None,
    ) -> None:
        if not find_spec("openai"):
            raise ExtraMissing(f'The model "openai/{model}" needs an extra: pip install "memoranda[openai]"')
        if not model or timeout <= 0 or max_retries < 0:
            raise ConfigurationError("The model needs a name, timeout must be positive, max_retries not negative.")
        api_key = openai_client.key_for(base_url, api_key, "MEMORANDA_LLM_KEY, OPENAI_API_KEY or api_key=")
        base_url = openai_client.address(base_url)
        self.model = model
        self.name = name or f"openai/{model}"
        self._can_call = bool(api_key or base_url)
        self._timeout = timeout
        self._unwanted: set[str] = set()
        self._line = LoopThread(openai_client.client_maker(api_key, base_url, max_retries), "memoranda-model")

    def __repr__(self) -> str:
        """Show the name, neither key nor address."""
        return f"OpenAIModel({self.name!r})"

    @property
    def configured(self) -> bool:
        """Whether a call can be made at all: there is a key, or the address of a server that may need none."""
        return self._can_call

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return the answer to the messages.

        Raises:
            ModelRefused: there is no key, the service refuses key, model or request, or the model declines to answer.
            ModelUnavailable: no usable answer came in time; `retry_after` says when to ask again, where the service
                said so.
        """
        return self._line.run(lambda client: self._completed(client, messages, schema, max_tokens))

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Async twin of `complete`."""
        return await self._line.arun(lambda client: self._completed(client, messages, schema, max_tokens))

    async def _completed(
        self,
        client: "openai.AsyncOpenAI",
        messages: Sequence[PromptMessage],
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
    ) -> Completion:
        if not self._can_call:
            raise ModelRefused(f"Model {self.name!r} has no key: set MEMORANDA_LLM_KEY, or pass api_key=.")
        unwanted = set(self._unwanted)
        try:
            async with asyncio.timeout(self._timeout):
                openai_client.deadline.set(time.monotonic() + self._timeout)
                while True:
                    arguments = _arguments(self.model, messages, schema, max_tokens, unwanted)
                    answer = await self._request(client, arguments)
                    if isinstance(answer, Completion):
                        break
                    unwanted.add(answer if answer != "response_format" else _key_of(schema))
        except TimeoutError:
            answer = None
        # Raised out here, as below: what the client was doing is no part of the error, and it holds the key.
        if answer is None:
            raise ModelUnavailable(f"Model {self.name!r} gave no answer within {self._timeout:g} s.")
        if unwanted != self._unwanted:
            _log.info("Model %r refuses an option, and is asked without it from now on", self.name)
            self._unwanted = self._unwanted | unwanted
        return answer

    async def _request(self, client: "openai.AsyncOpenAI", arguments: dict[str, Any]) -> Completion | str:
        """Return the answer, or which option to leave out in another try."""
        import openai

        patience = openai.Timeout(self._timeout, connect=min(self._timeout, openai_client.CONNECT_SECONDS))
        error: ModelUnavailable
        try:
            answer = await client.chat.completions.with_raw_response.create(**arguments, timeout=patience)
            return _read(answer.content)
        except openai.APIStatusError as exc:
            if option := _refused_option(exc, arguments):
                return option
            error = self._from_status(exc.status_code, exc.code, exc.response.headers)
        except openai.APIConnectionError as exc:
            slow = isinstance(exc, openai.APITimeoutError)
            what = "did not answer in time" if slow else "cannot be reached, or broke off: check network and base URL"
            error = ModelUnavailable(f"Model {self.name!r} {what}.")
        except openai.OpenAIError as exc:
            error = ModelUnavailable(f"Model {self.name!r} failed with {type(exc).__name__}.")
        except _Declined:
            error = ModelRefused(f"Model {self.name!r} declines to answer these messages.")
        except _Unreadable as exc:
            error = ModelUnavailable(f"Model {self.name!r} gave an answer that is of no use: {exc}.")
        raise error

    def _from_status(self, status: int, code: object, headers: Mapping[str, str]) -> ModelUnavailable:
        """Turn an HTTP error into ours. The service's own sentence is left out: it may quote key or text."""
        detail = f"HTTP {status}{openai_client.plain_code(code)}"
        if status in (408, 409, 425, 429) or status >= 500:
            wait = retry_after(headers, time.time())
            when = "" if wait is None else f" It asks to be tried again in {wait:.3g} s."
            what = "limits its calls" if status == 429 else "is failing"
            return ModelUnavailable(f"Model {self.name!r} {what} ({detail}).{when}", retry_after=wait)
        match status:
            case 401 | 403:
                what = "refuses the key: check MEMORANDA_LLM_KEY or api_key="
            case 404:
                what = "is not known there: check the model's name and the base URL"
            case _ if code == "context_length_exceeded":
                what = "cannot read so much at once: give it less, or take a model with a longer context"
            case _:
                what = "refuses the request: check the model and what it takes"
        return ModelRefused(f"Model {self.name!r} {what} ({detail}).", status=status)


class _Declined(Exception):
    """The model, or a filter behind it, will not answer."""


class _Unreadable(Exception):
    """An answer is cut short or is none: the message says why, and quotes nothing of it."""


def _arguments(
    model: str,
    messages: Sequence[PromptMessage],
    schema: Mapping[str, Any] | None,
    max_tokens: int | None,
    unwanted: set[str],
) -> dict[str, Any]:
    arguments: dict[str, Any] = {"model": model}
    if schema is not None and _key_of(schema) in unwanted:
        messages = with_schema(messages, schema)
    elif schema is not None:
        wish = {"name": "answer", "schema": dict(schema), "strict": False}
        arguments["response_format"] = {"type": "json_schema", "json_schema": wish}
    # Half of a surrogate pair cannot be sent.
    texts = (message["content"].encode("utf-8", "replace").decode() for message in messages)
    arguments["messages"] = [
        {"role": message["role"], "content": text} for message, text in zip(messages, texts, strict=True)
    ]
    if "temperature" not in unwanted:
        arguments["temperature"] = 0
    if max_tokens is not None:
        arguments["max_completion_tokens" if "max_tokens" in unwanted else "max_tokens"] = max_tokens
    return arguments


def _key_of(schema: Mapping[str, Any] | None) -> str:
    """Name a schema among what is unwanted: it may be this one only that a server refuses."""
    return "schema " + json.dumps(schema, sort_keys=True)


def _refused_option(exc: "openai.APIStatusError", arguments: Mapping[str, Any]) -> str | None:
    """Return the option that a server refuses, or that it may be refusing where it doesn't say."""
    if exc.status_code not in (400, 422, 501) or exc.code == "context_length_exceeded":
        return None
    said = exc.param.partition(".")[0] if isinstance(exc.param, str) else "response_format"
    return said if said in ("response_format", "temperature", "max_tokens") and said in arguments else None


def _read(body: bytes) -> Completion:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise _Unreadable("it is not JSON, or not whole") from None
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _Unreadable("it has no message")
    ended = choice.get("finish_reason")
    if message.get("refusal") or ended == "content_filter":
        raise _Declined
    content = message.get("content")
    if isinstance(content, list):  # in parts, as some servers do
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if not isinstance(content, str) or not content.strip():
        raise _Unreadable("its tokens ran out before the first word" if ended == "length" else "it has no text")
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    asked, said = (_count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))
    return Completion(content, input_tokens=asked, output_tokens=said, cut=ended == "length")


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
