/*-------------------------------------------------------------------------
 *
 * seeds.c
 *	  Write what the fuzzer begins with: the texts of the unit tests, and the
 *	  words that the rules look for.
 *
 *	  seeds CELLS_FOLDER REDACT_FOLDER VERIFY_FOLDER DICTIONARY
 *
 *-------------------------------------------------------------------------
 */
#include "redact.h"
#include "secret_vectors.h"

#include "fuzz.h"

/* Texts of test_cell.c, where they stand as calls. */
static const char *const cells[] = {
	"=1+1", "+A1", "-2+3", "@SUM(1)", "\t=1", "\r\n\x1f=1", "  =1",
	"\xC2\xA0=1", "\xE3\x80\x80=1", "\xEF\xBB\xBF=1", "\xE2\x80\x8B=1",
	"\xE2\x80\x8E=1", "\xCC\x81=1", "\xF3\xA0\x80\xAD=1", "\xEF\xBC\x9D" "1",
	"\xEF\xB9\xA3" "1", "''=1", "' =1", "'tis fine", "'", "-42",
	"'[redacted:x]", "one\r\ntwo", "\xED\xA0\xBD", "\xC0\x80", "ab\xE2\x82",
	"a\xE2\x80\xAEz", "a,b\"c\"", " blank ", ""
};

static void
write_seed(const char *folder, int number, const char *head,
		   size_t head_length, const char *text)
{
	char		path[4096];
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/seed-%04d", folder, number);
	file = fopen(path, "wb");
	demand(file != NULL);
	fwrite(head, 1, head_length, file);
	fputs(text, file);
	demand(fclose(file) == 0);
}

/* In libFuzzer's form: one quoted word a line. */
static void
write_dictionary(const char *path)
{
	FILE	   *file = fopen(path, "w");
	int			i;
	int			j;

	demand(file != NULL);
	for (i = 0; i < ev_builtin_rule_count; i++)
		for (j = 0; j < ev_builtin_rules[i].nanchors; j++)
		{
			const char *c = ev_builtin_rules[i].anchors[j];

			fputc('"', file);
			for (; *c != '\0'; c++)
				fprintf(file, "\\x%02X", (unsigned char) *c);
			fputs("\"\n", file);
		}
	fputs("\"\\xFE\"\n\"\\xFD\"\n\"[redacted:\"\n\"'=\"\n", file);
	demand(fclose(file) == 0);
}

int
main(int argc, char **argv)
{
	int			ncells = (int) (sizeof(cells) / sizeof(cells[0]));
	int			nvectors = (int) (sizeof(secret_vectors) /
								  sizeof(secret_vectors[0]));
	int			i;

	demand(argc == 5);
	for (i = 0; i < ncells + nvectors; i++)
	{
		const char *text;
		char		head[] = {(char) (2 * i), (char) (i * 7), (char) i};

		text = i < ncells ? cells[i] : secret_vectors[i - ncells].text;
		write_seed(argv[1], i, "\0", 1, text);
		write_seed(argv[2], i, head, 3, text);
		head[0] = 2;
		write_seed(argv[3], i, head, 3, text);
	}

	/* Rules as users write them, each with a text that it matches. */
	write_seed(argv[2], i++, "\1\0\0", 3, "badge-([0-9]{6})\xFE" "badge-\xFE" "badge-123456, badge-7");
	write_seed(argv[2], i++, "\3\0\0", 3, "(a+)+$\xFE" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
	write_seed(argv[2], i++, "\1\0\0", 3, "(?i)\\bkey\\s*=\\s*(\\S+)\xFE" "key\xFE" "KEY = a1, k\xC3\xA4y");
	write_seed(argv[2], i++, "\1\0\0", 3, "q*\xFE" "bcq\xC3\xA4");
	write_seed(argv[2], i, "\1\0\0", 3, "(?<=x)(?:(?R)|\\p{L}\\K.)\xFE" "xx\xC3\xA4y");
	write_dictionary(argv[4]);
	return 0;
}
