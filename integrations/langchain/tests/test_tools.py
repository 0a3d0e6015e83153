"""The tools of an agent: the engine's own, with nobody's name among the arguments."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolCall
from langchain_core.utils.function_calling import convert_to_openai_tool

from langchain_memoranda import MemoryToolkit, memory_tools
from memoranda.errors import ConfigurationError
from memoranda.tools import NAMES, agent_tools


def of(tools, name):
    return next(tool for tool in tools if tool.name == name)


def test_a_model_is_given_the_engine_s_own_definitions(me):
    persona = me.handle
    given = [convert_to_openai_tool(tool) for tool in memory_tools(persona, names=NAMES)]
    assert given == [tool.definition for tool in agent_tools(persona, names=NAMES)]
    assert "persona" not in str([tool["function"]["parameters"] for tool in given])
    assert [tool.name for tool in MemoryToolkit(memory=persona).get_tools()] == [t.name for t in memory_tools(persona)]
    assert [tool.name for tool in MemoryToolkit(memory=persona, names=("recall",)).get_tools()] == ["recall"]


def test_what_cannot_be_used_is_answered_in_words(me, call):
    tools = memory_tools(me.handle)
    answer = call(of(tools, "memory"), {"action": "write", "content": "Falcon is out.", "persona": "other"})
    assert answer == "Nothing was done: persona is no argument of this tool"
    assert "must be" in call(of(tools, "recall"), {"query": "Falcon", "limit": 99})
    assert me.memories.list() == []


def test_an_agent_s_run_says_who_asks_whatever_the_model_says(make_engine, chat_model, call):
    engine = make_engine().handle
    wrong = {"action": "write", "content": "Ana likes tea.", "runtime": {"context": {"user": "bo"}}}
    calls = AIMessage("", tool_calls=[ToolCall(name="memory", args=wrong, id="1")])
    agent = create_agent(chat_model(calls, "Fine."), memory_tools(engine))
    call(agent, {"messages": ["Hello."]}, {"configurable": {"user_id": "ana", "persona": "work"}})
    found = engine.persona("work", user="ana").memories.list()
    assert [memory.content for memory in found] == ["Ana likes tea."]
    assert engine.persona("work", user="bo").memories.list() == engine.persona("main", user="ana").memories.list() == []


def test_outside_a_run_an_engine_s_tools_are_nobody_s(make_engine, call):
    tools = memory_tools(make_engine().handle)
    with pytest.raises(ConfigurationError, match="No user is named"):
        call(of(tools, "recall"), {"query": "Falcon"})


def test_a_function_says_who_asks(make_engine, call, chat_model):
    engine = make_engine().handle

    def whose(runtime):
        return engine.persona("main", user=(runtime.context or {}).get("login") if runtime else None)

    calls = AIMessage(
        "", tool_calls=[ToolCall(name="user_model_write", args={"dimension": "a", "content": "b"}, id="1")]
    )
    agent = create_agent(chat_model(calls, "Fine."), memory_tools(whose))
    call(agent, {"messages": ["Hello."]}, context={"login": "ana"})
    assert [known.content for known in engine.persona("main", user="ana").user_model.list()] == ["b"]


def test_calls_at_once_do_not_disturb_each_other(make_engine):
    engine = make_engine().handle
    write = of(memory_tools(engine.persona("main")), "memory")

    async def several(start):
        asked = ({"action": "write", "content": f"Parcel {n} went astray."} for n in range(start, start + 4))
        return await asyncio.gather(*(write.ainvoke(one) for one in asked))

    with ThreadPoolExecutor(4) as pool:
        loops = [pool.submit(asyncio.run, several(start)) for start in (0, 4)]
        plain = pool.map(
            lambda n: write.invoke({"action": "write", "content": f"Parcel {n} went astray."}), range(8, 16)
        )
        answers = [answer for loop in loops for answer in loop.result()] + list(plain)
    assert all(answer.startswith("Saved memory") for answer in answers)
    assert len(engine.persona("main").memories.list(limit=100)) == 16


def test_the_calls_of_one_message_run_at_once(make_engine, chat_model, call):
    engine = make_engine().handle
    args = [{"action": "write", "content": f"Parcel {n} went astray."} for n in range(8)]
    calls = AIMessage("", tool_calls=[ToolCall(name="memory", args=one, id=str(n)) for n, one in enumerate(args)])
    agent = create_agent(chat_model(calls, "Fine."), memory_tools(engine.persona("main")))
    state = call(agent, {"messages": ["Hello."]})
    answers = [message.text for message in state["messages"] if message.type == "tool"]
    assert len(answers) == 8 and all(answer.startswith("Saved memory") for answer in answers)
    assert len(engine.persona("main").memories.list()) == 8


def test_one_user_s_names_never_match_another_s(make_engine, call):
    engine = make_engine().handle
    for user in ("1", "12", "a_b", "a%b", "acme", "acme-corp", "ana@example.org"):
        tools = memory_tools(engine.persona("main", user=user))
        assert "no memories found" in call(of(tools, "recall"), {"query": "Whose secret is it?"})
        call(of(tools, "memory"), {"action": "write", "content": f"The secret of {user} is safe."})
        assert engine.persona("main", user=user).stats().memories == 1
