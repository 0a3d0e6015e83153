"""A server on the loopback address that answers as OpenAI does, and fails when it is told to.

It knows `/v1/embeddings` and `/v1/chat/completions`.

```python
with OpenAIServer() as server:
    server.fail(rate_limited(retry_after=1), 1)
    embedder = OpenAIEmbedder(base_url=server.url, api_key=server.key)
```

Its vectors are alike when texts share words; in a chat it says what the test wrote to `replies`. It needs nothing but
the standard library.
"""

import base64
import json
import math
import re
import socket
import struct
import threading
import time
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

MODELS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
"""OpenAI's models and the lengths of their vectors."""
LOCAL_MODELS = {"bge-m3": 1024}
"""What a server of the user's own may hold; such a server asks for no key."""
CHAT_MODELS = ("gpt-4.1-mini", "gpt-4o-mini", "qwen2.5:7b")
"""The models that answer in a chat."""
KEY = "sk-test-0123456789abcdefghij"
_INPUTS, _TEXT_TOKENS, _ALL_TOKENS = 2_048, 8_192, 300_000


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one request; each field left out goes right.

    Args:
        status: An HTTP status other than 200, with OpenAI's error object.
        code: The code in that object.
        message: The sentence in that object.
        headers: Headers to add.
        delay: Seconds before anything is answered.
        drip: Seconds between two bytes of the answer.
        body: What to send instead of the answer.
        broken_off: Send half of what was announced, and hang up.
        length: Give vectors of this length.
        count: Give this many vectors too many; too few when negative.
        param: The option that is at fault, in OpenAI's error object.
        finish: Why the chat's answer ends, other than "stop".
        refusal: What the chat's model says instead of an answer.
        reverse: Give the vectors last to first, with their right indexes.
    """

    status: int = 200
    code: str | None = None
    message: str = "The server had an error while processing your request."
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float = 0.0
    body: bytes | None = None
    broken_off: bool = False
    length: int | None = None
    count: int = 0
    param: str | None = None
    finish: str | None = None
    refusal: str | None = None
    reverse: bool = False


def rate_limited(retry_after: float | str | None = None) -> Fault:
    """Refuse a request for coming too soon, and say in how many seconds (or at which date) to come again."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after}"}
    return Fault(429, "rate_limit_exceeded", "Rate limit reached for requests.", headers)


def revoked(key: str = KEY) -> Fault:
    """Refuse the key, and repeat it, as some servers do."""
    return Fault(401, "invalid_api_key", f"Incorrect API key provided: {key}.")


@dataclass(frozen=True)
class Request:
    """A request that came: its JSON, and its headers by lower-case names."""

    body: dict[str, Any]
    headers: dict[str, str]


class OpenAIServer:
    """Answers while it is entered; `requests` holds every request that came, oldest first.

    Args:
        models: Names and lengths of the models it holds.
        key: The key it wants; None where it wants none.
        float_lists: Whether it ignores the wish for base64, as some compatible servers do.
        max_inputs: Texts it takes in a request.
        refuses: Options of a chat that it refuses: `response_format`, `temperature`, `max_tokens`.
        replies: What it answers in a chat, one a request; "OK" when there is none left.
    """

    def __init__(
        self,
        *,
        models: Mapping[str, int] = MODELS,
        key: str | None = KEY,
        float_lists: bool = False,
        max_inputs: int = _INPUTS,
        refuses: Collection[str] = (),
        replies: Sequence[str] = (),
    ) -> None:
        self.models = dict(models)
        self.key = key
        self.float_lists = float_lists
        self.max_inputs = max_inputs
        self.refuses = set(refuses)
        self.replies = list(replies)
        self.requests: list[Request] = []
        self._faults: list[Fault] = []
        self._always: Fault | None = None
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.openai = self

    @property
    def url(self) -> str:
        """The base URL to give to a client."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """Every text that came, in order, whatever the request and its fate."""
        return [text for request in self.requests for text in request.body.get("input", [])]

    def __enter__(self) -> "OpenAIServer":
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()

    def fail(self, fault: Fault | None, times: int | None = None) -> None:
        """Let the next requests go wrong: as many as `times`, all when left out; None lets all go right again."""
        with self._lock:
            if fault is None or times is None:
                self._faults, self._always = [], fault
            else:
                self._faults += [fault] * times

    def take(self, request: Request) -> Fault:
        """Note a request, and return what goes wrong with it."""
        with self._lock:
            self.requests.append(request)
            return self._faults.pop(0) if self._faults else self._always or Fault()

    def pause(self, seconds: float) -> None:
        """Wait, but not beyond the server's end."""
        self._closed.wait(seconds)

    def answer(self, request: Request, fault: Fault) -> tuple[int, dict[str, Any]]:
        """Return status and JSON for a request."""
        if fault.status != 200:
            return fault.status, _error(fault.message, fault.code, fault.param)
        body = request.body
        texts, dimensions = body.get("input"), body.get("dimensions")
        texts = [texts] if isinstance(texts, str) else texts
        if not self._admits(request):
            return 401, _error("Incorrect API key provided.", "invalid_api_key")
        if (model := body.get("model")) not in self.models:
            sentence = f"The model `{model}` does not exist or you do not have access to it."
            return 404, _error(sentence, "model_not_found")
        if dimensions is not None and not str(model).startswith("text-embedding-3-"):
            return 400, _error("This model does not support specifying dimensions.")
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return 400, _error("'$.input' is invalid.")
        if len(texts) > self.max_inputs:
            return 422, _error(f"batch size {len(texts)} > maximum allowed batch size {self.max_inputs}")
        counts = [_tokens(text) for text in texts]
        if max(counts) > _TEXT_TOKENS or sum(counts) > _ALL_TOKENS:
            return 400, _error("This model's maximum context length is 8192 tokens.", "context_length_exceeded")
        length = fault.length or dimensions or self.models[str(model)]
        items = [
            {"object": "embedding", "index": index, "embedding": self._encoded(vector_of(text, length), body)}
            for index, text in enumerate([*texts, *[""] * fault.count][: len(texts) + fault.count])
        ]
        usage = {"prompt_tokens": sum(counts), "total_tokens": sum(counts)}
        return 200, {"object": "list", "data": items[::-1] if fault.reverse else items, "model": model, "usage": usage}

    def chat(self, request: Request, fault: Fault) -> tuple[int, dict[str, Any]]:
        """Return status and JSON for a request to `/v1/chat/completions`."""
        if fault.status != 200:
            return fault.status, _error(fault.message, fault.code, fault.param)
        body = request.body
        if not self._admits(request):
            return 401, _error("Incorrect API key provided.", "invalid_api_key")
        if (model := body.get("model")) not in CHAT_MODELS:
            sentence = f"The model `{model}` does not exist or you do not have access to it."
            return 404, _error(sentence, "model_not_found")
        for option in sorted(self.refuses & body.keys()):
            return 400, _error(f"Unsupported parameter: '{option}'.", "unsupported_parameter", option)
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            return 400, _error("Invalid 'messages': empty array.", "empty_array", "messages")
        with self._lock:
            content = self.replies.pop(0) if self.replies else "OK"
        limit = int(body.get("max_tokens") or body.get("max_completion_tokens") or _ALL_TOKENS)
        if cut := _tokens(content) > limit:
            content = content[: 4 * limit]
        message = {"role": "assistant", "content": None if fault.refusal else content, "refusal": fault.refusal}
        choice = {
            "index": 0,
            "message": {**message, "annotations": []},
            "logprobs": None,
            "finish_reason": fault.finish or ("length" if cut else "stop"),
        }
        asked, said = sum(_tokens(str(message.get("content"))) for message in messages), _tokens(content)
        return 200, {
            "id": f"chatcmpl-{blake2b(content.encode(), digest_size=12).hexdigest()}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": model,
            "choices": [choice],
            "usage": {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said},
            "service_tier": "default",
            "system_fingerprint": None,
        }

    def _admits(self, request: Request) -> bool:
        return self.key is None or request.headers.get("authorization") == f"Bearer {self.key}"

    def _encoded(self, vector: "array[float]", body: Mapping[str, Any]) -> str | list[float]:
        if body.get("encoding_format") != "base64" or self.float_lists:
            return list(vector)
        return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def vector_of(text: str, length: int) -> "array[float]":
    """Return the vector the server gives a text: float32, of length 1, each distinct word in four places."""
    values = [0.0] * length
    for word in set(re.findall(r"\w+", text.casefold())) or {text}:
        digest = blake2b(word.encode(), digest_size=16).digest()
        for number in struct.unpack("<4I", digest):
            values[(number >> 1) % length] += 1.0 if number & 1 else -1.0
    norm = math.sqrt(sum(value * value for value in values)) or 1.0
    return array("f", [value / norm for value in values])


def _tokens(text: str) -> int:
    """Count as the real ones do, roughly: a token for four Latin letters or for one sign of Chinese."""
    wide = sum(character > "\u2e7f" for character in text)
    return wide + (len(text) - wide + 3) // 4


def _error(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    openai: OpenAIServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that gave up is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for the client to acknowledge the headers
    server: _Server

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        """Answer a request, or fail as agreed."""
        openai = self.server.openai
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        request = Request(json.loads(content), {name.lower(): value for name, value in self.headers.items()})
        fault = openai.take(request)
        openai.pause(fault.delay)
        started = time.perf_counter()
        if self.path.rstrip("/") == "/v1/embeddings":
            status, answer = openai.answer(request, fault)
        elif self.path.rstrip("/") == "/v1/chat/completions":
            status, answer = openai.chat(request, fault)
        else:
            status, answer = 404, _error(f"Invalid URL (POST {self.path})")
        body = json.dumps(answer).encode() if fault.body is None else fault.body
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status == 200:
            self.send_header("openai-model", str(answer["model"]))
            self.send_header("openai-processing-ms", str(round(1000 * (time.perf_counter() - started))))
        self.send_header("openai-version", "2020-10-01")
        for name, value in fault.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self._send(body[: len(body) // 2] if fault.broken_off else body, fault.drip)
        if fault.broken_off:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_WR)

    def _send(self, body: bytes, drip: float) -> None:
        if not drip:
            self.wfile.write(body)
            return
        for place in range(len(body)):
            self.wfile.write(body[place : place + 1])
            self.server.openai.pause(drip)
