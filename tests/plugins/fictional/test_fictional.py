"""The fictional world: the same bytes everywhere, one answer to a question, evidence for it, no real name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from located_evidence import no_evidence_is_lost
from plugins.fictional import plain_solver
from plugins.fictional.fictional_solver import Reader, Sentence
from ragauge.contract import frames
from ragauge.contract.errors import ConfigError
from ragauge.contract.frames import Batches
from ragauge.contract.identity import identity
from ragauge.plugins.fictional import collection, names
from ragauge.plugins.fictional.articles import write_article
from ragauge.plugins.fictional.entities import Region
from ragauge.plugins.fictional.names import Names
from ragauge.plugins.fictional.prose import STYLES
from ragauge.plugins.fictional.questions import kinds
from ragauge.plugins.fictional.region import make_region, sizes
from ragauge.plugins.fictional.source import FictionalWorld


def world_of(**knobs: Any) -> FictionalWorld:
    """A hard world with pronouns, long chains and all types of question, unless the knobs say otherwise."""
    return FictionalWorld(**{"style": "hard", "pronouns": 1.0, "max_hops": 4, "types": (), **knobs})


WORLD = world_of(documents=300, questions=30, seed=3)


@pytest.fixture(scope="module")
def data() -> object:
    return WORLD.load()


@pytest.fixture(scope="module", params=list(STYLES))
def region(request: pytest.FixtureRequest) -> Region:
    return make_region(Names(5), 5, 0, 400, 3, 1.0, request.param)


def _sentences(data: object, qid: str) -> list[Sentence]:
    titles = dict(zip(data.docs["docno"], data.docs["title"], strict=True))  # type: ignore[attr-defined]
    rows = data.evidence[data.evidence["qid"] == qid]  # type: ignore[attr-defined]
    return [Sentence(titles[row.docno], row.text) for row in rows.itertuples()]


def test_frames_keep_the_contract(data: object) -> None:
    for name in ("docs", "topics", "evidence"):
        frames.check(name, getattr(data, name))
    topics, docs = data.topics, data.docs  # type: ignore[attr-defined]
    assert len(docs) == 300
    assert docs["docno"].is_unique
    assert docs["text"].is_unique
    assert not docs["docno"].str.contains(r"\s|%p").any()
    assert topics["query"].is_unique
    assert topics["type"].value_counts().to_dict() == {
        "chain": 120,
        **dict.fromkeys(("comparison", "aggregation", "negation", "false_premise", "unanswerable"), 30),
    }
    assert topics[topics["type"] == "chain"]["hops"].value_counts().to_dict() == dict.fromkeys(range(1, 5), 30)
    # The kinds take turns: nine topics are one of each.
    assert topics["qid"].head(9).str.rpartition("-")[2].unique().tolist() == ["0001"]
    assert topics["qid"].head(9).str.rpartition("-")[0].is_unique


def test_evidence_stands_in_its_document_and_takes_each_sentence_once(data: object) -> None:
    texts = dict(zip(data.docs["docno"], data.docs["text"], strict=True))  # type: ignore[attr-defined]
    evidence, topics = data.evidence, data.topics  # type: ignore[attr-defined]
    assert all(texts[row.docno].count(row.text) == 1 for row in evidence.itertuples())
    assert not evidence.duplicated(["qid", "docno", "text"]).any()
    answerable = topics[~topics["unanswerable"]]
    assert set(evidence["qid"]) == set(answerable["qid"])
    counts = evidence.groupby("qid").size()
    assert (answerable["qid"].map(counts) == answerable["n_evidence"]).all()
    # A chain over n facts takes n sentences, and one more where it starts from an alias.
    chains = topics[topics["type"] == "chain"]
    by_alias = chains["named_by"] == "alias"
    assert (chains["n_evidence"] <= chains["hops"] + by_alias).all()
    assert (chains["n_evidence"] == chains["hops"] + by_alias).mean() > 0.8


def test_a_reader_that_knows_nothing_of_the_generator_confirms_the_answers(data: object) -> None:
    confirmed = 0
    for topic in data.topics[~data.topics["unanswerable"]].itertuples():  # type: ignore[attr-defined]
        found = Reader(_sentences(data, topic.qid)).solve(topic.query)
        assert found in list(topic.answers), (topic.query, found, topic.answers)
        confirmed += 1
    assert confirmed == 240


def _plain_reader(sentences: list[Sentence]) -> Reader:
    return Reader(sentences, plain_solver.SAYS, plain_solver.ASKS, plain_solver.FORWARDS)


def test_the_reader_confirms_the_answers_of_plain_prose_and_finds_none_where_there_is_none() -> None:
    plain = world_of(documents=300, questions=30, seed=3, style="plain", pronouns=0.5).load()
    assert isinstance(plain.docs, pd.DataFrame)
    for topic in plain.topics[~plain.topics["unanswerable"]].itertuples():
        assert _plain_reader(_sentences(plain, topic.qid)).solve(topic.query) in list(topic.answers), topic.query
    docs = [(row.title, row.text) for row in plain.docs.itertuples()]
    whole = _plain_reader([Sentence(title, part) for title, text in docs for part in re.split(r"(?<=\.) ", text)])
    for query in plain.topics[plain.topics["unanswerable"]]["query"]:
        with pytest.raises(LookupError):
            whole.solve(query)


def test_the_default_world_asks_short_questions_in_plain_prose() -> None:
    data = FictionalWorld().load()
    assert data.topics["type"].value_counts().to_dict() == {"chain": 50, "comparison": 25, "unanswerable": 25}
    assert data.topics["hops"].max() == 2
    assert isinstance(data.docs, pd.DataFrame)
    sentences = [part for text in data.docs["text"] for part in re.split(r"(?<=\.) ", text)]
    lengths = [len(sentence.split()) for sentence in sentences]
    assert sum(lengths) / len(lengths) < 12
    assert max(lengths) < 30


def test_pronouns_say_how_many_sentences_with_a_fact_need_not_name_their_subject() -> None:
    shares = {}
    for pronouns in (0.0, 0.5, 1.0):
        region = make_region(Names(3), 3, 0, 500, 0, pronouns)
        told = [
            entity.name in sentence.text
            for entity in region.entities
            for sentence in write_article(region, entity)[1:]
            if sentence.tells
        ]
        shares[pronouns] = sum(told) / len(told)
    assert shares[0.0] > 0.9
    assert shares[0.0] > shares[0.5] + 0.2 > shares[1.0] + 0.4
    # Some words have no place for a name, and a name that is there stands there once.
    region = make_region(Names(3), 3, 0, 500, 0, 0.0)
    texts = [s.text for e in region.entities for s in write_article(region, e)]
    assert not any("\x00" in text for text in texts)


def test_every_sentence_of_the_evidence_is_needed(data: object) -> None:
    for topic in data.topics[data.topics["type"].isin(["chain", "false_premise"])].itertuples():  # type: ignore[attr-defined]
        sentences = _sentences(data, topic.qid)
        for left_out in range(len(sentences)):
            rest = sentences[:left_out] + sentences[left_out + 1 :]
            try:
                found = Reader(rest).solve(topic.query)
            except LookupError:
                continue
            assert found not in list(topic.answers), (topic.query, sentences[left_out])


def test_every_fact_is_told_in_exactly_one_sentence(region: Region) -> None:
    told = 0
    for entity in region.entities:
        article = write_article(region, entity)
        tells = [relation for sentence in article for relation in sentence.tells]
        known = set(region.facts.known(entity.number)) | ({"alias"} if entity.alias else set())
        assert sorted(tells) == sorted(known), entity.title
        for sentence in article:
            for relation in set(sentence.tells) - {"alias"}:
                value = region.shown(relation, region.facts.values[entity.number, relation])
                capital = value[:1].upper() + value[1:]
                assert value in sentence.text or capital in sentence.text
                told += 1
    assert told > 1500


def test_unanswerable_questions_ask_for_what_no_article_tells(data: object) -> None:
    """The reader is given the whole corpus, sentence by sentence, and finds nothing."""
    sentences = [
        Sentence(row.title, text)
        for row in data.docs.itertuples()  # type: ignore[attr-defined]
        for text in re.split(r"(?<=\.) ", row.text)
    ]
    reader = Reader(sentences)
    topics = data.topics[data.topics["unanswerable"]]  # type: ignore[attr-defined]
    assert len(topics) == 30
    assert topics["answer"].isna().all()
    assert all(len(answers) == 0 for answers in topics["answers"])
    for query in topics["query"]:
        with pytest.raises(LookupError):
            reader.solve(query)
    # The same reader finds what is asked of one article elsewhere.
    plain = data.topics[(data.topics["type"] == "chain") & (data.topics["hops"] == 1)]  # type: ignore[attr-defined]
    solved = sum(reader.solve(row.query) in list(row.answers) for row in plain.itertuples())
    assert solved >= 0.9 * len(plain)


def test_a_world_of_unanswerable_questions_has_no_evidence() -> None:
    alone = FictionalWorld(documents=100, questions=2, types=["unanswerable"]).load()
    assert alone.topics["unanswerable"].tolist() == [True, True]
    assert alone.evidence.empty
    frames.check("evidence", alone.evidence)


def test_twins_change_one_fact_in_one_sentence_and_the_answer_with_it(data: object) -> None:
    twins = WORLD.counterfactuals()
    topics = data.topics.set_index("qid")  # type: ignore[attr-defined]
    texts = dict(zip(data.docs["docno"], data.docs["text"], strict=True))  # type: ignore[attr-defined]
    titles = dict(zip(data.docs["docno"], data.docs["title"], strict=True))  # type: ignore[attr-defined]
    of_type = topics.loc[twins["qid"], "type"].value_counts()
    assert of_type["chain"] == 120
    assert of_type["aggregation"] == 30
    assert set(of_type.index) == {"chain", "aggregation", "comparison"}
    for twin in twins.itertuples():
        assert texts[twin.docno].count(twin.sentence) == 1
        assert twin.answer == topics.loc[twin.qid, "answer"]
        assert not set(twin.answers) & set(twin.changed_answers)
        # What differs is one stretch of the sentence; the reader says what is told before and after.
        before, after = (Reader([Sentence(titles[twin.docno], text)]).said for text in (twin.sentence, twin.changed))
        differ = {relation for relation in before if before[relation] != after.get(relation)}
        assert differ == {twin.relation}, twin
        told = _sentences(data, twin.qid)
        swapped = [Sentence(t, twin.changed) if s == twin.sentence else Sentence(t, s) for t, s in told]
        if topics.loc[twin.qid, "type"] != "aggregation":
            found = Reader(swapped).solve(topics.loc[twin.qid, "query"])
            assert found in twin.changed_answers, twin


@pytest.mark.parametrize("documents", [100, 1_100])
def test_one_seed_gives_the_same_bytes_in_any_process(documents: int) -> None:
    code = (
        "from ragauge.contract.frames import content_digest as digest; "
        "from ragauge.plugins.fictional.source import FictionalWorld; "
        f"world = FictionalWorld(documents={documents}, look_alikes=3, max_hops=4, questions=8, seed=11); "
        "found = world.load(); "
        "print(*map(digest, (found.docs, found.topics, found.evidence, world.counterfactuals())))"
    )
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
        digests.append(done.stdout.split())
    assert digests[0] == digests[1]
    assert len(digests[0]) == 4
    other = world_of(documents=documents, questions=8, seed=12).load()
    assert frames.content_digest(other.docs) != digests[0][0]


# Worlds that differ in every knob, and the digests of their documents, topics, evidence and twins.
BYTES = {
    "default": ({}, "4ae6d84f12e7 8d643806ba93 ad89dbd17baf d92df120531b"),
    "hard": ({"documents": 120, "questions": 5, "seed": 1}, "7161a63a3d55 ab1d05ea4590 4cd14a6b214d b0f3a2c301d5"),
    "plain": (
        {"documents": 120, "questions": 5, "seed": 1, "style": "plain"},
        "64cad5383501 26b84f935f3b 0f9cbd01afc4 78d508b09350",
    ),
    "two regions": (
        {"documents": 1_000, "questions": 20, "seed": 7, "look_alikes": 12, "twins": True},
        "2d8779c552c9 d272761535a7 bdd7aeeee5c0 8bf365dd3727",
    ),
    "all alike": (
        {"documents": 400, "questions": 20, "look_alikes": 1, "pronouns": 0.5, "style": "plain"},
        "325b8257e311 537e2c57b4c9 7c5affa5d9ce c0dc53691e32",
    ),
    "none alike": (
        {"documents": 450, "questions": 20, "look_alikes": 0, "pronouns": 0, "limit": 150},
        "40be5e03293c b62c041e5a76 82354444de21 322c2ca5c8da",
    ),
}


@pytest.mark.parametrize("name", BYTES)
def test_the_bytes_of_a_world_are_those_of_its_version(name: str) -> None:
    """Where this fails the world has changed: raise `FictionalWorld.version` and put the new digests here."""
    assert FictionalWorld.version == 2
    knobs, expected = BYTES[name]
    world = world_of(**knobs) if knobs else FictionalWorld()
    found = world.load()
    made = (found.docs, found.topics, found.evidence, world.counterfactuals())
    assert " ".join(frames.content_digest(frame)[:12] for frame in made) == expected


def test_the_ends_of_every_knob_are_worlds() -> None:
    least = FictionalWorld(documents=100, seed=0, look_alikes=0, pronouns=0, max_hops=1, questions=1, limit=1)
    assert len(least.load().topics) == 1
    FictionalWorld(documents=1_000_000, look_alikes=12, pronouns=1, max_hops=4)


@pytest.mark.parametrize("twins", [False, True])
def test_documents_in_batches_are_those_of_the_frame(monkeypatch: pytest.MonkeyPatch, twins: bool) -> None:
    world = world_of(documents=700, questions=3, twins=twins)
    whole = world.load()
    monkeypatch.setattr(collection, "_BATCH", 150)
    found = world.load()
    assert isinstance(found.docs, Batches)
    assert [len(some) for some in found.docs][:4] == [150] * 4
    for docs in (found.docs.frame(), found.docs.frame()):
        pd.testing.assert_frame_equal(docs, whole.docs)
    pd.testing.assert_frame_equal(found.topics, whole.topics)
    pd.testing.assert_frame_equal(found.evidence, whole.evidence)


def test_a_larger_world_holds_a_smaller_one_but_for_its_last_region() -> None:
    assert sizes(100) == [100]
    assert sizes(999) == [999]
    assert sizes(1_000) == [500, 500]
    assert sizes(1_750) == [500, 500, 750]
    small, large = (world_of(documents=n, questions=4).load().docs for n in (1_200, 2_000))
    assert small.head(500).equals(large.head(500))
    assert not small.head(600).equals(large.head(600))
    assert large["docno"].is_unique


def test_a_larger_number_of_questions_contains_the_smaller_one() -> None:
    few, many = (world_of(documents=300, questions=n).load().topics for n in (5, 12))
    assert set(few["query"]) <= set(many["query"])


def test_limit_takes_the_first_topics_and_all_documents() -> None:
    all_of_it = world_of(documents=200, questions=10).load()
    some = world_of(documents=200, questions=10, limit=12).load()
    assert some.docs.equals(all_of_it.docs)
    pd.testing.assert_frame_equal(some.topics, all_of_it.topics.head(12))
    assert set(some.evidence["qid"]) <= set(some.topics["qid"])


def test_look_alikes_share_a_surname_and_some_a_whole_name() -> None:
    for look_alikes in (0, 3, 12):
        region = make_region(Names(1), 1, 0, 500, look_alikes)
        people = region.of_kind("person")
        families = pd.Series([entity.stem for entity in people]).value_counts()
        assert families.mode().iloc[0] == look_alikes + 1
        assert len({entity.title for entity in region.entities}) == len(region.entities)
        homonyms = [entity for entity in people if entity.homonym]
        assert bool(homonyms) == (look_alikes > 0)
        for entity in homonyms:
            assert entity.mention == f"the {entity.noun} {entity.name}"
        # No town's name is a part of another's, so that an answer cannot be right by containing it.
        towns = [entity.name for entity in region.of_kind("town")]
        assert not any(a != b and a in b for a in towns for b in towns)


def test_only_the_named_types_and_lengths_are_asked() -> None:
    world = world_of(documents=200, questions=6, types=["negation", "chain"], max_hops=2)
    topics = world.load().topics
    assert topics["type"].value_counts().to_dict() == {"chain": 12, "negation": 6}
    assert topics["hops"].max() == 2
    assert kinds(("chain", "negation"), 2) == ["chain1", "chain2", "negation"]


def test_facts_keep_to_the_years_of_a_life(region: Region) -> None:
    facts = region.facts
    checked = 0
    for work in region.of_kind("work"):
        maker, year = facts.get(work.number, "creator"), facts.get(work.number, "year")
        if maker is None or year is None:
            continue
        born, died = (facts.get(int(maker), name) for name in ("birth_year", "death_year"))
        assert born is None or int(born) + 20 <= int(year)
        assert died is None or int(year) <= int(died)
        checked += 1
    for person in region.of_kind("person"):
        teacher = facts.get(person.number, "teacher")
        born = facts.get(person.number, "birth_year")
        died = facts.get(int(teacher), "death_year") if teacher is not None else None
        if born is not None and died is not None:
            assert int(born) < int(died)
            checked += 1
    assert checked > 50


_KNOWN = """
Africa America Amsterdam Asia Athens Austen Australia Austria Bach Baghdad Barcelona Bavaria Beethoven
Belgium Berlin Bohemia Bonaparte Boston Brahms Brazil Britain Bruno Brussels Byron Caesar Calvin Canada
Cervantes Chekhov Chicago Chile China Chopin Cicero Cleveland Columbus Copenhagen Cuba Curie Dante
Darwin Delhi Denmark Descartes Dickens Dublin Edinburgh Edison Egypt Einstein England Ethiopia Euler
Europe Faraday Fernandel Finland Florence France Galilei Gandhi Gauss Genoa Georgia Gerald Germany
Goethe Greece Hamburg Hannibal Harald Havana Haydn Hegel Helena Herodotus Herschel Hildegard Homer
Houston Hungary Iceland India Indonesia Ireland Istanbul Italy Japan Jefferson Jerusalem Kafka Kant
Kenya Kepler Lagos Leibniz Leningrad Lenin Leonardo Liberia Libya Lincoln Lisbon Liszt Livonia Lombardy
London Lorenzo Luther Macedonia Madison Madrid Mandela Manila Marianne Marseille Melissa Melville Mendel
Mexico Milan Minnesota Miranda Moldova Monaco Monet Moravia Moscow Mozart Munich Napoleon Navarro
Nebraska Nepal Newton Nigeria Northumbria Norway Orlando Oslo Oxford Palermo Paris Pasteur Persia Peru
Picasso Plato Poland Portugal Prague Prussia Pushkin Raphael Rembrandt Romania Rome Ronald Roosevelt
Rosamund Rossini Rousseau Rudolf Russia Saxony Schubert Scotland Serbia Shakespeare Siberia Silesia
Simona Spain Stalin Stravinsky Sweden Tokyo Toledo Toronto Tolstoy Turin Ukraine Vanessa Venice Verdi
Vienna Virginia Vivaldi Volga Voltaire Wagner Wales Warsaw Washington Wellington Zurich
"""


def _patterns() -> dict[str, re.Pattern[str]]:
    """For each kind of name a pattern that all names of it match, and nothing else."""

    def either(parts: tuple[str, ...]) -> str:
        return "(?:" + "|".join(sorted(parts, key=len, reverse=True)) + ")"

    begin = either(names._ONSETS) + either(names._NUCLEI) + either(names._MEDIALS)
    given = either(names._GIVEN_ONSETS) + either(names._GIVEN_NUCLEI) + either(names._GIVEN_MEDIALS)
    found = {kind: begin + either(endings) for kind, endings in names._ENDINGS.items()}
    found |= {"male": given + either(names._MALE), "female": given + either(names._FEMALE)}
    found["street"] = begin + either(names._STREETS)
    return {kind: re.compile(pattern) for kind, pattern in found.items()}


def test_no_name_that_can_be_made_is_a_well_known_one() -> None:
    patterns = _patterns()
    for known in _KNOWN.split():
        for kind, pattern in patterns.items():
            assert not pattern.fullmatch(known.lower()), (known, kind)


@pytest.mark.slow
def test_no_name_that_can_be_made_stands_in_wikipedia_passages() -> None:
    file = Path(__file__).resolve().parents[4] / "shared" / "data" / "wiki_passages_6119.json"
    if not file.is_file():
        pytest.skip("the passages are not here")
    passages = json.loads(file.read_text(encoding="utf-8"))
    words = {w for p in passages for w in re.findall(r"[a-z]{3,}", f"{p['title']} {p['text']}".lower())}
    for kind, pattern in _patterns().items():
        assert not [word for word in words if pattern.fullmatch(word)], kind


def test_a_number_is_one_name_and_a_name_one_number() -> None:
    made = Names(2)
    for kind in ("river", "firm"):
        assert len({made.name(kind, n) for n in range(names.space(kind))}) == names.space(kind)
        with pytest.raises(ValueError, match="none of them"):
            made.name(kind, names.space(kind))
    endings = [ending for kind in names._ENDINGS.values() for ending in kind]
    assert len(endings) == len(set(endings))


def test_a_million_documents_have_names_enough() -> None:
    from ragauge.plugins.fictional.region import _STRIDES

    layout = sizes(1_000_000)
    for kind, stride in _STRIDES.items():
        assert len(layout) * stride + stride <= names.space(kind), kind
    # The region that takes most: no look-alikes, so that nobody shares a surname.
    for size, number in ((500, 3), (999, 4)):
        make_region(Names(1), 1, number, size, 0)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"documents": 99}, "dataset.documents=99: allowed are integers from 100 to 1,000,000"),
        ({"documents": 1_000_001}, "dataset.documents=1000001: allowed are"),
        ({"documents": 500.0}, "dataset.documents=500.0: allowed are"),
        ({"seed": -1}, "dataset.seed=-1: allowed are"),
        ({"look_alikes": 13}, "dataset.look_alikes=13: allowed are integers from 0 to 12"),
        ({"pronouns": 1.5}, "dataset.pronouns=1.5: allowed are numbers from 0 to 1"),
        ({"max_hops": 5}, "dataset.max_hops=5: allowed are integers from 1 to 4"),
        ({"questions": 0}, "dataset.questions=0: allowed are integers from 1"),
        ({"types": ["chains"]}, "dataset.types=['chains']: allowed are lists of chain, comparison"),
        ({"types": "chain"}, "dataset.types='chain': allowed are lists of chain, comparison"),
        ({"types": [["chain"]]}, "dataset.types=[['chain']]: allowed are lists of chain, comparison"),
        ({"types": 3}, "dataset.types=3: allowed are lists of chain, comparison"),
        ({"limit": 0}, "dataset.limit=0: allowed are"),
        ({"style": "easy"}, "dataset.style='easy': allowed are plain, hard"),
        ({"name": " "}, "dataset.name=' ': allowed are names"),
    ],
)
def test_bad_knobs_are_named_in_one_line(wrong: dict[str, object], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        FictionalWorld(**wrong)  # type: ignore[arg-type]
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_more_questions_than_the_world_has_are_an_error_that_says_how_many_it_has() -> None:
    with pytest.raises(ConfigError, match=r"dataset\.questions=400: a world of 100 documents .* at most \d+"):
        world_of(documents=100, questions=400).load()


def test_the_name_is_no_part_of_the_identity() -> None:
    assert identity(FictionalWorld(name="a")) == identity(FictionalWorld(name="b"))
    assert identity(FictionalWorld(seed=1)) != identity(FictionalWorld(seed=2))
    assert FictionalWorld().files() == {}


def test_the_page_shows_what_is_generated() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "fictional.md").read_text(encoding="utf-8")
    world = world_of(documents=300, look_alikes=3, seed=1, questions=25)
    plain, hard = FictionalWorld(seed=1).load(), world.load()
    quoted = [
        block.replace("> ", "").replace("\n", " ").strip() for block in re.findall(r"(?:^> .*\n)+", page, flags=re.M)
    ]
    assert quoted == [
        plain.docs.set_index("docno").loc["Braelmovenne_Keignubrel", "text"],  # type: ignore[union-attr]
        hard.docs.set_index("docno").loc["Merloriel_Rolgumber", "text"],  # type: ignore[union-attr]
    ]
    queries = pd.concat([plain.topics, hard.topics]).set_index("query")
    shown = re.findall(r"^\| `\w+` \| (.+\?) \| (.+) \|$", page, flags=re.MULTILINE)
    assert len(shown) == 11
    for query, answer in shown:
        assert queries.loc[query, "answer"] == answer or (answer == "none" and queries.loc[query, "unanswerable"])
    twins = world.counterfactuals()
    (before,), (after,) = (re.findall(rf"^\| {row} \| (.+) \|$", page, flags=re.M) for row in ("original", "changed"))
    assert ((twins["sentence"] == before) & (twins["changed"] == after)).sum() == 1


def test_twins_are_documents_that_differ_in_the_sentence_that_leads_to_the_other_answer() -> None:
    plain = FictionalWorld(questions=6, types=()).load()
    assert "wrong_answers" not in plain.topics
    data = FictionalWorld(questions=6, types=(), twins=True).load()
    assert data.docs.iloc[: len(plain.docs)].equals(plain.docs)
    text_of_doc = dict(zip(data.docs["docno"], data.docs["text"], strict=True))
    twins = FictionalWorld(questions=6, types=()).counterfactuals().set_index("qid")
    having = data.topics[data.topics["wrong_answers"].map(len) > 0]
    assert len(having) == len(data.docs) - len(plain.docs) >= 20
    for topic in having.to_dict("records"):
        twin = twins.loc[topic["qid"]]
        copy = text_of_doc[f"{topic['qid']}~changed~{twin['docno']}"]
        assert copy == text_of_doc[twin["docno"]].replace(twin["sentence"], twin["changed"])
        assert copy != text_of_doc[twin["docno"]]
        assert topic["wrong_answers"] == twin["changed_answers"]
    # A negation has no single other answer, and what has no answer cannot have a wrong one.
    assert set(having["type"]) == {"chain", "comparison", "aggregation"}
    with pytest.raises(ConfigError, match=r"dataset\.twins"):
        FictionalWorld(twins="yes")  # type: ignore[arg-type]


def test_no_evidence_of_the_world_is_lost() -> None:
    no_evidence_is_lost(FictionalWorld(pronouns=0.5).load())
