"""The shapes of OpenAI's answers, as the real service gives them: the local server and the recordings keep to them."""

import base64
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import yaml
from pydantic import BaseModel, ConfigDict

from memoranda.testing.openai_server import Fault, rate_limited, revoked, vector_of

CASSETTES = Path(__file__).parent / "cassettes"


class Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class Embedding(Shape):
    object: Literal["embedding"]
    index: int
    embedding: str | list[float]


class Usage(Shape):
    prompt_tokens: int
    total_tokens: int


class Answer(Shape):
    object: Literal["list"]
    data: list[Embedding]
    model: str
    usage: Usage


class Problem(Shape):
    message: str
    type: str
    param: str | None
    code: str | None


class Refusal(Shape):
    error: Problem


def shape_of(status):
    return Answer if status == 200 else Refusal


@pytest.fixture
def post(server):
    """Ask the server without the client: status, JSON, headers."""

    def ask(body, *, key=server.key, path="/embeddings"):
        request = urllib.request.Request(
            server.url + path,
            data=json.dumps(body).encode(),
            headers={"content-type": "application/json", "authorization": f"Bearer {key}"},
        )
        try:
            answer = urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, json.loads(answer.read()), dict(answer.headers)

    return ask


SMALL = {"model": "text-embedding-3-small", "input": ["hello", "world"]}


def test_the_server_answers_in_the_service_s_shape(post):
    status, answer, headers = post({**SMALL, "encoding_format": "base64"})

    Answer.model_validate(answer)
    assert status == 200 and headers["content-type"] == "application/json"
    assert headers["openai-model"] == "text-embedding-3-small" and headers["openai-version"] == "2020-10-01"
    assert [item["index"] for item in answer["data"]] == [0, 1]
    for text, item in zip(SMALL["input"], answer["data"], strict=True):
        vector = np.frombuffer(base64.b64decode(item["embedding"]), dtype="<f4")
        assert vector.tolist() == list(vector_of(text, 1536))


def test_without_a_wish_for_base64_there_are_lists_and_a_single_text_will_do(post):
    _, answer, _ = post({"model": "text-embedding-3-large", "input": "hello"})
    Answer.model_validate(answer)
    assert len(answer["data"][0]["embedding"]) == 3072


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({**SMALL, "model": "nonexistent"}, 404, "model_not_found"),
        ({**SMALL, "model": "text-embedding-ada-002", "dimensions": 512}, 400, None),
        ({**SMALL, "input": []}, 400, None),
        ({**SMALL, "input": ["hello", ""]}, 400, None),
        ({**SMALL, "input": ["x"] * 2_049}, 422, None),
        ({**SMALL, "input": ["茶" * 8_193]}, 400, "context_length_exceeded"),
        ({**SMALL, "input": ["word " * 6_000] * 50}, 400, "context_length_exceeded"),
    ],
)
def test_the_server_refuses_what_the_service_refuses(post, body, status, code):
    got, answer, _ = post(body)
    Refusal.model_validate(answer)
    assert (got, answer["error"]["code"]) == (status, code)


def test_the_server_refuses_a_wrong_key_and_another_address(post):
    for status, answer, _ in (post(SMALL, key="sk-other"), post(SMALL, path="/chat/completions")):
        Refusal.model_validate(answer)
        assert status in (401, 404)


@pytest.mark.parametrize("fault", [rate_limited(3), revoked(), Fault(500), Fault(503, headers={"retry-after": "3"})])
def test_a_fault_on_request_has_the_service_s_shape_too(post, server, fault):
    server.fail(fault, 1)
    status, answer, headers = post(SMALL)
    Refusal.model_validate(answer)
    assert status == fault.status and headers.get("retry-after") == fault.headers.get("retry-after")
    assert post(SMALL)[0] == 200


def test_recorded_answers_have_the_service_s_shape():
    for path in CASSETTES.iterdir():
        for interaction in yaml.safe_load(path.read_text())["interactions"]:
            answer = interaction["response"]
            shape_of(answer["status"]["code"]).model_validate_json(answer["body"]["string"])
            assert set(json.loads(interaction["request"]["body"])) <= {
                "model",
                "input",
                "dimensions",
                "encoding_format",
            }
