"""What several files of these tests share."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest


@pytest.fixture
def at_once(mode):
    """Run calls (handle, verb, *arguments) side by side, in threads or as tasks; return results and exceptions."""

    def run(calls):
        if mode == "async":
            return asyncio.run(gathered(calls))
        barrier = threading.Barrier(len(calls))

        def one(handle, verb, *arguments):
            barrier.wait()
            try:
                return getattr(handle.handle, verb)(*arguments)
            except Exception as error:
                return error

        with ThreadPoolExecutor(len(calls)) as pool:
            return [future.result() for future in [pool.submit(one, *call) for call in calls]]

    async def gathered(calls):
        tasks = [getattr(handle.handle, f"a{verb}")(*arguments) for handle, verb, *arguments in calls]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return run
