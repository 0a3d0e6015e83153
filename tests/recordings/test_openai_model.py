"""The OpenAI language model: by recordings of a service, and against a local server that fails on request."""

import asyncio
import gc
import json
import logging
import os
import pickle
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

from memoranda.errors import ConfigurationError, ExtraMissing, ModelRefused, ModelUnavailable
from memoranda.models import resolve_model
from memoranda.models.openai import OpenAIModel
from memoranda.protocols import Completion, LanguageModel
from memoranda.salvage import read_items
from memoranda.testing.openai_server import KEY, Fault, OpenAIServer, Request, rate_limited, revoked

CASSETTES = Path(__file__).parent / "chat_cassettes"
NOWHERE = "http://127.0.0.1:9/v1"
SECRET = "Ana's secret is hunter2"
SCHEMA = {
    "type": "object",
    "properties": {"memories": {"type": "array", "items": {"type": "object"}}},
    "required": ["memories"],
}
MESSAGES = [
    {"role": "system", "content": 'Answer with {"memories": [{"content": ...}]}, one for each fact.'},
    {"role": "user", "content": "Ana's dog is called Rex."},
]


@pytest.fixture
def ask(mode):
    """Call `complete` or, on an event loop of its own, `acomplete`."""

    def call(model, messages=MESSAGES, **options):
        if mode == "async":
            return asyncio.run(model.acomplete(messages, **options))
        return model.complete(messages, **options)

    return call


def open_model(server, model="gpt-4.1-mini", **options):
    return OpenAIModel(model, **{"base_url": server.url, "api_key": server.key, **options})


@pytest.fixture
def recorded(recording_anew, recorded_key, server):
    """Make a model that talks to the recording, or to what is being recorded."""
    server.replies = ['{"memories": [{"content": "Ana\'s dog is called Rex."}]}']

    def make(model="gpt-4.1-mini", **options):
        address = (None if recorded_key else server.url) if recording_anew else NOWHERE
        return OpenAIModel(model, **{"base_url": address, "api_key": recorded_key or KEY, **options})

    return make


def sent(recording):
    return [json.loads(request.body) for request in recording.requests]


# -- recordings


@pytest.mark.behaviour("C26")
def test_an_answer_by_schema(recording, recorded, ask):
    answer = ask(recorded(), schema=SCHEMA, max_tokens=200)

    salvage = read_items(answer.text, under=("memories",), fields=("content",))
    assert salvage.value and salvage.complete and not salvage.repaired
    assert answer.input_tokens and answer.output_tokens and not answer.cut
    assert sent(recording) == [
        {
            "model": "gpt-4.1-mini",
            "messages": MESSAGES,
            "temperature": 0,
            "max_tokens": 200,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": SCHEMA, "strict": False},
            },
        }
    ]


def test_an_answer_in_prose(recording, recorded, ask):
    assert ask(recorded()).text
    assert [set(request) for request in sent(recording)] == [{"model", "messages", "temperature"}]


def test_an_answer_that_is_cut(recording, recorded, ask):
    assert ask(recorded(), max_tokens=3).cut


def test_an_unknown_model(recording, recorded, ask):
    with pytest.raises(ModelRefused, match=r"check the model's name and the base URL \(HTTP 404, model_not_found\)"):
        ask(recorded("nonexistent"))


def test_a_wrong_key(recording, recorded, ask):
    with pytest.raises(ModelRefused, match=r"refuses the key.*HTTP 401, invalid_api_key") as caught:
        ask(recorded(api_key="wrong"))
    assert caught.value.status == 401


def test_recordings_have_the_service_s_shape_belong_to_a_test_and_hold_no_secret():
    assert {path.stem for path in CASSETTES.iterdir()} == {
        name
        for name, test in globals().items()
        if name.startswith("test_") and "recording" in test.__code__.co_varnames
    }
    for path in CASSETTES.iterdir():
        text = path.read_text()
        assert not any(trace in text.lower() for trace in ("bearer", "sk-", "organization", "cookie", "x-request-id"))
        for interaction in yaml.safe_load(text)["interactions"]:
            body = json.loads(interaction["response"]["body"]["string"])
            if interaction["response"]["status"]["code"] == 200:
                [choice] = body["choices"]
                assert body["object"] == "chat.completion" and choice["message"]["role"] == "assistant"
                assert {"prompt_tokens", "completion_tokens", "total_tokens"} <= body["usage"].keys()
            else:
                assert body["error"].keys() == {"message", "type", "param", "code"}


# -- what is sent


@pytest.mark.behaviour("C26")
@pytest.mark.parametrize(
    ("refused", "changed"),
    [
        ({"response_format"}, {"response_format"}),
        ({"temperature"}, {"temperature"}),
        ({"max_tokens"}, {"max_tokens"}),
        ({"response_format", "temperature", "max_tokens"}, {"response_format", "temperature", "max_tokens"}),
    ],
)
def test_an_option_that_is_refused_is_left_out_from_then_on(server, ask, refused, changed):
    server.refuses = refused
    model = open_model(server)

    assert ask(model, schema=SCHEMA, max_tokens=50).text == "OK"
    assert len(server.requests) == 1 + len(refused)
    assert ask(model, schema=SCHEMA, max_tokens=50).text == "OK"
    assert len(server.requests) == 2 + len(refused)
    last = server.requests[-1].body
    assert not changed & last.keys()
    assert last.get("max_completion_tokens" if "max_tokens" in refused else "max_tokens") == 50
    assert ('"memories"' in last["messages"][0]["content"].partition("JSON schema:")[2]) == (
        "response_format" in refused
    )


def test_a_server_that_does_not_say_what_it_refuses_is_asked_without_the_schema(server, ask):
    server.fail(Fault(422), 1)
    assert ask(open_model(server), schema=SCHEMA).text == "OK"
    assert ["response_format" in request.body for request in server.requests] == [True, False]


def test_a_request_that_is_refused_for_another_reason_turns_nothing_off(server, ask):
    model = open_model(server)
    for fault in (Fault(400, param="messages"), Fault(400, "context_length_exceeded"), Fault(400)):
        server.fail(fault)
        with pytest.raises(ModelRefused, match="HTTP 400"):
            ask(model, schema=SCHEMA)
    server.fail(None)
    ask(model, schema=SCHEMA)
    assert "response_format" in server.requests[-1].body


@pytest.mark.behaviour("C26")
def test_a_server_of_one_s_own_needs_no_key_and_is_sent_none(local_server, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MEMORANDA_LLM_URL", local_server.url)
    model = resolve_model()
    assert isinstance(model, OpenAIModel) and isinstance(model, LanguageModel) and model.configured
    assert model.name == "openai/qwen2.5:7b" and ask(model).text == "OK"
    [request] = local_server.requests
    assert request.headers["authorization"] == "Bearer none"


@pytest.mark.behaviour("C26")
def test_ollama_is_asked_at_its_address(local_server, ask, monkeypatch):
    monkeypatch.setenv("MEMORANDA_LLM_BACKEND", "ollama")
    monkeypatch.setenv("MEMORANDA_LLM_URL", local_server.url.removesuffix("/v1"))
    assert ask(resolve_model()).text == "OK"
    assert local_server.requests[0].body["model"] == "qwen2.5:7b"


def test_openai_takes_the_client_s_own_settings_when_it_is_named(server, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert ask(resolve_model("openai/gpt-4o-mini")).text == "OK"
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_half_a_surrogate_pair_can_be_sent(server, ask):
    ask(open_model(server), [{"role": "user", "content": "a\ud83d b"}])
    assert server.requests[0].body["messages"][0]["content"] == "a? b"


@pytest.mark.parametrize(
    "options",
    [
        {"model": ""},
        {"timeout": 0},
        {"max_retries": -1},
        {"api_key": "hunter2\nhunter3"},
        {"base_url": "localhost:11434/v1"},
        {"base_url": "http://[::1"},
        {"base_url": "https://ana:hunter2@example.com/v1"},
    ],
)
def test_unusable_options_are_refused(options):
    with pytest.raises(ConfigurationError) as caught:
        OpenAIModel(**{"model": "gpt-4.1-mini", **options})
    assert "hunter2" not in str(caught.value)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ExtraMissing, match=r"memoranda\[openai\]"):
        resolve_model("openai/gpt-4.1-mini")


# -- what goes wrong


def said(reason):
    return {"choices": [{"message": {"content": reason}, "finish_reason": "stop"}]}


@pytest.mark.behaviour("C26")
@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        (Fault(500), ModelUnavailable, r"is failing \(HTTP 500\)"),
        (rate_limited(3), ModelUnavailable, "limits its calls .* tried again in 3 s"),
        (revoked(), ModelRefused, "refuses the key"),
        (Fault(403), ModelRefused, "refuses the key"),
        (Fault(400, code=f"echo {SECRET}"), ModelRefused, r"\(HTTP 400\)"),
        (Fault(400, "context_length_exceeded"), ModelRefused, "so much at once"),
        (Fault(body=b"<html>proxy</html>"), ModelUnavailable, "not JSON"),
        (Fault(body=b"[" * 100_000), ModelUnavailable, "not JSON"),
        (Fault(body=b'{"error": {"message": "no"}}'), ModelUnavailable, "no message"),
        (Fault(body=b'{"choices": [3]}'), ModelUnavailable, "no message"),
        (Fault(body=json.dumps(said("")).encode()), ModelUnavailable, "no text"),
        (Fault(body=json.dumps(said(None)).encode()), ModelUnavailable, "no text"),
        (Fault(broken_off=True), ModelUnavailable, "not JSON|broke off"),
        (Fault(refusal=f"I will not say that {SECRET}"), ModelRefused, "declines"),
        (Fault(finish="content_filter"), ModelRefused, "declines"),
    ],
)
def test_what_goes_wrong_is_an_error_that_repeats_nothing(server, ask, fault, error, message, caplog):
    caplog.set_level(logging.DEBUG)
    server.fail(fault)
    with pytest.raises(error, match=message) as caught:
        ask(open_model(server, max_retries=0), [{"role": "user", "content": SECRET}])
    assert type(caught.value) is error
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text + repr(open_model(server))
    assert "hunter2" not in shown and KEY not in shown
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_server_answers_in_the_service_s_shape(server):
    status, answer = server.chat(Request({"model": "gpt-4o-mini", "messages": MESSAGES}, headers_of(server)), Fault())
    assert status == 200
    # As in an answer of the real service.
    assert answer.keys() == {
        *("id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint")
    }
    assert answer["choices"][0].keys() == {"index", "message", "logprobs", "finish_reason"}
    assert answer["choices"][0]["message"].keys() == {"role", "content", "refusal", "annotations"}


def headers_of(server):
    return {"authorization": f"Bearer {server.key}"}


def test_a_content_in_parts_is_read(server, ask):
    parts = [{"type": "text", "text": "a "}, {"type": "text", "text": "summary"}]
    server.fail(Fault(body=json.dumps(said(parts)).encode()))
    assert ask(open_model(server)) == Completion("a summary")


def test_without_key_and_address_nothing_is_sent(ask):
    model = OpenAIModel("gpt-4.1-mini")
    assert not model.configured
    with pytest.raises(ModelRefused, match="MEMORANDA_LLM_KEY"):
        ask(model)


def test_a_service_that_comes_back_is_asked_again(server, ask):
    server.fail(Fault(503, headers={"retry-after": "0.01"}), 2)
    assert ask(open_model(server)).text == "OK"
    assert len(server.requests) == 3


@pytest.mark.parametrize("fault", [Fault(delay=60), Fault(drip=1), Fault(503, headers={"retry-after": "30"})])
def test_the_time_limit_holds_for_the_whole_call(server, ask, fault):
    server.fail(fault)
    with pytest.raises(ModelUnavailable, match=r"within 0.2 s|tried again in 30 s|in time"):
        ask(open_model(server, timeout=0.2))


def test_nothing_listens(ask):
    with pytest.raises(ModelUnavailable, match="cannot be reached"):
        ask(OpenAIModel("gpt-4.1-mini", base_url=NOWHERE, max_retries=0))


# -- where it can be called


def test_one_model_serves_threads_and_loops(server):
    model = open_model(server)

    async def together():
        return await asyncio.gather(*(model.acomplete(MESSAGES) for _ in range(4)))

    with ThreadPoolExecutor(4) as pool:
        answers = [*pool.map(lambda _: model.complete(MESSAGES), range(4)), *asyncio.run(together())]
    answers += asyncio.run(together())
    assert {answer.text for answer in answers} == {"OK"} and len(server.requests) == 12


def test_a_cancelled_call_is_given_up(server):
    server.fail(Fault(delay=60))

    async def give_up():
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await open_model(server).acomplete(MESSAGES)

    asyncio.run(give_up())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="not applicable: no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_asks_for_itself(server):
    model = open_model(server)
    model.complete(MESSAGES)
    child = os.fork()
    if child == 0:
        os._exit(0 if model.complete(MESSAGES).text == "OK" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert model.complete(MESSAGES).text == "OK"


def test_the_thread_ends_with_the_model():
    with OpenAIServer() as server:
        model = open_model(server)
        model.complete(MESSAGES)
        [thread] = [thread for thread in threading.enumerate() if thread.name == "memoranda-model"][-1:]
        del model
        gc.collect()
        thread.join(10)
        assert not thread.is_alive()
