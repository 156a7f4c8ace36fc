"""The prompts: texts with $placeholders, the shipped files or a user's own."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from string import Template

from ragauge.contract.errors import ConfigError


def load_prompt(
    prompt: str | None,
    shipped: str,
    placeholders: tuple[str, ...],
    optional: tuple[str, ...] = (),
    key: str = "prompt",
) -> str:
    """The prompt's text: `prompt` itself, what the .txt file of that name holds, or the shipped file.

    Raises ConfigError, which names the config key, if a file cannot be read, or if the text lacks one of the
    placeholders or has one that is neither of them nor optional. A dollar sign that is meant is written `$$`.
    """
    try:
        if prompt is None:
            text = (files(__package__) / shipped).read_text(encoding="utf-8")
        else:
            text = Path(prompt).read_text(encoding="utf-8") if prompt.endswith(".txt") else prompt
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{key}: file {prompt} cannot be read: {error}") from None
    template = Template(text)
    found = set(template.get_identifiers())
    if not template.is_valid() or not set(placeholders) <= found <= {*placeholders, *optional}:
        needed = ", ".join(f"${name}" for name in placeholders)
        also = "".join(f", may hold ${name}" for name in optional)
        raise ConfigError(f"{key}={prompt or shipped!r}: must hold {needed}{also} and no other $placeholder")
    return text.strip()


def fill(prompt: str, **values: str) -> str:
    """The prompt with every placeholder replaced; what stands in the values is left as it is."""
    return Template(prompt).substitute(values)
