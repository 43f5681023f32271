"""The chain and AGREE are light: in a fresh process they bring in no heavy library."""

import subprocess
import sys

CODE = """
import sys
import adaptllm_chain.agree, adaptllm_chain.chain, adaptllm_chain.testing
heavy = {"torch", "transformers", "peft", "faiss", "numpy", "openai", "sentence_transformers", "langchain_community"}
from adaptllm_chain.testing import ScriptedLLM
chain = adaptllm_chain.chain.AdaptiveRetrievalChain(llm=ScriptedLLM(script=lambda _: "Paris"), retriever=lambda _: [])
assert chain.invoke("q")["answer"] == "Paris"
assert list(chain.stream("q"))
from langchain_core.documents import Document
found = [Document(page_content="Paris.")]
citing = adaptllm_chain.agree.GroundedAnswerChain(llm=ScriptedLLM(script=lambda _: "[1]"), retriever=lambda _: found)
assert citing.invoke("q")["answer"] == "[1]"
assert list(citing.stream("q"))
print(*sorted(heavy & set(sys.modules)))
"""


def test_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
