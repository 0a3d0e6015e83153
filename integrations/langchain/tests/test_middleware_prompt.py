"""What the middleware shows a model: the block behind the system prompt, the same bytes turn after turn."""

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, SummarizationMiddleware, dynamic_prompt
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from langchain_memoranda import MemoryMiddleware
from memoranda.policies import CompactionPolicy, Policies, PromptPolicy

THREAD = {"configurable": {"thread_id": "thread-1"}}


def systems(model):
    """What stood in the system message of each call, block by block."""
    return [[block["text"] for block in shown[0].content_blocks] for shown in model.seen]


def test_the_block_follows_the_system_prompt_and_stays_the_same_while_memories_change(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    agent = create_agent(
        model, system_prompt="Be brief.", middleware=[MemoryMiddleware(me)], checkpointer=InMemorySaver()
    )
    for turn in range(6):
        if turn == 3:
            me.user_model.write("baseline", "lives in Lisbon")
        state = call(agent, {"messages": [f"Turn {turn}."]}, THREAD)
        me.memories.write(f"Something new in turn {turn}.")
    shown = systems(model)
    assert [blocks[0] for blocks in shown] == ["Be brief."] * 6
    assert len({tuple(blocks) for blocks in shown[:3]}) == len({tuple(blocks) for blocks in shown[3:]}) == 1
    assert shown[5][: len(shown[0])] == shown[0] and "Lisbon" in shown[5][-1]
    assert "Falcon" in shown[0][2] and "Something new" not in str(shown[0])
    assert "Falcon" not in str(state) and [message.type for message in state["messages"]] == ["human", "ai"] * 6


def test_without_memories_and_instructions_the_prompt_is_the_caller_s(remembering, chat_model, call):
    engine, _ = remembering()
    model = chat_model("Fine.")
    memory = MemoryMiddleware(engine.persona("main"), instructions=False, tools=False)
    for prompt in ("Be brief.", None):
        call(create_agent(model, system_prompt=prompt, middleware=[memory]), {"messages": ["Hello."]}, THREAD)
    first, second = model.seen
    assert [m.content for m in first] == ["Be brief.", "Hello."] and [m.type for m in second] == ["human"]


def test_for_providers_that_take_no_list_everything_is_one_text(remembering, chat_model, call):
    policies = Policies(prompt=PromptPolicy(user_model="tail"))
    engine, _ = remembering(preset=policies)
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model("Fine.")
    memory = MemoryMiddleware(me, concatenate=True, instructions=False)
    call(create_agent(model, system_prompt="Be brief.", middleware=[memory]), {"messages": ["Hello."]}, THREAD)
    [[system, human]] = model.seen
    assert system.content.startswith("Be brief.\n\n") and "Falcon" in system.content
    assert human.content.startswith("Hello.\n\n") and "Lisbon" in human.content and "Lisbon" not in system.content


def test_a_picture_stays_in_what_the_user_said(remembering, chat_model, call):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(user_model="tail")))
    me = engine.persona("main")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model("Fine.")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    said = HumanMessage([{"type": "text", "text": "Look."}, picture])
    agent = create_agent(model, middleware=[MemoryMiddleware(me, concatenate=True, instructions=False)])
    call(agent, {"messages": [said]}, THREAD)
    [[human]] = model.seen
    assert human.content[:2] == said.content and "Lisbon" in human.content[2]["text"]


def test_what_goes_to_the_tail_stands_behind_what_the_user_said_and_not_in_the_state(
    remembering, chat_model, call, calling
):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(user_model="tail", turn=True)))
    me = engine.persona("main")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model(calling("recall", query="Falcon"), "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me)])
    state = call(agent, {"messages": [HumanMessage("Hello.", additional_kwargs={"kept": 1})]}, THREAD)
    for shown in model.seen:
        human = shown[1]
        assert human.content_blocks[0]["text"] == "Hello." and "Lisbon" in human.text
        assert human.additional_kwargs == {"kept": 1}
    assert state["messages"][0].content == "Hello."


def test_in_a_turn_the_system_prompt_stands_still_when_a_summary_takes_the_place_of_what_the_user_said(
    remembering, chat_model, call, calling
):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(user_model="tail")))
    me = engine.persona("main")
    me.user_model.write("baseline", "lives in Lisbon")
    model = chat_model(*(calling("recall", id=f"call-{n}", query="Falcon") for n in range(3)), "Fine.")
    summariser = SummarizationMiddleware(chat_model("A summary."), trigger=("messages", 4), keep=("messages", 2))
    agent = create_agent(model, system_prompt="Be brief.", middleware=[summariser, MemoryMiddleware(me)])
    state = call(agent, {"messages": ["Hello."]}, THREAD)
    assert len({str(shown[0].content) for shown in model.seen}) == 1
    assert [message.type for message in model.seen[-1]] == ["system", "human", "ai", "tool", "human"]
    assert all(str(shown).count("Lisbon") == 1 for shown in model.seen) and "Lisbon" not in str(state)


def test_a_model_s_sight_is_what_the_last_one_asked_was_shown(remembering, chat_model, call):
    class Choosing(AgentMiddleware):
        """Asks another model first, and gives the messages on without their ids."""

        def wrap_model_call(self, request, handler):
            chooser.invoke("Which tools?")
            shown = [message.model_copy(update={"id": None}) for message in request.messages[-1:]]
            return handler(request.override(messages=shown))

        async def awrap_model_call(self, request, handler):
            await chooser.ainvoke("Which tools?")
            shown = [message.model_copy(update={"id": None}) for message in request.messages[-1:]]
            return await handler(request.override(messages=shown))

    engine, _ = remembering()
    me, chooser = engine.persona("main"), chat_model("None.")
    agent = create_agent(
        chat_model("Fine."), middleware=[MemoryMiddleware(me), Choosing()], checkpointer=InMemorySaver()
    )
    for number in range(3):
        call(agent, {"messages": [f"Message {number}."]}, THREAD)
    marked = [message.content for message in me.conversation("thread-1").messages() if message.pending]
    assert marked == ["Message 0.", "Fine.", "Message 1.", "Fine."]


def test_a_model_that_judges_the_answer_takes_nothing_out_of_sight(remembering, chat_model, call):
    class Judging(AgentMiddleware):
        """Asks another model what it thinks of the answer."""

        def wrap_model_call(self, request, handler):
            response = handler(request)
            judge.invoke(f"Is it true? {response.result[-1].text}")
            return response

        async def awrap_model_call(self, request, handler):
            response = await handler(request)
            await judge.ainvoke(f"Is it true? {response.result[-1].text}")
            return response

    engine, _ = remembering()
    me, judge = engine.persona("main"), chat_model("Yes.")
    agent = create_agent(
        chat_model("Fine."), middleware=[MemoryMiddleware(me), Judging()], checkpointer=InMemorySaver()
    )
    for number in range(2):
        call(agent, {"messages": [f"Message {number}."]}, THREAD)
    assert len(judge.seen) == 2 and me.conversation("thread-1").pending().messages == 0


def test_it_stands_beside_a_dynamic_prompt(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    prompt = dynamic_prompt(lambda request: "Be brief.")
    call(create_agent(model, middleware=[prompt, MemoryMiddleware(me)]), {"messages": ["Hello."]}, THREAD)
    assert systems(model)[0][0] == "Be brief." and "Falcon" in systems(model)[0][2]


def test_its_tools_are_on_the_agent_and_two_of_them_need_names(remembering, chat_model, call, calling):
    engine, _ = remembering()
    one, two = engine.persona("main"), engine.persona("work")
    model = chat_model(calling("memory", action="write", content="Falcon is out."), "Fine.")
    agent = create_agent(
        model,
        middleware=[MemoryMiddleware(one), MemoryMiddleware(two, tools=False, instructions=False, name="work")],
    )
    call(agent, {"messages": ["Hello."]}, THREAD)
    assert [memory.content for memory in one.memories.list()] == ["Falcon is out."] and not two.memories.list()
    assert one.conversation("thread-1").record().messages == two.conversation("thread-1").record().messages == 4
    with pytest.raises(AssertionError, match="duplicate"):
        create_agent(model, middleware=[MemoryMiddleware(one), MemoryMiddleware(two)])


def test_the_block_keeps_to_its_budget_and_says_its_size(remembering, chat_model, call):
    engine, _ = remembering(preset=Policies(prompt=PromptPolicy(budget=200, memories=200)))
    me = engine.persona("main")
    for number in range(30):
        me.memories.write(f"The code of station {number} is x{number}, and its master is called Bo the {number}th.")
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me, instructions=False)])
    call(agent, {"messages": ["Hello."]}, THREAD)
    [[block]] = systems(model)
    prompt = me.conversation("thread-1").prompt()
    assert block == prompt.system and prompt.tokens["system"] <= 200 and "station 29" in block
    assert "station 0 " not in block


def test_a_compaction_begins_another_period(remembering, chat_model, call):
    engine, _ = remembering()
    me = engine.persona("main")
    me.memories.write("Falcon is released on 12 March.")
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(me, instructions=False)], checkpointer=InMemorySaver())
    for turn in range(4):
        if turn == 2:
            me.memories.write("Heron follows in May.")
            me.conversation("thread-1").compact(CompactionPolicy(keep_tokens=0))
        call(agent, {"messages": [f"Turn {turn}."]}, THREAD)
    first, second, third, fourth = systems(model)
    assert first == second and third == fourth and "Heron" not in first[0] and "Heron" in third[0]
