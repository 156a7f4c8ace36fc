"""The fictional world (docs/fictional.md): 100,000 documents, and how often its 5-grams come again.

The world is made in a process of its own; its peak memory includes the imports. 5-grams are five words in a row of one
text, lower case; the world is cut where it has as many as the Wikipedia passages beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from timing import against, print_header, print_row

from ragauge.plugins.fictional.source import FictionalWorld

PASSAGES = Path(__file__).resolve().parents[2] / "shared" / "data" / "wiki_passages_6119.json"
DOCUMENTS, SECONDS, GIB = 100_000, 120, 1.5
HARD: dict[str, Any] = {"style": "hard", "pronouns": 0, "max_hops": 4, "questions": 13, "types": ()}
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def measure() -> dict[str, float]:
    """Seconds and peak memory (GiB) of making the world and reading its documents, in this process."""
    start = time.perf_counter()
    for _ in FictionalWorld(documents=DOCUMENTS, **HARD).load().docs:
        pass
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}


def five_grams(texts: Iterable[str]) -> Iterable[tuple[str, ...]]:
    """All of each text in turn."""
    for text in texts:
        words = WORD.findall(text.lower())
        yield from zip(*(words[i:] for i in range(5)), strict=False)


def repeated(grams: Iterable[tuple[str, ...]]) -> tuple[int, float, float]:
    """How many there are, the share of them that come again, and the same of the different ones."""
    counts = Counter(grams)
    total = sum(counts.values())
    again = [n for n in counts.values() if n > 1]
    return total, sum(again) / total, len(again) / len(counts)


def main() -> None:
    """Prints the tables."""
    print_header("made as", "seconds", "peak memory")
    done = subprocess.run([sys.executable, __file__, "--alone"], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    print_row(
        f"frames, {DOCUMENTS:,} documents",
        f"{found['seconds']:.1f} s{against(SECONDS, found['seconds'], at_most=True)}",
        f"{found['peak']:.2f} GiB{against(GIB, found['peak'], at_most=True)}",
    )
    if not PASSAGES.is_file():
        print("\n5-grams: skipped, the passages are not here")
        return
    print()
    print_header("corpus", "5-grams", "share that come again", "of the different ones")
    passages = [passage["text"] for passage in json.loads(PASSAGES.read_text(encoding="utf-8"))]
    real = repeated(five_grams(passages))
    world = FictionalWorld(documents=5_000, **HARD).load().docs["text"]
    made = repeated(itertools.islice(five_grams(world), real[0]))
    for name, (total, share, different) in (("Wikipedia", real), ("fictional", made)):
        print_row(name, f"{total:,}", f"{share:.1%}", f"{different:.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true")
    if parser.parse_args().alone:
        print(json.dumps(measure()))
    else:
        main()
