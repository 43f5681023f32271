"""Tiny files in each format, in words of our own."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path

PASSAGE = "Moss Harbour Moss Harbour is a village whose lighthouse was built in 1871."
AUTHORS = {
    "17": {
        "question": "when was the lighthouse of Moss Harbour built",
        "possible_answers": "1871",
        "prediction": " 1880",
        "needs_retrieve": True,
        "passage_title": "Moss Harbour",
        "passage_text": PASSAGE,
    },
    "4": {
        "question": "Who keeps the light?",
        "possible_answers": ["Ada Finch", "A. Finch", "Ada Finch"],
        "gold_passage": "",
        "contriever_passage": "Ada Finch Ada Finch keeps a light.",
        "contriver_score": "1.25",
        "s_pop": 304.0,
    },
}
NQ_OPEN = [
    {"question": "who keeps the light", "answer": ["Ada Finch"]},
    {"question": "how tall is the tower", "answer": ["31 m", "31 metres"]},
]
ORACLE = [
    {
        "question": "who painted the tower",
        "answers": ["Bo Reed"],
        "ctxs": [
            {"title": "Paint", "text": "Paint is wet.", "hasanswer": False, "isgold": False, "score": 0.5},
            {"title": "Tower", "text": "Bo Reed painted it.", "hasanswer": True, "isgold": True},
        ],
    }
]
DPR = [
    {
        "dataset": "tiny",
        "question": "who rows to the island",
        "answers": ["Cy Vane"],
        "positive_ctxs": [{"title": "Boat", "text": "Cy Vane rows.", "score": 1000, "passage_id": "9"}],
        "negative_ctxs": [],
        "hard_negative_ctxs": [{"title": "Oar", "text": "An oar floats."}],
    },
    {"question": "who waits", "answers": ["Di"], "positive_ctxs": [], "negative_ctxs": [], "hard_negative_ctxs": []},
]
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "Moss_Harbour",
            "paragraphs": [
                {
                    "context": "The bell weighs two tons. It rang in fog.",
                    "qas": [
                        {
                            "id": "a1",
                            "question": "How heavy is the bell?",
                            "answers": [
                                {"text": "two tons", "answer_start": 16},
                                {"text": "two tons", "answer_start": 16},
                                {"text": "two", "answer_start": 16},
                            ],
                        }
                    ],
                }
            ],
        }
    ],
}
POPQA_COLUMNS = ["id", "subj", "prop", "obj", "s_pop", "o_pop", "question", "possible_answers"]
POPQA_ROWS = [
    ["401", "Moss Harbour", "country", "Norland", "77", "5", "In what country is Moss Harbour?", '["Norland", "NL"]'],
    ["402", "Ada Finch", "occupation", "keeper", "8", "2", 'What does "Ada" do?', '["keeper"]'],
]


def table(rows: Sequence[Sequence[str]], separator: str = "\t") -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def lines(rows: Sequence[object]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


CONTENTS = {
    "authors": json.dumps(AUTHORS, indent=1),
    "nq_open": lines(NQ_OPEN),
    "nq_open_oracle": lines(ORACLE),
    "dpr": json.dumps(DPR),
    "squad": json.dumps(SQUAD),
    "popqa": table([POPQA_COLUMNS, *POPQA_ROWS]),
    "jsonl": lines([{"id": 0, "question": "who sings", "answers": '["Eve", "Eva"]', "context": "Eve sings."}]),
    "json": json.dumps([{"question": "which year", "answer": 1871, "source": "log"}]),
    "csv": table([["question", "answer"], ["who, if any, sings", "Eve"]], ","),
}


def write(folder: Path, content: str | bytes, name: str = "file.data", *, compress: bool = False) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path = folder / name
    path.write_bytes(gzip.compress(data) if compress else data)
    return path
