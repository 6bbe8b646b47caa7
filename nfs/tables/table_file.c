#include "tables/table_file.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FAULTS 20
#define SPACES " \t\r\n"

bool table_file_open(struct table_file *file, const char *of, const char *path, const char *hint)
{
	*file = (struct table_file){.of = of, .path = path, .hint = hint};
	file->stream = fopen(path, "r");
	if (!file->stream)
		fprintf(stderr, "%s: %s: %s\n", of, path, strerror(errno));
	return file->stream != NULL;
}

void table_fault_at(struct table_file *file, unsigned int line, const char *format, ...)
{
	va_list arguments;

	if (++file->faults > MOST_FAULTS)
		return;
	fprintf(stderr, "%s:%u: ", file->path, line);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static void split(struct table_file *file, char *text)
{
	char *word, *rest = text;

	file->n = 0;
	text[strcspn(text, "#")] = '\0';
	while ((word = strsep(&rest, SPACES)) != NULL) {
		if (*word == '\0')
			continue;
		if (file->n == TABLE_MOST_WORDS) {
			table_fault(file, "more than %d words", TABLE_MOST_WORDS);
			file->n = 0;
			return;
		}
		file->words[file->n++] = word;
	}
}

/* The next line of text; false at the end. */
static bool read_line(struct table_file *file)
{
	ssize_t length;

	while ((length = getline(&file->text, &file->room, file->stream)) >= 0) {
		file->line++;
		if (!memchr(file->text, '\0', (size_t)length))
			return true;
		table_fault(file, "a zero byte: this is not a text file");
	}
	return false;
}

bool table_file_next(struct table_file *file)
{
	while (read_line(file)) {
		split(file, file->text);
		if (file->n > 0)
			return true;
	}
	return false;
}

bool table_file_next_text(struct table_file *file, char **rest)
{
	while (read_line(file)) {
		char *word = file->text + strspn(file->text, SPACES);
		size_t length = strlen(word);

		while (length > 0 && strchr(SPACES, word[length - 1]))
			length--;
		word[length] = '\0';
		if (length == 0 || *word == '#')
			continue;
		*rest = word + strcspn(word, SPACES);
		if (**rest)
			*(*rest)++ = '\0';
		*rest += strspn(*rest, SPACES);
		file->words[0] = word;
		file->n = 1;
		return true;
	}
	return false;
}

bool table_file_close(struct table_file *file)
{
	bool good = file->faults == 0;

	if (file->faults > MOST_FAULTS)
		fprintf(stderr, "%s: and %u more\n", file->path, file->faults - MOST_FAULTS);
	if (file->faults > 0)
		fprintf(stderr, "hint: %s\n", file->hint);
	if (ferror(file->stream)) {
		fprintf(stderr, "%s: %s: cannot be read\n", file->of, file->path);
		good = false;
	}
	fclose(file->stream);
	free(file->text);
	return good;
}

bool table_number(const char *word, uint32_t low, uint32_t high, uint32_t *number)
{
	unsigned long long value;
	char *end;

	if (!isdigit((unsigned char)*word))
		return false;
	errno = 0;
	value = strtoull(word, &end, 10);
	if (*end != '\0' || errno != 0 || value < low || value > high)
		return false;
	*number = (uint32_t)value;
	return true;
}

bool table_prefix(struct table_file *file, const char *word, struct prefix *prefix)
{
	const size_t length = strcspn(word, "/");
	char address[INET_ADDRSTRLEN] = "";
	uint32_t depth = 32, mask;
	struct in_addr parsed;

	*prefix = (struct prefix){0};
	if (strcmp(word, "any") == 0)
		return true;
	if (length < sizeof(address))
		memcpy(address, word, length);
	if (inet_pton(AF_INET, address, &parsed) != 1) {
		table_fault(file, "%s: not an IPv4 address", word);
		return false;
	}
	if (word[length] == '/' && !table_number(word + length + 1, 0, 32, &depth)) {
		table_fault(file, "%s: a prefix length is from 0 to 32", word);
		return false;
	}
	mask = depth == 0 ? 0 : ~UINT32_C(0) << (32 - depth);
	*prefix = (struct prefix){.address = ntohl(parsed.s_addr) & mask, .depth = (uint8_t)depth};
	if (prefix->address == ntohl(parsed.s_addr))
		return true;
	parsed.s_addr = htonl(prefix->address);
	inet_ntop(AF_INET, &parsed, address, sizeof(address));
	table_fault(file, "%s: bits beyond the prefix are set, other than in %s/%u", word, address,
		    depth);
	return false;
}

/* Clear the bits of an address beyond a prefix length; whether any was set. */
static bool clear_beyond(uint8_t address[16], uint32_t depth)
{
	bool any = false;

	for (uint32_t bit = depth; bit < 128; bit++) {
		const uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		any |= (address[bit / 8] & mask) != 0;
		address[bit / 8] &= (uint8_t)~mask;
	}
	return any;
}

bool table_prefix_ipv6(struct table_file *file, const char *word, struct prefix_ipv6 *prefix)
{
	const size_t length = strcspn(word, "/");
	char address[INET6_ADDRSTRLEN] = "";
	uint32_t depth = 128;

	*prefix = (struct prefix_ipv6){0};
	if (length < sizeof(address))
		memcpy(address, word, length);
	if (inet_pton(AF_INET6, address, prefix->address) != 1) {
		table_fault(file, "%s: not an IPv6 address", word);
		return false;
	}
	if (word[length] == '/' && !table_number(word + length + 1, 0, 128, &depth)) {
		table_fault(file, "%s: a prefix length is from 0 to 128", word);
		return false;
	}
	prefix->depth = (uint8_t)depth;
	if (!clear_beyond(prefix->address, depth))
		return true;
	inet_ntop(AF_INET6, prefix->address, address, sizeof(address));
	table_fault(file, "%s: bits beyond the prefix are set, other than in %s/%u", word, address,
		    depth);
	return false;
}
