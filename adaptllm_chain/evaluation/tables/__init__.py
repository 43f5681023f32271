"""The paper's tables and figure, and what goes beyond them, out of judged predictions."""

from adaptllm_chain.evaluation.tables.report import paper_report

__all__ = ["paper_report"]
