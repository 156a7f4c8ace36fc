"""Separates a reasoning model's thoughts from the answer after them.

Thoughts stand at the beginning of a reply: behind an opening mark such as <think>, or before a closing mark whose
opening the server put into the prompt. A mark in the middle of an answer is quoted text and stays.
"""

from __future__ import annotations

import re

# Tags as `<think>`; names of those that models are known to write.
_NAMES = "think|thinking|thought|thoughts|reasoning|longcat_think|seed:think"
_PAIRS = (
    (rf"<(?:{_NAMES})>", rf"</(?:{_NAMES})>"),
    (r"\[think\]", r"\[/think\]"),  # Magistral
    (r"◁think▷", r"◁/think▷"),  # Kimi
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    (r"<\|start_thinking\|>", r"<\|end_thinking\|>"),  # Command A
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),  # Apertus
    (r"<\|channel>thought", r"<channel\|>"),  # Gemma
    (r"<unused94>thought", r"<unused95>"),  # MedGemma
)
# Open WebUI; its closing mark alone says nothing, since answers fold what they like.
_FOLDED = (r"<details\b[^<>]{0,200}\btype=[\"']reasoning[\"'][^<>]{0,200}>", r"</details>")
_BLOCKS = [
    (re.compile(opening, re.IGNORECASE), re.compile(f"({opening})|({closing})", re.IGNORECASE))
    for opening, closing in (*_PAIRS, _FOLDED)
]
_ANY_MARK = re.compile(
    f"(?P<opening>{'|'.join(opening for opening, _ in _PAIRS)})|(?:{'|'.join(closing for _, closing in _PAIRS)})",
    re.IGNORECASE,
)
# What some models write around the answer once they have thought.
_AROUND_ANSWER = re.compile(
    r"<(answer|response)>(?P<tagged>.*?)(?:</\1>)?|<\|start_response\|>(?P<marked>.*?)(?:<\|end_response\|>)?",
    re.IGNORECASE | re.DOTALL,
)
# gpt-oss: <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
_CHANNEL = re.compile(r"(?:<\|start\|>assistant)?<\|channel\|>\s*(\w+)[^<]*<\|message\|>")
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
# The same where the server removed the special tokens.
_SPACE = re.compile(r"[\s\ufeff\u200b]*")  # a byte order mark, too
_BARE_ANALYSIS, _BARE_FINAL = re.compile(r"analysis(?=[A-Z\s])"), re.compile(r"assistantfinal(?=\S)")


def without_thoughts(reply: str) -> tuple[str, str]:
    """The reply without its leading thoughts, and the thoughts; "" for a missing one.

    Thoughts whose closing mark is missing reach to the reply's end, and the answer is "". Several blocks one after the
    other are all thoughts. A reply that begins as JSON does has no thoughts.
    """
    thoughts: list[str] = []
    at = _SPACE.match(reply).end()  # type: ignore[union-attr]
    while (end := _end_of_block(reply, at, thoughts)) is not None:
        at = _SPACE.match(reply, end).end()  # type: ignore[union-attr]
    if (whole := _of_channels(reply, at, thoughts)) is None:
        if not at or not thoughts:
            return reply, ""
        whole = reply[at:]
    rest = whole.strip()
    if around := _AROUND_ANSWER.fullmatch(rest):
        rest = (around["tagged"] if around["tagged"] is not None else around["marked"]).strip()
    return rest, "\n\n".join(filter(None, thoughts))


def _end_of_block(reply: str, start: int, thoughts: list[str]) -> int | None:
    """End of the block of thoughts at `start`, whose text is added to `thoughts`; None without one."""
    for opening, marks in _BLOCKS:
        if first := opening.match(reply, start):
            closing = _closing(reply, start, marks)
            thoughts.append(reply[first.end() : closing.start() if closing else len(reply)].strip())
            return closing.end() if closing else len(reply)
    if reply.startswith(("{", "[", "```"), start):
        return None
    last = None
    for mark in _ANY_MARK.finditer(reply, start):
        if mark["opening"]:
            break
        if _ends_thoughts(reply, start, mark):
            last = mark
    if last is None:
        return None
    thoughts.append(reply[start : last.start()].strip())
    return last.end()


def _closing(reply: str, start: int, marks: re.Pattern[str]) -> re.Match[str] | None:
    """The mark that closes the one at `start`, counting nested marks, else the last closing mark, or None."""
    depth, last = 0, None
    for mark in marks.finditer(reply, start):
        depth += 1 if mark[1] else -1
        last = mark if mark[2] else last
        if depth == 0:
            break
    return last


def _ends_thoughts(reply: str, start: int, mark: re.Match[str]) -> bool:
    """Whether a lone closing mark ends thoughts: it begins or ends a line, or touches the text.

    A mark in a sentence or in quotation marks is quoted text.
    """
    before = reply[mark.start() - 1] if mark.start() > start else "\n"
    after = reply[mark.end() : mark.end() + 1] or "\n"
    if before in "\r\n" or after in "\r\n":
        return True
    return not before.isspace() and before not in "`'\"«“‘(" and after not in "`'\"»”’)"


def _of_channels(reply: str, start: int, thoughts: list[str]) -> str | None:
    """The text of the channel `final` of a reply in channels, with the text of the others added to the thoughts.

    None for a reply without channels.
    """
    bare = _BARE_ANALYSIS.match(reply, start)
    if bare and (end := _BARE_FINAL.search(reply, start)):
        thoughts.append(reply[bare.end() : end.start()].strip())
        return reply[end.end() :]
    channel = _CHANNEL.match(reply, start)
    if channel is None:
        return None
    final: list[str] = []
    while channel:
        ends = _END_OF_MESSAGE.search(reply, channel.end())
        text = reply[channel.end() : ends.start() if ends else len(reply)].strip()
        (final if channel[1] == "final" else thoughts).append(text)
        channel = _CHANNEL.search(reply, ends.start()) if ends else None
    return "\n\n".join(final)
