"""The chain is light: in a fresh process it brings in no heavy library."""

import subprocess
import sys

CODE = """
import sys
import adaptllm_chain.chain, adaptllm_chain.testing
heavy = {"torch", "transformers", "peft", "faiss", "numpy", "openai", "sentence_transformers", "langchain_community"}
from adaptllm_chain.testing import ScriptedLLM
chain = adaptllm_chain.chain.AdaptiveRetrievalChain(llm=ScriptedLLM(script=lambda _: "Paris"), retriever=lambda _: [])
assert chain.invoke("q")["answer"] == "Paris"
assert list(chain.stream("q"))
print(*sorted(heavy & set(sys.modules)))
"""


def test_no_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
