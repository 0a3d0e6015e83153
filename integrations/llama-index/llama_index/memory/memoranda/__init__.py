"""Memoranda for LlamaIndex: the place of the adapters, which translate and hold no SQL, ranking or prompts.

This version is a skeleton: it fixes the distribution's name, its module and the engine it works with.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
