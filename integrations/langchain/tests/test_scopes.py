"""Who asks, and in which conversation: said by the run, never guessed, and nobody else's."""

from types import SimpleNamespace
from uuid import UUID

import pytest
from langchain.agents import create_agent

from langchain_memoranda import MemoryMiddleware, ScopeResolver
from memoranda.errors import ConfigurationError, NotAllowed

THREAD = {"configurable": {"thread_id": "thread-1"}}


def test_a_run_without_a_user_or_a_thread_is_refused(remembering, chat_model, call):
    engine, _ = remembering()
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine)])
    with pytest.raises(ConfigurationError, match="No user is named"):
        call(agent, {"messages": ["Hello."]}, THREAD)
    with pytest.raises(ConfigurationError, match="no conversation"):
        call(agent, {"messages": ["Hello."]}, {"configurable": {"user_id": "ana"}})
    assert not model.seen


@pytest.mark.parametrize("thread", [7, 0, UUID(int=7)])
def test_a_thread_may_be_a_number_or_a_uuid_like_every_other_name(remembering, chat_model, call, thread):
    engine, _ = remembering()
    run = {"configurable": {"thread_id": thread, "user_id": "ana"}}
    for memory in (MemoryMiddleware(engine), MemoryMiddleware(engine, conversation=lambda runtime: thread)):
        call(create_agent(chat_model("Fine."), middleware=[memory]), {"messages": ["Hello."]}, run)
    assert engine.persona("main", user="ana").conversations.names() == [str(thread)]


@pytest.mark.parametrize("user", [True, False, 1.5])
def test_what_is_no_name_names_nobody(remembering, user):
    engine, _ = remembering()
    with pytest.raises(ConfigurationError, match="no name"):
        ScopeResolver(engine).persona_of(SimpleNamespace(context={"user": user}, config={}))


def test_users_of_one_agent_share_nothing(remembering, chat_model, call, calling):
    engine, _ = remembering()
    ana, bo = engine.persona("main", user="ana"), engine.persona("main", user="bo")
    ana.memories.write("Ana is allergic to nuts.")
    model = chat_model("Fine.", calling("memory", action="write", content="Bo likes tea."), "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine)])
    call(agent, {"messages": ["Hello."]}, {"configurable": {"thread_id": "thread-1", "user_id": "ana"}})
    call(agent, {"messages": ["Hello."]}, {"configurable": {"thread_id": "thread-1"}}, context={"user": "bo"})
    assert "nuts" in str(model.seen[0][0].content) and "nuts" not in str(model.seen[1])
    assert [memory.content for memory in bo.memories.list()] == ["Bo likes tea."] and len(ana.memories.list()) == 1
    assert (ana.conversation("thread-1").record().messages, bo.conversation("thread-1").record().messages) == (2, 4)


def test_whom_the_server_has_authenticated_nobody_overrules(remembering):
    engine, _ = remembering()
    server = SimpleNamespace(user=SimpleNamespace(identity="ana"))
    resolver = ScopeResolver(engine)
    runtime = SimpleNamespace(context=None, config={}, server_info=server)
    assert resolver.persona_of(runtime).scope.user == "ana"
    runtime.context = {"user": "bo"}
    with pytest.raises(NotAllowed):
        resolver.persona_of(runtime)
    runtime.context, runtime.config = None, {"configurable": {"user_id": "ana", "project": "falcon"}}
    scope = resolver.persona_of(runtime).scope
    assert (scope.user, scope.project) == ("ana", "falcon")
    runtime.server_info = SimpleNamespace(user={"identity": "bo"})
    with pytest.raises(NotAllowed):
        resolver.persona_of(runtime)
    runtime.context, runtime.server_info = {"persona": object()}, server
    with pytest.raises(ConfigurationError, match="persona is no name"):
        resolver.persona_of(runtime)


@pytest.mark.parametrize("place", ["context", "configurable"])
def test_a_tenant_that_a_client_names_counts_only_where_nobody_is_signed_in(place, remembering):
    engine, _ = remembering()
    named = {"tenant": "acme", "user": "ana"}
    runtime = SimpleNamespace(context=named if place == "context" else None, config={"configurable": named})
    assert ScopeResolver(engine).persona_of(runtime).scope.tenant == "acme"
    runtime.server_info = SimpleNamespace(user={"identity": "ana", "org": "acme"})
    with pytest.raises(NotAllowed, match="tenant="):
        ScopeResolver(engine).persona_of(runtime)
    for tenant in ("acme", lambda runtime: runtime.server_info.user["org"]):
        assert ScopeResolver(engine, tenant=tenant).persona_of(runtime).scope.tenant == "acme"
    with pytest.raises(NotAllowed, match="another tenant"):
        ScopeResolver(engine, tenant="other").persona_of(runtime)
    with pytest.raises(ConfigurationError, match="return a name"):
        ScopeResolver(engine, tenant=lambda runtime: None).persona_of(runtime)


def test_the_tenant_that_a_program_chooses_holds_for_its_tools_and_its_transcript(
    remembering, chat_model, call, calling
):
    engine, _ = remembering()
    model = chat_model(calling("memory", action="write", content="Falcon is out."), "Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine, tenant="acme")])
    call(agent, {"messages": ["Hello."]}, {"configurable": {"thread_id": "thread-1", "user_id": "ana"}})
    ana = engine.persona("main", tenant="acme", user="ana")
    assert len(ana.memories.list()) == 1 and ana.conversation("thread-1").record().messages == 4
    run = {"configurable": {"thread_id": "thread-1", "user_id": "ana", "tenant": "other"}}
    with pytest.raises(NotAllowed):
        call(agent, {"messages": ["Hello."]}, run)


def test_a_function_that_cannot_be_called_here_is_refused_at_once(remembering):
    engine, _ = remembering()

    async def whose(runtime):
        return engine.persona("main")

    for options in ({"memory": whose}, {"memory": engine, "conversation": whose}, {"memory": engine, "tenant": whose}):
        with pytest.raises(ConfigurationError, match="must be a plain function"):
            ScopeResolver(**options)
    with pytest.raises(ConfigurationError, match="must return a persona"):
        ScopeResolver(lambda runtime: "main").persona_of(None)
    for needs_a_run in (lambda runtime: engine.persona("main", user=runtime.context["user"]), lambda runtime: None):
        with pytest.raises(ConfigurationError, match="called once with None"):
            MemoryMiddleware(needs_a_run)
        MemoryMiddleware(needs_a_run, tools=False)


@pytest.mark.parametrize("axis", ["persona", "tenant", "user", "project"])
def test_one_name_never_stands_for_another_that_begins_like_it(axis, remembering, chat_model, call):
    engine, _ = remembering()
    names = ("1", "12", "a_b", "axb", "a%b", "acme", "acme-corp", "ana@example.org")
    model = chat_model("Fine.")
    agent = create_agent(model, middleware=[MemoryMiddleware(engine, instructions=False)])
    for name in names:
        run = {"configurable": {"thread_id": "thread-1", "user_id": "ana", axis: name}}
        asks = ScopeResolver(engine).persona_of(SimpleNamespace(context=None, config=run))
        asks.memories.write(f"The secret of <{name}> is safe.")
        call(agent, {"messages": ["Hello."]}, run)
        assert [other for other in names if f"<{other}>" in str(model.seen[-1][0].content)] == [name]
