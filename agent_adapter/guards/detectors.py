"""Where personal data and secrets stand in a text. Each detector gives the spans it found, and takes linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from agent_adapter.errors import ToolUsageError

Span = tuple[int, int]
Detector = Callable[[str], Iterable[Span]]

# ---- e-mail addresses ------------------------------------------------------------------------------------------------

_LOCAL = frozenset("!#$%&'*+-/=?^_`{|}~.")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,20}[^\W\d_][\w-]{0,61}[^\W_]")


def emails(text: str) -> Iterator[Span]:
    """Addresses with a domain that has a dot."""
    start_of_text = 0
    at = text.find("@")
    while at >= 0:
        start = at
        while start > start_of_text and (text[start - 1].isalnum() or text[start - 1] in _LOCAL):
            start -= 1
        domain = _DOMAIN.match(text, at + 1)
        if domain and start < at:
            yield start, domain.end()
        start_of_text = at + 1
        at = text.find("@", at + 1)


# ---- payment cards ---------------------------------------------------------------------------------------------------

_DIGIT_GROUPS = re.compile(r"\d+(?:[ .\u00a0\u2010-\u2013-]\d+)*", re.ASCII)
_GROUP = re.compile(r"\d+")
_CARD_DIGITS = range(13, 20)
_CARD_GROUPS = 7


def cards(text: str) -> Iterator[Span]:
    """13 to 19 digits that pass the Luhn check, as one number or in groups."""
    for run in _DIGIT_GROUPS.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(text, *run.span())]
        for first in range(len(groups)):
            yield from _cards_from(text, groups[first : first + _CARD_GROUPS])


def _cards_from(text: str, groups: Sequence[Span]) -> Iterator[Span]:
    digits = ""
    for start, end in groups:
        digits += text[start:end]
        if len(digits) > _CARD_DIGITS[-1]:
            return
        if len(digits) in _CARD_DIGITS and digits[0] in "23456" and _passes_luhn(digits):
            yield groups[0][0], end


def _passes_luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


# ---- bank accounts ---------------------------------------------------------------------------------------------------

_IBAN_START = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}[ \u00a0-]?[A-Za-z0-9]")
_IBAN_SIGN = re.compile(r"[ \u00a0-]?([A-Za-z0-9])")


def ibans() -> Detector:
    """IBANs: the length of their country, and the mod-97 check."""
    iban_of = _imported("schwifty").IBAN
    lengths: dict[str, int] = {}

    def length_of(country: str) -> int:
        if country not in lengths:
            try:
                lengths[country] = iban_of(f"{country}00", allow_invalid=True).spec.iban_length
            except ValueError:
                lengths[country] = 0
        return lengths[country]

    def find(text: str) -> Iterator[Span]:
        place = 0
        while begin := _IBAN_START.search(text, place):
            place = begin.start() + 1
            written, end = _signs(text, begin.start(), length_of(text[begin.start() : begin.start() + 2].upper()))
            if written and _passes_mod_97(written):
                yield begin.start(), end
                place = end

    return find


def _signs(text: str, place: int, count: int) -> tuple[str, int]:
    """So many letters and digits from here on, in groups or not; "" where there are fewer."""
    signs: list[str] = []
    while len(signs) < count:
        sign = _IBAN_SIGN.match(text, place)
        if sign is None:
            return "", place
        signs.append(sign[1])
        place = sign.end()
    return "".join(signs).upper(), place


def _passes_mod_97(iban: str) -> bool:
    return int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97 == 1


# ---- telephone numbers -----------------------------------------------------------------------------------------------

_NO_PHONE = re.compile(r"[^\d+\uff0b]*")


def phones(regions: Sequence[str]) -> Detector:
    """Valid numbers in international form, and in the national form of each region (`DE`, `US`)."""
    library = _imported("phonenumbers")
    if unknown := sorted(set(regions) - library.SUPPORTED_REGIONS):
        msg = f"There is no telephone region {unknown[0]!r}. Use two capital letters, such as 'DE' or 'US'."
        raise ToolUsageError(msg)

    def find(text: str) -> Iterator[Span]:
        if _NO_PHONE.fullmatch(text):
            return
        for region in regions or (None,):
            for match in library.PhoneNumberMatcher(text, region, max_tries=len(text) + 1):
                yield match.start, match.end

    return find


# ---- secrets ---------------------------------------------------------------------------------------------------------

_SECRETS = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}                               # AWS
    | AIza[A-Za-z0-9_-]{35}                                             # Google API keys
    | ya29\.[A-Za-z0-9_-]{20,}                                          # Google OAuth
    | GOCSPX-[A-Za-z0-9_-]{20,}
    | (?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{36,}                          # GitHub
    | github_pat_[A-Za-z0-9_]{36,}
    | glpat-[A-Za-z0-9_-]{20,}                                          # GitLab
    | sk-[A-Za-z0-9_-]{20,}                                             # OpenAI, Anthropic
    | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}                       # Stripe
    | whsec_[A-Za-z0-9+/=]{24,}
    | xox[abeoprs]-[A-Za-z0-9-]{10,}                                    # Slack
    | xapp-[A-Za-z0-9-]{10,}
    | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}                        # SendGrid
    | npm_[A-Za-z0-9]{36,}
    | pypi-[A-Za-z0-9_-]{50,}
    | hf_[A-Za-z0-9]{30,}                                               # Hugging Face
    | dop_v1_[a-f0-9]{64}                                               # DigitalOcean
    | eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}  # JSON Web Tokens
    )""",
    re.VERBOSE,
)
_IN_CONTEXT = re.compile(
    r"""(?:
      \b[Bb]earer[ ]+(?P<bearer>[A-Za-z0-9._~+/-]{16,}=*)
    | ://[^\s/:@]{1,256}:(?P<password>[^\s/@]{1,256})@
    )""",
    re.VERBOSE,
)
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----")
_PRIVATE_KEY_END = re.compile(r"-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----")


def secrets(text: str) -> Iterator[Span]:
    """API keys that tell by their form what they are, bearer tokens, passwords in URLs, and private keys."""
    for found in _SECRETS.finditer(text):
        yield found.span()
    for found in _IN_CONTEXT.finditer(text):
        yield found.span(found.lastgroup or 0)
    place = 0
    while begin := _PRIVATE_KEY.search(text, place):
        end = _PRIVATE_KEY_END.search(text, begin.end())
        place = end.end() if end else len(text)  # a key that is cut off is one all the same
        yield begin.start(), place


def _imported(module: str) -> Any:
    try:
        return __import__(module)
    except ImportError as problem:
        msg = f"This guard needs {module}. Install it: pip install 'agentvisor-temporal[guards]'."
        raise ToolUsageError(msg) from problem
