"""Find texts by how well they fit a few words: BM25, as in Robertson and Zaragoza (2009)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
# "createIssue" and "HTTPServer" are two words each, as "create_issue" is. Chinese and Japanese put no blanks
# between words.
_WORD: Final = (
    r"\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{Ll}\p{M}]+|[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{Lo}\p{M}]+|\p{N}+"
)


class Ranking:
    """An index of texts; none of them changes."""

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(split_words(text)) for text in texts]
        lengths = [each.total() for each in counts]
        average = sum(lengths) / max(len(lengths), 1) or 1.0
        self._scores: dict[str, dict[int, float]] = {}
        for at, (words, length) in enumerate(zip(counts, lengths, strict=True)):
            damping = _SATURATION * (1 - _LENGTH + _LENGTH * length / average)
            for word, times in words.items():
                weight = times * (_SATURATION + 1) / (times + damping)
                self._scores.setdefault(word, {})[at] = weight
        for found in self._scores.values():
            rarity = math.log(1 + (len(texts) - len(found) + 0.5) / (len(found) + 0.5))
            for at in found:
                found[at] *= rarity

    def find(self, query: str, most: int) -> list[int]:
        """Return where the best texts stand, the best first; a text without any of the words is left out."""
        totals: Counter[int] = Counter()
        for word in set(split_words(query)):
            totals.update(self._scores.get(word, {}))
        return [at for at, _ in sorted(totals.items(), key=lambda each: (-each[1], each[0]))[:most]]


def split_words(text: str) -> list[str]:
    """Return the words of a text in small letters, without the `s` of a plural."""
    # Imported for the few runs that search; it keeps what it compiled.
    import regex

    words = (each.lower() for each in regex.findall(_WORD, text))
    return [each.removesuffix("s") if len(each) > 3 else each for each in words]
