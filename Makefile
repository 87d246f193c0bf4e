# redlockd: see `make help`; what tests it stands in tests/tests.mk

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
PKGS := libmicrohttpd hiredis jansson libuv gnutls libsystemd

WARN := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes \
        -Wmissing-prototypes -Wvla
ifdef CI
WARN += -Werror
endif
# as Debian's hardening=+all
HARDEN_release := -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
                  -fstack-clash-protection \
                  -fPIE $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
HARDEN_LINK_release := -pie -Wl,-z,relro -Wl,-z,now
FLAGS_release := -O2 -g
FLAGS_asan := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
              -fno-sanitize-recover=all
FLAGS_fuzz := $(FLAGS_asan) -fsanitize=fuzzer-no-link
CFLAGS ?=
C_FLAGS = -std=c11 -D_GNU_SOURCE -DREDLOCKD_VERSION='"$(VERSION)"' -I$(GEN) \
          $(WARN)
ALL_CFLAGS = $(C_FLAGS) $(FLAGS_$(FLAVOUR)) $(HARDEN_$(FLAVOUR)) -MMD -MP \
             $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(FLAGS_$(FLAVOUR)) $(HARDEN_LINK_$(FLAVOUR)) $(LDFLAGS)
lib_cflags = $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
lib_libs = $(shell pkg-config --libs $(PKGS))

C_FILES := $(wildcard $(foreach folder,server api cli tests,\
             $(addprefix $(folder)/,*.[ch] */*.[ch] */*/*.[ch])))
OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out server/main.c,$(sort $(wildcard \
         $(foreach folder,server api,$(addprefix $(folder)/,*.c */*.c */*/*.c))))))
# redlockctl, and what it shares with redlockd
CLI_PKGS := libcurl jansson
CLI_OBJ := $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard cli/*.c))) \
           $(patsubst %,$(OUT)/server/base/%.o,clock encoding process types) \
           $(patsubst %,$(OUT)/%.o,server/lock/names api/message/id \
             api/message/jsonload)
lua := $(patsubst %,server/node/scripts/%.lua,\
         head lone prelude tombstone shared release acquire share repeat extend inspect replicate \
         listen scan slots permission single row readers batch)
rights := server/node/scripts/rights.lua
# one after the other: the page's script and style
script := $(patsubst %,api/page/%.js,text metrics chart verdict nodes locks watch details force token page)
style := $(patsubst %,api/page/%.css,page status docs narrow)

.PHONY: help build deps run map fmt clean manual install install-bin \
        install-manual install-service deb release
.DELETE_ON_ERROR:

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' \
	  Makefile tests/tests.mk | expand -t 24

build: $(OUT)/redlockd $(OUT)/redlockctl ## Build build/redlockd, build/redlockctl

$(OUT)/redlockd: $(OUT)/server/main.o $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)
	@[ $(FLAVOUR) != release ] || ln -sf release/redlockd build/redlockd

$(OUT)/redlockctl: $(CLI_OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(shell pkg-config --libs $(CLI_PKGS))
	@[ $(FLAVOUR) != release ] || ln -sf release/redlockctl build/redlockctl

# Texts as C strings; the script's files in the order that prelude.lua tells
texts := $(addprefix $(GEN)/,script.lua.h rights.lua.h openapi.yaml.h docs.html.h \
           index.html.h page.css.h page.js.h page.svg.h)
$(GEN)/script.lua.h: $(lua)
$(GEN)/rights.lua.h: $(rights)
$(GEN)/openapi.yaml.h: openapi.yaml
$(GEN)/docs.html.h: $(GEN)/docs.html
$(GEN)/index.html.h: $(GEN)/index.html
$(GEN)/page.css.h: $(style)
$(GEN)/page.js.h: $(script)
$(GEN)/page.svg.h: api/page/page.svg
$(texts):
	@mkdir -p $(@D)
	@sed 's/[\\"?]/\\&/g; s/.*/    "&\\n"/' $^ >$@

# Redis' name for that script
$(GEN)/rights.sha.h: $(rights)
	@mkdir -p $(@D)
	@printf '"%.40s"\n' "$$(sha1sum <$<)" >$@

# For people, who read it in a browser
$(GEN)/docs.html: openapi.yaml api/page/docs.py
	@mkdir -p $(@D)
	@api/page/docs.py $< >$@

$(GEN)/index.html: api/page/index.html docs/runbook.md docs/operations.md \
                   api/page/runbook.py
	@mkdir -p $(@D)
	@api/page/runbook.py $(wordlist 1,3,$^) >$@

# Every object, so that none that names the version can be forgotten
$(OUT)/%.o: %.c VERSION
	@mkdir -p $(@D)
	@echo "CC   $<"
	$(Q)$(CC) $(ALL_CFLAGS) $(lib_cflags) -c -o $@ $<

$(OUT)/server/node/script.o: $(addprefix $(GEN)/,script.lua.h rights.lua.h \
                               rights.sha.h)
$(OUT)/api/handler.o: $(filter-out %.lua.h,$(texts))

# Made from what --help of both programs says
MANUAL := $(addprefix $(OUT)/share/,redlockd.8 redlockctl.1 redlockd.env \
            redlockctl.bash)
manual: $(MANUAL)
$(MANUAL): scripts/manual.py $(OUT)/redlockd $(OUT)/redlockctl \
           docs/reference/options.md $(wildcard docs/man/*) debian/changelog
	@mkdir -p $(@D)
	@scripts/manual.py $(OUT) $(@F) >$@

deps: ## Install missing Debian packages
	@scripts/deps.sh build run test readme lint analyse bench openapi

run: ## Start five Redis masters and redlockd on :8080
	@scripts/deps.sh build run
	@$(MAKE) --no-print-directory -j$$(nproc) build
	@setpriv --pdeathsig TERM scripts/run.sh

include tests/tests.mk

map: ## Write docs/internals/map.md: a line for each source file
	@scripts/map.py

fmt: ## Lay out the C files
	@scripts/deps.sh lint
	$(CLANG_FORMAT) -i $(C_FILES)

SHARE := $(DESTDIR)$(PREFIX)/share
install: install-bin install-manual ## Copy to $(DESTDIR)$(PREFIX)

install-bin: build
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin \
	  $(OUT)/redlockd $(OUT)/redlockctl

install-manual: $(MANUAL)
	install -D -m 644 -t $(SHARE)/man/man8 $(OUT)/share/redlockd.8
	install -D -m 644 -t $(SHARE)/man/man1 $(OUT)/share/redlockctl.1
	install -D -m 644 $(OUT)/share/redlockctl.bash \
	  $(SHARE)/bash-completion/completions/redlockctl

install-service: $(MANUAL) ## Copy the systemd unit too; keeps redlockd.env
	install -D -m 644 debian/redlockd.sysusers \
	  $(DESTDIR)$(PREFIX)/lib/sysusers.d/redlockd.conf
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/bin/redlockd|$(PREFIX)/bin/redlockd|' \
	  debian/redlockd.service \
	  >$(DESTDIR)$(PREFIX)/lib/systemd/system/redlockd.service
	[ -e $(DESTDIR)/etc/redlockd/redlockd.env ] || install -D -m 640 \
	  -t $(DESTDIR)/etc/redlockd $(OUT)/share/redlockd.env

deb: ## Build Debian packages for this system in build/deb
	@scripts/deps.sh build deb
	@scripts/deb.sh build/deb

release: ## Make the files of a release in dist/, publish nothing; VERSION=1.2.3 PARTS="source clients packages image" RELEASE_KEY=id
	@scripts/deps.sh release
	@scripts/release.sh "$(VERSION)" "$(or $(DIST),dist)"

clean: ## Remove what was built
	rm -rf build

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
