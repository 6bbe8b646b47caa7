#include "run/chain_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/settings.h"

#define MOST_BYTES (1 << 20)
#define MOST_WORDS (NF_MOST_PARAMETERS + 8)

/* The salt of an entry, which may stand before the entry. */
struct split {
	struct service service;
	uint32_t salt;
	unsigned int line;
};

/* The file while it is read. Words of a line end with a zero byte in the text. */
struct reader {
	struct chain_spec *spec;
	const char *path;
	unsigned int line, faults;
	unsigned int n;
	char *words[MOST_WORDS];
	bool placed[CHAIN_MOST_FUNCTIONS]; /* on a core by a line of the file */
	unsigned int n_splits;
	struct split splits[CHAIN_MOST_EDGES]; /* of entries */
};

__attribute__((format(printf, 2, 3))) static void fault(struct reader *reader, const char *format,
							...)
{
	va_list arguments;

	reader->faults++;
	fprintf(stderr, "%s:%u: ", reader->path, reader->line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

/* Split a line at spaces, except between quotation marks, which are removed. */
static void split(struct reader *reader, char *line)
{
	char *from = line, *to;

	reader->n = 0;
	for (;;) {
		bool quoted = false;

		while (isspace((unsigned char)*from))
			from++;
		if (*from == '\0' || *from == '#')
			return;
		if (reader->n == MOST_WORDS) {
			fault(reader, "more than %d words", MOST_WORDS);
			return;
		}
		reader->words[reader->n++] = to = from;
		for (; *from && (quoted || !isspace((unsigned char)*from)); from++) {
			if (*from == '"')
				quoted = !quoted;
			else
				*to++ = *from;
		}
		if (quoted)
			fault(reader, "a quotation mark is not closed");
		if (*from)
			from++;
		*to = '\0';
	}
}

static int find(const struct reader *reader, const char *name)
{
	for (unsigned int i = 0; i < reader->spec->n_functions; i++)
		if (strcmp(reader->spec->functions[i].name, name) == 0)
			return (int)i;
	return -1;
}

static bool is_name(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n >= CHAIN_MOST_NAME || strcmp(text, "out") == 0 ||
	    strcmp(text, "core") == 0 || strcmp(text, "nsh") == 0)
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./") ==
	       n;
}

/* NAME: KIND key=value ... */
static void read_function(struct reader *reader)
{
	struct chain_spec *spec = reader->spec;
	struct chain_function *function = &spec->functions[spec->n_functions];
	char *name = reader->words[0], why[256];

	name[strlen(name) - 1] = '\0';
	if (spec->n_functions == CHAIN_MOST_FUNCTIONS) {
		fault(reader, "more than %d functions", CHAIN_MOST_FUNCTIONS);
		return;
	}
	if (!is_name(name)) {
		fault(reader, "\"%s\" cannot be the name of a function", name);
		return;
	}
	if (find(reader, name) >= 0) {
		fault(reader, "%s: this name is there already", name);
		return;
	}
	*function = (struct chain_function){.line = reader->line};
	strcpy(function->name, name);
	function->kind = reader->n > 1 ? nf_find(reader->words[1]) : NULL;
	spec->n_functions++; /* so that its edges find it, whatever is wrong with it */
	if (!function->kind) {
		fault(reader, "%s: %s: unknown network function", name,
		      reader->n > 1 ? reader->words[1] : "nothing");
		return;
	}
	for (unsigned int i = 2; i < reader->n; i++)
		if (!setting_add(function, reader->words[i], why, sizeof(why)))
			fault(reader, "%s: %s", name, why);
}

/* A whole number from 0 to `most`. */
static bool whole(const char *text, unsigned long most, unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, 10);
	return isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *value <= most;
}

static bool read_service(struct reader *reader, char *path, char *index, struct service *service)
{
	unsigned long of_path, at;

	if (!whole(path, 0xffffff, &of_path) || !whole(index, 255, &at)) {
		fault(reader, "nsh %s %s: a path is at most %d, an index at most 255", path, index,
		      0xffffff);
		return false;
	}
	*service = (struct service){(uint32_t)of_path, (uint8_t)at};
	return true;
}

/* "lb[2]", which is cut to "lb", has gate NF_BRANCH + 2; "lb" has NF_FORWARD. */
static bool read_gate(struct reader *reader, char *text, uint8_t *gate)
{
	char *bracket = strchr(text, '['), *end = text + strlen(text) - 1;
	unsigned long number;

	*gate = NF_FORWARD;
	if (!bracket)
		return true;
	if (*end == ']') {
		*end = '\0';
		*bracket = '\0';
		if (whole(bracket + 1, NF_MOST_BRANCHES - 1, &number)) {
			*gate = (uint8_t)(NF_BRANCH + number);
			return true;
		}
	}
	fault(reader, "%s: a gate is written NAME[NUMBER], at most %d", text,
	      NF_MOST_BRANCHES - 1);
	return false;
}

/* "1/3" or "0.25" */
static bool read_share(struct reader *reader, const char *text, struct share *share)
{
	if (share_read(text, share))
		return true;
	fault(reader, "%s: a share is a number or fraction above 0, at most 1", text);
	return false;
}

static bool read_end(struct reader *reader, const char *name, int *at)
{
	*at = find(reader, name);
	if (*at >= 0)
		return true;
	fault(reader, "%s: no function has this name%s", name,
	      strchr(name, '[') ? "" : "; functions come before edges");
	return false;
}

/* What is before the arrow. */
static bool read_from(struct reader *reader, unsigned int arrow, struct chain_edge *edge)
{
	if (strcmp(reader->words[0], "nsh") == 0 && arrow == 3) {
		edge->from = CHAIN_OUT_NSH;
		return read_service(reader, reader->words[1], reader->words[2], &edge->service);
	}
	if (arrow != 1) {
		fault(reader, "before an arrow is one function, or nsh PATH INDEX");
		return false;
	}
	return read_gate(reader, reader->words[0], &edge->gate) &&
	       read_end(reader, reader->words[0], &edge->from);
}

/* What is behind the arrow. */
static bool read_to(struct reader *reader, unsigned int first, struct chain_edge *edge)
{
	char **words = reader->words + first;
	unsigned int n = reader->n - first, used = 1;

	if (n >= 3 && strcmp(words[0], "nsh") == 0) {
		edge->to = CHAIN_OUT_NSH;
		used = 3;
		if (!read_service(reader, words[1], words[2], &edge->service))
			return false;
	} else if (n >= 1 && strcmp(words[0], "out") == 0) {
		edge->to = CHAIN_OUT;
	} else if (n < 1) {
		fault(reader, "the edge leads nowhere: a function, out, or nsh PATH INDEX");
		return false;
	} else if (!read_end(reader, words[0], &edge->to)) {
		return false;
	}
	if (n > used + 1) {
		fault(reader, "%s: only a share may follow", words[used + 1]);
		return false;
	}
	return n == used || read_share(reader, words[used], &edge->share);
}

static void read_edge(struct reader *reader, unsigned int arrow)
{
	struct chain_spec *spec = reader->spec;
	struct chain_edge edge = {.share = {1, 1}, .line = reader->line};
	const bool from = read_from(reader, arrow, &edge), to = read_to(reader, arrow + 1, &edge);

	if (!from || !to)
		return;
	if (edge.from < 0 && edge.to < 0)
		fault(reader, "this edge passes by all functions");
	else if (spec->n_edges == CHAIN_MOST_EDGES)
		fault(reader, "more than %d edges", CHAIN_MOST_EDGES);
	else
		spec->edges[spec->n_edges++] = edge;
}

/* core N: NAME ... */
static void read_core(struct reader *reader)
{
	char *number = reader->words[1];
	unsigned long core;
	int at;

	number[strlen(number) - 1] = '\0';
	if (!whole(number, CHAIN_MOST_CORES - 1, &core)) {
		fault(reader, "core %s: cores are numbered from 0 to %d", number,
		      CHAIN_MOST_CORES - 1);
		return;
	}
	reader->spec->n_cores = RTE_MAX(reader->spec->n_cores, (unsigned int)core + 1);
	for (unsigned int i = 2; i < reader->n; i++) {
		if (!read_end(reader, reader->words[i], &at))
			continue;
		if (reader->placed[at])
			fault(reader, "%s is on a core already", reader->words[i]);
		reader->placed[at] = true;
		reader->spec->functions[at].core = (unsigned int)core;
	}
}

/* split NAME SALT, or split nsh PATH INDEX SALT */
static void read_split(struct reader *reader)
{
	const bool entry = strcmp(reader->words[1], "nsh") == 0;
	const char *number = reader->words[reader->n - 1];
	struct split split = {.line = reader->line};
	unsigned long salt;
	int at;

	if (reader->n != (entry ? 5 : 3)) {
		fault(reader, "it is split NAME SALT, or split nsh PATH INDEX SALT");
		return;
	}
	if (!whole(number, UINT32_MAX, &salt)) {
		fault(reader, "%s: a salt is a whole number from 0 to %u", number, UINT32_MAX);
		return;
	}
	split.salt = (uint32_t)salt;
	if (!entry) {
		if (read_end(reader, reader->words[1], &at))
			reader->spec->functions[at].salt = split.salt;
	} else if (read_service(reader, reader->words[2], reader->words[3], &split.service)) {
		if (reader->n_splits == CHAIN_MOST_EDGES)
			fault(reader, "more than %d splits", CHAIN_MOST_EDGES);
		else
			reader->splits[reader->n_splits++] = split;
	}
}

/* Give entries their salts, once all edges are known. */
static void salt_entries(struct reader *reader)
{
	for (unsigned int i = 0; i < reader->n_splits; i++) {
		const struct split *split = &reader->splits[i];
		bool entered = false;

		for (unsigned int j = 0; j < reader->spec->n_edges; j++) {
			struct chain_edge *edge = &reader->spec->edges[j];

			if (edge->from >= 0 || edge->service.path != split->service.path ||
			    edge->service.index != split->service.index)
				continue;
			edge->salt = split->salt;
			entered = true;
		}
		reader->line = split->line;
		if (!entered)
			fault(reader, "no edge enters by nsh %u %u", split->service.path,
			      split->service.index);
	}
}

static bool ends_with_colon(const char *word)
{
	return word[strlen(word) - 1] == ':' && word[1] != '\0';
}

static void read_line(struct reader *reader, char *line)
{
	split(reader, line);
	if (reader->n == 0)
		return;
	for (unsigned int i = 0; i < reader->n; i++)
		if (strcmp(reader->words[i], "->") == 0) {
			read_edge(reader, i);
			return;
		}
	if (reader->n > 1 && strcmp(reader->words[0], "core") == 0 &&
	    ends_with_colon(reader->words[1]))
		read_core(reader);
	else if (reader->n > 1 && strcmp(reader->words[0], "split") == 0)
		read_split(reader);
	else if (ends_with_colon(reader->words[0]))
		read_function(reader);
	else
		fault(reader,
		      "neither NAME: FUNCTION, nor NAME -> NAME, nor core N: NAME, nor split NAME "
		      "SALT");
}

static void check_placed(struct reader *reader)
{
	bool any = false;

	for (unsigned int i = 0; i < reader->spec->n_functions; i++)
		any |= reader->placed[i];
	for (unsigned int i = 0; any && i < reader->spec->n_functions; i++) {
		reader->line = reader->spec->functions[i].line;
		if (!reader->placed[i])
			fault(reader, "%s is on no core", reader->spec->functions[i].name);
	}
}

static char *text_of(const char *path)
{
	FILE *stream = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	char *text = stream ? malloc(MOST_BYTES + 1) : NULL;
	size_t n = text ? fread(text, 1, MOST_BYTES + 1, stream) : 0;

	if (!stream || !text || ferror(stream)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
	} else if (n > MOST_BYTES) {
		fprintf(stderr, "%s: larger than %d bytes\n", path, MOST_BYTES);
	} else if (memchr(text, '\0', n)) {
		fprintf(stderr, "%s: not a text file\n", path);
	} else {
		text[n] = '\0';
		if (stream != stdin)
			fclose(stream);
		return text;
	}
	if (stream && stream != stdin)
		fclose(stream);
	free(text);
	return NULL;
}

bool chain_file_read(struct chain_file *file, const char *path)
{
	struct reader reader = {.spec = &file->spec, .path = path};

	*file = (struct chain_file){.spec = {.source = path, .n_cores = 1}};
	file->text = text_of(path);
	if (!file->text)
		return false;
	for (char *line = file->text, *next; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		reader.line++;
		read_line(&reader, line);
	}
	salt_entries(&reader);
	check_placed(&reader);
	return reader.faults == 0 && chain_spec_check(&file->spec) == 0;
}

void chain_file_free(struct chain_file *file)
{
	free(file->text);
	file->text = NULL;
}
