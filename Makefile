# pg_evidence: builds the server extension with PGXS and the client program
# with its own plain Makefile.
#
# "make help" lists the targets.  Everything below the line that includes
# PGXS needs PostgreSQL's development files; before it stand the targets that
# work on a bare machine, where "make deps" has yet to install them.

PG_MAJOR ?= 15
PG_CONFIG ?= /usr/lib/postgresql/$(PG_MAJOR)/bin/pg_config
PG_CONFIG_FOUND := $(shell command -v $(PG_CONFIG))
export PG_MAJOR PG_CONFIG

# The version stands in the control file and nowhere else.
CONTROL = extension/pg_evidence.control
EV_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" $(CONTROL))

MODULE_big = pg_evidence
EXTENSION = extension/pg_evidence
INSTALL_SQL = extension/pg_evidence--$(EV_VERSION).sql
DATA = $(sort $(wildcard extension/pg_evidence--*--*.sql))
DATA_built = $(INSTALL_SQL)
SCHEMA_PARTS = $(sort $(wildcard extension/schema/*.sql))

SOURCES = $(sort $(wildcard extension/pg_evidence.c \
	$(patsubst %,extension/%/*.c,base package ledger process api)))
OBJS = $(SOURCES:.c=.o)
LIBRARIES = libzip libcrypto libpcre2-8 libisal

# The compiler writes each object's headers into a .d file beside it, so that
# a changed header rebuilds exactly the objects that include it.
PG_CPPFLAGS = -Iextension -DEV_VERSION='"$(EV_VERSION)"' -MMD -MP \
	$(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null)
SHLIB_LINK = $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null)
EXTRA_CLEAN = $(OBJS:.o=.d) $(DIST_FILE) results regression.diffs \
	regression.out output_iso tmp_check

# The client program goes where users have their programs, not into the
# server's own folder.
PROGRAM_BINDIR ?= /usr/local/bin

# Tests are found, not listed: a new file in its folder is a new test.
REGRESS = $(sort $(basename $(notdir $(wildcard sql/*.sql))))
ISOLATION = $(sort $(basename $(notdir $(wildcard test/isolation/specs/*.spec))))
ISOLATION_OPTS = --inputdir=$(srcdir)/test/isolation \
	--load-extension=pg_evidence
TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

# Just-in-time bitcode would ask every user for clang and gains nothing here.
override with_llvm = no

DIST_NAME = pg_evidence-$(EV_VERSION)
DIST_FILE = $(DIST_NAME).zip

.PHONY: all help deps test test-versions test-foreign test-chaos test-large \
	demo demo-objectstore bench fuzz coverage kill-matrix format check-format check-includes check-docs \
	check-install warnings dist program \
	install-program uninstall-program clean-program clean-tests test-unit \
	test-regress test-isolation test-pgtap test-tap

all: program

help:
	@echo 'make              build the extension and the program'
	@echo 'make deps         install what the other targets need (Debian, root)'
	@echo 'make install      install extension and program'
	@echo 'make demo         deps, build, then one export shown from end to end in'
	@echo '                  a throw-away server; KEEP=1 leaves that one running'
	@echo 'make demo-objectstore'
	@echo '                  the same with a throw-away object store'
	@echo 'make test         deps, then every check and test'
	@echo 'make test-unit | test-regress | test-isolation | test-pgtap | test-tap'
	@echo '                  one kind of test; TESTS="..." picks single ones'
	@echo 'make test-versions'
	@echo '                  everything on PostgreSQL 15, 17 and 18 (root, Debian);'
	@echo '                  MAJORS="17 18", FRESH=1, RECORD=1'
	@echo 'make test-foreign spreadsheets, unpackers and databases read packages;'
	@echo '                  installs them first'
	@echo 'make test-chaos   many sessions at work while processes are killed;'
	@echo '                  SECONDS=600 SEED=1 SESSIONS=20, RECORD=1, KEEP=1'
	@echo 'make test-large   the tests of memory with 2,000 exports of each kind, and'
	@echo '                  of a filter that matches 10 rows of 10 million'
	@echo 'make check-format | check-includes | check-docs | check-install | warnings'
	@echo 'make format       format all C files, renew the list of types'
	@echo 'make bench        speed against what one would use instead; QUICK=1 for'
	@echo '                  a short one, ONLY="archive claim" RUNS=5 ROWS="50000"'
	@echo '                  to pick; RECORD=1 writes the table into README.md'
	@echo 'make kill-matrix  the tests in which processes die, and a table of what'
	@echo '                  came of each death; RECORD=1 as above'
	@echo 'make fuzz         fuzz package code and verifier; SECONDS_EACH=60'
	@echo 'make coverage     which lines no test has run'
	@echo 'make dist         zip the committed tree for release'
	@echo 'make clean        remove what was built'
	@echo 'PG_MAJOR=17 or PG_CONFIG=/path/to/pg_config picks the server version.'

deps:
	@test/tools/install-deps

# deps may just have installed PGXS: a second make reads this file anew.
test: deps
	@test/tools/run-tests

# MAJORS="17 18" picks some; each brings its own dependencies.
test-versions:
	@test/versions/run $(MAJORS)

test-chaos:
	@test/tools/install-deps python3-psycopg
	@test/chaos/run $(if $(SECONDS),--seconds $(SECONDS)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(SESSIONS),--sessions $(SESSIONS)) \
	  $(if $(KEEP),--keep)

# Loading so many rows takes minutes; the waits of the tests must allow it.
test-large: deps
	@EVIDENCE_EXPORTS=2000 EVIDENCE_ROWS=10000000 \
	  PG_TEST_TIMEOUT_DEFAULT=900 \
	  test/tools/run-tests --only tap 075_memory 027_needle

demo: deps
	@demo/run $(if $(KEEP),--keep)

demo-objectstore: deps
	@demo/objectstore

bench: deps
	@test/bench/run $(if $(ONLY),--only "$(ONLY)") \
	  $(if $(ROWS),--rows "$(ROWS)") $(if $(RUNS),--runs $(RUNS)) \
	  $(if $(QUICK),--quick)

kill-matrix: deps
	@test/tools/kill_matrix.py

fuzz: deps
	@$(MAKE) --no-print-directory -s -C test/fuzz run

coverage: deps
	@COVERAGE=1 test/tools/run-tests

# Programs of other makes that read packages; too large for "make deps".
READERS = libreoffice-calc gnumeric sqlite3 miller libtext-csv-xs-perl \
	libarchive-tools

test-foreign: deps
	@test/tools/install-deps $(READERS)
	@test/tools/run-tests --only foreign

test-unit test-regress test-isolation test-pgtap test-tap:
	@test/tools/run-tests --only $(@:test-%=%) $(TESTS)

format:
	@test/tools/typedefs.py --write
	@test/tools/check_format.py --fix $(FILES)

check-format:
	@test/tools/check_format.py $(FILES)

check-includes:
	@test/tools/check_includes.py --self-test
	@test/tools/check_includes.py

check-docs:
	@test/tools/check_docs.py
	@test/tools/check_cases.py --self-test
	@test/tools/check_cases.py

check-install:
	@test/tools/check_install_script.py --self-test
	@test/tools/check_install_script.py

dist:
	git archive --format=zip --prefix=$(DIST_NAME)/ -o $(DIST_FILE) HEAD
	@echo 'wrote $(DIST_FILE)'

program:
	@$(MAKE) --no-print-directory -C uploader all

install-program:
	@$(MAKE) --no-print-directory -C uploader install bindir='$(PROGRAM_BINDIR)'

uninstall-program:
	@$(MAKE) --no-print-directory -C uploader uninstall bindir='$(PROGRAM_BINDIR)'

clean-program:
	@$(MAKE) --no-print-directory -C uploader clean

clean-tests:
	@for folder in $(dir $(wildcard test/*/Makefile)); do \
	  $(MAKE) --no-print-directory -C $$folder clean; done

ifneq ($(PG_CONFIG_FOUND),)

PGXS := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

# The process tests wait more than they work: two at a time.
PROVE_FLAGS += --timer --jobs 2 -I $(CURDIR)/test/lib

# A changed version must reach every object that prints it.
$(OBJS): $(CONTROL)

$(INSTALL_SQL): $(SCHEMA_PARTS) $(CONTROL) Makefile
	@echo 'joining $@'
	@cat $(SCHEMA_PARTS) >$@.tmp && mv $@.tmp $@

install: install-program
uninstall: uninstall-program
clean: clean-program clean-tests

# The server's own headers are declared to be system headers: their style is
# not ours to judge.  Its idiom sets three warnings off in good code:
# callbacks whose arguments PostgreSQL prescribes, lengthof() beside an int,
# and structs whose rest is left zero.
SERVER_IDIOM = -Wno-unused-parameter -Wno-sign-compare \
	-Wno-missing-field-initializers

warnings:
	@test/tools/check-32bit
	@test/tools/check-warnings $(filter-out -MMD -MP,$(CPPFLAGS)) \
	  -isystem $(includedir_server) $(SERVER_IDIOM) -- $(filter-out \
	  extension/package/%,$(SOURCES))
	@test/tools/check-warnings -Iextension -Iextension/package -Iuploader \
	  -Itest/unit -DEV_VERSION='"$(EV_VERSION)"' -D_GNU_SOURCE \
	  $(shell pkg-config --cflags $(LIBRARIES) libpq libcurl expat jansson) -- \
	  $(sort $(wildcard extension/package/*.c uploader/*.c test/unit/*.c \
	  test/fuzz/*.c test/bench/*.c test/objectstore/*.c))

-include $(OBJS:.o=.d)

else

all install uninstall clean warnings: need-server-files

.PHONY: need-server-files
need-server-files:
	@echo 'no $(PG_CONFIG) here: run "make deps" as root first,' >&2
	@echo 'or set PG_CONFIG to the pg_config of your server' >&2
	@false

endif
