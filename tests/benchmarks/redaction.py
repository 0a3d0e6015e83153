"""Measure what taking secrets out of a text costs: it is paid on every write.

    python tests/benchmarks/redaction.py

Prints the median microseconds of 2 KB, in the process's own time, so that a busy machine counts less.
"""

import argparse
import time
from statistics import median

from memoranda.redaction import redact

SIZE = 2048
_TOKEN = "gh" + "p_" + "A1b2C3d4E5f6G7h8J9k0" * 2
TEXTS = {
    "short": "Ana likes tea in the morning.",
    "prose": "Last Tuesday Ana told the team that the March release would be delayed because of a failing test. ",
    "code": "for token in tokens:\n    if token.kind == KEY and not is_open(token.text[1:-1], base_url=self.url):\n"
    "        raise ParseError(f'{token.line}: unexpected {token.text!r}')  # see https://example.com/grammar\n",
    "secrets": f'DB_PASSWORD=hunter2x then redis://:swordfish@cache:6379/0, "token": "{_TOKEN}", and '
    "Authorization: Bearer abcd1234; my password is hunter2x. ",
}


def microseconds(text: str, rounds: int, calls: int = 20) -> float:
    """Return the median time of one call."""
    redact(text)
    taken: list[float] = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(calls):
            redact(text)
        taken.append((time.thread_time() - start) / calls)
    return median(taken) * 1e6


def main() -> None:
    """Print one line a text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    for name, unit in TEXTS.items():
        text = unit if name == "short" else (unit * (SIZE // len(unit) + 1))[:SIZE]
        print(f"{name:8} {len(text):5,} characters {microseconds(text, rounds):8.1f} µs")


if __name__ == "__main__":
    main()
