#include "tables/backend_file.h"

#include <string.h>

#include "tables/table_file.h"

static const char hint[] = "ADDRESS [WEIGHT], as `198.18.0.1 2`";

/* The backend of a line; false after printing what is wrong with it. */
static bool read_backend(struct table_file *file, struct backend *backend)
{
	struct prefix prefix;
	uint32_t weight = 1;

	if (!table_prefix(file, file->words[0], &prefix))
		return false;
	if (prefix.depth != 32 || strchr(file->words[0], '/')) {
		table_fault(file, "%s: not the address of a backend", file->words[0]);
		return false;
	}
	if (file->n > 1 && !table_number(file->words[1], 1, UINT16_MAX, &weight)) {
		table_fault(file, "%s: a weight is from 1 to %d", file->words[1], UINT16_MAX);
		return false;
	}
	if (file->n > 2) {
		table_fault(file, "%s: not expected", file->words[2]);
		return false;
	}
	*backend = (struct backend){.address = prefix.address, .weight = (uint16_t)weight};
	return true;
}

static bool is_known(const struct backend *backends, uint32_t n, uint32_t address)
{
	for (uint32_t i = 0; i < n; i++)
		if (backends[i].address == address)
			return true;
	return false;
}

uint32_t backends_read(const char *of, const char *path, struct backend *backends, uint32_t most)
{
	struct table_file file;
	struct backend backend;
	uint32_t n = 0;

	if (!table_file_open(&file, of, path, hint))
		return 0;
	while (table_file_next(&file)) {
		if (n == most) {
			table_fault(&file, "more than %u backends", most);
			break;
		}
		if (!read_backend(&file, &backend))
			continue;
		if (is_known(backends, n, backend.address))
			table_fault(&file, "%s: the backend is there already", file.words[0]);
		else
			backends[n++] = backend;
	}
	if (n == 0 && file.faults == 0)
		table_fault(&file, "no backends");
	return table_file_close(&file) ? n : 0;
}
