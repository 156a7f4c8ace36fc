"""What calls took: sums, parts and columns, where a count may be missing."""

import numpy as np

from ragauge.contract.usage import Usage, usage_columns


def test_a_sum_has_the_counts_that_any_call_reported_and_lacks_the_others() -> None:
    one = Usage(10, 2, 0.5, 1.0, 1, cached_tokens=8)
    assert one + Usage(5, None, 0.25, 0.5, 1, 1) == Usage(15, 2, 0.75, 1.5, 2, 1, cached_tokens=8, written_tokens=None)
    assert Usage() + Usage() == Usage()


def test_parts_add_up_to_the_whole_and_each_has_its_calls() -> None:
    whole = Usage(11, 4, 0.3, 0.9, 2, 1, cached_tokens=7)
    parts = [whole.part(i, 3) for i in range(3)]
    assert [part.prompt_tokens for part in parts] == [3, 4, 4]
    assert [part.cached_tokens for part in parts] == [2, 2, 3]
    assert {(part.calls, part.usage_unknown, part.written_tokens) for part in parts} == {(2, 1, None)}
    assert sum(part.cost_usd for part in parts) == 0.3


def test_columns_of_the_servers_cache_stand_there_where_a_server_told_it() -> None:
    plain = usage_columns([Usage(3, 4), Usage()])
    assert set(plain) == {"prompt_tokens", "completion_tokens", "cost_usd", "seconds", "calls", "usage_unknown"}
    assert plain["prompt_tokens"].tolist() == [3, 0]
    told = usage_columns([Usage(3, 4, cached_tokens=0), Usage(9, 1)])
    assert told["cached_tokens"][0] == 0
    assert np.isnan(told["cached_tokens"][1])
    assert "written_tokens" not in told


def test_what_is_kept_of_a_usage_makes_it_again() -> None:
    usage = Usage(3, 0, 0.5, cached_tokens=0)
    assert usage.told() == {"prompt_tokens": 3, "completion_tokens": 0, "cost_usd": 0.5, "cached_tokens": 0}
    assert Usage(**usage.told()) == usage
