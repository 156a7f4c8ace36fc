"""Splits conversations: a list of messages into turns, each with the turns before it."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ragauge.contract.topics import CONVERSATION, HISTORY, TURN
from ragauge.datasets.fields import BadRow, is_attribute, listed, listed_or_none, short, string, valid_string
from ragauge.datasets.recordings import NAMES

_ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "agent", "model"), "assistant"),
    **dict.fromkeys(("tool", "function"), "tool"),
    **dict.fromkeys(("system", "developer"), "system"),
}
_KNOWN = frozenset(name for names in NAMES.values() for name in names)
_OF_TASK = ("answerability", "question type", "multi-turn")  # lists of a task's kinds
_HELD_BY = ("turns", "messages", *NAMES["question"])  # keys that may hold a list of messages


def exchanges(messages: Sequence[Any], keys: Collection[str] = ()) -> list[dict[str, Any]]:
    """The turns of OpenAI's, RAGAS's or MTRAG's messages, each a dict of question, response and contexts.

    `contexts` are what tools said. A turn has those of `keys` that its messages have. A greeting of the assistant is a
    turn without a question. BadRow for a message that is none, or has another role.
    """
    turns: list[dict[str, Any]] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, Mapping):
            raise BadRow(f"message {number} is no object with a role and a text: {short(message)}")
        said = next((str(message[key]) for key in ("role", "type", "speaker") if message.get(key)), "")
        role = _ROLES.get(said.lower())
        if role is None:
            raise BadRow(f"message {number} has the role {said!r}: allowed are {', '.join(_ROLES)}")
        text = message.get("content", message.get("text"))
        if text is None and role == "assistant":  # it calls a tool
            text = ""
        valid_string(text, f"the text of message {number}, of {said},")
        own = {key: value for key, value in message.items() if key in keys and value is not None}
        if role == "user":
            turns.append({**own, "question": text})
            continue
        if not turns:
            turns.append({"question": ""})
        if role == "tool":
            turns[-1]["contexts"] = [*turns[-1].get("contexts", ()), text]
        elif role == "assistant":
            turns[-1] |= own | ({"response": text} if text else {})
    return turns


def turns_of(row: Mapping[str, Any], number: str) -> list[dict[str, Any]] | None:
    """A row per turn of a conversation row; None for any other row.

    number: the name of a conversation without a qid. The attributes of the row are each turn's; its other keys, such as
    the reference, are those of its last turn. A message's own keys are its turn's. A task of MTRAG is one turn.
    """
    if is_task(row):
        return [task_row(row)]
    name = next((key for key in _HELD_BY if _listed(row.get(key)) is not None), None)
    if name is None:
        if "scenario" in row and not any(row.get(key) for key in _HELD_BY):
            raise BadRow("a conversational golden of DeepEval without turns: save the test cases of its simulation")
        return None
    of = str(next((row[key] for key in NAMES["qid"] if row.get(key) is not None), number))
    shared = {key: value for key, value in row.items() if key not in _KNOWN and is_attribute(value)}
    outcome = shared.pop("expected_outcome", None) or shared.pop("expectedOutcome", None)
    whole = {key: row[key] for key in row if key in _KNOWN - {name, *NAMES["qid"], "system"}}
    history: list[str] = []
    found: list[dict[str, Any]] = []
    system = {} if row.get("system") is None else {"system": row["system"]}
    for turn in exchanges(_listed(row[name]) or (), _KNOWN - {*NAMES["qid"], "error"}):
        if turn["question"].strip():
            place = len(found) + 1
            its = {"qid": f"{of}-{place}", CONVERSATION: of, TURN: place, HISTORY: list(history)}
            found.append({**shared, **system, **turn, **its})
        history += [turn["question"], turn.get("response", "")]
    if not found:
        raise BadRow(f"{name!r} is a conversation without a message of its user")
    return [*found[:-1], {**whole, **({"reference": outcome} if outcome else {}), **found[-1]}]


def is_task(row: Mapping[str, Any]) -> bool:
    """Whether a row has the keys of a generation task of MTRAG."""
    return {"task_id", "conversation_id", "input"} <= row.keys()


def task_row(task: Mapping[str, Any]) -> dict[str, Any]:
    """The turn of an MTRAG generation task: its last message, after those before it.

    `targets` are its references, unless it is UNANSWERABLE; `contexts` and `predictions` those of a system. BadRow for
    a task that does not end with a question.
    """
    turns = exchanges(listed(task, "input"))
    if not turns or "response" in turns[-1] or not turns[-1]["question"].strip():
        raise BadRow("the last message of 'input' is no question of the user")
    named = {str(key).lower(): value for key, value in task.items()}  # MTRAG-UN writes some keys with capitals
    kinds = {key.replace(" ", "_").replace("-", "_"): named.get(key) for key in _OF_TASK}
    contexts, said = listed_or_none(task, "contexts"), listed_or_none(task, "predictions")
    unanswerable = "UNANSWERABLE" in (kinds["answerability"] or ())
    return {
        "qid": task_qid(string(task, "task_id")),
        "question": turns[-1]["question"],
        HISTORY: [text for turn in turns[:-1] for text in (turn["question"], turn.get("response", ""))],
        CONVERSATION: string(task, "conversation_id"),
        TURN: sum(1 for turn in turns if turn["question"]),
        "domain": str(named.get("collection") or "").removeprefix("mt-rag-").partition("-elser")[0] or None,
        **{key: ", ".join(map(str, value)) for key, value in kinds.items() if isinstance(value, list)},
        "unanswerable": unanswerable,
        "references": [] if unanswerable else [string(one, "text") for one in listed_or_none(task, "targets")],
        "docnos": [string(one, "document_id") for one in contexts],
        **({"contexts": [one["text"] for one in contexts]} if all("text" in one for one in contexts) else {}),
        **({"response": string(said[0], "text")} if said else {}),
    }


def task_qid(name: str) -> str:
    """The qid of a task: its conversation, a hyphen, its turn, which MTRAG's files separate by <::> or ::."""
    return name.replace("<::>", "-").replace("::", "-")


def _listed(value: Any) -> Any:
    """A list of messages, also if printed as JSON or Python; None for anything else."""
    if isinstance(value, str) and value.lstrip()[:2] == "[{":
        for read in (json.loads, ast.literal_eval):
            try:
                return _listed(read(value))
            except (ValueError, SyntaxError, RecursionError):
                continue
    return value if isinstance(value, list) and value and isinstance(value[0], Mapping) else None
