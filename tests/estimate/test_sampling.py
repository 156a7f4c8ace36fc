"""Which topics are judged: the designs, their numbers, and that samples of one seed nest."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from ragauge.contract.errors import ConfigError, DataError
from ragauge.estimate import choose_topics
from ragauge.estimate.sampling import _allocate


def p5_of(n_topics, seed=0):
    return pd.Series(np.random.default_rng(seed).random(n_topics), index=[f"q{i:04d}" for i in range(n_topics)])


def test_the_design_gives_each_stratum_its_number():
    chosen = choose_topics(p5_of(900), n=120, design="neyman")
    assert chosen["judged"].sum() == 120
    by_stratum = chosen.groupby("stratum")["judged"]
    assert by_stratum.size().tolist() == [300, 300, 300]
    # p(1-p) is largest in the middle, sd 1/2 there against about 0.37 in the others
    low, middle, high = by_stratum.sum()
    assert middle > low >= 20
    assert middle > high >= 20
    assert chosen["qid"].is_monotonic_increasing


def test_a_stratum_gets_its_number_by_the_standard_deviation():
    # 100 topics of P(5) = 0.5 and 100 of 0.01: sd 0.5 and 0.0995, so 60 are divided as 50.04 to 9.96.
    p = pd.Series([0.01] * 100 + [0.5] * 100, index=[f"q{i:04d}" for i in range(200)])
    chosen = choose_topics(p, n=60, design="neyman", strata=2, min_per_stratum=2)
    assert chosen.groupby("stratum")["judged"].sum().tolist() == [10, 50]


def test_a_larger_stratum_gets_more_by_its_size_alone():
    # 11 and 10 topics of the same spread share 20 as 10.48 to 9.52.
    p = pd.Series([0.5] * 21, index=[f"q{i:02d}" for i in range(21)])
    chosen = choose_topics(p, n=20, design="neyman", strata=2, min_per_stratum=2)
    assert chosen.groupby("stratum").size().tolist() == [11, 10]
    assert chosen.groupby("stratum")["judged"].sum().tolist() == [10, 10]


def test_the_same_topics_for_every_order_of_rows_and_for_several_retrievers():
    p = p5_of(300)
    for design in ("uniform", "neyman"):
        chosen = choose_topics(p, n=80, seed=3, design=design)
        assert choose_topics(p.sample(frac=1, random_state=1), n=80, seed=3, design=design).equals(chosen)
        assert choose_topics(pd.concat([p, p]), n=80, seed=3, design=design).equals(chosen)
        assert not choose_topics(p, n=80, seed=4, design=design)["judged"].equals(chosen["judged"])


def test_uniform_has_one_stratum():
    chosen = choose_topics(p5_of(300), n=50, design="uniform")
    assert (chosen["stratum"] == 0).all()
    assert chosen["judged"].sum() == 50


def test_few_topics_make_one_stratum_and_no_more_are_judged_than_there_are():
    assert choose_topics(p5_of(300), n=60, design="neyman")["stratum"].nunique() == 3
    assert choose_topics(p5_of(300), n=59, design="neyman").equals(choose_topics(p5_of(300), n=59))
    assert choose_topics(p5_of(30), n=200, design="neyman")["judged"].all()
    assert choose_topics(p5_of(100) * 0, n=60, design="neyman")["judged"].sum() == 60


@pytest.mark.parametrize(
    "options",
    [{"n": 1}, {"n": 50, "strata": 0}, {"n": 50, "min_per_stratum": 1}, {"n": 50, "design": "random"}],
)
def test_a_design_out_of_range_is_a_config_error(options):
    with pytest.raises(ConfigError, match="allowed are"):
        choose_topics(p5_of(100), **options)


def test_a_probability_out_of_range_is_a_data_error():
    with pytest.raises(DataError, match=r"qid='q0000' is 1\.5"):
        choose_topics(p5_of(100).where(lambda p: p.index != "q0000", 1.5), n=50)


def test_allocation_is_the_best_of_all():
    sizes, weights, n, least = np.array([6, 5, 9]), np.array([3.0, 0.5, 4.0]), 11, 2
    takes = [
        (a, b, n - a - b) for a in range(2, 7) for b in range(2, 6) if 2 <= n - a - b <= 9
    ]  # fmt: skip
    best = min(takes, key=lambda t: sum(w**2 / k for w, k in zip(weights, t, strict=True)))
    assert tuple(_allocate(sizes, weights, n, least)) == best


def drawn(*arguments, **options):
    chosen = choose_topics(*arguments, **options)
    return set(chosen.loc[chosen["judged"], "qid"])


@pytest.mark.parametrize("design", ["uniform", "neyman"])
def test_a_larger_sample_of_one_seed_contains_the_smaller(design):
    """Samples were drawn anew for every n: 3 of 100 topics were in the sample of 200, too."""
    p = p5_of(1000)
    sizes = [(2, 30), (30, 59), (60, 100), (100, 101), (101, 200), (200, 1000)]
    for small, large in [*sizes, *([(59, 60)] if design == "uniform" else [])]:
        for seed in (0, 1):
            assert drawn(p, n=small, seed=seed, design=design) < drawn(p, n=large, seed=seed, design=design)


def test_a_uniform_sample_does_not_depend_on_p_nor_on_the_other_topics():
    p = p5_of(1000)
    assert drawn(p, n=100) == drawn(p * 0 + 0.5, n=100)
    fewer = p.iloc[::2]
    assert drawn(p, n=100) & set(fewer.index) <= drawn(fewer, n=100)


def test_every_topic_is_as_likely_to_be_drawn():
    p = p5_of(40)
    counts = sum(choose_topics(p, n=10, seed=seed)["judged"].to_numpy(dtype=int) for seed in range(200))
    # Binomial with mean 50 and standard deviation 6.1: none of 40 topics is further than 4.5 of them.
    assert abs(counts - 50).max() < 28
