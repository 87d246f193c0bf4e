# Everything that tests, measures or checks redlockd; included by ../Makefile

.PHONY: test gate nightly check-tools release-check release-test tests unit integration sim sim-long long readme runbooks drills asan lint analyse bench-tools \
        bench bench-collected bench-contention bench-fairness bench-batch bench-watches bench-permits bench-readers bench-peers bench-clients bench-scale bench-fsync bench-flood bench-forgetting \
        bench-tenants bench-profile bench-options bench-tls soak crowd leavers compose-test deb-test fresh production \
        openapi-test generators page-test rights interop \
        neighbours python-test node-test go-test php-test ruby-test java-test rust-test ctl-test proxies-test rotate-test examples examples-broken nemesis \
        nemesis-tools kube-test alerts-test mutants mutate model fuzz fuzzers starved \
        tls-test

TEST_PKGS := $(PKGS) check libcurl
test_libs = $(shell pkg-config --libs $(TEST_PKGS))
# the objects of some folders, below tests/
objects = $(patsubst %.c,$(OUT)/%.o,$(sort $(wildcard $(1:%=tests/%/*.c))))
unit_obj := $(call objects,unit unit/* lib/node lib/certs lib/folder \
              lib/jsonat lib/seeds lib/suite)
integration_obj := $(call objects,integration lib/certs lib/folder lib/jsonat \
                     lib/suite)
sim_obj := $(call objects,sim lib/node lib/seeds)
differ_obj := $(call objects,differ lib/node lib/seeds)

# A folder is newer when a suite was added or deleted. tests/unit/starve.c
# stands between our objects and the C library.
starvable := malloc calloc realloc reallocarray strdup open_memstream tsearch
$(OUT)/unit: $(unit_obj) $(OBJ) $(wildcard tests/unit/*/)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) $(starvable:%=-Wl,--wrap=%) -o $@ \
	  $(filter %.o,$^) $(test_libs)
$(OUT)/integration: $(integration_obj) tests/integration
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o,$^) $(test_libs)
$(OUT)/sim: $(sim_obj) $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)
$(OUT)/differ: $(differ_obj) $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)

# What the docs have to agree with
$(OUT)/tables: $(OUT)/tests/lint/tables.o $(OBJ)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(lib_libs)
$(OUT)/tables.json: $(OUT)/tables
	@$< >$@

# with FLAVOUR=fuzz CC=clang
fuzzers := $(patsubst tests/fuzz/fuzz_%.c,$(OUT)/fuzz/%,\
             $(sort $(wildcard tests/fuzz/fuzz_*.c)))
fuzz_shared := $(patsubst %.c,$(OUT)/%.o,\
                 $(filter-out tests/fuzz/fuzz_%,$(wildcard tests/fuzz/*.c)))
# What no fuzzer needs; whoever lists too much is told by the linker
unfuzzed := $(addprefix server/,world plan notify \
              $(addprefix base/,linefile loop) \
              $(addprefix node/,confirm dial line link resolver \
                subscription)) \
            $(addprefix api/,batch exchange front handler locks http/% \
              $(addprefix access/,access accounts audit))
fuzzed := $(filter-out $(unfuzzed:%=$(OUT)/%.o),$(OBJ))
$(fuzzers): $(OUT)/fuzz/%: $(OUT)/tests/fuzz/fuzz_%.o $(fuzz_shared) $(fuzzed)
	@mkdir -p $(@D)
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(lib_libs)
fuzzers: $(fuzzers)

# What measures; only load-etcd speaks to another service
bench_obj = $(patsubst %,$(OUT)/tests/bench/%.o,$(1))
bench_programs := $(patsubst %,$(OUT)/%,load load-etcd contention baseline floor)
$(OUT)/load: $(call bench_obj,load http sample redlockd)
$(OUT)/load-etcd: $(call bench_obj,load http sample peers/etcd)
$(OUT)/contention: $(call bench_obj,contention http sample)
$(OUT)/baseline: $(call bench_obj,baseline sample)
$(OUT)/floor: $(call bench_obj,floor)
$(bench_programs):
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -Wl,--as-needed -o $@ $^ $(lib_libs)
bench-tools: $(OUT)/redlockd $(bench_programs) $(OUT)/nemesis-proxy

$(OUT)/beat: $(OUT)/tests/cli/beat.o
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^
$(OUT)/nemesis-proxy: $(OUT)/tests/nemesis/proxy.o
	@echo "LINK $@"
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^
# for processes that know nothing of sanitizers
$(OUT)/nemesis-shim.so: tests/nemesis/shim.c
	@mkdir -p $(@D)
	@echo "LINK $@"
	$(Q)$(CC) $(C_FLAGS) -O2 -g $(CFLAGS) -fPIC -shared -o $@ $< -ldl
$(OUT)/starved-shim.so: tests/starved/shim.c tests/starved/page.h
	@mkdir -p $(@D)
	@echo "LINK $@"
	$(Q)$(CC) $(C_FLAGS) $(lib_cflags) -O2 -g $(CFLAGS) -fPIC -shared -o $@ $< -ldl
nemesis-tools: $(OUT)/redlockd $(OUT)/nemesis-proxy $(OUT)/nemesis-shim.so

# Any test over Valkey: its programs have the names of those of Redis.
ifdef VALKEY
valkey := $(shell tests/lib/valkey.sh)
export PATH := $(or $(valkey),$(error No Valkey)):$(PATH)
endif

test: ## Run units, integration, docs and a short simulation
	@scripts/deps.sh build test readme tls
	@$(MAKE) --no-print-directory -j$$(nproc) build tests
	@tests/gate/run.py test $(STEPS)

gate: ## What each change must pass; STEPS="lint asan" runs some of it
	@.ci/run $(STEPS)

nightly: ## What searches further, for hours; STEPS="mutants" runs some of it
	@scripts/deps.sh build
	@tests/gate/run.py nightly $(STEPS)

check-tools: ## What no gate runs in full: does it still run? ONLY="soak crowd"
	@scripts/deps.sh build run test lint bench peers profile nemesis mutate tls \
	  openapi examples deb debootstrap fresh
	@$(MAKE) --no-print-directory -j$$(nproc) build tests manual bench-tools
	@tests/gate/check_tools.py $(ONLY)

release-check: ## What must be true before a tag; CHECK=1: does it notice?
	@scripts/deps.sh build deb clients
	@tests/gate/release_check.py $(if $(CHECK),--check)

release-test: ## Make a release twice, use each of its files; DIST=dist PARTS="clients image" CHECK=1
	@tests/release/run.sh $(if $(CHECK),--check)

tests: $(OUT)/unit $(OUT)/sim $(OUT)/differ $(OUT)/integration nemesis-tools \
       $(OUT)/starved-shim.so $(OUT)/beat $(OUT)/tables.json

unit: $(OUT)/unit ## Run the unit tests (CK_RUN_SUITE=round: one suite)
	JOBS=$${JOBS:-$$(nproc)} AGAIN=$(or $(AGAIN),yes) \
	  tests/lib/suites.sh $(OUT)/unit tests/unit

# suites that also run with HTTP_TLS=1; the others would see nothing new
over_tls := clients drain api

# suites that take the longest: they start first
long_waits := data_centres memory machines names rights

# the servers look for leaks, the test program need not
integration: $(OUT)/integration nemesis-tools $(OUT)/starved-shim.so
integration: ## Test with real Redis servers; CK_RUN_SUITE=waiting NODES_TLS=1 HTTP_TLS=1 VALKEY=1
	ASAN_OPTIONS=detect_leaks=0 REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) \
	  TWICE="$(over_tls)" FIRST="$(long_waits)" AGAIN=$(or $(AGAIN),yes) \
	  tests/lib/suites.sh $(OUT)/integration tests/integration

starved: tests ## Let each allocation fail: of a start, of each call
	@$(MAKE) -s --no-print-directory integration STARVED_STRIDE=1 \
	  CK_RUN_SUITE=starved_server
	@$(MAKE) -s --no-print-directory integration CK_RUN_SUITE=starved

tls-test: $(OUT)/redlockd ## Try each version, cipher and group of TLS
	@scripts/deps.sh build tls
	tests/tls/accepted.py $(OUT)/redlockd

readme: $(OUT)/redlockd $(OUT)/redlockctl ## Paste the docs' commands, compare what they print
	REDLOCKD=$(OUT)/redlockd REDLOCKCTL=$(OUT)/redlockctl tests/readme/run.sh

runbooks: $(OUT)/redlockd $(OUT)/nemesis-shim.so $(MANUAL) ## Paste the runbooks on changing nodes or limits; ROWS="replace"
	REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/readme/runbooks.py $(ROWS)

drills: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Break nodes and servers one by one under load: what clients, log and alerts notice; SHORT=1 DRILLS="pause"
	@scripts/deps.sh build run
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/drills/drills.py $(if $(SHORT),--short) $(if $(DRILLS),"$(DRILLS)")

rights: $(OUT)/redlockd ## Every identity asks everything: scopes, prefixes, calls
	REDLOCKD=$(OUT)/redlockd tests/rights/matrix.py

# Half of the seeds are new each time, from SEED on if that is given.
is_asan := $(filter asan,$(FLAVOUR))
half = --seeds $(1) --fresh $(1)
SIM_ARGS ?= --kept tests/sim/seeds $(call half,$(if $(is_asan),40,600))
sim: $(OUT)/sim $(OUT)/differ ## Run the simulation, 1,200 seeds, half of them new; SEED=1 SEEDS=600
	$(OUT)/differ --kept tests/differ/seeds $(call half,$(if $(is_asan),10,20))
	$(OUT)/sim $(SIM_ARGS)

sim-long: $(OUT)/sim $(OUT)/differ ## The same with 100 million rounds; SEEDS=15000
	$(OUT)/differ --seeds 0 --fresh $(or $(SEEDS),500)
	$(OUT)/sim --seeds 0 --fresh $(or $(SEEDS),15000)

long: ## 100,000 grants over restarting nodes; scenes 200 times; GRANTS=100000 TRIES=100
	@$(MAKE) --no-print-directory integration \
	  FENCE_GRANTS=$(or $(GRANTS),100000) CK_RUN_SUITE=fence
	@$(MAKE) --no-print-directory integration CK_TIMEOUT_MULTIPLIER=10 \
	  TAIL_TRIES=$(or $(TRIES),100) CK_RUN_SUITE=memory_tail

asan: export ASAN_OPTIONS ?= quarantine_size_mb=4
# Tests of a suite share a process: it is looked through for leaks once, and is
# not copied for each test. These leave something behind for the next one.
asan: export CK_FORK = no
asan: export CK_EXCLUDE_TAGS ?= $(if $(SHORT),slow)
asan: export FORKED = access_limits audit audit_file audit_required confirm dial linefile log \
                      front_turns process
asan: ## Run units, integration, simulation under ASan, UBSan; SHORT=1
	@scripts/deps.sh build test
	@$(MAKE) --no-print-directory -j$$(nproc) FLAVOUR=asan tests
	@$(MAKE) --no-print-directory FLAVOUR=asan unit
	@$(MAKE) --no-print-directory FLAVOUR=asan sim
	@WITHOUT="$(if $(SHORT),$(asan_rest))" CK_FORK= \
	  $(MAKE) --no-print-directory FLAVOUR=asan integration

# What SHORT=1 leaves to the nightly run: suites about who may vote and about
# time, whose code the units and the simulation go through under ASan as well.
asan_rest := admission changes contention data_centres faults fence flood load machines \
             memory memory_clocks memory_servers memory_tail names permits proxies \
             spread verdicts wait_crowds wait_noise

# Debian packages, and what bench.py is told
define measure
@scripts/deps.sh build $(1)
@$(MAKE) -s --no-print-directory -j$$(nproc) bench-tools
@TOOLS=$(OUT) tests/bench/bench.py $(2) $(if $(SHORT),--short)
endef

bench: ## Measure against the literal Redlock page; draw a plot
	$(call measure,bench,literal)

bench-collected: ## Clients whose calls are collected, beside a request for each; CLIENTS="1 64" LINES="1 2" PAIRS=3
bench-contention: ## Clients that want the same locks: wait or poll; a plot; PAIRS=3 CLIENTS="2 16" MODES="wait 10-10" SERVERS=1
bench-fairness: ## Clients of several servers that wait for one lock; SPLITS="3+1 4+4" PAIRS=3 HOLD_MS=100
bench-permits: ## Permits of a pool beside ordinary locks; PAIRS=3 CLIENTS=64
bench-readers: ## Shared locks beside exclusive ones; PAIRS=3 CLIENTS=64
bench-batch: ## A batch of 100 operations beside single calls; PAIRS=7 ROUNDS=40
bench-watches: ## How soon watches tell, what 10,000 cost; SCENES="own crowd"
bench-peers: ## Measure beside other lock libraries and etcd; a plot; PROCESSES=64 PAIRS=7 CLIENTS=64 PEERS="rslock etcd"
bench-clients: ## The packages beside the libraries that they replace; many held locks; LANGUAGES=ruby OLD_RUBY=folder of another version, HELD="100 10000" SECONDS=60 BUSY=2
bench-scale: ## Measure with up to 10,000 clients, servers, distance; a plot; PAIRS=3 SERVERS="1 2"
bench-flood: ## One identity far above its limit; what others notice; PAIRS=3 FLOODERS="32 1000"
bench-options: ## Measure with OPTIONS="--audit-log FILE" and without, in turns; CLIENTS=64
bench-forgetting: ## Nodes that forget under load; SCENES="idle load"
bench-tenants: ## What lists, waits and readers of one client cost the others; SCENES="lists shares readers"
bench-fsync: ## Measure beside redis-benchmark, with an fsync for each write
bench-profile: ## Where the CPU time of a cycle goes; OLD=binary compares
bench-tls: ## TLS beside plain HTTP; the CPU time of a handshake; PAIRS=3 HANDSHAKES=200
bench_needs_peers := openapi peers
bench_needs_clients := openapi
bench_needs_profile := profile
bench_needs_tls := tls
$(addprefix bench-,collected contention fairness permits readers batch watches \
  peers clients scale flood options forgetting tenants fsync profile tls): bench-%:
	$(call measure,bench $(bench_needs_$*),$* $(SCENES))

soak: ## A million cycles: memory and descriptors must not grow; CYCLES=1000000
	$(call measure,bench,soak)

crowd: ## Ten thousand clients that do nothing, and a few that work; CROWD=10000 KINDS=tls RUNS=3
	$(call measure,bench tls,crowd $(KINDS))

leavers: ## Clients that leave at random moments, under ASan; REQUESTS=200000 SEED=1
	@scripts/deps.sh build bench
	@$(MAKE) -s --no-print-directory -j$$(nproc) FLAVOUR=asan build/asan/redlockd
	@REDLOCKD=build/asan/redlockd tests/bench/bench.py leavers

nemesis: ## Faults at random, and a proof; SECONDS=60 SEED=1 FAULTS=all TLS=1 KEPT=1
	@scripts/deps.sh build nemesis
	@$(MAKE) -s --no-print-directory -j$$(nproc) nemesis-tools
	@REDLOCKD=$${REDLOCKD:-$(OUT)/redlockd} tests/nemesis/nemesis.py \
	  --tools $(OUT) $(if $(SECONDS),--seconds $(SECONDS)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(FAULTS),--faults $(FAULTS)) \
	  $(if $(TLS),--tls) $(if $(KEPT),--kept) $(NEMESIS_ARGS)

ctl-test: $(OUT)/redlockd $(OUT)/redlockctl $(OUT)/beat $(OUT)/starved-shim.so ## redlockctl: each command; faults; TRIES=4
	@scripts/deps.sh build run ctl
	@REDLOCKD=$(OUT)/redlockd REDLOCKCTL=$(OUT)/redlockctl BEAT=$(OUT)/beat \
	  tests/cli/run.sh $(or $(TRIES),4)

proxies-test: $(OUT)/redlockd $(OUT)/redlockctl ## HAProxy and nginx with deploy/; clients that leave; SHORT=1 LONG=1
	@SHORT=$(SHORT) REDLOCKD=$(OUT)/redlockd REDLOCKCTL=$(OUT)/redlockctl \
	  tests/proxies/run.sh

rotate-test: $(OUT)/redlockd ## The audit log under load, rotated by the real logrotate
	@scripts/deps.sh build run ctl rotate
	@REDLOCKD=$(OUT)/redlockd PYTHONPATH=tests/lib PYTHONDONTWRITEBYTECODE=1 \
	  tests/package/rotate.py

fuzz: ## Fuzz each parser; FUZZ_SECONDS=60 for each, FUZZERS="id json" SEED=1
	@scripts/deps.sh build fuzz
	@$(MAKE) --no-print-directory -j$$(nproc) FLAVOUR=fuzz CC=clang fuzzers
	@tests/fuzz/run.sh build/fuzz/fuzz

mutants: $(OUT)/redlockd $(OUT)/redlockctl $(OUT)/unit $(OUT)/sim $(OUT)/differ ## Take one cure away at a time: who notices? MUTANTS_ARGS="--only mark"
	@scripts/deps.sh build nemesis
	@$(MAKE) -s --no-print-directory -j$$(nproc) nemesis-tools
	@tests/mutants/run.py $(MUTANTS_ARGS)

mutate: ## Change code at random: who notices? COUNT=50 SEED=1 SUITES=unit,sim MUTATE_ARGS="--only 7"
	@scripts/deps.sh build test nemesis mutate
	@$(MAKE) -s --no-print-directory -j$$(nproc) tests
	@tests/mutants/mutate.py $(if $(COUNT),--count $(COUNT)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(SUITES),--suites $(SUITES)) \
	  $(if $(JOBS),--jobs $(JOBS)) $(MUTATE_ARGS) -- \
	  $(filter-out -Werror,$(C_FLAGS)) $(lib_cflags)

model: ## Check the voting rules exhaustively with Spin; SHORT=1
	@SHORT=$(SHORT) tests/model/run.sh

openapi-test: $(OUT)/redlockd ## Attack the API by its description; EXAMPLES=100 SEED=1
	@REDLOCKD=$(OUT)/redlockd tests/openapi/run.sh

generators: $(OUT)/redlockd ## Generate clients in many languages, let them do a job; SHORT=1 GENERATORS="go ruby"
	@REDLOCKD=$(OUT)/redlockd SHORT=$(SHORT) GENERATORS="$(GENERATORS)" \
	  tests/openapi/generators/run.sh

page-test: $(OUT)/redlockd ## Look at the status page in a browser; STORIES="paused hostile" PICTURES=docs/images
	@REDLOCKD=$(OUT)/redlockd tests/page/run.sh

python-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the Python client, installed from its wheel; TESTS=check_live.Faults PYTHON=python3.13
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/python/run.sh $(TESTS)

node-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the Node client, as npm packs it; TRIES=2 of each fault TESTS="renew faults" NODE=/path
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/node/run.sh $(TESTS)
go-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the Go client, from a module proxy; TRIES=20 TESTS=check_faults.Faults
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) TRIES=$(TRIES) tests/go/run.sh $(TESTS)

php-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the PHP client and its store for Symfony; TRIES=20 TESTS=check_faults.Faults
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) TRIES=$(TRIES) tests/php/run.sh $(TESTS)

ruby-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the Ruby client and its concern for ActiveJob; TRIES=20 TESTS=check_faults.Faults
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) TRIES=$(TRIES) tests/ruby/run.sh $(TESTS)

java-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the Java client; TRIES=20 TESTS=check_faults.Faults
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) TRIES=$(TRIES) tests/java/run.sh $(TESTS)

rust-test: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Test the crate for Rust, with Debian's compiler; TRIES=20 TESTS=check_faults.Faults
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) TRIES=$(TRIES) tests/rust/run.sh $(TESTS)

interop: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Break other Redlock libraries, then `neighbours`; STORIES="1 5"
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/interop/run.sh main neighbours

neighbours: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Which lock libraries exclude redlockd; NEIGHBOURS="redsync GETSET" WRITE=1
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/interop/run.sh neighbours

examples: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## Copyable clients under faults; LANGUAGES="requests shell" STORIES="lost asleep" JOBS=2
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/examples/run.sh

examples-broken: $(OUT)/redlockd $(OUT)/nemesis-shim.so ## The same with clients that are broken
	@REDLOCKD=$(OUT)/redlockd TOOLS=$(OUT) tests/examples/run.sh --self-test

kube-test: $(OUT)/redlockd ## Check the Kubernetes manifests; run their arguments; TESTS=check_live
	@REDLOCKD=$(OUT)/redlockd tests/kube/run.sh $(TESTS)

alerts-test: $(OUT)/redlockd ## Let each alert fire; ask each query of the dashboard; TESTS=check_live
	@REDLOCKD=$(OUT)/redlockd tests/alerts/run.sh $(TESTS)

compose-test: $(OUT)/redlockctl ## Stop, pause, replace what docker-compose starts; VALKEY=1
	@tests/compose/run.sh

fresh: ## Follow README on bare trees of Debian 12 and 13; CHECK=1: if it could
	@tests/fresh/run.sh $(if $(CHECK),--check)

deb-test: ## Build, install, run, upgrade, purge the packages; DEB=bookworm CHECK=1
	@tests/package/run.sh $(if $(CHECK),--check)

production: ## Follow docs/deploy/production.md on six bare Debian systems; SHORT=1 CHECK=1
	@tests/production/run.sh $(if $(CHECK),--check) $(if $(SHORT),--short)

lint: $(OUT)/redlockd $(OUT)/redlockctl $(OUT)/tables.json $(MANUAL) ## Check layout, sizes, includes, scripts, docs, openapi.yaml
	tests/lint/build.sh
	@tests/lint/format.sh $(CLANG_FORMAT) $(C_FILES)
	python3 tests/lint/sources.py
	tests/lint/layers.py $(OUT)
	tests/lint/modules.py
	tests/lint/words.py
	tests/lint/pages.py
	tests/lint/sentences.py
	tests/lint/plain.py $(OUT)/redlockd $(OUT)/redlockctl
	scripts/project.py --check
	scripts/map.py --check
	python3 tests/lint/docs.py $(OUT)/redlockd $(OUT)/tables.json
	tests/proxies/check_deploy.py --check
	tests/lint/shipped.py
	tests/lint/packages.py $(OUT)
	tests/lint/spec.py $(OUT)/redlockd $(OUT)/tables.json
	tests/lint/vocabulary.py $(OUT)/redlockd $(OUT)/tables.json
	tests/lint/drawn.py
	tests/lint/spdx.py
	@bash -euc 'source tests/lib/libraries.sh; libraries_python build/lint $$1' - tests/lint/requirements.txt
	tests/lint/github.py build/lint/venv/bin
	tests/mutants/run.py --check
	shellcheck -x scripts/*.sh docker/*.sh deploy/*/*.sh tests/*/*.sh tests/*/*/*.sh api/clients/examples/*.sh \
	  api/clients/examples/*/*.sh \
	  .ci/run

# FLAVOUR is of no matter: nothing is compiled
analyse: $(texts) ## Run clang-tidy and cppcheck over C files; SHORT=1 FOLDERS="server api"
	@scripts/deps.sh build test analyse
	@SHORT=$(SHORT) FOLDERS="$(FOLDERS)" tests/lint/analyse.sh $(C_FLAGS) $(lib_cflags)
