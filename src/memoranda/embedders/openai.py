"""Embeddings at a distance: the OpenAI API, and every server that speaks it (Ollama, TEI, vLLM, a gateway)."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from memoranda import openai_client, telemetry
from memoranda.embedders import openai_wire as wire
from memoranda.errors import ConfigurationError, EmbedderRefused, EmbedderUnavailable, ExtraMissing
from memoranda.loop_thread import LoopThread
from memoranda.protocols import Purpose

if TYPE_CHECKING:
    import openai

DEFAULT_MODEL = "text-embedding-3-small"
_SHORTENED = "text-embedding-3-"
"""Models whose name begins like this are asked for a number of dimensions; others refuse to be."""
_DEFAULT_DIMENSIONS = 1536
_KNOWN_DIMENSIONS = {"text-embedding-ada-002": 1536, "bge-m3": 1024, "BAAI/bge-m3": 1024}
TAGS_HEADER = "X-Memoranda-Tags"

_log = logging.getLogger("memoranda.embedders")


class OpenAIEmbedder:
    """Embeds with the official client, in batches; one object serves threads, event loops and forked children.

    The key is in no repr, log or error. A text beyond 8,191 tokens by estimate is cut, with a warning in the log of
    `memoranda.embedders`. An empty text is the zero vector and is not sent.

    Args:
        model: Its name on the server.
        dimensions: Numbers a vector. Asked of models named `text-embedding-3-...` (1536 when left out). Of others it
            says what they return: known for `bge-m3`, and learnt by one call here and now where it is left out.
        base_url: `OPENAI_BASE_URL`, else OpenAI's own, when left out. Ollama: `http://localhost:11434/v1`.
        api_key: `OPENAI_API_KEY` when left out, but never for a server that is given as `base_url`: such a server is
            sent no key that was not meant for it, and may need none.
        timeout: Seconds a call may take for each request it needs, further tries and waits included.
        max_retries: Further tries of a request after a 429, a 5xx, or a connection that failed.
        batch_size: Texts a request. When left out 128 for OpenAI's models, and 32 for others: TEI takes no more unless
            told otherwise.
        batch_tokens: Tokens a request, estimated from the bytes.
        tags: Sent as JSON in the header `X-Memoranda-Tags`, with `purpose: memory` beside them, for a gateway that
            keeps accounts; nothing is sent when left out.

    Raises:
        ExtraMissing: the `openai` extra is not installed.
        ConfigurationError: an argument cannot be used.
        EmbedderUnavailable: the length had to be learnt, and the service gave no answer.
    """

    distinguishes_purpose = False
    deferred = True

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        dimensions: int | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 20.0,
        max_retries: int = 2,
        batch_size: int | None = None,
        batch_tokens: int = wire.BATCH_TOKENS,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        if not find_spec("openai"):
            raise ExtraMissing(f'The embedder "openai/{model}" needs an extra: pip install "memoranda[openai]"')
        if not model or (dimensions is not None and dimensions < 1):
            raise ConfigurationError("The model needs a name, and dimensions must be positive.")
        batch_size = wire.batch_size(model) if batch_size is None else batch_size
        if timeout <= 0 or max_retries < 0 or batch_size < 1 or batch_tokens < 1:
            raise ConfigurationError("timeout, batch_size and batch_tokens must be positive, max_retries not negative.")
        api_key = openai_client.key_for(base_url, api_key, "OPENAI_API_KEY or api_key=")
        base_url = openai_client.address(base_url)
        self.model = model
        self.name = f"openai/{model}"
        self._asked_dimensions = (dimensions or _DEFAULT_DIMENSIONS) if model.startswith(_SHORTENED) else None
        self._can_call = bool(api_key or base_url)
        self._timeout = timeout
        self._batch_size = batch_size
        self._batch_tokens = batch_tokens
        headers = {} if tags is None else {TAGS_HEADER: json.dumps({**tags, "purpose": "memory"})}
        client = openai_client.client_maker(api_key, base_url, max_retries, headers)
        self._line = LoopThread(client, "memoranda-openai")
        self.dimensions = dimensions or self._asked_dimensions or _KNOWN_DIMENSIONS.get(model.partition(":")[0], 0)
        if not self.dimensions:
            self.dimensions = self._line.run(self._measured)

    def __repr__(self) -> str:
        """Show model and length, neither key nor address."""
        return f"OpenAIEmbedder({self.model!r}, dimensions={self.dimensions})"

    @property
    def configured(self) -> bool:
        """Whether a call can be made at all: there is a key, or the address of a server that may need none."""
        return self._can_call

    def embed(
        self, texts: Sequence[str], purpose: Purpose = "text", *, timeout: float | None = None
    ) -> NDArray[np.float32]:
        """Return one row of `dimensions` floats for each text; query and text are embedded alike.

        Args:
            texts: What to embed; sent in order, in as few requests as the limits allow.
            purpose: Not looked at.
            timeout: Another time limit than the embedder's, in seconds a request.

        Raises:
            EmbedderRefused: there is no key, or the service refuses key, model or request, and would again.
            EmbedderUnavailable: no usable answer came in time; `retry_after` says when to ask again, where the service
                said so.
            ConfigurationError: the vectors have another length than `dimensions`.
        """
        return self._line.run(lambda client: self._embedded(client, texts, timeout))

    async def aembed(
        self, texts: Sequence[str], purpose: Purpose = "text", *, timeout: float | None = None
    ) -> NDArray[np.float32]:
        """Do the same as `embed` without blocking the event loop."""
        return await self._line.arun(lambda client: self._embedded(client, texts, timeout))

    def check(self) -> None:
        """Embed one word, so that a wrong key, model, address or length is found at the start.

        Raises:
            EmbedderRefused: there is no key, or the service refuses key or model.
            EmbedderUnavailable: no usable answer came.
            ConfigurationError: the vectors have another length than `dimensions`.
        """
        self.embed(["check"])

    async def acheck(self) -> None:
        """Async twin of `check`."""
        await self.aembed(["check"])

    async def _embedded(
        self, client: "openai.AsyncOpenAI", texts: Sequence[str], timeout: float | None
    ) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        filled = [place for place, text in enumerate(texts) if text.strip()]
        vectors = await self._answered(client, [texts[place] for place in filled], timeout)
        for place, vector in zip(filled, vectors, strict=True):
            if len(vector) != self.dimensions:
                raise ConfigurationError(
                    f"Embedder {self.name!r} gave a vector of {len(vector)} numbers where {self.dimensions} were "
                    "expected: set its dimensions to what the model returns."
                )
            rows[place] = vector
        return rows

    async def _measured(self, client: "openai.AsyncOpenAI") -> int:
        [vector] = await self._answered(client, ["length"])
        if not len(vector):
            raise EmbedderUnavailable(f"Embedder {self.name!r} gave an empty vector.")
        return len(vector)

    async def _answered(
        self, client: "openai.AsyncOpenAI", texts: Sequence[str], timeout: float | None = None
    ) -> list[NDArray[np.float32]]:
        """Send the texts batch by batch, within one time limit for all."""
        if not texts:
            return []
        if not self._can_call:
            raise EmbedderRefused(f"Embedder {self.name!r} has no key: set OPENAI_API_KEY, or pass api_key=.")
        fitting = [wire.cut(text) for text in texts]
        if shortened := sum(len(short) < len(text) for (short, _), text in zip(fitting, texts, strict=True)):
            _log.warning("%d of %d texts were cut at %d tokens to be embedded", shortened, len(texts), wire.TEXT_TOKENS)
        batches = list(wire.batches(fitting, size=self._batch_size, tokens=self._batch_tokens))
        limit = (self._timeout if timeout is None else timeout) * len(batches)
        vectors: list[NDArray[np.float32]] = []
        try:
            async with asyncio.timeout(limit):
                openai_client.deadline.set(time.monotonic() + limit)
                for batch in batches:
                    vectors += await self._request(client, batch, limit)
                return vectors
        except TimeoutError:
            pass
        # Raised out here, as below: what the client was doing is no part of the error, and it holds the key.
        raise EmbedderUnavailable(f"Embedder {self.name!r} gave no answer within {limit:g} s.")

    async def _request(
        self, client: "openai.AsyncOpenAI", batch: Sequence[str], limit: float
    ) -> list[NDArray[np.float32]]:
        import openai

        arguments = wire.request(self.model, batch, self._asked_dimensions)
        patience = openai.Timeout(limit, connect=min(limit, openai_client.CONNECT_SECONDS))
        error: EmbedderUnavailable
        try:
            answer = await client.embeddings.with_raw_response.create(**arguments, timeout=patience)
            read = wire.read(answer.content, len(batch))
        except openai.APIStatusError as exc:
            error = self._from_status(exc.status_code, exc.code, exc.response.headers)
        except openai.APIConnectionError as exc:
            slow = isinstance(exc, openai.APITimeoutError)
            what = "did not answer in time" if slow else "cannot be reached, or broke off: check network and base URL"
            error = EmbedderUnavailable(f"Embedder {self.name!r} {what}.")
        except openai.OpenAIError as exc:
            error = EmbedderUnavailable(f"Embedder {self.name!r} failed with {type(exc).__name__}.")
        except wire.UnreadableAnswer as exc:
            error = EmbedderUnavailable(f"Embedder {self.name!r} gave an answer that is of no use: {exc}.")
        else:
            if read.tokens is not None:
                telemetry.count_input_tokens(read.tokens)
            return read.vectors
        raise error

    def _from_status(self, status: int, code: object, headers: Mapping[str, str]) -> EmbedderUnavailable:
        """Turn an HTTP error into ours. The service's own sentence is left out: it may quote key or text."""
        detail = f"HTTP {status}{openai_client.plain_code(code)}"
        if status in (408, 409, 425, 429) or status >= 500:
            wait = wire.retry_after(headers, time.time())
            when = "" if wait is None else f" It asks to be tried again in {wait:.3g} s."
            what = "limits its calls" if status == 429 else "is failing"
            return EmbedderUnavailable(f"Embedder {self.name!r} {what} ({detail}).{when}", retry_after=wait)
        match status:
            case 401 | 403:
                what = "refuses the key: check OPENAI_API_KEY or api_key="
            case 404:
                what = "is not known there: check the model's name and the base URL"
            case _:
                what = "refuses the request: check the model, its dimensions and the limits of a batch"
        return EmbedderRefused(f"Embedder {self.name!r} {what} ({detail}).", status=status)
