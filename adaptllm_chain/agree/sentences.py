"""Cutting an answer into sentences, each with the citation marks that belong to it.

Made for English and languages that write like it: a sentence ends with ``.``, ``!``, ``?`` or ``…``, and white space
comes before the next. A mark after the full stop belongs to the sentence before it: ``It is old. [1] It stands.`` is
``It is old. [1]`` and ``It stands.``
"""

from __future__ import annotations

import re

from adaptllm_chain.metrics.citations import MARK

_GAP = re.compile(r"\s+(?=\S)")
# The end of a sentence at the end of a text: stops, closing quotes and brackets, marks.
_END = re.compile(rf"(?P<stop>[.!?…]+)(?P<closed>[\"'”\u2019»)\]]*(?:[^\S\n]*{MARK})*)\Z")
# A mark, or what may become one when a stream goes on.
_MARK_NEXT = re.compile(rf"{MARK}|\[[\[\d\s,]*\Z")
_ITEM = re.compile(r"(?:[-*•]|\d{1,3}[.)])\s")
_LAST_WORD = re.compile(r"[^\s(\[\"'“\u2018«]+\Z")
# An end is not looked for further back: a text without one would take time that grows with its square.
_REACH = 200

# A name or a number follows these, never a new sentence.
_LEADS_ON = re.compile(
    r"mrs?|ms|messrs|mme|dr|prof|gen|col|maj|sgt|capt|lt|cmdr|adm|rev|fr|hon|gov|sen|rep|pres|"
    r"vs|e\.g|i\.e|cf|viz|figs?|eq|vol|eds?|pp|approx|ca"
)
# These stand within a sentence as well as at its end; so do initials ("J. Smith", "the U.S.").
_EITHER = re.compile(
    r"st|mt|ft|jr|sr|inc|co|corp|ltd|bros|dept|univ|est|etc|al|jan|feb|apr|aug|sept?|oct|nov|dec|ph\.d|"
    r"(?:[^\W\d_]\.)*[^\W\d_]"
)
# With one of these behind it, what stands before it was the end. A letter more may follow in a stream.
_OPENER = re.compile(
    r"(?:A|An|The|This|That|These|Those|There|It|Its|He|His|She|Her|They|Their|We|Our|You|In|On|At|As|After|Before|"
    r"During|When|While|Since|For|From|By|With|Although|However|But|And|Both|Many|Most|Some|Later|Today)(?=[\s,])"
)


def split_sentences(text: str) -> list[str]:
    """Cut a text into sentences.

    Full stops of abbreviations, initials, decimals and list numbers do not end a sentence; a blank line and an item
    of a list do. Where an abbreviation may be the end as well ("… in the U.S. It …"), the next word decides. While a
    text is still being written, all pieces but the last are final.

    Args:
        text: An answer, finished or not.

    Returns:
        The pieces in order, each with its marks and the white space behind it; joined they are the text.
    """
    pieces = []
    start = 0
    for gap in _GAP.finditer(text):
        before = text[max(start, gap.start() - _REACH) : gap.start()]
        if _is_boundary(before, gap[0], text, gap.end()):
            pieces.append(text[start : gap.end()])
            start = gap.end()
    return [*pieces, text[start:]] if text[start:] else pieces


def ends_in_abbreviation(sentence: str) -> bool:
    """Say whether the full stop at the end of a sentence is that of an abbreviation, or may be.

    Args:
        sentence: A sentence without marks.

    Returns:
        Whether the word before the full stop needs it.
    """
    word = _last_word(sentence.removesuffix("."))
    return sentence.endswith(".") and bool(_LEADS_ON.fullmatch(word) or _EITHER.fullmatch(word))


def _is_boundary(before: str, gap: str, text: str, place: int) -> bool:
    if not before.strip():
        return False
    if "\n" in gap:
        if gap.count("\n") > 1 or _ITEM.match(text, place) or before.endswith(":"):
            return True
    elif _MARK_NEXT.match(text, place):
        return False
    end = _END.search(before)
    if end is None or text[place].islower():
        return False
    if end["closed"] or end["stop"] != ".":
        return True
    return not _is_inner_stop(before[: end.start()], text, place)


def _is_inner_stop(before: str, text: str, place: int) -> bool:
    word = _last_word(before)
    if _LEADS_ON.fullmatch(word) or _ITEM.fullmatch(f"{before.strip()}. "):
        return True
    if word == "no":
        return text[place].isdigit()
    if _EITHER.fullmatch(word):
        return _OPENER.match(text, place) is None
    return False


def _last_word(text: str) -> str:
    found = _LAST_WORD.search(text)
    return found[0].lower() if found else ""
