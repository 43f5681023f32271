"""The marker by which a model asks for retrieval, and how its spellings are read.

What counts as a request (each row is a test):

===========================  =========  ===================================================
output                       route      why
===========================  =========  ===================================================
``<RET>``, `` <RET>``        retrieve   the marker leads; white space before it is ignored
``<RET>.``, ``<RET> Paris``  retrieve   what follows the marker is ignored
``<ret>``                    retrieve   letter case is ignored
``<RET`` at the very end     retrieve   the marker, cut off by the token limit
nothing, or white space      retrieve   no answer was given; a special token may have been stripped
``RET``                      direct     a word (the gene, for one); the brackets make the marker
``I need <RET>``             direct     the marker does not lead: it ends the answer like a stop
                                        string, since a stream has already shown the words before
===========================  =========  ===================================================
"""

from __future__ import annotations

from typing import Literal

RET = "<RET>"

Spelling = Literal["marker", "cut_off", "empty", "answer"]

REASONS: dict[Spelling, str] = {
    "marker": "the model asked for retrieval",
    "cut_off": "the model began to ask for retrieval and was cut off",
    "empty": "the model said nothing",
    "answer": "the model answered",
}


def read_spelling(output: str, marker: str = RET) -> Spelling:
    """Say what a finished output is.

    Args:
        output: The whole first output of a model.
        marker: How the request is spelled.

    Returns:
        ``"answer"``, or the way in which the output asks for retrieval.
    """
    text = output.strip().casefold()
    wanted = marker.casefold()
    if not text:
        return "empty"
    if text.startswith(wanted):
        return "marker"
    # A lone "<" is as likely the start of an answer; from "<R" on it is the marker.
    if len(text) > 1 and wanted.startswith(text):
        return "cut_off"
    return "answer"


def is_request(spelling: Spelling) -> bool:
    """Say whether a spelling asks for retrieval.

    Args:
        spelling: What ``read_spelling`` returned.

    Returns:
        True for every spelling but ``"answer"``.
    """
    return spelling != "answer"


def may_become_marker(text: str, marker: str = RET) -> bool:
    """Say whether an unfinished output could still turn out to lead with the marker.

    Args:
        text: What has been seen of the output so far.
        marker: How the request is spelled.

    Returns:
        True while the text is empty or a proper prefix of the marker, white space before it aside.
    """
    seen = text.lstrip().casefold()
    return len(seen) < len(marker) and marker.casefold().startswith(seen)
