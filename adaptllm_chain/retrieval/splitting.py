"""Documents cut into passages of at most 100 words.

DPR (Karpukhin et al. 2020, section 4.1): articles are split into "multiple, disjoint text blocks of 100 words
as passages", and each passage goes with the title of its article. Here a block ends earlier where a
paragraph does, so that passages do not run from one subject into the next.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.documents import Document

from adaptllm_chain.errors import InvalidInputError, missing_extra
from adaptllm_chain.retrieval.readers import WHOLE_PASSAGE

WORDS_PER_PASSAGE = 100

# Everything that str.split() takes for a space, but the line break; the splitter knows only the plain space.
_OTHER_SPACES = re.compile(r"[^\S\n]+")


def split_into_passages(documents: Iterable[Document], *, words: int = WORDS_PER_PASSAGE) -> Iterator[Document]:
    """Cut documents into passages; every word is in exactly one of them, in order.

    Args:
        documents: The documents; those marked as whole passages pass as they are.
        words: The most words of a passage, as ``str.split`` counts them.

    Yields:
        Passages with the metadata of their document and ``"ordinal"``, from 0 within it. Ids are
        ``<document's id>#<ordinal>``, the same in every run; a document without an id is named by its content.

    Raises:
        InvalidInputError: If ``words`` is below 1.
    """
    if words < 1:
        raise InvalidInputError(f"words is {words!r}", expected="a whole number of 1 or more")
    splitter = _splitter(words)
    for document in documents:
        name = document.id or _content_name(document)
        metadata = {key: value for key, value in document.metadata.items() if key != WHOLE_PASSAGE}
        if document.metadata.get(WHOLE_PASSAGE):
            yield Document(id=name, page_content=document.page_content, metadata={**metadata, "ordinal": 0})
            continue
        for ordinal, text in enumerate(splitter.split_text(_OTHER_SPACES.sub(" ", document.page_content))):
            yield Document(id=f"{name}#{ordinal}", page_content=text, metadata={**metadata, "ordinal": ordinal})


def count_words(text: str) -> int:
    """Count words as ``str.split`` does.

    Args:
        text: The text.

    Returns:
        How many there are.
    """
    return len(text.split())


def _splitter(words: int) -> Any:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError as error:
        raise missing_extra("langchain-text-splitters", "files") from error
    return RecursiveCharacterTextSplitter(
        separators=["\n\n", "\n", " "],
        chunk_size=words,
        chunk_overlap=0,
        length_function=count_words,
        keep_separator=False,
    )


def _content_name(document: Document) -> str:
    source = str(document.metadata.get("source", ""))
    return hashlib.sha256(f"{source}\n{document.page_content}".encode()).hexdigest()[:16]
