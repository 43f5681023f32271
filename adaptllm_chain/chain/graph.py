"""The chain as a picture: both branches of its policy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from langchain_core.runnables import Runnable
from langchain_core.runnables.graph import Graph, Node
from langchain_core.utils.pydantic import TypeBaseModel

from adaptllm_chain.records import PromptKind
from adaptllm_chain.ret import Policy


def policy_graph(
    policy: Policy,
    llm: Runnable[Any, Any],
    retriever: Runnable[Any, Any] | None,
    question: TypeBaseModel,
    answer: TypeBaseModel,
) -> Graph:
    """Draw the ways that a question can go under a policy.

    What happens when retrieval brings nothing, and further searches, are not drawn.

    Args:
        policy: The policy.
        llm: The model; it stands in the graph once for each prompt, which its metadata names.
        retriever: The retriever; ``None`` only under a policy that never retrieves.
        question: The schema of the input, the first node.
        answer: The schema of the result, the last node.

    Returns:
        The graph.
    """
    graph = Graph()

    def model(kind: PromptKind) -> Node:
        return graph.add_node(llm, metadata={"prompt": kind})

    def connect(*nodes: Node) -> None:
        for source, target in pairwise(nodes):
            graph.add_edge(source, target)

    start, end = graph.add_node(question), graph.add_node(answer)
    if retriever is None or not policy.may_retrieve:
        connect(start, model("closed_book"), end)
        return graph
    if policy.opening is None and "closed_book" not in policy.needs:
        connect(start, graph.add_node(retriever), model("context"), end)
        return graph
    opening = [] if policy.opening is None else [model(policy.opening)]
    decision = graph.add_node(type(policy), metadata={"decision": policy.name})
    connect(start, *opening, decision)
    # What the model said first is the answer, where it was asked first.
    direct = [end] if opening else [model("closed_book"), end]
    retrieve = [graph.add_node(retriever), model("context"), end]
    for route, nodes in (("direct", direct), ("retrieve", retrieve)):
        graph.add_edge(decision, nodes[0], route, conditional=True)
        connect(*nodes)
    return graph
