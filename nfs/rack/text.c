#include "rack/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FAULTS 20
#define MOST_BYTES (64u << 20)

/* All bytes of a file, with a 0 behind. NULL after printing why. */
static char *read_all(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t size = 0, room = 1 << 16;
	char *bytes = file ? malloc(room) : NULL;

	while (bytes && !feof(file) && !ferror(file) && size < MOST_BYTES) {
		size += fread(bytes + size, 1, room - size - 1, file);
		if (size == room - 1) {
			char *more = realloc(bytes, room *= 2);

			if (!more)
				free(bytes);
			bytes = more;
		}
	}
	if (bytes && (ferror(file) || size >= MOST_BYTES || memchr(bytes, 0, size))) {
		fprintf(stderr, "%s: %s\n", path, ferror(file) ? strerror(errno) : "is not text");
		free(bytes);
		fclose(file);
		return NULL;
	}
	if (bytes)
		bytes[size] = 0;
	else
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	return bytes;
}

bool text_open(struct text *text, const char *path)
{
	*text = (struct text){.path = path, .bytes = read_all(path)};
	if (!text->bytes)
		return false;
	text->joined = malloc(strlen(text->bytes) + 1);
	if (!text->joined) {
		fprintf(stderr, "%s: no memory\n", path);
		text_close(text);
		return false;
	}
	text->next = text->bytes;
	text->next_joined = text->joined;
	return true;
}

void text_close(struct text *text)
{
	free(text->bytes);
	free(text->joined);
	text->bytes = text->joined = NULL;
}

void text_fault(struct text *text, unsigned int line, const char *format, ...)
{
	va_list arguments;

	if (++text->faults > MOST_FAULTS)
		return;
	fprintf(stderr, "%s:%u: ", text->path, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static bool is_comment(const char *word)
{
	return *word == ';' || *word == '#' || strncmp(word, "//", 2) == 0;
}

/* Split what is up to the end of a line. */
static void split(struct text *text, char *bytes, struct line *line)
{
	char *rest = bytes, *word;
	char *joined = text->next_joined;

	line->whole = joined;
	while ((word = strtok_r(rest, " \t\r\f\v", &rest)) && !is_comment(word)) {
		if (line->n == TEXT_MOST_WORDS) {
			text_fault(text, line->number, "more than %d words", TEXT_MOST_WORDS);
			break;
		}
		line->words[line->n++] = word;
		if (joined != line->whole)
			*joined++ = ' ';
		joined = stpcpy(joined, word);
	}
	if (line->n > 0)
		text->next_joined = joined + 1;
}

bool text_next(struct text *text, struct line *line)
{
	while (text->next && *text->next) {
		char *bytes = text->next, *end = strchr(bytes, '\n');

		text->next = end ? end + 1 : NULL;
		if (end)
			*end = 0;
		line->number = ++text->line;
		line->n = 0;
		split(text, bytes, line);
		if (line->n > 0)
			return true;
	}
	return false;
}

bool text_number(const char *word, uint64_t most, uint64_t *number)
{
	char *end;

	if (!isdigit((unsigned char)*word))
		return false;
	errno = 0;
	*number = strtoull(word, &end, 0);
	return errno == 0 && *end == 0 && *number <= most;
}
