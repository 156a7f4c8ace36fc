"""The order of calls: as few topics begun as calls are in flight, and a topic's requests one after the other."""

from __future__ import annotations

from ragauge.llms.asked import Asked
from ragauge.llms.lanes import Lane, Lanes, Row, in_slices


def lanes(topics: str, slots: int | None = None) -> Lanes:
    """Requests named by topic and number, `aab` for those a0, a1 and b2."""
    keys = [f"{topic}{i}" for i, topic in enumerate(topics)]
    row = Row({key: key[0] for key in keys}, slots=slots)
    return row.lanes([Asked(key, "", "", {}) for key in keys])


def taken(found: Lanes) -> tuple[Lane, str]:
    one = found.take()
    assert one is not None
    return one[0], one[1].key


def test_a_topic_goes_on_before_another_begins() -> None:
    found = lanes("aaabbbc")
    (a, first), (b, second) = taken(found), taken(found)
    assert (first, second) == ("a0", "b3")
    found.end(b)
    found.end(a)
    assert taken(found)[1] == "a1"  # not c6, although both calls before have ended
    assert taken(found)[1] == "b4"
    assert taken(found)[1] == "c6"
    assert found.take() is None  # what is left follows a request that is in flight
    found.end(a)
    assert taken(found)[1] == "a2"


def test_calls_beyond_the_servers_slots_are_of_the_topic_that_it_works_on() -> None:
    found = lanes("aaabb", slots=1)
    assert [taken(found)[1] for _ in range(5)] == ["a0", "a1", "a2", "b3", "b4"]
    assert found.take() is None
    two = lanes("aaabbb", slots=2)
    assert [taken(two)[1] for _ in range(4)] == ["a0", "b3", "a1", "b4"]


def test_requests_without_topics_are_given_out_as_they_come() -> None:
    found = Row().lanes([Asked(str(i), "", "", {}) for i in range(3)])
    assert [taken(found)[1] for _ in range(3)] == ["0", "1", "2"]
    assert found.take() is None


def test_a_row_in_slices_ascends_and_marks_each_common_beginning_once() -> None:
    """By hand: the budgets of a question, whose contexts are prefixes, each with the same end."""
    prompts = {n: "Q: who?\nD: " + "a b c d"[:n] + " END" for n in (7, 3, 5, 1)}
    sent = in_slices([Asked(str(n), "", text, {}) for n, text in prompts.items()])
    assert [one.key for one in sent] == ["1", "3", "5", "7"]
    assert [[(part["text"], "cache_control" in part) for part in one.content()] for one in sent] == [
        [("Q: who?\nD: a ", True), ("END", False)],
        [("Q: who?\nD: a ", True), ("b ", True), ("END", False)],
        [("Q: who?\nD: a ", False), ("b ", True), ("c ", True), ("END", False)],
        [("Q: who?\nD: a ", False), ("b ", False), ("c ", True), ("d END", False)],
    ]
    assert ["".join(part["text"] for part in one.content()) for one in sent] == [one.prompt for one in sent]


def test_answers_to_one_question_are_judged_behind_one_mark_and_parts_are_never_white_space() -> None:
    answers = "Graz", "Wien!", "Linz an der Donau"
    sent = in_slices([Asked(text, "", f"rules, question, {text}", {}) for text in answers])
    assert [one.content()[0]["text"] for one in sent] == ["rules, question, "] * 3
    assert all("cache_control" in one.content()[0] and len(one.content()) == 2 for one in sent)
    assert [one.content() for one in in_slices([Asked("a", "", "x y", {}), Asked("b", "", "z", {})])] == ["z", "x y"]
    short, long = in_slices([Asked("b", "", "x\n y", {}), Asked("a", "", "x\n", {})])
    assert (len(short.content()), len(long.content())) == (1, 2)
    assert in_slices([Asked("b", "", "x y", {}), Asked("a", "", "x\n", {})])[0].content() == "x\n"
