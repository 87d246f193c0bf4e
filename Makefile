# redlockd: see `make help`

.DEFAULT_GOAL := build
SHELL := /bin/bash
FLAVOUR ?= release
OUT := build/$(FLAVOUR)
GEN := build/gen
PREFIX ?= /usr/local
CLANG_FORMAT ?= clang-format
VERSION := $(shell cat VERSION)
# make V=1 shows the commands
Q := $(if $(V),,@)
PKGS := libmicrohttpd hiredis jansson libuv
TEST_PKGS := $(PKGS) check libcurl

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla
ifdef CI
WARN += -Werror
endif
FLAGS_release := -O2 -g
FLAGS_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
              -fno-sanitize-recover=all
CFLAGS ?=
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DREDLOCKD_VERSION='"$(VERSION)"' -I$(GEN) \
             $(WARN) $(FLAGS_$(FLAVOUR)) -MMD -MP $(CFLAGS)
ALL_LDFLAGS = $(FLAGS_$(FLAVOUR)) $(LDFLAGS)
lib_cflags = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
lib_libs = $(shell pkg-config --libs $(PKGS))
test_libs = $(shell pkg-config --libs $(TEST_PKGS))

OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out server/main.c,\
         $(sort $(wildcard server/*.c api/*.c))))
unit_obj := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/unit/*.c)))
integration_obj := $(patsubst %.c,$(OUT)/%.o,\
                     $(sort $(wildcard tests/integration/*.c)))
sim_obj := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard tests/sim/*.c)))
prelude := server/scripts/prelude.lua
lua := $(filter-out $(prelude),$(sort $(wildcard server/scripts/*.lua)))

.PHONY: help build deps run test tests readme unit integration sim long bench soak asan \
        lint fmt clean install
.DELETE_ON_ERROR:

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 24

build: $(OUT)/redlockd ## Build build/redlockd

$(OUT)/redlockd: $(OUT)/server/main.o $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)
	@[ $(FLAVOUR) != release ] || ln -sf release/redlockd build/redlockd

# Each script as a C string, script_text_NAME: the prelude and NAME.lua
$(GEN)/scripts.h: $(lua) $(prelude)
	@mkdir -p $(@D)
	@for f in $(lua); do \
	  printf 'static const char script_text_%s[] =\n' "$$(basename $$f .lua)"; \
	  sed 's/\\/\\\\/g; s/"/\\"/g; s/.*/    "&\\n"/' $(prelude) $$f; echo '    ;'; \
	done >$@

# The suites of a folder: check_NAME.c defines Suite *check_NAME(void)
$(GEN)/%_suites.h: $(wildcard tests/unit/check_*.c tests/integration/check_*.c)
	@mkdir -p $(@D)
	@for f in $(wildcard tests/$*/check_*.c); do \
	  echo "SUITE($$(basename $$f .c))"; done >$@

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	@echo "CC   $<"
	$(Q)$(CC) $(ALL_CFLAGS) $(lib_cflags) -c -o $@ $<

$(OUT)/server/script.o: $(GEN)/scripts.h
$(OUT)/tests/unit/main.o: $(GEN)/unit_suites.h
$(OUT)/tests/integration/main.o: $(GEN)/integration_suites.h

$(OUT)/unit: $(unit_obj) $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(test_libs)
$(OUT)/integration: $(integration_obj)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(test_libs)
$(OUT)/sim: $(sim_obj) $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)

deps: ## Install missing Debian packages
	@scripts/deps.sh build run test lint bench

run: ## Start five Redis masters and redlockd on :8080
	@scripts/deps.sh build run
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@scripts/run.sh

test: ## Run all tests, the simulation short
	@scripts/deps.sh build test
	@$(MAKE) --no-print-directory -j$$(nproc) tests
	@$(MAKE) --no-print-directory unit sim integration readme

tests: $(OUT)/unit $(OUT)/sim $(OUT)/integration $(OUT)/redlockd

unit: $(OUT)/unit ## Run the unit tests
	$(OUT)/unit

# the servers look for leaks, the test program need not
integration: $(OUT)/integration $(OUT)/redlockd ## Test with real Redis servers
	ASAN_OPTIONS=detect_leaks=0 REDLOCKD=$(OUT)/redlockd $(OUT)/integration

readme: $(OUT)/redlockd ## Paste README's commands, compare what they print
	REDLOCKD=$(OUT)/redlockd tests/readme/run.sh

sim: $(OUT)/sim ## Run the simulation, a few seeds
	$(OUT)/sim $(SIM_ARGS)

long: ## 100,000 grants over restarting nodes
	@$(MAKE) --no-print-directory integration FENCE_GRANTS=100000 \
	  CK_RUN_SUITE=fence

asan: ## Run all tests under ASan and UBSan
	@scripts/deps.sh build test
	@$(MAKE) --no-print-directory -j$$(nproc) FLAVOUR=asan tests
	@$(MAKE) --no-print-directory FLAVOUR=asan unit sim integration

bench: ## Measure 64 clients on five local nodes
	@scripts/deps.sh build bench
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@tests/bench/bench.sh

soak: ## A million cycles: memory and descriptors must not grow
	@scripts/deps.sh build bench
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@tests/bench/soak.sh

lint: $(OUT)/redlockd ## Check sizes, includes, scripts, README
	python3 tests/lint/sources.py
	python3 tests/lint/docs.py $(OUT)/redlockd
	shellcheck -x scripts/*.sh tests/*/*.sh .ci/run

fmt: ## Lay out the C files
	$(CLANG_FORMAT) -i $(wildcard server/*.[ch] api/*.[ch] tests/*/*.[ch])

install: $(OUT)/redlockd ## Copy to $(DESTDIR)$(PREFIX)/bin
	install -D -m 755 $< $(DESTDIR)$(PREFIX)/bin/redlockd

clean: ## Remove what was built
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
