"""A question and an answer as one statement, by rules for the commonest questions and a wording that fits the rest.

There is no parser here. A rule that would have to guess where a subject ends is not applied: ``None`` comes back,
and ``plain_statement`` says the same less gracefully, but never wrongly.
"""

from __future__ import annotations

import re

from training.nli.answer_kinds import MONTHS

# The past of verbs that follow "did" in questions about dates and places, where it is not "-ed".
_IRREGULAR = {
    "become": "became", "begin": "began", "break": "broke", "build": "built", "buy": "bought", "catch": "caught",
    "come": "came", "draw": "drew", "fall": "fell", "fight": "fought", "find": "found", "fly": "flew", "get": "got",
    "give": "gave", "go": "went", "grow": "grew", "hold": "held", "leave": "left", "lose": "lost", "make": "made",
    "meet": "met", "put": "put", "rise": "rose", "run": "ran", "say": "said", "sell": "sold", "send": "sent",
    "sing": "sang", "spend": "spent", "stop": "stopped", "take": "took", "win": "won", "write": "wrote",
}  # fmt: skip
_REGULAR = [
    "adopt", "appear", "arrive", "attack", "belong", "change", "close", "create", "declare", "defeat", "develop",
    "die", "direct", "discover", "end", "enter", "establish", "happen", "introduce", "invade", "invent", "join",
    "land", "launch", "learn", "live", "move", "occur", "open", "originate", "play", "publish", "receive",
    "release", "resign", "retire", "return", "settle", "start", "surrender", "travel", "turn",
]  # fmt: skip
_PAST = _IRREGULAR | {verb: verb + ("d" if verb.endswith("e") else "ed") for verb in _REGULAR}
_PARTICIPLE = re.compile(r"\w+ed|born|built|found|held|made|set|sung|written")
_DO = {"do", "does", "did"}
_BE = {"is", "was", "are", "were"}
# After these a word is a noun, though it is spelled like a verb: "the start", "a change".
_BEFORE_NOUNS = {"the", "a", "an", "of", "in", "first", "last", "his", "her", "their", "its", "this", "that", "and"}
_DAY = re.compile(rf"(?:{MONTHS})\W+\d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th)?\W+(?:{MONTHS})", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"(?:after|around|at|before|beneath|by|during|from|in|into|near|on|since|to|under|until)\b", re.IGNORECASE
)


def plain_statement(question: str, answer: str) -> str:
    """Word any question and an answer as a statement about the question.

    Args:
        question: A question.
        answer: An answer to it.

    Returns:
        A sentence that is true exactly when the answer is right.
    """
    return f'The answer to the question "{_bare(question)}" is {_bare(answer)}.'


def declarative(question: str, answer: str) -> str | None:
    """Word a question and an answer as an ordinary sentence, where a rule fits.

    Args:
        question: A question; its case does not matter.
        answer: An answer to it.

    Returns:
        The sentence, or ``None`` where no rule fits.
    """
    words, answer = _bare(question).split(), _bare(answer)
    if len(words) < 3:
        return None
    asks, verb, rest = words[0].lower(), words[1].lower(), words[2:]
    told: list[str] | None = None
    if asks == "who" and verb not in _DO:
        told = [answer, *words[1:]]
    elif asks == "what" and verb in _BE:
        told = [*rest, verb, answer]
    elif asks in {"what", "which"}:
        told = _chosen(words, answer)
    elif asks in {"when", "where"}:
        told = _placed(verb, rest, answer)
    elif asks == "how" and verb == "many":
        told = _counted(rest, answer)
    if told is None:
        return None
    text = " ".join(told)
    return text[:1].upper() + text[1:] + "."


def _bare(text: str) -> str:
    return re.sub(r"[\s?.]+$", "", text.strip())


def _chosen(words: list[str], answer: str) -> list[str] | None:
    """Turn "which nfl team won the cup" into "Answer won the cup"."""
    past = set(_PAST.values())
    place = next((at for at in range(2, min(5, len(words))) if words[at].lower() in past), None)
    return None if place is None else [answer, *words[place:]]


def _placed(verb: str, rest: list[str], answer: str) -> list[str] | None:
    """Turn "did the show come out" into "the show came out in 1881", "was it built" into "it was built in 1881"."""
    if verb == "did":
        found = [
            at for at in range(1, len(rest)) if rest[at].lower() in _PAST and rest[at - 1].lower() not in _BEFORE_NOUNS
        ]
        told = [*rest[: found[0]], _PAST[rest[found[0]].lower()], *rest[found[0] + 1 :]] if found else None
    elif verb in _BE:
        # The participle shows where the subject ends; of two, one belongs to the subject.
        found = [at for at in range(1, len(rest)) if _PARTICIPLE.fullmatch(rest[at].lower())]
        told = [*rest[: found[0]], verb, *rest[found[0] :]] if len(found) == 1 else None
    else:
        told = None
    if told is None:
        return None
    # An answer such as "in 1881" brings its own preposition, as does "did it move to".
    if _PREPOSITION.match(answer) or _PREPOSITION.fullmatch(told[-1]):
        return [*told, answer]
    return [*told, "on" if _DAY.search(answer) else "in", answer]


def _counted(rest: list[str], answer: str) -> list[str] | None:
    """Turn "books are in the series" into "there are 83 books in the series"."""
    place = next((at for at in range(1, len(rest)) if rest[at].lower() in {"are", "were"}), None)
    if place is None:
        return None
    tail = rest[place + 1 :]
    return ["there", rest[place], answer, *rest[:place], *(tail[1:] if tail[:1] == ["there"] else tail)]
