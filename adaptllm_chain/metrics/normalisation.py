"""Making two spellings of the same answer equal, as SQuAD's official script does."""

from __future__ import annotations

import re
import string
import unicodedata

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalise_answer(text: str, *, nfkc: bool = False) -> str:
    """Lower the case, drop punctuation, then articles, then surplus white space.

    The steps and their order are those of SQuAD's evaluation script (Rajpurkar et al. 2016). Like
    it, this knows ASCII punctuation and English articles only: a dash that is not a hyphen stays,
    and full-width digits differ from plain ones.

    Args:
        text: An answer.
        nfkc: Whether to bring the text to Unicode's NFKC first, which makes full-width letters,
            ligatures and composed accents equal to their plain spelling. Off by default, because
            numbers then differ from those of the official script.

    Returns:
        The normalised text; it may be empty, for example for ``"The"``.
    """
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    text = text.lower().translate(_PUNCTUATION)
    if nfkc:
        # A dropped mark can bring a letter and its accent together.
        text = unicodedata.normalize("NFKC", text)
    return " ".join(_ARTICLES.sub(" ", text).split())
