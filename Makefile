# Two front doors. Everything else: cmake --workflow --preset dev (see CONTRIBUTING.md).
.PHONY: demo test setup

demo: setup        # build the tool, forge the founding case, diagnose it
	@scripts/demo

test: setup        # build everything, run every test
	@cmake --preset dev --log-level=WARNING
	@cmake --build --preset dev
	@ctest --preset dev --output-on-failure -j 2

setup:
	@scripts/setup
