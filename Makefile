# Three front doors. Everything else: cmake --workflow --preset dev (see CONTRIBUTING.md).
.PHONY: demo test lineup setup

demo: setup        # build the tool, forge the founding case, diagnose it
	@scripts/demo

test: setup        # build everything, run every test
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev
	@ctest --preset dev --output-on-failure -j 2

lineup: setup      # plant every suspect in fresh draws, with and without evidence; writes docs/lineup.md
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev --target culprit
	@python3 tests/lineup/lineup.py build/dev/culprit --doc docs/lineup.md

setup:
	@scripts/setup
