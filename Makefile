# Four front doors. Everything else: cmake --workflow --preset dev (see CONTRIBUTING.md).
.PHONY: demo test lineup prove setup

demo: setup        # build the tool, run and forge the founding case, diagnose it
	@scripts/demo

test: setup        # build everything, run every test
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev
	@ctest --preset dev --output-on-failure -j 2

lineup: setup      # plant every suspect in fresh draws, with and without evidence; writes docs/lineup.md
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target culprit
	@python3 tests/lineup/lineup.py build/dev/culprit --doc docs/lineup.md

prove: setup       # run each fault and its fix in the laboratory, hold predictions against them; writes docs/prove.md
	@cmake --preset release --log-level=WARNING
	@cmake --build --preset release --target culprit
	@scripts/prove build/release/culprit --runs 3

setup:
	@scripts/setup
