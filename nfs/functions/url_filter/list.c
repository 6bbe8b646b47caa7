#include "functions/url_filter/list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "functions/url_filter/url.h"
#include "tables/urls.h"

#define MOST_FAULTS 20
#define LONGEST_LABEL 63

/* Why an entry is refused; NULL if it is not. */
static const char *fault_of_host(const char *host, size_t length)
{
	size_t label = 0;

	if (length == 0 || length > URL_LONGEST_HOST)
		return length == 0 ? "no host" : "the host is longer than 253 characters";
	for (size_t i = 0; i < length; i++) {
		if (host[i] == '*')
			return "a wildcard: a domain covers its subdomains by itself";
		if (host[i] == ':' || host[i] == '@' || host[i] == '[')
			return "a user, a port or IPv6: only host names and IPv4 are matched";
		if (host[i] != '.' && host[i] != '-' && host[i] != '_' &&
		    !isalnum((unsigned char)host[i]))
			return "the host has a character that names cannot have";
		label = host[i] == '.' ? 0 : label + 1;
		if (label > LONGEST_LABEL)
			return "a label of the host is longer than 63 characters";
		if (label == 0 && (i == 0 || host[i - 1] == '.'))
			return "an empty label in the host";
	}
	return NULL;
}

static const char *fault_of_path(const char *path, size_t length)
{
	unsigned int segments = 0;

	for (size_t i = 0; i < length; i++) {
		if (path[i] == '?' || path[i] == '#')
			return "a query or fragment: only paths are matched";
		if (!isgraph((unsigned char)path[i]))
			return "the path has a character that URLs cannot have";
		segments += path[i] == '/';
	}
	if (length > URL_LONGEST_PATH)
		return "the path is longer than 4096 characters";
	return segments > URL_DEEPEST ? "the path has more than 16 segments" : NULL;
}

/* Add an entry; returns why it is refused, or NULL. */
static const char *add(struct url_table *table, const char *entry, size_t length)
{
	const size_t begin = url_authority(entry, length);
	const char *slash = memchr(entry + begin, '/', length - begin);
	const size_t path_at = slash ? (size_t)(slash - entry) : length;
	char host[URL_LONGEST_HOST], path[URL_LONGEST_PATH];
	size_t host_length = path_at - begin, path_length;
	const char *fault;

	if (host_length > 0 && entry[path_at - 1] == '.') /* as of the root */
		host_length--;
	fault = fault_of_host(entry + begin, host_length);
	if (!fault)
		fault = fault_of_path(entry + path_at, length - path_at);
	if (fault)
		return fault;
	host_length = url_host(entry + begin, host_length, host);
	url_path(entry + path_at, length - path_at, path, &path_length);
	return url_table_add(table, host, host_length, path, path_length) ? NULL : "no memory";
}

/* Shorten a line to its entry. */
static const char *entry_of(const char *line, size_t *length)
{
	for (size_t i = 0; i < *length; i++)
		if (line[i] == '#' && (i == 0 || isspace((unsigned char)line[i - 1])))
			*length = i;
	while (*length > 0 && isspace((unsigned char)line[*length - 1]))
		--*length;
	while (*length > 0 && isspace((unsigned char)*line)) {
		line++;
		--*length;
	}
	return line;
}

static uint32_t lines_of(FILE *stream)
{
	uint32_t lines = 1;
	int c;

	while ((c = getc(stream)) != EOF)
		lines += c == '\n';
	rewind(stream);
	return lines;
}

/* Returns the number of faults. */
static unsigned int add_lines(struct url_table *table, FILE *stream, const char *file)
{
	unsigned int faults = 0;
	char *line = NULL;
	size_t room = 0;
	ssize_t read;

	for (unsigned int number = 1; (read = getline(&line, &room, stream)) >= 0; number++) {
		size_t length = (size_t)read;
		const char *entry = entry_of(line, &length);
		const char *fault = length > 0 ? add(table, entry, length) : NULL;

		if (fault && ++faults <= MOST_FAULTS)
			fprintf(stderr, "%s:%u: %s\n", file, number, fault);
	}
	free(line);
	return faults;
}

struct url_table *url_list_read(const char *name, const char *file)
{
	FILE *stream = fopen(file, "r");
	struct url_table *table;
	unsigned int faults;

	if (!stream) {
		fprintf(stderr, "%s: %s: %s\n", name, file, strerror(errno));
		return NULL;
	}
	table = url_table_create(name, lines_of(stream));
	if (!table) {
		fclose(stream);
		return NULL;
	}
	faults = add_lines(table, stream, file);
	if (faults > MOST_FAULTS)
		fprintf(stderr, "%s: and %u more\n", file, faults - MOST_FAULTS);
	if (faults > 0)
		fprintf(stderr, "hint: one domain or URL a line, as example.org/ads\n");
	if (ferror(stream))
		fprintf(stderr, "%s: %s: %s\n", name, file, strerror(errno));
	if (faults > 0 || ferror(stream)) {
		url_table_destroy(table);
		table = NULL;
	}
	fclose(stream);
	return table;
}

struct url_table *url_list_generate(const char *name, uint32_t n, uint64_t seed)
{
	struct url_table *table = url_table_create(name, n);

	for (uint32_t i = 0; table && i < n; i++) {
		char url[URLS_LONGEST];
		const char *fault;

		urls_next(&seed, url);
		fault = add(table, url, strlen(url));
		if (!fault)
			continue;
		fprintf(stderr, "%s: %s: %s\n", name, url, fault);
		url_table_destroy(table);
		return NULL;
	}
	return table;
}

static bool is_listed(const struct url_table *table, struct piece authority, const char *path,
		      size_t path_length)
{
	char host[URL_LONGEST_HOST];
	const size_t length = url_host(authority.at, authority.length, host);

	return length > 0 && url_table_covers(table, host, length, path, path_length);
}

bool url_list_has(const struct url_table *table, const struct request *request)
{
	char path[URL_LONGEST_PATH];
	size_t length;

	if (!url_path(request->target.at, request->target.length, path, &length))
		length = 0; /* only domains are matched */
	for (uint8_t i = 0; i < request->n_hosts; i++)
		if (is_listed(table, request->hosts[i], path, length))
			return true;
	return false;
}
