"""A program as language model: it reads the prompt and writes its answer, as `llm` and most agents' commands do."""

import asyncio
import os
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from memoranda.errors import ConfigurationError, ModelRefused, ModelUnavailable
from memoranda.loop_thread import LoopThread
from memoranda.models.messages import TIMEOUT, as_text, with_schema
from memoranda.protocols import Completion, PromptMessage

MAX_OUTPUT = 8_000_000
"""Bytes of an answer; a program that goes on is stopped."""
_LOOK_SECONDS = 0.02  # between two looks at whether the program has ended
_LEFTOVER_SECONDS = 1.0  # for what the program started and left behind with its output still open


class CommandModel:
    """Runs a program for each call: the prompt on its standard input, the answer on its standard output, in UTF-8.

    What it writes to its standard error is thrown away, since it may repeat what it was told. It runs in a process
    group of its own, which is ended at the time limit, and when the call is cancelled. No shell reads the command.

    Args:
        command: The program and its arguments: a list, or one text that is split as a shell would.
        timeout: Seconds a call may take.

    Raises:
        ConfigurationError: an argument cannot be used.
    """

    def __init__(self, command: str | Sequence[str], *, timeout: float = TIMEOUT) -> None:
        try:
            self._arguments = shlex.split(command) if isinstance(command, str) else [str(part) for part in command]
        except ValueError:
            raise ConfigurationError("The model's command has an open quote: look at MEMORANDA_LLM_CMD.") from None
        if not self._arguments or not self._arguments[0] or "\0" in "".join(self._arguments):
            raise ConfigurationError("The model's command needs the name of a program.")
        if timeout <= 0:
            raise ConfigurationError("timeout must be positive.")
        program = PurePath(self._arguments[0]).name
        # A setting in front of the program (KEY=... llm) is no program, and stays out of names.
        self.name = f"command/{program}" if re.fullmatch(r"[\w.+-]{1,60}", program) else "command"
        self._timeout = timeout
        self._line = LoopThread(_Nothing, "memoranda-command")

    def __repr__(self) -> str:
        """Show the program, not its arguments: one may be a key."""
        return f"CommandModel({self.name!r})"

    def complete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Return what the program writes; a schema is asked for in words, a number of tokens is not asked for.

        Raises:
            ModelRefused: there is no such program.
            ModelUnavailable: it failed, wrote nothing or too much, or took too long.
        """
        running: list[asyncio.subprocess.Process] = []
        try:
            return self._line.run(lambda _: self._completed(_prompt(messages, schema), running))
        except KeyboardInterrupt:
            for process in running:
                _kill(process)  # here and now: the thread that would do it may end with this process first
            raise

    async def acomplete(
        self,
        messages: Sequence[PromptMessage],
        *,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Completion:
        """Async twin of `complete`."""
        return await self._line.arun(lambda _: self._completed(_prompt(messages, schema), []))

    async def _completed(self, prompt: bytes, running: list[asyncio.subprocess.Process]) -> Completion:
        process = await self._started()
        running.append(process)
        output = bytearray()
        try:
            async with asyncio.timeout(self._timeout):
                await self._conversed(process, prompt, output)
        except TimeoutError:
            raise ModelUnavailable(f"Model {self.name!r} gave no answer within {self._timeout:g} s.") from None
        finally:
            await _ended(process)
        if len(output) > MAX_OUTPUT:
            raise ModelUnavailable(f"Model {self.name!r} wrote more than {MAX_OUTPUT:,} bytes and was stopped.")
        if process.returncode:
            code = process.returncode
            how = f"was ended by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise ModelUnavailable(f"Model {self.name!r} {how}: run it by hand to see why.")
        text = bytes(output).decode("utf-8", "replace").strip()
        if not text:
            raise ModelUnavailable(f"Model {self.name!r} wrote nothing.")
        return Completion(text)

    async def _started(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as exc:
            kind = type(exc).__name__
        # Raised out here: the system's error names the whole command, and is no part of ours.
        raise ModelRefused(f"Model {self.name!r} cannot be started ({kind}): check MEMORANDA_LLM_CMD.")

    async def _conversed(self, process: asyncio.subprocess.Process, prompt: bytes, output: bytearray) -> None:
        """Write the prompt while the answer is read, until the program ends or has written too much."""
        writing = asyncio.ensure_future(_write(process, prompt))
        reading = asyncio.ensure_future(_read(process, output))
        try:
            # `process.wait()` would wait for pipes that a child holds open.
            while process.returncode is None and len(output) <= MAX_OUTPUT:
                if reading.done():
                    await asyncio.sleep(_LOOK_SECONDS)
                else:
                    await asyncio.wait((reading,), timeout=_LOOK_SECONDS)
            await asyncio.wait((reading,), timeout=_LEFTOVER_SECONDS)
        finally:
            for task in (writing, reading):
                task.cancel()
            await asyncio.gather(writing, reading, return_exceptions=True)


class _Nothing:
    """There is no client to keep between calls."""

    async def close(self) -> None:
        """Do nothing."""


def _prompt(messages: Sequence[PromptMessage], schema: Mapping[str, Any] | None) -> bytes:
    return as_text(messages if schema is None else with_schema(messages, schema)).encode("utf-8", "replace")


async def _write(process: asyncio.subprocess.Process, prompt: bytes) -> None:
    assert process.stdin
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # a program may answer without reading all of it
            process.stdin.write(prompt)
            await process.stdin.drain()
    finally:
        process.stdin.close()


async def _read(process: asyncio.subprocess.Process, output: bytearray) -> None:
    assert process.stdout
    while len(output) <= MAX_OUTPUT and (part := await process.stdout.read(65_536)):
        output += part


def _kill(process: asyncio.subprocess.Process) -> None:
    """End what still runs of the process group.

    Of a program that ended by itself, children may live on; they hold the group's number, so nobody else has it.
    """
    assert process.stdout
    if process.returncode is None or not process.stdout.at_eof():
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            elif process.returncode is None:
                process.kill()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the process group, and wait until it is gone."""
    assert process.stdout
    _kill(process)
    with suppress(TimeoutError):
        async with asyncio.timeout(_LEFTOVER_SECONDS):
            while await process.stdout.read(65_536):  # what is not read would keep the pipe open
                pass
            while process.returncode is None:
                await asyncio.sleep(_LOOK_SECONDS)
