"""The usual names of keys and passwords in configs and headers, and forms of their values; none is real."""

from __future__ import annotations

import base64

NAMES = (
    # headers
    "Authorization", "Proxy-Authorization", "X-Api-Key", "x-api-key", "api-key", "Api-Key", "x-goog-api-key",
    "Ocp-Apim-Subscription-Key", "X-Auth-Token", "X-Auth-Key", "X-Access-Token", "X-Vault-Token",
    "X-Amz-Security-Token", "X-CSRF-Token", "X-RapidAPI-Key", "X-Functions-Key", "X-Subscription-Token",
    "CF-Access-Client-Secret", "DD-API-KEY", "DD-APPLICATION-KEY", "Private-Token", "aeg-sas-key", "Cookie",
    "Set-Cookie",
    # arguments of clients
    "api_key", "apiKey", "apikey", "api_keys", "openai_api_key", "anthropic_api_key", "google_api_key",
    "azure_openai_api_key", "cohere_api_key", "hf_token", "huggingfacehub_api_token", "access_token",
    "accessToken", "refresh_token", "id_token", "bearer_token", "auth_token", "session_token", "token",
    "client_secret", "clientSecret", "secret", "secret_key", "aws_access_key_id", "aws_secret_access_key",
    "aws_session_token", "private_key", "privateKey", "account_key", "subscription_key", "encryption_key",
    "signing_key", "connection_string", "sas_token",
    # passwords
    "password", "passwd", "db_password", "passphrase", "PGPASSWORD", "credentials", "basic_auth",
)  # fmt: skip

_BODY = "Qz7Rk2Wm9Xt4Vb6Np1Lc8Jd3"  # what every form below has in common: letters and digits at random
_BASIC = base64.b64encode(b"planted-user:Qz7Rk2Wm9Xt4").decode()

# Name of a form -> a text in which the secret stands, and the secret.
FORMS = {
    "openai": (f"sk-proj-{_BODY}a", f"sk-proj-{_BODY}a"),
    "anthropic": (f"sk-ant-api03-{_BODY}b", f"sk-ant-api03-{_BODY}b"),
    "huggingface": (f"hf_{_BODY}c", f"hf_{_BODY}c"),
    "groq": (f"gsk_{_BODY}d", f"gsk_{_BODY}d"),
    "google": (f"AIza{_BODY}e", f"AIza{_BODY}e"),
    "github": (f"ghp_{_BODY}f", f"ghp_{_BODY}f"),
    "github, fine-grained": (f"github_pat_{_BODY}g", f"github_pat_{_BODY}g"),
    "gitlab": (f"glpat-{_BODY}h", f"glpat-{_BODY}h"),
    "slack": (f"xoxb-12345678-{_BODY}i", f"{_BODY}i"),
    "aws": ("AKIAQZ7RK2WM9XT4VB6N", "AKIAQZ7RK2WM9XT4VB6N"),
    "json web token": (f"eyJhbGciOiJ9.eyJ{_BODY}j.{_BODY}k", f"{_BODY}j"),
    "replicate": (f"r8_{_BODY}l", f"r8_{_BODY}l"),
    "perplexity": (f"pplx-{_BODY}m", f"pplx-{_BODY}m"),
    "azure connection": (f"AccountName=n;AccountKey={_BODY}n==;EndpointSuffix=core", f"{_BODY}n"),
    "bearer": (f"Bearer {_BODY}o", f"{_BODY}o"),
    "basic": (f"Basic {_BASIC}", _BASIC),
    "private key": (
        f"-----BEGIN PRIVATE KEY-----\nMII{_BODY}p\n-----END PRIVATE KEY-----",
        f"MII{_BODY}p",
    ),
    "address with a key": (f"https://host/v1?api_key={_BODY}q&n=1", f"{_BODY}q"),
    "address with a signature": (f"https://host/v1?se=1&sig={_BODY}r", f"{_BODY}r"),
    "address with a password": (f"postgresql://me:{_BODY}s@host/db", f"{_BODY}s"),
    "address with a token": (f"http://{_BODY}t@host/v1", f"{_BODY}t"),
}
