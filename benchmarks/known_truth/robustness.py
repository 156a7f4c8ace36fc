"""The four abilities of an LLM: what noise costs, rejection, joining documents, changed facts."""

from __future__ import annotations

import plugins.robustness.robustness_simulation as sim
from known_truth.rows import FULL, SEED, Row, percent

SECTIONS: dict[str, list[Row]] = {
    "Robustness: four abilities of an LLM": [
        Row(
            f"robustness, interval holds the true number: {name}",
            f"{llm}, {n} topics",
            "about 95 %",
            "no such number",
            lambda trials, llm=llm, n=n, name=name: percent(  # type: ignore[misc]
                sim.coverage(llm, n, trials, SEED)[name]
            ),
            FULL,
        )
        for llm in sim.LLMS
        for n in (30, 120)
        for name in sim.NUMBERS
    ],
}
