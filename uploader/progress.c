/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  A progress bar on a terminal, nothing anywhere else.
 *
 * A bar is one line of standard error that is written over again and again.
 * It is made to fit 80 columns and cut to the width of the terminal, since a
 * line that wraps cannot be written over.  The remaining time is a range
 * because the server gives one: how long compression and commit take is not
 * known in advance.
 *
 * A program has one standard error, so what is on it is file state here.
 *
 *-------------------------------------------------------------------------
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "progress.h"

#define BAR_CELLS 16
#define LINE_SIZE 256

static bool visible = false;
static bool line_open = false;

void
ev_progress_setup(bool wanted)
{
	visible = wanted && isatty(STDERR_FILENO);
}

bool
ev_progress_visible(void)
{
	return visible;
}

/* Replace the current line by this one. */
static void
draw(char *line)
{
	struct winsize window;
	size_t		width = 80;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
		width = window.ws_col;

	/* A full last column makes some terminals wrap. */
	if (strlen(line) >= width)
		line[width - 1] = '\0';
	fprintf(stderr, "\r%s\033[K", line);
	fflush(stderr);
	line_open = true;
}

/* Write "[####----]  42.0 %" for a part from 0 to 1, or an empty bar. */
static int
put_bar(char *line, size_t size, double part)
{
	char		bar[BAR_CELLS + 1];
	int			full = part <= 0 ? 0 : (int) (part * BAR_CELLS);

	if (full > BAR_CELLS)
		full = BAR_CELLS;
	memset(bar, '#', (size_t) full);
	memset(bar + full, '-', (size_t) (BAR_CELLS - full));
	bar[BAR_CELLS] = '\0';
	if (part < 0)
		return snprintf(line, size, "[%s]       ", bar);
	return snprintf(line, size, "[%s] %5.1f %%", bar,
					part > 1 ? 100.0 : part * 100);
}

/* Write a range of time in one unit that suits its end. */
static void
put_range(char *text, size_t size, double low, double high)
{
	const char *unit = high < 120 ? "s" : high < 7200 ? "min" : "h";
	double		length = high < 120 ? 1 : high < 7200 ? 60 : 3600;

	low = floor(low / length);
	high = ceil(high / length);
	if (low >= high)
		snprintf(text, size, "  %.0f %s left", high, unit);
	else
		snprintf(text, size, "  %.0f-%.0f %s left", low, high, unit);
}

void
ev_progress_export(const EvExport *export)
{
	char		line[LINE_SIZE];
	int			used;

	if (!visible)
		return;
	used = put_bar(line, sizeof(line), export->progress);
	used += snprintf(line + used, sizeof(line) - (size_t) used, "  %.12s",
					 export->state == NULL ? "" : export->state);
	if (export->rows_done >= 0 && export->rows_total >= 0)
		used += snprintf(line + used, sizeof(line) - (size_t) used,
						 "  %" PRId64 "/%" PRId64 " rows", export->rows_done,
						 export->rows_total);
	if (export->rows_per_second >= 1000)
		used += snprintf(line + used, sizeof(line) - (size_t) used,
						 "  %.0fk/s", export->rows_per_second / 1000);
	else if (export->rows_per_second > 0)
		used += snprintf(line + used, sizeof(line) - (size_t) used,
						 "  %.0f/s", export->rows_per_second);
	if (export->eta_low >= 0 && export->eta_high >= 0)
		put_range(line + used, sizeof(line) - (size_t) used,
				  export->eta_low, export->eta_high);
	draw(line);
}

void
ev_progress_download(int64_t done, int64_t total)
{
	char		line[LINE_SIZE];
	int			used;

	if (!visible)
		return;
	used = put_bar(line, sizeof(line),
				   total > 0 ? (double) done / (double) total : -1);
	snprintf(line + used, sizeof(line) - (size_t) used,
			 "  %.1f of %.1f MB", (double) done / 1e6, (double) total / 1e6);
	draw(line);
}

void
ev_progress_end(void)
{
	if (!line_open)
		return;
	fputc('\n', stderr);
	line_open = false;
}
