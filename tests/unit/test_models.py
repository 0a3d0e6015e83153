"""How a language model is chosen, the program that is one, the fake, and what stands before any of them."""

import asyncio
import json
import os
import sys
import time
import traceback
from pathlib import Path

import pytest

from memoranda.effects import Runner, complete
from memoranda.errors import ConfigurationError, MemorandaError, ModelRefused, ModelUnavailable
from memoranda.models import MODELS, resolve_model
from memoranda.models.checked import CheckedModel
from memoranda.models.command import MAX_OUTPUT, CommandModel
from memoranda.models.messages import as_text, with_schema
from memoranda.models.openai import OpenAIModel
from memoranda.protocols import Completion, LanguageModel, PromptMessage
from memoranda.testing import ScriptedModel

MESSAGES: list[PromptMessage] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Ana's secret is hunter2"},
]
SCHEMA = {"type": "array", "items": {"type": "string"}}
both = pytest.mark.parametrize("how", ["sync", "async"])
needs_groups = pytest.mark.skipif(not hasattr(os, "killpg"), reason="not applicable: no process groups here")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("MEMORANDA_LLM_", "OPENAI_")):
            monkeypatch.delenv(name)


def ask(model, *, how, messages=MESSAGES, **options):
    if how == "async":
        return asyncio.run(model.acomplete(messages, **options))
    return model.complete(messages, **options)


def python(code, *arguments):
    return [sys.executable, "-c", code, *arguments]


# -- choosing


@pytest.mark.behaviour("C26")
@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": "sk-none", "OPENAI_BASE_URL": "http://localhost:1/v1"}, None),
        ({"MEMORANDA_LLM_KEY": "k", "MEMORANDA_LLM_MODEL": "m"}, None),
        ({"MEMORANDA_LLM_URL": "http://localhost:1/v1"}, "openai/qwen2.5:7b"),
        ({"MEMORANDA_LLM_URL": "http://localhost:1/v1", "MEMORANDA_LLM_MODEL": "m"}, "openai/m"),
        ({"MEMORANDA_LLM_URL": "http://localhost:1/v1", "MEMORANDA_LLM_CMD": "llm"}, "openai/qwen2.5:7b"),
        ({"MEMORANDA_LLM_CMD": "/usr/bin/llm -m small"}, "command/llm"),
        ({"MEMORANDA_LLM_CMD": " ", "MEMORANDA_LLM_URL": " "}, None),
        ({"MEMORANDA_LLM_BACKEND": "auto", "MEMORANDA_LLM_CMD": "llm"}, "command/llm"),
        ({"MEMORANDA_LLM_BACKEND": "none", "MEMORANDA_LLM_CMD": "llm"}, None),
        ({"MEMORANDA_LLM_BACKEND": "command", "MEMORANDA_LLM_CMD": "llm", "MEMORANDA_LLM_URL": "x"}, "command/llm"),
        ({"MEMORANDA_LLM_BACKEND": "openai", "MEMORANDA_LLM_MODEL": "gpt-4.1-mini"}, "openai/gpt-4.1-mini"),
        ({"MEMORANDA_LLM_BACKEND": "ollama"}, "ollama/qwen2.5:7b"),
        ({"MEMORANDA_LLM_BACKEND": "ollama", "MEMORANDA_LLM_MODEL": "llama3.2"}, "ollama/llama3.2"),
    ],
)
def test_the_environment_names_the_model(settings, name, monkeypatch):
    for setting, value in settings.items():
        monkeypatch.setenv(setting, value)
    model = resolve_model()
    assert (model and model.name) == name
    assert model is None or isinstance(model, LanguageModel)


@pytest.mark.behaviour("C26")
@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("openai/gpt-4.1-mini", OpenAIModel, "openai/gpt-4.1-mini"),
        ("openai/org/model", OpenAIModel, "openai/org/model"),
        ("ollama", OpenAIModel, "ollama/qwen2.5:7b"),
        ("ollama/llama3.2:3b", OpenAIModel, "ollama/llama3.2:3b"),
    ],
)
def test_a_name_goes_before_the_environment(spec, kind, name, monkeypatch):
    monkeypatch.setenv("MEMORANDA_LLM_BACKEND", "none")
    model = resolve_model(spec)
    assert isinstance(model, kind) and model.name == name


def test_a_model_is_taken_as_it_is_and_none_is_none():
    mine = ScriptedModel()
    assert resolve_model(mine) is mine
    assert resolve_model("none") is None


@pytest.mark.parametrize("spec", ["", "gpt-4.1-mini", "OpenAI/x", "openai/", "command/llm", "none/x", "auto/x"])
def test_an_unknown_name_is_refused_with_the_names(spec):
    with pytest.raises(ConfigurationError) as caught:
        resolve_model(spec)
    assert all(name in str(caught.value) for name in MODELS)


@pytest.mark.parametrize(("spec", "setting"), [("openai", "MEMORANDA_LLM_MODEL"), ("command", "MEMORANDA_LLM_CMD")])
def test_a_setting_that_is_missing_is_named(spec, setting):
    with pytest.raises(ConfigurationError, match=setting):
        resolve_model(spec)


def test_what_is_no_model_is_refused():
    with pytest.raises(ConfigurationError, match="acomplete"):
        resolve_model(object())  # type: ignore[arg-type]


# -- messages as one text


def test_messages_are_joined_and_speakers_named_only_where_it_matters():
    assert as_text(MESSAGES) == "Be brief.\n\nAna's secret is hunter2"
    with_answer: list[PromptMessage] = [*MESSAGES, {"role": "assistant", "content": "Noted."}]
    assert as_text(with_answer) == "[system]\nBe brief.\n\n[user]\nAna's secret is hunter2\n\n[assistant]\nNoted."


def test_a_schema_is_asked_for_behind_the_first_message():
    first, second = with_schema(MESSAGES, SCHEMA)
    assert first["content"].startswith("Be brief.\n\n") and json.dumps(SCHEMA) in first["content"]
    assert second == MESSAGES[1]
    assert json.dumps(SCHEMA) in with_schema([], SCHEMA)[0]["content"]


# -- a program

ECHO = "import sys; sys.stdout.write(sys.stdin.read())"


@pytest.mark.behaviour("C26")
@both
def test_a_program_reads_the_prompt_and_writes_the_answer(how):
    model = CommandModel(python(ECHO))
    assert ask(model, how=how) == Completion("Be brief.\n\nAna's secret is hunter2")
    assert json.dumps(SCHEMA) in ask(model, how=how, schema=SCHEMA, max_tokens=5).text


@both
def test_a_large_prompt_and_answer_pass_through(how):
    text = "Ana mag Tee 茶. " * 100_000
    assert ask(CommandModel(python(ECHO)), how=how, messages=[{"role": "user", "content": text}]).text == text.strip()


@both
def test_a_program_that_reads_nothing_may_answer(how):
    messages = [{"role": "user", "content": "x" * 1_000_000}]
    assert ask(CommandModel(python("print('[]')")), how=how, messages=messages).text == "[]"


def test_a_text_is_split_as_a_shell_would_and_never_given_to_one():
    command = f"'{sys.executable}' -c 'import sys; print(sys.argv[1:])' 'two words' ';' '$HOME'"
    assert CommandModel(command).complete(MESSAGES).text == "['two words', ';', '$HOME']"


def test_what_is_no_utf_8_is_read_with_a_mark():
    code = r"import sys; sys.stdout.buffer.write(b'caf\xe9')"
    assert CommandModel(python(code)).complete(MESSAGES).text == "caf\ufffd"


@pytest.mark.behaviour("C26")
@both
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.stderr.write(sys.stdin.read()); print('hunter2'); sys.exit(3)", "exit code 3"),
        ("import os; os.abort()", "signal 6"),
        ("pass", "wrote nothing"),
        ("print('  ')", "wrote nothing"),
        (f"print('hunter2' * {MAX_OUTPUT})", "more than 8,000,000 bytes"),
    ],
)
def test_what_goes_wrong_is_an_error_that_repeats_nothing(how, code, message, capfd):
    model = CommandModel(python(code, "--key=sk-hunter2"))
    with pytest.raises(ModelUnavailable, match=message) as caught:
        ask(model, how=how)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value)) + repr(model)
    assert "hunter2" not in "".join(capfd.readouterr())


@both
def test_a_program_that_is_not_there_is_refused(how):
    model = CommandModel("/no/such/program --key=hunter2")
    with pytest.raises(ModelRefused, match="MEMORANDA_LLM_CMD") as caught:
        ask(model, how=how)
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter2" not in shown and not caught.value.__context__
    assert CommandModel("KEY=hunter2 llm").name == "command"


@pytest.mark.parametrize("command", ["", "'open", [], [""], "a\0b"])
def test_a_command_that_is_none_is_refused(command):
    with pytest.raises(ConfigurationError):
        CommandModel(command)
    with pytest.raises(ConfigurationError):
        CommandModel("llm", timeout=0)


FAMILY = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open(sys.argv[1], "w") as file: file.write(f"{child.pid}\\n")
time.sleep(float(sys.argv[2]))
print("[]")
"""


def gone(note: Path) -> bool:
    """Wait until the process that the note names has ended."""
    pid = int(note.read_text())
    for _ in range(1_000):
        status = Path(f"/proc/{pid}/stat")
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # dead, and waiting for whoever adopted it
        time.sleep(0.01)
    return False


@needs_groups
@pytest.mark.behaviour("C26")
@both
def test_at_the_time_limit_the_whole_group_is_ended(how, tmp_path):
    note = tmp_path / "child"
    with pytest.raises(ModelUnavailable, match="no answer within 3 s"):
        ask(CommandModel(python(FAMILY, str(note), "600"), timeout=3), how=how)
    assert gone(note)


@needs_groups
@both
def test_a_child_that_is_left_behind_holds_up_nothing(how, tmp_path):
    note = tmp_path / "child"
    assert ask(CommandModel(python(FAMILY, str(note), "0")), how=how).text == "[]"
    assert gone(note)


@needs_groups
def test_a_cancelled_call_ends_the_group(tmp_path):
    note = tmp_path / "child"

    async def give_up():
        call = asyncio.create_task(CommandModel(python(FAMILY, str(note), "600")).acomplete(MESSAGES))
        while not (note.exists() and note.read_text().endswith("\n")):
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(give_up())
    assert gone(note)


def test_several_programs_run_at_once():
    model = CommandModel(python(ECHO))

    async def together():
        questions: list[list[PromptMessage]] = [
            [{"role": "user", "content": f"question {number}"}] for number in range(6)
        ]
        return await asyncio.gather(*(model.acomplete(messages) for messages in questions))

    assert [answer.text for answer in asyncio.run(together())] == [f"question {number}" for number in range(6)]


# -- the fake


@pytest.mark.behaviour("C27")
@both
def test_the_script_is_followed_and_calls_are_kept(how):
    error = ModelUnavailable("down")
    cut = Completion("[", cut=True)
    model = ScriptedModel(["[]", cut, error, lambda messages: messages[-1]["content"], lambda _: error])

    assert ask(model, how=how, schema=SCHEMA, max_tokens=9) == Completion("[]")
    assert ask(model, how=how) is cut
    with pytest.raises(ModelUnavailable, match="down"):
        ask(model, how=how)
    assert ask(model, how=how).text == MESSAGES[1]["content"]
    with pytest.raises(ModelUnavailable, match="down"):
        ask(model, how=how)
    with pytest.raises(AssertionError, match="no answer left for call 6"):
        ask(model, how=how)
    assert len(model.calls) == 6
    assert (model.calls[0].schema, model.calls[0].max_tokens) == (SCHEMA, 9)
    assert model.calls[0].text == as_text(MESSAGES)
    model.answers.append("more")
    assert ask(model, how=how).text == "more"


# -- before every model


@both
def test_foreign_errors_become_ours_and_repeat_nothing(how):
    model = CheckedModel(ScriptedModel([ValueError("hunter2"), ModelRefused("no")]))
    with pytest.raises(ModelUnavailable, match="'test/scripted' failed with ValueError") as caught:
        ask(model, how=how)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(ModelRefused, match="no"):
        ask(model, how=how)
    with pytest.raises(AssertionError):
        ask(model, how=how)


@both
def test_an_answer_that_is_none_is_an_error(how):
    for answer in (Completion(None), lambda _: 3):  # type: ignore[arg-type]
        with pytest.raises(ModelUnavailable, match="not a completion"):
            ask(CheckedModel(ScriptedModel([answer])), how=how)  # type: ignore[list-item]


@both
def test_without_a_model_a_call_is_refused(how):
    model = CheckedModel(None)
    assert not model.configured and model.name == ""
    with pytest.raises(ModelRefused, match="MEMORANDA_LLM_BACKEND"):
        ask(model, how=how)


# -- as an effect


@pytest.mark.behaviour("C27")
@both
def test_a_pipeline_asks_the_model_of_its_runner(how):
    def steps():
        first = yield from complete(MESSAGES, schema=SCHEMA, max_tokens=9)
        try:
            yield from complete(MESSAGES)
        except MemorandaError as error:
            return first.text, str(error)
        return None

    model = ScriptedModel(["[]", OSError("hunter2")])
    runner = Runner(None, None, CheckedModel(model))  # type: ignore[arg-type]
    result = asyncio.run(runner.arun(steps())) if how == "async" else runner.run(steps())
    assert result == ("[]", "Model 'test/scripted' failed with OSError.")
    assert [(call.schema, call.max_tokens) for call in model.calls] == [(SCHEMA, 9), (None, None)]
