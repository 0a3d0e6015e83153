"""What keeps calls that the engine makes for itself out of the streams of an agent, beside their tags."""

from collections.abc import Sequence
from typing import Any

try:
    from langchain.agents.middleware.internal_call_transformer import InternalCallTransformer
except ImportError:  # an older LangChain has no stream that would show them in spite of their tags
    TRANSFORMERS: Sequence[Any] = ()
else:
    TRANSFORMERS = (InternalCallTransformer,)
