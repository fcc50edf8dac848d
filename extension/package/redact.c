/*-------------------------------------------------------------------------
 *
 * redact.c
 *	  Find secrets in one text value and replace each by a mark.
 *
 * Rules are PCRE2 patterns, compiled just in time where the library can.
 * Almost no value holds a secret, so a value first goes through one cheap
 * scan for the anchors of all rules (anchor.c), and only rules whose anchor
 * occurs are run.
 *
 * A value is searched as it stands and, when it holds such characters, in
 * views of it (view.c): without invisible characters, without line breaks,
 * with percent signs decoded, and runs of base64 decoded.  What any of these
 * finds is mapped back, put together and replaced.
 *
 * Patterns meet text of attackers.  The rules of this library are linear by
 * construction; for all others there is a match limit, and a rule that
 * reaches it makes the whole value a mark, since what it would have found is
 * unknown.  The limit counts steps and not time, so the outcome is the same
 * on every machine.
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "anchor.h"
#include "base64.h"
#include "redact.h"
#include "redact_rule.h"
#include "scan.h"
#include "unicode.h"
#include "view.h"

#define MARK_START "[redacted:"

/* Steps that one match may take: enough for a linear one, and no more. */
#define MATCH_LIMIT_BASE 100000
#define MATCH_LIMIT_PER_BYTE 50
#define MATCH_LIMIT_MAX UINT32_C(4000000000)

#define HEAP_LIMIT_KB 65536
#define JIT_STACK_START (32 * 1024)
#define JIT_STACK_LIMIT (1024 * 1024)
#define PERCENT_LEVELS 3

/* One rule, ready to run. */
typedef struct Rule
{
	char		name[EV_RULE_NAME_LIMIT + 1];
	unsigned	flags;
	bool		fast;			/* compiled just in time, or that failed */
	pcre2_code *code;
} Rule;

/* A secret in the original text. */
typedef struct Span
{
	size_t		start;
	size_t		end;
	int			rule;
} Span;

struct EvRedactor
{
	Rule	   *rules;
	int			nrules;
	EvAnchorSet *anchors;
	bool	   *wanted;			/* per rule: its anchor occurs */
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
	EvBuffer	spans;
	EvBuffer	compact;		/* for the search of anchors */
	EvBuffer	decoded;		/* of one base64 run */
	EvView		stripped;
	EvView		joined;
	EvView		percent[2];
};

static bool compile_rules(EvRedactor *redactor, const EvRule *rules,
						  int nrules, EvError *error);
static bool prepare_matching(EvRedactor *redactor, EvError *error);
static bool search_views(EvRedactor *redactor, const EvView *raw,
						 unsigned found, int *overrun, EvError *error);
static bool wants_lines(const EvRedactor *redactor);
static bool compact(const EvView *raw, EvBuffer *out, bool *splitters,
					bool *lines);
static bool search_percent(EvRedactor *redactor, const EvView *from,
						   int *overrun, EvError *error);
static bool search_base64(EvRedactor *redactor, const EvView *view,
						  int *overrun, EvError *error);
static bool in_long_run(const EvView *view, size_t at);
static bool try_base64(EvRedactor *redactor, const EvView *view, size_t start,
					   size_t end, int *overrun, EvError *error);
static bool search(EvRedactor *redactor, const EvView *view, unsigned flags,
				   int *overrun, EvError *error);
static bool run_rule(EvRedactor *redactor, int rule, const EvView *view,
					 int *overrun, EvError *error);
static bool is_mark(const char *text, size_t length);
static int	match_once(EvRedactor *redactor, const pcre2_code *code,
					   const EvView *view, size_t offset);
static bool add_span(EvRedactor *redactor, size_t start, size_t end, int rule);
static int	replace_spans(EvRedactor *redactor, const char *text,
						  size_t length, EvBuffer *out, EvError *error);
static int	compare_spans(const void *a, const void *b);
static bool append_mark(EvBuffer *out, const Rule *rule);
static int	out_of_memory(EvError *error);

/*
 * The rules are copied, since their texts usually come from rows of a query
 * that ends soon.
 */
EvRedactor *
ev_redactor_create(const EvRule *rules, int nrules, EvError *error)
{
	EvRedactor *redactor = calloc(1, sizeof(EvRedactor));

	if (redactor == NULL)
	{
		out_of_memory(error);
		return NULL;
	}
	if (!compile_rules(redactor, rules, nrules, error) ||
		!prepare_matching(redactor, error))
	{
		ev_redactor_free(redactor);
		return NULL;
	}
	return redactor;
}

void
ev_redactor_free(EvRedactor *redactor)
{
	int			i;

	if (redactor == NULL)
		return;
	for (i = 0; i < redactor->nrules; i++)
		pcre2_code_free(redactor->rules[i].code);
	free(redactor->rules);
	free(redactor->wanted);
	ev_anchor_set_free(redactor->anchors);
	pcre2_match_data_free(redactor->match);
	pcre2_match_context_free(redactor->context);
	pcre2_jit_stack_free(redactor->stack);
	ev_buffer_free(&redactor->spans);
	ev_buffer_free(&redactor->compact);
	ev_buffer_free(&redactor->decoded);
	ev_view_free(&redactor->stripped);
	ev_view_free(&redactor->joined);
	ev_view_free(&redactor->percent[0]);
	ev_view_free(&redactor->percent[1]);
	free(redactor);
}

int
ev_redactor_apply(EvRedactor *redactor, const char *text, size_t length,
				  EvBuffer *out, EvError *error)
{
	return ev_redactor_apply_scanned(redactor, text, length,
									 ev_scan_bytes(text, length), out, error);
}

/*
 * The result is built only when something was found, so that the usual value
 * costs no copy.
 */
int
ev_redactor_apply_scanned(EvRedactor *redactor, const char *text,
						  size_t length, unsigned found, EvBuffer *out,
						  EvError *error)
{
	EvView		raw = {0};
	int			overrun = -1;

	raw.text = text;
	raw.length = length;
	ev_buffer_reset(&redactor->spans);
	if (!search_views(redactor, &raw, found, &overrun, error))
		return -1;

	if (overrun >= 0)
	{
		ev_buffer_reset(out);
		if (!append_mark(out, &redactor->rules[overrun]))
			return out_of_memory(error);
		return 1;
	}
	if (redactor->spans.length == 0)
		return 0;
	return replace_spans(redactor, text, length, out, error);
}

/*
 * Rules keep their place in the list; it decides which of two names a mark
 * gets, and anchors refer to it.
 */
static bool
compile_rules(EvRedactor *redactor, const EvRule *rules, int nrules,
			  EvError *error)
{
	int			i;
	int			j;

	redactor->rules = calloc((size_t) nrules + 1, sizeof(Rule));
	redactor->wanted = calloc((size_t) nrules + 1, sizeof(bool));
	redactor->anchors = ev_anchor_set_create();
	if (redactor->rules == NULL || redactor->wanted == NULL ||
		redactor->anchors == NULL)
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");

	for (i = 0; i < nrules; i++)
	{
		Rule	   *rule = &redactor->rules[i];

		rule->code = ev_rule_compile(&rules[i], error);
		if (rule->code == NULL)
			return false;
		redactor->nrules++;
		strcpy(rule->name, rules[i].name);
		rule->flags = rules[i].flags;

		for (j = 0; j < rules[i].nanchors; j++)
			if (!ev_anchor_add(redactor->anchors, rules[i].anchors[j], i))
				return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		if (rules[i].nanchors == 0 &&
			!ev_anchor_always(redactor->anchors, i))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	}
	return true;
}

/*
 * One set of match data serves all rules, because a redactor works on one
 * value at a time.
 */
static bool
prepare_matching(EvRedactor *redactor, EvError *error)
{
	/* Only group 1 is of interest; more groups need no place. */
	redactor->match = pcre2_match_data_create(2, NULL);
	redactor->context = pcre2_match_context_create(NULL);
	redactor->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_LIMIT,
											 NULL);
	if (redactor->match == NULL || redactor->context == NULL)
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	pcre2_set_heap_limit(redactor->context, HEAP_LIMIT_KB);

	/* No stack means that there is no just-in-time compiler either. */
	if (redactor->stack != NULL)
		pcre2_jit_stack_assign(redactor->context, NULL, redactor->stack);
	return true;
}

/*
 * A text without any anchor is the rule, so that is found out first and once
 * for all views: taking characters out can bring an anchor together but never
 * breaks one up.
 */
static bool
search_views(EvRedactor *redactor, const EvView *raw, unsigned found,
			 int *overrun, EvError *error)
{
	const EvView *base = raw;
	bool		splitters = false;
	bool		lines = false;
	bool		any;
	bool		joined;

	if ((found & (EV_HAS_CONTROL | EV_HAS_HIGH)) != 0)
	{
		if (!compact(raw, &redactor->compact, &splitters, &lines))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		any = ev_anchor_find(redactor->anchors, redactor->compact.data,
							 redactor->compact.length, redactor->wanted,
							 redactor->nrules);
	}
	else
		any = ev_anchor_find(redactor->anchors, raw->text, raw->length,
							 redactor->wanted, redactor->nrules);

	/* The searches below use the same flags again. */
	joined = any && lines && wants_lines(redactor);
	if (raw->length > EV_VIEW_LIMIT)
		return !any || search(redactor, raw, 0, overrun, error);
	if (splitters)
	{
		if (!ev_view_strip(raw, false, &redactor->stripped))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		base = &redactor->stripped;
	}
	if (any && !search(redactor, raw, 0, overrun, error))
		return false;
	if (any && splitters && !search(redactor, base, 0, overrun, error))
		return false;
	if (joined)
	{
		if (!ev_view_strip(raw, true, &redactor->joined))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		if (!search(redactor, &redactor->joined, EV_RULE_JOIN_LINES, overrun,
					error))
			return false;
	}

	if ((found & EV_HAS_PERCENT) != 0 &&
		!search_percent(redactor, base, overrun, error))
		return false;
	return search_base64(redactor, base, overrun, error);
}

/* Is any rule whose anchor occurs to be tried with lines joined? */
static bool
wants_lines(const EvRedactor *redactor)
{
	int			i;

	for (i = 0; i < redactor->nrules; i++)
		if (redactor->wanted[i] &&
			(redactor->rules[i].flags & EV_RULE_JOIN_LINES) != 0)
			return true;
	return false;
}

/*
 * Copy without splitters and controls, and tell which of them there were.
 * Line breaks and tabs come often and close together in event texts, so they
 * are dropped byte by byte without a branch inside the copying loop.
 */
static bool
compact(const EvView *raw, EvBuffer *out, bool *splitters, bool *lines)
{
	const char *text = raw->text;
	size_t		length = raw->length;
	size_t		i = 0;
	char	   *to;

	ev_buffer_reset(out);
	if (!ev_buffer_reserve(out, length))
		return false;
	to = out->data;
	while (i < length)
	{
		uint32_t	code;
		int			width;

		i += ev_scan_lines(text + i, length - i, &to, lines);
		if (i == length)
			break;
		width = ev_utf8_decode(text + i, length - i, &code);
		if (code == 0x1B)
			width = ev_escape_length(text + i, length - i);
		if (ev_is_splitter(code))
			*splitters = true;
		else if (ev_is_control(code))
			*lines = true;
		else
		{
			memcpy(to, text + i, (size_t) width);
			to += width;
		}
		i += (size_t) width;
	}
	out->length = (size_t) (to - out->data);
	return true;
}

/* A return address inside a query string holds percent signs twice. */
static bool
search_percent(EvRedactor *redactor, const EvView *from, int *overrun,
			   EvError *error)
{
	int			level;

	for (level = 0; level < PERCENT_LEVELS; level++)
	{
		EvView	   *view = &redactor->percent[level % 2];
		bool		changed;

		if (!ev_view_percent(from, view, &changed))
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		if (!changed)
			return true;
		if (!search(redactor, view, 0, overrun, error))
			return false;
		from = view;
	}
	return true;
}

/*
 * A run of base64 is worth decoding from EV_BASE64_MIN characters on, so it
 * is enough to look at every such position and to go both ways from there.
 */
static bool
search_base64(EvRedactor *redactor, const EvView *view, int *overrun,
			  EvError *error)
{
	const char *text = view->text;
	size_t		i = EV_BASE64_MIN - 1;

	while (i < view->length)
	{
		size_t		start = i;
		size_t		end = i;

		if (!in_long_run(view, i))
		{
			i += EV_BASE64_MIN;
			continue;
		}
		while (start > 0 && ev_base64_is(text[start - 1]))
			start--;
		while (end < view->length && ev_base64_is(text[end]))
			end++;
		if (end - start >= EV_BASE64_MIN &&
			!try_base64(redactor, view, start, end, overrun, error))
			return false;
		i = end + EV_BASE64_MIN;
	}
	return true;
}

/*
 * Can this position lie in a run that is long enough?  Such a run reaches at
 * least half its length to one side; two samples there rule most words out.
 */
static bool
in_long_run(const EvView *view, size_t at)
{
	const char *p = view->text + at;
	const size_t half = EV_BASE64_MIN / 2;

	if (!ev_base64_is(p[0]))
		return false;
	return (ev_base64_is(p[-5]) && ev_base64_is(p[-9])) ||
		(view->length - at > half &&
		 ev_base64_is(p[5]) && ev_base64_is(p[half]));
}

static bool
try_base64(EvRedactor *redactor, const EvView *view, size_t start, size_t end,
		   int *overrun, EvError *error)
{
	EvView		inner = {0};
	size_t		before = redactor->spans.length;
	size_t		original_start;
	size_t		original_end;
	int			rule;
	bool		text;

	if (!ev_base64_text(view->text + start, end - start, &redactor->decoded,
						&text))
		return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	if (!text)
		return true;
	inner.text = redactor->decoded.data;
	inner.length = redactor->decoded.length;
	if (!search(redactor, &inner, 0, overrun, error))
		return false;
	if (redactor->spans.length == before)
		return true;

	/* Whatever was found inside, the run goes as a whole. */
	rule = ((Span *) (void *) (redactor->spans.data + before))->rule;
	redactor->spans.length = before;
	while (end < view->length && view->text[end] == '=')
		end++;
	ev_view_locate(view, start, end, &original_start, &original_end);
	return add_span(redactor, original_start, original_end, rule) ||
		ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
}

/* Run on one view each rule that has these flags and an anchor there. */
static bool
search(EvRedactor *redactor, const EvView *view, unsigned flags, int *overrun,
	   EvError *error)
{
	int			i;

	if (*overrun >= 0 ||
		!ev_anchor_find(redactor->anchors, view->text, view->length,
						redactor->wanted, redactor->nrules))
		return true;
	for (i = 0; i < redactor->nrules && *overrun < 0; i++)
		if (redactor->wanted[i] &&
			(redactor->rules[i].flags & flags) == flags &&
			!run_rule(redactor, i, view, overrun, error))
			return false;
	return true;
}

static bool
run_rule(EvRedactor *redactor, int rule, const EvView *view, int *overrun,
		 EvError *error)
{
	pcre2_code *code = redactor->rules[rule].code;
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(redactor->match);
	uint64_t	limit = MATCH_LIMIT_BASE;
	size_t		offset = 0;

	/*
	 * Compiling all rules just in time would take as long as exporting ten
	 * thousand rows, and most of them never run.  When the library cannot,
	 * its interpreter runs the rule: slower, same result.
	 */
	if (!redactor->rules[rule].fast)
	{
		(void) pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
		redactor->rules[rule].fast = true;
	}

	limit += (uint64_t) MATCH_LIMIT_PER_BYTE * view->length;
	if (limit > MATCH_LIMIT_MAX)
		limit = MATCH_LIMIT_MAX;
	pcre2_set_match_limit(redactor->context, (uint32_t) limit);

	while (offset <= view->length)
	{
		int			found = match_once(redactor, code, view, offset);
		size_t		start;
		size_t		end;

		if (found == PCRE2_ERROR_NOMATCH)
			break;
		if (found == PCRE2_ERROR_NOMEMORY)
			return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		if (found < 0)
		{
			*overrun = rule;
			break;
		}

		/* More than two groups make the count 0: group 1 is set then too. */
		start = at[0];
		end = at[1];
		if (found != 1 && at[2] != PCRE2_UNSET)
		{
			start = at[2];
			end = at[3];
		}
		if (end > start)
		{
			size_t		original_start;
			size_t		original_end;

			ev_view_locate(view, start, end, &original_start, &original_end);
			if (!is_mark(view->text + start, end - start) &&
				!add_span(redactor, original_start, original_end, rule))
				return ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
		}

		/* An empty match must not be found for ever. */
		if (at[1] > offset)
			offset = at[1];
		else
			do
				offset++;
			while (offset < view->length &&
				   ((unsigned char) view->text[offset] & 0xC0) == 0x80);
	}
	return true;
}

/*
 * Text that was redacted before comes back in audit events about exports.  A
 * mark in the place of a secret is no secret (case C09).
 */
static bool
is_mark(const char *text, size_t length)
{
	const size_t start = strlen(MARK_START);
	size_t		i;

	if (length <= start + 1 || memcmp(text, MARK_START, start) != 0 ||
		text[length - 1] != ']')
		return false;
	for (i = start; i < length - 1; i++)
		if (text[i] == '\0' ||
			strchr(EV_RULE_NAME_CHARACTERS, text[i]) == NULL)
			return false;
	return true;
}

/*
 * The just-in-time code needs stack for each level of a nested group and may
 * run out of it.
 */
static int
match_once(EvRedactor *redactor, const pcre2_code *code, const EvView *view,
		   size_t offset)
{
	int			found;

	found = pcre2_match(code, (PCRE2_SPTR) view->text, view->length, offset,
						PCRE2_NO_UTF_CHECK, redactor->match,
						redactor->context);

	/* The interpreter keeps its state on the heap and gets further. */
	if (found == PCRE2_ERROR_JIT_STACKLIMIT)
		found = pcre2_match(code, (PCRE2_SPTR) view->text, view->length,
							offset, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
							redactor->match, redactor->context);
	return found;
}

/*
 * Spans may overlap and come in any order; they are put right once at the end.
 */
static bool
add_span(EvRedactor *redactor, size_t start, size_t end, int rule)
{
	Span		span;

	span.start = start;
	span.end = end;
	span.rule = rule;
	return ev_buffer_append(&redactor->spans, &span, sizeof(span));
}

/* Replace spans in order; those that overlap count as one secret. */
static int
replace_spans(EvRedactor *redactor, const char *text, size_t length,
			  EvBuffer *out, EvError *error)
{
	Span	   *spans = (Span *) (void *) redactor->spans.data;
	size_t		nspans = redactor->spans.length / sizeof(Span);
	size_t		from = 0;
	size_t		i = 0;
	int			count = 0;

	qsort(spans, nspans, sizeof(Span), compare_spans);
	ev_buffer_reset(out);
	while (i < nspans)
	{
		const Rule *rule = &redactor->rules[spans[i].rule];
		size_t		start = spans[i].start;
		size_t		end = spans[i].end;

		for (i++; i < nspans && spans[i].start < end; i++)
			if (spans[i].end > end)
				end = spans[i].end;
		if (!ev_buffer_append(out, text + from, start - from) ||
			!append_mark(out, rule))
			return out_of_memory(error);
		from = end;
		count++;
	}
	if (!ev_buffer_append(out, text + from, length - from))
		return out_of_memory(error);
	return count;
}

/* By start; of equal starts the earlier rule gives the name. */
static int
compare_spans(const void *a, const void *b)
{
	const Span *left = a;
	const Span *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->rule - right->rule;
}

/* The mark begins with a bracket, which no spreadsheet takes for a formula. */
static bool
append_mark(EvBuffer *out, const Rule *rule)
{
	return ev_buffer_append_string(out, MARK_START) &&
		ev_buffer_append_string(out, rule->name) &&
		ev_buffer_append_byte(out, ']');
}

/* For functions that return a count. */
static int
out_of_memory(EvError *error)
{
	ev_error_set(error, EV_ERROR_MEMORY, "out of memory");
	return -1;
}
