"""Which messages a model is shown: the newest that fit, never a call of a tool without its results.

What a provider refuses is left out of a window, whatever is stored: a result without a call before it, a second result
of one call, and a call that was never answered, unless nothing but its results follows it yet. System messages stay,
and so does the newest message of the user's.
"""

from collections.abc import Callable, Mapping, Sequence

from memoranda import tokens
from memoranda.messages import Message


def window(messages: Sequence[Message], max_tokens: int, size: Callable[[Message], int] | None = None) -> list[Message]:
    """Return the messages of a window, in their order.

    The first that is no system message is the user's where there is one. More than `max_tokens` are returned only where
    the system messages and the newest user message alone have more.

    Args:
        messages: The end of a conversation, and its system messages.
        max_tokens: How much may be shown.
        size: Counts the tokens of a message; the engine's estimate when left out.
    """
    size = size or _size
    usable = _usable(messages)
    systems = [message for message in usable if message.role == "system"]
    others = [message for message in usable if message.role != "system"]
    left = max_tokens - sum(map(size, systems))
    asked = next((place for place in reversed(range(len(others))) if others[place].role == "user"), None)
    reserved = 0 if asked is None else size(others[asked])
    kept: list[range] = []
    for segment in reversed(_segments(others)):
        cost = sum(size(others[place]) for place in segment)
        reserved = 0 if asked in segment else reserved
        if cost + reserved > left:
            break
        left -= cost
        kept.append(segment)
    shown = _from_the_user(others, kept[::-1], asked)
    places = iter(range(len(others)))
    return [message for message in usable if message.role == "system" or next(places) in shown]


def suffices(messages: Sequence[Message], max_tokens: int) -> bool:
    """Say whether the end of a conversation is all a window can hold of it, beside system messages and the user's.

    The call of a result may lie before it, and then everything between belongs to one run: only what stands behind the
    last result whose call is not there is known to be as it looks.
    """
    if _total(messages) <= max_tokens:
        return False
    calls = _answered(messages)
    lone = (place for place in reversed(range(len(messages))) if messages[place].role == "tool" and place not in calls)
    return _total(_usable(messages[next(lone, -1) + 1 :])) > max_tokens


def capacity(messages: Sequence[Message], max_tokens: int) -> int:
    """Return how many more messages a window may hold beside these, if they are as long as these on the average."""
    taken = _total(messages)
    return max(0, max_tokens - taken) * len(messages) // max(1, taken)


def _total(messages: Sequence[Message]) -> int:
    return sum(_size(message) for message in messages if message.role != "system")


def _from_the_user(others: Sequence[Message], kept: Sequence[range], asked: int | None) -> set[int]:
    """Return the places from the first segment that the user begins; else the user's newest and what follows it."""
    if asked is None:
        return {place for segment in kept for place in segment}
    for number, segment in enumerate(kept):
        if others[segment[0]].role == "user":
            return {place for later in kept[number:] for place in later}
    return {asked, *(place for segment in kept if segment[0] > asked for place in segment)}


def _size(message: Message) -> int:
    return tokens.of_message(message) if message.tokens is None else message.tokens


def _usable(messages: Sequence[Message]) -> list[Message]:
    """Leave out results without a call, and calls without all their results that are not the newest of all."""
    calls = _answered(messages)
    missing = {place: len(message.tool_calls) for place, message in enumerate(messages) if _calls(message)}
    for call in calls.values():
        missing[call] -= 1
    last = max((place for place, message in enumerate(messages) if message.role not in ("tool", "system")), default=-1)
    broken = {place for place, count in missing.items() if count and place != last}
    return [
        message
        for place, message in enumerate(messages)
        if place not in broken and (message.role != "tool" or calls.get(place, -1) not in {-1, *broken})
    ]


def _answered(messages: Sequence[Message]) -> Mapping[int, int]:
    """Return for each result the place of the call it answers: of several with its id the newest that has none yet."""
    waiting: dict[str, list[int]] = {}
    answered: dict[int, int] = {}
    for place, message in enumerate(messages):
        if _calls(message):
            for call in message.tool_calls:
                waiting.setdefault(call.id, []).append(place)
        elif message.role == "tool" and (calls := waiting.get(message.tool_call_id or "")):
            answered[place] = calls.pop()
    return answered


def _calls(message: Message) -> bool:
    return bool(message.tool_calls) and message.role == "assistant"  # nobody else's are calls, whatever is stored


def _segments(messages: Sequence[Message]) -> list[range]:
    """Cut messages into the shortest runs that hold every call together with its results."""
    reach = {call: result for result, call in _answered(messages).items()}
    segments: list[range] = []
    start = end = 0
    for place in range(len(messages)):
        end = max(end, place, reach.get(place, 0))
        if place == end:
            segments.append(range(start, place + 1))
            start = place + 1
    return segments
