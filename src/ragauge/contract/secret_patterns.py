"""Recognises keys and passwords by name and by the form of the value."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache
from itertools import pairwise

MASK = "***"

# Words of letters and digits, alone, joined by - and _, or as base64 writes them, and the least share of neighbours
# of another kind: it is .62 in a random key, and a third in a name in CamelCase.
_GENERATED = (
    (re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{20,512}(?![A-Za-z0-9])"), 0.4),
    (re.compile(r"(?<![\w-])[A-Za-z0-9]{1,256}(?:[_-]+[A-Za-z0-9]{1,256}){1,32}(?![\w-])"), 0.5),
    (re.compile(r"(?<![\w+/=.:~-])[A-Za-z0-9]{1,256}(?:[+/][A-Za-z0-9]{0,256}){1,32}={0,2}(?![\w+/=.-])"), 0.5),
)

# Words that make a name secret wherever they stand in it.
_WORDS = frozenset(
    {
        "password", "passwords", "passwd", "passphrase", "passcode", "passkey", "pwd", "secret",
        "secrets", "credential", "credentials", "cookie", "cookies", "authorization", "bearer", "jwt",
    }
)  # fmt: skip
_WORD_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "authtoken", "accesstoken")
# What a name ends with, its words joined: api_key, apiKey, api-key and apikey are one.
_OF_KEYS = (
    "api", "access", "secret", "private", "shared", "account", "subscription", "encryption", "signing", "master",
    "storage", "admin", "service", "ssh", "auth", "session", "application", "app", "client", "project", "functions",
    "function", "deploy", "license", "serviceaccount", "sas", "openai", "azure", "anthropic", "google", "gemini",
    "mistral", "cohere", "groq", "search", "pinecone", "qdrant", "weaviate", "voyage", "jina", "tavily", "hf",
)  # fmt: skip
_ENDINGS = (
    *(f"{whose}key" for whose in _OF_KEYS),
    "apikeys", "accesskeys", "accesskeyid", "sessionid", "dbpass", "userpass", "basicauth", "httpauth", "proxyauth",
    "connectionstring", "sastoken", "apitokens", "accesstokens", "authtokens", "refreshtokens", "bearertokens",
)  # fmt: skip
# What stands before "token" where a piece of text is meant.
_TEXT_TOKENS = (
    *("pad", "eos", "bos", "unk", "mask", "sep", "cls", "stop", "special", "per", "next", "first", "last"),
    *("max", "min", "image", "start", "end", "begin", "decoder", "boundary", "word", "sub", "added", "think"),
)
# A name that ends so tells of a secret, and is none: api_key_env, token_limit, password_file.
_ABOUT = frozenset(
    {
        "env", "var", "variable", "variables", "file", "files", "path", "paths", "dir", "folder", "name",
        "names", "limit", "limits", "count", "counts", "length", "len", "type", "types", "kind", "ttl",
        "url", "uri", "endpoint", "id", "ids", "field", "fields", "column", "columns", "policy", "budget",
        "usage", "prompt", "size", "index", "expiry", "expires", "max", "min", "mode", "method",
        "required", "header", "headers", "provider", "scope", "scopes",
    }
)  # fmt: skip
_SPEAKS_OF_A_HEADER = frozenset({"auth", "authorization", "cookie"})
_PADDING = frozenset({"value", "string", "str", "text", "b64", "base64", "plain", "raw", "data"})
# Names that may hold a key or anything else: secret where the value looks like one.
_PERHAPS = frozenset({"key", "keys", "pass", "sig", "signature", "session", "sid", "pat", "code"})
# Values of an `auth` that say how, not who.
_SCHEMES = frozenset(
    {
        "none", "basic", "bearer", "digest", "oauth", "oauth2", "negotiate", "ntlm", "auto", "default",
        "token", "apikey",
    }
)  # fmt: skip


@lru_cache(maxsize=8192)
def is_secret_name(name: str) -> bool:
    """Whether the name is one of a key or password, for any value."""
    words = _words(name)
    if not words or name.lower() in ("pwd", "oldpwd"):
        return False
    joined, last = "".join(words), words[-1]
    if last in _ABOUT and not joined.endswith(_ENDINGS):
        of_header = last in ("header", "headers") and bool(_SPEAKS_OF_A_HEADER & set(words))
        return of_header or joined.endswith("secretid")
    if _WORDS & set(words) or any(word.endswith(_WORD_ENDINGS) for word in words):
        return True
    if joined.endswith(_ENDINGS) or last == "auth":
        return True
    return joined.endswith("token") and not joined.removesuffix("token").endswith(_TEXT_TOKENS)


@lru_cache(maxsize=8192)
def may_be_secret_name(name: str) -> bool:
    """Whether the name may be one of a key or password, so that its value decides."""
    words = _words(name)
    return bool(words) and words[-1] in _PERHAPS


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable of this name holds a key or password."""
    return is_secret_name(name) or _words(name)[-1:] in (("key",), ("keys",), ("pass",), ("pat",))


def is_about_a_secret(name: str) -> bool:
    """Whether the name ends in a word such as limit or path, so that it holds no key itself."""
    words = _words(name)
    return bool(words) and words[-1] in _ABOUT


def looks_random(value: str) -> bool:
    """Whether a value looks like a generated key: letters and digits mixed, 16 or more in all, no digest."""
    if not re.fullmatch(r"[A-Za-z0-9_\-+=.~]{16,512}", value) or is_digest(value):
        return False
    longest = max(re.split(r"[_\-+=.~]+", value), key=len)
    return len(longest) >= 12 and bool(re.search(r"\d", longest)) and bool(re.search("[A-Za-z]", longest))


def generated_in(text: str) -> list[str]:
    """Words that look like keys, the longest first: 20 or more random letters and digits.

    They alternate between capitals, small letters and digits, unlike digests, names and dates.
    """
    found = [
        word
        for words, least in _GENERATED
        for word in words.findall(text)
        if len(word) >= 20 and _takes_turns(word, least)
    ]
    return sorted(found, key=len, reverse=True)


def _takes_turns(word: str, least: float) -> bool:
    kinds = ["0" if c.isdigit() else "A" if c.isupper() else "a" for c in word if c.isalnum()]
    turns = sum(kind != following for kind, following in pairwise(kinds))
    return len(set(kinds)) == 3 and len(kinds) >= 20 and turns >= least * (len(kinds) - 1)


def is_digest(value: str) -> bool:
    """Whether a value has the form of a hexadecimal digest or UUID."""
    return re.fullmatch(r"[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f-]{36}", value) is not None


def is_scheme(name: str, value: str) -> bool:
    """Whether the value under an `auth` or `authorization` names a way to authenticate, such as basic."""
    return _words(name)[-1:] in (("auth",), ("authorization",)) and value.lower() in _SCHEMES


@lru_cache(maxsize=8192)
def _words(name: str) -> tuple[str, ...]:
    """The words of snake_case, kebab-case, camelCase and UPPER_CASE names, without numbers and padding."""
    words = [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in _PADDING):
        if words[-2:] == ["connection", "string"]:
            break
        words.pop()
    return tuple(words)


_T = r"[A-Za-z0-9_-]"
_START = r"(?<![A-Za-z0-9_])"
# Keys that name their maker. What is shorter is a word: sk-learn, hf_hub, gsk_data.
_PREFIXED = "|".join(
    [
        rf"sk-(?={_T}{{0,80}}\d){_T}{{14,}}",
        rf"(?:sk|rk|pk)_(?:live|test)_{_T}{{10,}}",
        rf"(?:hf|gsk|r8|jina|pcsk|lsv2_pt|lsv2_sk|npm|fw|xai)_(?={_T}{{0,80}}\d){_T}{{16,}}",
        rf"(?:pplx|nvapi|xai|tvly|csk|pa|glpat|gldt|dckr_pat|pypi|whsec)-(?={_T}{{0,80}}\d){_T}{{16,}}",
        rf"AIza{_T}{{20,}}",
        r"ya29\.[A-Za-z0-9_-]{16,}",
        r"gh[opusr]_[A-Za-z0-9]{16,}",
        r"github_pat_[A-Za-z0-9_]{16,}",
        r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
        r"xapp-[A-Za-z0-9-]{10,}",
        r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"dapi[0-9a-f]{32}",
        r"AGE-SECRET-KEY-1[A-Z0-9]{20,}",
        r"eyJ[A-Za-z0-9_-]{8,2048}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",  # a JSON web token
    ]
)
# Behind the colon stands a password, with / or ? in it where no number of a port ends there.
_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]*)://"
    r"([^/\s\"'<>?#]*|[^/\s\"'<>?#:@]*:(?!\d{1,5}[/?#])[^\s\"'<>@]{0,512})@"
)
_SCHEME = re.compile(
    r"\b(Bearer|Basic|Token|ApiKey|Api-Key|Digest|SharedAccessSignature)(\s+)([^\s\"',;{}$<>]{3,})", re.I
)
FORMS = (
    re.compile(r"(?P<secret>-----BEGIN [A-Z ]*PRIVATE KEY\b.*?(?:-----END [A-Z ]*-----|\Z))", re.S),
    re.compile(rf"{_START}(?P<secret>{_PREFIXED})"),
    re.compile(r"(?:AccountKey|SharedAccessKey|SharedSecretValue)=(?P<secret>[^\s;\"'&]+)", re.I),
    re.compile(
        r"[?&;](?:key|sig|signature|auth|code|sid|x-amz-signature|x-amz-credential|x-goog-signature)="
        r"(?P<secret>(?=[^&\s\"']{0,512}\d)[^&\s\"'#;]{8,})",
        re.I,
    ),
)  # fmt: skip


def mask_forms(text: str) -> str:
    """The text with all values masked that have the form of a key or password."""
    for form in FORMS:
        text = form.sub(lambda m: m.group().replace(m["secret"], MASK), text)
    text = _ADDRESS.sub(_mask_address, text)
    return _SCHEME.sub(_mask_scheme, text)


def _mask_address(match: re.Match[str]) -> str:
    """user:password@ and, where a web address has no password, token@."""
    scheme, who = match.groups()
    user, colon, password = who.partition(":")
    secret = password if colon else user
    # A placeholder stands for an interpolation, which holds no secret itself.
    if not re.sub(r"\x00\d+\x00", "", secret) or secret == MASK:
        return match.group()
    if not colon and not scheme.lower().startswith(("http", "ws")) and not looks_random(user):
        return match.group()  # postgresql://user@host
    return f"{scheme}://{MASK}@"


def _mask_scheme(match: re.Match[str]) -> str:
    """Masks the text after a scheme such as Bearer or Basic, unless that is a word of a sentence."""
    scheme, space, value = match.groups()
    if "\x00" in value or value.startswith(MASK):
        return match.group()
    certain = scheme.lower() == "bearer" and scheme[0] == "B"
    if scheme.lower() == "basic":
        secret = _is_basic(value)
    elif certain:
        # A header, if it is not prose such as "Bearer authentication is required".
        secret = not re.fullmatch(r"(?i)(?:tokens?|auth\w*|realm.*|schemes?|headers?|keys?|error.*)[.:]?", value)
    else:
        secret = len(value) >= 12 and any(c.isdigit() for c in value) and not is_digest(value)
        secret = secret and "=" not in value.rstrip("=") and not value[0].isdigit()
    return f"{scheme}{space}{MASK}" if secret else match.group()


def _is_basic(value: str) -> bool:
    """Whether base64 of user:password, which may have been cut."""
    if not re.fullmatch(r"[A-Za-z0-9+/_-]+=*", value):
        return False
    body = value.rstrip("=")
    try:
        plain = base64.b64decode(body[: len(body) - len(body) % 4] or "=", validate=False)
    except (binascii.Error, ValueError):
        return False
    printable = all(32 <= byte < 127 for byte in plain)
    return printable and (b":" in plain or value.endswith("="))
