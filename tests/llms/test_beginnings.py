"""What prompts have in common at their beginning, counted in whole blocks of 64 characters (16 tokens)."""

from __future__ import annotations

import random

import pandas as pd
import pytest

from ragauge.experiment.need_sums import common_in_words
from ragauge.llms.beginnings import beginnings, tokens_in_common


@pytest.mark.parametrize(
    ("prompts", "blocks"),
    [
        ([], 0),
        (["a" * 640], 0),
        (["a" * 640, "a" * 640], 10),
        (["a" * 640, "b" + "a" * 639], 0),  # later blocks are equal, but do not begin alike
        (["a" * 640, "a" * 320 + "b" * 320], 5),
        (["a" * 127, "a" * 127], 1),
        (["a" * 63, "a" * 63], 0),
        (["a" * 64 + "b" * 64, "a" * 64 + "c" * 64, "a" * 64 + "b" * 65], 3),
    ],
)
def test_blocks_with_which_a_prompt_begins_as_one_before_it(prompts: list[str], blocks: int) -> None:
    assert tokens_in_common(map(beginnings, prompts)) == 16 * blocks
    random.Random(0).shuffle(prompts)
    assert tokens_in_common(map(beginnings, prompts)) == 16 * blocks


def test_a_dry_run_says_their_share_of_what_is_still_to_be_sent() -> None:
    prompts = ["a" * 640, "a" * 640, "b" * 640, "b" * 640, None]
    asked = pd.DataFrame(
        {
            "key": ["1", "2", "3", "3", "4"],  # equal requests are sent once
            "known": [False, False, False, False, False],
            "prompt_tokens": [160.0, 160.0, 160.0, 160.0, None],
            "begins": [prompt and beginnings(prompt) for prompt in prompts],
        }
    )
    assert common_in_words(asked).startswith("33% of the prompt tokens")
    assert common_in_words(asked.assign(known=[True, False, False, False, False])).startswith("0%")
    assert common_in_words(asked.assign(known=True)) == ""
